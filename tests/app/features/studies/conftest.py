"""Shared by tests of studies in the window."""

import pytest
from pytestqt.qtbot import QtBot

from paretone_app.features.studies.panel import StudiesPanel
from paretone_app.shell.window import MainWindow
from tests.app.conftest import activated
from tests.app.sharing import borrowed  # noqa: F401


@pytest.fixture
def panel(window: MainWindow, qtbot: QtBot) -> StudiesPanel:
    window.workspaces.go_to("studies")
    return activated(window, qtbot).panels["studies"]
