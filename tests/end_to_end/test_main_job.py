"""The main job as a user does it, on the bundled model, with real clicks and key presses in the real window."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QSettings, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.export.profile_dialog import ProfileDialog
from app.theme import Theme
from app.window import MainWindow
from engine.profile import Profile
from engine.worker import Engine

PATIENCE_MILLISECONDS = 240_000
"""When the test gives up; never what it measures."""
CONTROL = Qt.KeyboardModifier.ControlModifier


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_pick_calibrate_synthesise_switch_export(qapp: QApplication, qtbot: QtBot, tmp_path: Path) -> None:
    qapp.setQuitOnLastWindowClosed(False)
    settings = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
    window = MainWindow(Theme(qapp), settings, tmp_path / "data", Engine)
    window.resize(1440, 900)
    window.show()
    window.activateWindow()
    qtbot.waitUntil(lambda: window.is_built and window.state.ready, timeout=PATIENCE_MILLISECONDS)
    assert window.state.info.id == "f5-mini"

    def wait_for_job(press) -> None:
        with qtbot.waitSignal(window.jobs.ended, timeout=PATIENCE_MILLISECONDS) as blocker:
            press()
        assert blocker.args[1].value == "finished", blocker.args[2]

    # Pick: a voice from the list, a sentence by typing, eight steps.
    window.setup.voice.setFocus()
    qtbot.keyClick(window.setup.voice, Qt.Key.Key_Down)
    assert window.state.voice.id == "rms"
    window.setup.text.setFocus()
    window.setup.text.selectAll()
    qtbot.keyClicks(window.setup.text, "The salt breeze came across from the sea.")
    steps = window.setup.sampler.editor("steps")
    steps.setFocus()
    steps.selectAll()
    qtbot.keyClicks(steps, "8")
    qtbot.keyClick(steps, Qt.Key.Key_Return)
    assert window.state.options["steps"] == 8

    # Baseline by its key, calibration by a click, accelerated by its key.
    wait_for_job(lambda: qtbot.keyClick(window, Qt.Key.Key_B, CONTROL))
    assert window.state.take_a.text == "The salt breeze came across from the sea."
    wait_for_job(lambda: qtbot.mouseClick(window.guide.button(1), Qt.MouseButton.LeftButton))
    assert (window.state.table.layers, window.state.table.steps) == (window.state.info.layers, 8)
    assert window.strategy.table == window.state.table
    wait_for_job(lambda: qtbot.keyClick(window, Qt.Key.Key_Return, CONTROL))
    baseline, accelerated = window.state.take_a, window.state.take_b
    assert accelerated.setting.baseline == baseline.setting
    assert accelerated.measurements.ops_ratio == pytest.approx(window.state.predicted_ops_ratio)
    assert accelerated.measurements.ops_ratio < 1
    assert accelerated.log_mel_distance > 0
    assert window.state.comparison_warning() == ""
    assert len(window.library) == 2

    # Look at one cell's attention.
    wait_for_job(lambda: window.attention.capture_wanted.emit(1, 2))

    # Switch.
    qtbot.waitUntil(lambda: window.listen._switch.isEnabled() and len(window.listen._loaded) == 2, timeout=30_000)
    window.go_to("listen")
    heard = window.listen.heard
    with qtbot.waitSignal(window.listen.switched):
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_X)
    assert window.listen.heard != heard

    # Export.
    path = tmp_path / "profile.json"
    qtbot.keyClick(window, Qt.Key.Key_E, CONTROL)
    dialog = window.findChild(ProfileDialog)
    dialog.path.selectAll()
    qtbot.keyClicks(dialog.path, str(path))
    with qtbot.waitSignal(window.exported):
        qtbot.keyClick(dialog.path, Qt.Key.Key_Return)
    profile = Profile.load(path)
    assert profile.setting == accelerated.setting
    assert profile.table == window.state.table
    assert profile.evidence.metrics["ops_ratio"] == accelerated.measurements.ops_ratio

    window.grab().save(str(tmp_path / "window.png"))
    with qtbot.waitSignal(window.closed, timeout=PATIENCE_MILLISECONDS):
        window.close()
