"""Exporting in the real window on the real engine, with the bundled model: by keys, to both targets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot
from safetensors import safe_open

from paretone.export.copied import paretone_profile
from paretone.export.programs.f5_tts import TARGET as F5_TTS
from paretone.models import load_model
from paretone.techniques.guidance_free import SAFETENSORS
from paretone_app.features.export import ProfileDialog
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Outcome
from tests.app.conftest import PATIENCE_MILLISECONDS


@pytest.fixture
def window(make_window: Callable[..., MainWindow], qtbot: QtBot) -> MainWindow:
    """The window with the bundled model loaded and CFG-free used, which needs no calibration."""
    made = make_window(load=load_model)
    made.show()
    qtbot.waitUntil(
        lambda: made.is_built and made.state.selection.ready and not made.jobs.busy, timeout=PATIENCE_MILLISECONDS
    )
    made.state.selection.switch("ditreducio", False)
    made.state.selection.switch("guidance_free", True)
    return made


def export(window: MainWindow, qtbot: QtBot, target: str, folder: Path) -> Outcome:
    """Export as a user would, by keys; how the job ended."""
    window.action.export_profile.trigger()
    (dialog,) = window.findChildren(ProfileDialog)
    while dialog.target.currentData() != target:
        QTest.keyClick(dialog.target, Qt.Key.Key_Down)
    dialog.path.selectAll()
    QTest.keyClicks(dialog.path, str(folder))
    with qtbot.waitSignal(window.jobs.ended, timeout=PATIENCE_MILLISECONDS) as ended:
        QTest.keyClick(dialog.path, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not window.findChildren(ProfileDialog), timeout=PATIENCE_MILLISECONDS)
    return ended.args[1]


@pytest.mark.slow
def test_both_targets_are_written_and_nothing_is_replaced(window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    window.state.selection.switch("guidance_free", False)
    assert window.action.export_profile.isEnabled(), "a plain setting can be exported"
    assert not window.action.accelerated.isEnabled()
    window.state.selection.switch("guidance_free", True)
    folder = tmp_path / "package"
    assert export(window, qtbot, F5_TTS.name, folder) is Outcome.FINISHED
    assert paretone_profile.read(folder)["sampling"]["guidance"] == 0
    assert f"{folder} holds the profile" in window.notices.banner.text
    assert window.features["export"].step_done("export_profile")

    weights = tmp_path / "weights"
    assert export(window, qtbot, SAFETENSORS.name, weights) is Outcome.FINISHED
    (written,) = weights.glob("*.safetensors")
    with safe_open(written, framework="pt") as file:
        assert file.metadata()["cfg_free"] == "true"

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "README.md").write_text("My own.")
    assert export(window, qtbot, F5_TTS.name, tmp_path / "mine") is Outcome.FAILED
    assert "README.md exists with other content and is kept" in window.notices.banner.text
    assert [path.read_text() for path in (tmp_path / "mine").iterdir()] == ["My own."]
