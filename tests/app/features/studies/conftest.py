"""Shared by tests of studies in the window."""

import pytest
from pytestqt.qtbot import QtBot

from paretone_app.features.studies.panel import StudiesPanel
from paretone_app.shell.window import MainWindow
from tests.app.conftest import activated


@pytest.fixture
def window(borrowed_window: MainWindow) -> MainWindow:
    return borrowed_window


@pytest.fixture
def panel(window: MainWindow, qtbot: QtBot) -> StudiesPanel:
    window.workspaces.go_to("studies")
    return activated(window, qtbot).panels["studies"]
