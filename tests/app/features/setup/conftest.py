"""Setup on its own, without a window and without an engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from paretone_app.features.setup.choices import ModelActions
from paretone_app.features.setup.panel import SetupPanel
from paretone_app.shell.colours import LIGHT
from tests.app.acting import acts_of
from tests.app.presenters import Presenter


@pytest.fixture
def panel(presenter: Presenter, qtbot: QtBot) -> Iterator[SetupPanel]:
    made = SetupPanel(presenter.state, LIGHT, acts_of(ModelActions))
    qtbot.addWidget(made)
    made.resize(400, 900)
    made.show()
    yield made
    made.voice_choice.shut_down()
