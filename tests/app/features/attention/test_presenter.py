"""The attention presenter in the real window: what it shows follows the model."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from paretone_app.shell.window import MainWindow
from tests.app.conftest import PATIENCE_MILLISECONDS


@pytest.mark.slow
def test_a_captured_map_does_not_outlive_its_model(window: MainWindow, qtbot: QtBot) -> None:
    state, attention = window.state, window.panels["attention"]
    window.features["attention"].capture(0, 1)
    qtbot.waitUntil(lambda: attention.grid._captured == (0, 1), timeout=PATIENCE_MILLISECONDS)
    state.loading.load_model(state.selection.model_id)
    assert attention.grid._captured is None
    assert "Select a cell" in attention.status
    qtbot.waitUntil(lambda: state.selection.ready and not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
