"""Loading models in the main window: what is missing is offered or asked for, and the present model stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QInputDialog
from pytestqt.qtbot import QtBot

from paretone.models.base import SpeechModel
from paretone.models.f5.checkpoint import SeveralCheckpoints, VariantUnknown
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Outcome
from tests.app.conftest import PATIENCE_MILLISECONDS, close
from tests.app.shell.running import run
from tests.engine import small_speech


def test_models_without_weights_offer_folder_and_download(window: MainWindow, qtbot: QtBot) -> None:
    index = window.panels["setup"].model_choice.box.findData("E2TTS_Base")
    window.panels["setup"].model_choice.box.setCurrentIndex(index)
    window.panels["setup"].model_choice.box.activated.emit(index)
    assert window.panels["setup"].model_choice.download.isVisibleTo(window.panels["setup"])
    assert "CC-BY-NC-4.0" in window.panels["setup"].model_choice.note.text()
    assert window.state.selection.model_id == "f5-mini"


def _undecided(model: str, folder: str, variant: str, device: str, status: Callable, check: Callable) -> SpeechModel:
    """Loads the small model, from a folder only once it is told which architecture lies there."""
    if folder and not variant:
        raise VariantUnknown(Path(folder) / "model.safetensors", ("F5TTS_v1_Base", "F5TTS_Base"))
    return small_speech.load(model, "", variant, device, status, check)


def test_an_architecture_that_nothing_says_is_asked_for_and_never_guessed(
    make_window: Callable[..., MainWindow], qtbot: QtBot, tmp_path: Path
) -> None:
    window = make_window(_undecided)
    window.show()
    qtbot.waitUntil(lambda: window.is_built and window.state.selection.ready, timeout=PATIENCE_MILLISECONDS)
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
    window.show()
    qtbot.waitUntil(lambda: window.is_built and window.state.selection.ready, timeout=PATIENCE_MILLISECONDS)
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
