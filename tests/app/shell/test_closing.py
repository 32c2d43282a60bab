"""Closing the main window: at work, many times, before it is painted; nothing stays behind."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QInputDialog
from pytestqt.qtbot import QtBot

from paretone.models.base import SpeechModel
from paretone.models.f5.checkpoint import SeveralCheckpoints, VariantUnknown
from paretone.techniques.ditreducio.record import CalibrationRequest
from paretone_app.shell.colours import DARK
from paretone_app.shell.theme import Scheme, Theme
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Outcome
from tests.app.conftest import PATIENCE_MILLISECONDS, close, ready
from tests.app.shell.running import run
from tests.engine import small_speech
from tests.workload import workload


def test_closing_twice_while_it_calibrates_waits_for_the_engine(window: MainWindow, qtbot: QtBot) -> None:
    window.state.selection.set_option("steps", 128)
    window.action["calibrate"].trigger()
    window.close()
    window.close()
    qtbot.waitUntil(lambda: not window.isVisible(), timeout=PATIENCE_MILLISECONDS)
    assert window._engine.join(0)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_closing_during_calibration_again_and_again(make_window: Callable[..., MainWindow], qtbot: QtBot) -> None:
    before = threading.active_count()
    for _ in range(workload(50, 2)):
        window = make_window()
        window.show()
        # The model is ready a moment before its loading has ended, and only then can anything else begin.
        qtbot.waitUntil(
            lambda window=window: window.state.selection.ready and not window.jobs.busy, timeout=PATIENCE_MILLISECONDS
        )
        window.state.selection.set_option("steps", 128)
        window.action["calibrate"].trigger()
        assert isinstance(window.jobs.running[-1].command.request, CalibrationRequest)
        close(window, qtbot)
    qtbot.waitUntil(lambda: threading.active_count() <= before, timeout=PATIENCE_MILLISECONDS)


def _open_and_close(window: MainWindow, qtbot: QtBot) -> None:
    window.show()
    qtbot.waitUntil(lambda: window.is_built, timeout=PATIENCE_MILLISECONDS)
    close(window, qtbot)
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def test_a_closed_window_leaves_no_widget_to_the_collector(
    make_window: Callable[..., MainWindow], qtbot: QtBot
) -> None:
    gc.collect()
    before = set(QApplication.allWidgets())
    gc.disable()
    try:
        _open_and_close(make_window(), qtbot)
        left = [one for one in QApplication.allWidgets() if one not in before]
    finally:
        gc.enable()
    assert not left, "the collector would destroy them on the engine's thread"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_theme_can_change_after_many_closed_windows(
    make_window: Callable[..., MainWindow], theme: Theme, qtbot: QtBot
) -> None:
    for _ in range(workload(30, 1)):
        _open_and_close(make_window(), qtbot)
    for scheme in (Scheme.DARK, Scheme.LIGHT) * workload(5, 1):
        theme.apply(scheme)
        gc.collect()
    window = make_window()
    window.show()
    theme.apply(Scheme.DARK)
    assert window.palette().color(QPalette.ColorRole.Window) == QColor(DARK.window)
    close(window, qtbot)


def test_closing_before_the_first_paint_needs_no_engine(make_window: Callable[..., MainWindow], qtbot: QtBot) -> None:
    window = make_window()
    close(window, qtbot)
    assert window._engine is None


def _undecided(model: str, folder: str, variant: str, device: str, status: Callable, check: Callable) -> SpeechModel:
    """Loads the small model, from a folder only once it is told which architecture lies there."""
    if folder and not variant:
        raise VariantUnknown(Path(folder) / "model.safetensors", ("F5TTS_v1_Base", "F5TTS_Base"))
    return small_speech.load(model, "", variant, device, status, check)


def test_an_architecture_that_nothing_says_is_asked_for_and_never_guessed(
    make_window: Callable[..., MainWindow], qtbot: QtBot, tmp_path: Path
) -> None:
    window = make_window(_undecided)
    ready(window, qtbot)
    window.state.loading.load_model("F5TTS_v1_Base", str(tmp_path))
    qtbot.waitUntil(lambda: bool(window.notices.banner.answers), timeout=PATIENCE_MILLISECONDS)
    assert QApplication.activeModalWidget() is None
    assert "F5TTS_v1_Base and F5TTS_Base alike" in window.notices.banner.text
    assert window.state.selection.model_id == "f5-mini"
    assert window.state.selection.ready, "the model from before goes on until the answer"
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.keyClick(window, Qt.Key.Key_F6)
    qtbot.waitUntil(lambda: QApplication.focusWidget() is window.notices.banner.answers[0])
    first = QApplication.focusWidget()
    qtbot.keyClick(first, Qt.Key.Key_Tab)
    assert QApplication.focusWidget().text() == "F5TTS_Base"
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Space)
    assert not window.notices.banner.isVisible()
    command = window.jobs.running[-1].command
    assert (command.model, command.folder, command.variant) == ("F5TTS_v1_Base", str(tmp_path), "F5TTS_Base")
    qtbot.waitUntil(lambda: window.state.selection.ready and not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    assert (window.state.selection.model_id, window.state.selection.model_variant) == ("F5TTS_v1_Base", "F5TTS_Base")
    close(window, qtbot)


def test_a_model_that_cannot_be_loaded_leaves_the_present_one(window: MainWindow, qtbot: QtBot) -> None:
    strategy = window.features["strategy"].state
    state = window.state
    state.selection.set_option("steps", 5)
    run(window, window.action.baseline, qtbot)
    run(window, window.action["calibrate"], qtbot)
    info, table, operations = state.selection.info, strategy.table, state.cost.operations
    with qtbot.waitSignal(window.jobs.ended, timeout=PATIENCE_MILLISECONDS) as blocker:
        state.loading.load_model("F5TTS_v1_Base", variant="strange", device="cpu")
    assert blocker.args[1] is Outcome.FAILED
    assert window.notices.banner.text.endswith("Small stays loaded.")
    assert (state.selection.model_id, state.selection.model_variant, state.selection.device_wanted) == (
        "f5-mini",
        "",
        "auto",
    )
    assert (state.selection.info, strategy.table, state.cost.operations, state.selection.options["steps"]) == (
        info,
        table,
        operations,
        5,
    )
    assert window.panels["setup"].model_choice.box.currentData() == "f5-mini"
    assert run(window, window.action.accelerated, qtbot) is Outcome.FINISHED


def test_a_load_that_is_cancelled_by_another_does_not_bring_the_first_back(window: MainWindow, qtbot: QtBot) -> None:
    window.state.loading.load_model("F5TTS_Base")
    window.state.loading.load_model("F5TTS_v1_Base")
    qtbot.waitUntil(lambda: not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    assert window.state.selection.ready
    assert window.state.selection.model_id == "F5TTS_v1_Base"


def _several(model: str, folder: str, variant: str, device: str, status: Callable, check: Callable) -> SpeechModel:
    """Loads the small model, from a folder only once it is told which file."""
    if folder and Path(folder).is_dir():
        raise SeveralCheckpoints(Path(folder), tuple(Path(folder) / name for name in ("model_last.pt", "model_5.pt")))
    return small_speech.load(model, "", variant, device, status, check)


def test_several_checkpoints_in_a_folder_are_offered(
    make_window: Callable[..., MainWindow], qtbot: QtBot, tmp_path: Path
) -> None:
    window = make_window(_several)
    ready(window, qtbot)
    window.state.loading.load_model("F5TTS_v1_Base", str(tmp_path))
    qtbot.waitUntil(lambda: bool(window.notices.banner.answers), timeout=PATIENCE_MILLISECONDS)
    assert "holds several checkpoints (model_last.pt, model_5.pt)" in window.notices.banner.text
    window.notices.banner.answers[0].click()
    dialog = window.findChild(QInputDialog)
    assert dialog.comboBoxItems() == ["model_last.pt", "model_5.pt"]
    dialog.setTextValue("model_5.pt")
    dialog.accept()
    qtbot.waitUntil(lambda: window.state.selection.ready and not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    chosen = window.state.selection
    assert (chosen.model_id, chosen.model_folder) == ("F5TTS_v1_Base", str(tmp_path / "model_5.pt"))
