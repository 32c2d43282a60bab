"""Closing the main window: at work, before it is painted, with nothing left; and loading that asks or fails."""

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
from paretone_app.state.jobs import Outcome
from tests.app.conftest import SMALL, MakeWindow, activated, close, ready
from tests.app.shell.running import run
from tests.engine import small_speech
from tests.workload import workload

LOADING = f"{SMALL} strategy log"


@pytest.mark.timeout(900)
def test_closing_twice_during_calibration_waits_for_the_engine(make_window: MakeWindow, qtbot: QtBot) -> None:
    before = threading.active_count()
    for _ in range(workload(50, 1)):
        window = ready(make_window(parts="" if workload(True, False) else LOADING), qtbot)
        window.state.selection.set_option("steps", 128)
        window.action["calibrate"].trigger()
        assert isinstance(window.jobs.running[-1].command.request, CalibrationRequest)
        window.close()
        close(window, qtbot)
        assert window._engine.join(0)
    qtbot.waitUntil(lambda: threading.active_count() <= before)


@pytest.mark.timeout(600)
def test_a_closed_window_leaves_no_widget_to_the_collector_nor_to_the_theme(
    make_window: MakeWindow, theme: Theme, qtbot: QtBot
) -> None:
    gc.collect()
    before = set(QApplication.allWidgets())
    gc.disable()
    try:
        for _ in range(workload(30, 1)):
            window = make_window()
            window.show()
            qtbot.waitUntil(lambda window=window: window.is_built)
            close(window, qtbot)
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            left = [one for one in QApplication.allWidgets() if one not in before]
            assert not left, "the collector would destroy them on the engine's thread"
    finally:
        gc.enable()
    for scheme in (Scheme.DARK, Scheme.LIGHT) * workload(5, 1):
        theme.apply(scheme)
        gc.collect()
    window = make_window(parts=SMALL)
    close(window, qtbot)
    assert window._engine is None, "closing before the first paint needs no engine"
    window = make_window(parts=SMALL)
    window.show()
    theme.apply(Scheme.DARK)
    assert window.palette().color(QPalette.ColorRole.Window) == QColor(DARK.window)
    theme.apply(Scheme.LIGHT)


def _undecided(model: str, folder: str, variant: str, device: str, status: Callable, check: Callable) -> SpeechModel:
    """Loads the small model; from a folder only once told which file, from a file only once told its architecture."""
    if folder and Path(folder).is_dir():
        raise SeveralCheckpoints(Path(folder), tuple(Path(folder) / name for name in ("model_last.pt", "model_5.pt")))
    if folder and not variant:
        raise VariantUnknown(Path(folder), ("F5TTS_v1_Base", "F5TTS_Base"))
    return small_speech.load(model, "", variant, device, status, check)


def test_checkpoints_of_a_folder_are_offered_and_an_architecture_is_asked_for_and_never_guessed(
    make_window: MakeWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    window = ready(make_window(_undecided, parts=LOADING), qtbot)
    banner, chosen = window.notices.banner, window.state.selection
    window.state.loading.load_model("F5TTS_v1_Base", str(tmp_path))
    qtbot.waitUntil(lambda: bool(banner.answers))
    assert "holds several checkpoints (model_last.pt, model_5.pt)" in banner.text
    banner.answers[0].click()
    dialog = window.findChild(QInputDialog)
    assert dialog.comboBoxItems() == ["model_last.pt", "model_5.pt"]
    dialog.setTextValue("model_5.pt")
    dialog.accept()

    qtbot.waitUntil(lambda: len(banner.answers) == 2)
    assert QApplication.activeModalWidget() is None
    assert "F5TTS_v1_Base and F5TTS_Base alike" in banner.text
    assert chosen.model_id == "f5-mini" and chosen.ready, "the model from before goes on until the answer"
    activated(window, qtbot)
    qtbot.keyClick(window, Qt.Key.Key_F6)
    qtbot.waitUntil(lambda: QApplication.focusWidget() is banner.answers[0])
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
    assert QApplication.focusWidget().text() == "F5TTS_Base"
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Space)
    assert not banner.isVisible()
    qtbot.waitUntil(lambda: chosen.ready and not window.jobs.busy)
    place = "F5TTS_v1_Base", str(tmp_path / "model_5.pt"), "F5TTS_Base"
    assert (chosen.model_id, chosen.model_folder, chosen.model_variant) == place


def test_a_model_that_cannot_be_loaded_leaves_the_present_one(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = ready(make_window(parts=LOADING), qtbot)
    strategy, state = window.features["strategy"].state, window.state
    state.selection.set_option("steps", 5)
    run(window, window.action.baseline, qtbot)
    run(window, window.action["calibrate"], qtbot)

    def there() -> tuple[object, ...]:
        chosen = state.selection
        place = chosen.model_id, chosen.model_variant, chosen.device_wanted
        return (*place, chosen.info, chosen.options["steps"], strategy.table, state.cost.operations)

    before = there()
    with qtbot.waitSignal(window.jobs.ended) as blocker:
        state.loading.load_model("F5TTS_v1_Base", variant="strange", device="cpu")
    assert blocker.args[1] is Outcome.FAILED
    message = window.notices.banner.cards[-1].message
    assert message.sentence.endswith("Small stays loaded.") and message.level == "error"
    assert "KeyError" in window.panels["log"].plain_text()
    assert there() == before and before[-1] is not None
    assert window.panels["setup"].model_choice.box.currentData() == "f5-mini"
    assert run(window, window.action.accelerated, qtbot) is Outcome.FINISHED
    # A load that is cancelled by another does not bring the first back.
    state.loading.load_model("F5TTS_Base")
    state.loading.load_model("F5TTS_v1_Base")
    qtbot.waitUntil(lambda: not window.jobs.busy)
    assert state.selection.ready and state.selection.model_id == "F5TTS_v1_Base"
