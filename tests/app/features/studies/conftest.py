"""Shared by tests of studies in the window."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.features.studies.panel import StudiesPanel
from app.shell.window import MainWindow
from tests.app.conftest import PATIENCE_MILLISECONDS


@pytest.fixture
def panel(window: MainWindow, qtbot: QtBot) -> StudiesPanel:
    """The panel, in front."""
    window.docks.go_to("studies")
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=PATIENCE_MILLISECONDS)
    return window.panels["studies"]
