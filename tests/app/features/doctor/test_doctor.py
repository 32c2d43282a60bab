"""Help › Check installation: what is found is shown, and copied without private folders."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.shell.background import Background
from app.shell.window import MainWindow
from engine.doctor import examine
from tests.app.conftest import PATIENCE_MILLISECONDS


def test_findings_are_shown_and_copied_without_private_folders(borrowed_window: MainWindow, qtbot: QtBot) -> None:
    window = borrowed_window
    window.action["doctor"].trigger()
    dialog = window.features["doctor"].dialog
    assert dialog is not None and not dialog.copy_button.isEnabled() and "Looking" in dialog.page.toPlainText()
    qtbot.waitUntil(dialog.copy_button.isEnabled, timeout=PATIENCE_MILLISECONDS)
    shown = dialog.page.toPlainText()
    for one in examine(window.state.machine.devices):
        assert f"{one.name}: " in shown
    assert "models run on cpu" in shown
    dialog.copy_button.click()
    copied = QGuiApplication.clipboard().text()
    assert "Paretone: 0." in copied and str(Path.home()) + "/" not in copied and "problem" in copied
    dialog.close()
    qtbot.waitUntil(lambda: window.features["doctor"].dialog is None, timeout=PATIENCE_MILLISECONDS)


def test_looking_again_and_again_leaves_no_thread_behind(borrowed_window: MainWindow, qtbot: QtBot) -> None:
    window = borrowed_window
    for _ in range(3):
        window.action["doctor"].trigger()
        dialog = window.features["doctor"].dialog
        qtbot.waitUntil(dialog.copy_button.isEnabled, timeout=PATIENCE_MILLISECONDS)
        dialog.close()
        qtbot.waitUntil(lambda: window.features["doctor"].dialog is None, timeout=PATIENCE_MILLISECONDS)
    qtbot.waitUntil(lambda: window.features["doctor"].findChildren(Background) == [], timeout=PATIENCE_MILLISECONDS)
