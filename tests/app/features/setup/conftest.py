"""Setup on its own, without a window and without an engine."""

from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from paretone_app.features.setup.panel import SetupPanel
from paretone_app.shell.colours import LIGHT
from tests.app.acting import NamedActs
from tests.app.conftest import on_screen
from tests.app.presenters import Presenter
from tests.app.sharing import borrowed  # noqa: F401


@pytest.fixture
def panel(presenter: Presenter, qtbot: QtBot) -> Iterator[SetupPanel]:
    made = on_screen(SetupPanel(presenter.state, LIGHT, NamedActs()), qtbot, 400, 900)
    yield made
    made.voice_choice.shut_down()
