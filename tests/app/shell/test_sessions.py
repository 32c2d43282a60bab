"""A window is opened, with an example or what it had; it loads models; and it is closed, with nothing left."""

import gc
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QByteArray, QCoreApplication, QEvent, QSettings, Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QFileDialog, QInputDialog
from pytestqt.qtbot import QtBot

from paretone.audio.resampling import resample
from paretone.models import catalogue, load_model
from paretone.models.base import SpeechModel
from paretone.models.f5.checkpoint import SeveralCheckpoints, VariantUnknown
from paretone.session.engine_thread import EngineThread
from paretone.techniques.ditreducio.record import CalibrationRequest
from paretone_app.shell.colours import DARK
from paretone_app.shell.greeting import WORDS, Greeting
from paretone_app.shell.theme import Scheme, Theme
from paretone_app.shell.window import MainWindow
from paretone_app.state.app_state import AppState
from paretone_app.state.jobs import Jobs, Outcome
from tests.app.conftest import SMALL, MakeWindow, activated, close, ready, run
from tests.app.features.setup.test_choosing_models import choose
from tests.app.sharing import borrowed  # noqa: F401
from tests.app.state import test_per_model as per_model
from tests.engine import small_speech
from tests.sound import RATE, NullSink
from tests.workload import workload

CHECKPOINT = "F5TTS_v1_Base"
"""A model that does not come with Paretone, so that its weights are in a folder of the user's."""


def loaded(window: MainWindow, model: str, qtbot: QtBot) -> None:
    setup = choose(window, model)
    with qtbot.waitSignal(window.jobs.ended) as ended:
        qtbot.mouseClick(setup.model_choice.load, Qt.MouseButton.LeftButton)
    assert ended.args[1] is Outcome.FINISHED and window.state.selection.model_id == model


def test_a_window_that_is_opened_again_has_what_it_had(make_window: MakeWindow, qtbot: QtBot, tmp_path: Path) -> None:
    window = ready(make_window(parts=f"{SMALL} log"), qtbot)
    window.theme.apply(Scheme.DARK)
    window.workspaces["log"].hide()
    chosen = window.state.selection
    chosen.set_option("guidance", 0.9)
    chosen.choose_voice("ella")
    # The small models' loader reads the weights there.
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "weights").write_bytes(b"")
    with qtbot.waitSignal(window.jobs.ended):
        window.state.loading.load_model(CHECKPOINT, str(tmp_path / "mine"), device="cpu")
    chosen.set_text("Something else.")
    chosen.set_option("steps", 5)
    chosen.switch("ditreducio", False)
    chosen.switch("steps", True)
    chosen.set_seed(99)
    assert run(window, window.action.baseline, qtbot) is Outcome.FINISHED
    assert run(window, window.action.accelerated, qtbot) is Outcome.FINISHED
    window.results.library.delete(window.state.comparison.take_b.id)
    first = window.state.comparison.take_a.id
    assert run(window, window.action.baseline, qtbot) is Outcome.FINISHED
    window.features["takes"].add_lanes([first])
    window.features["takes"].note(first, "The first #one")
    compared = window.state.comparison.take_a.id
    window.state.comparison.arrange(window.state.comparison.lanes, 2, 0)
    had = chosen.setting, chosen.text, chosen.speaker
    close(window, qtbot)
    assert b"loading" not in (tmp_path / "window.ini").read_bytes()

    again = ready(make_window(parts=f"{SMALL} log"), qtbot)
    chosen, comparison = again.state.selection, again.state.comparison
    assert again.theme.scheme is Scheme.DARK and again.workspaces["log"].isHidden()
    again.theme.apply(Scheme.LIGHT)
    assert (chosen.model_id, chosen.model_folder, chosen.device_wanted) == (CHECKPOINT, str(tmp_path / "mine"), "cpu")
    assert (chosen.setting, chosen.text, chosen.speaker) == had
    assert comparison.take_a.id == compared and comparison.take_b is None, "what was deleted is not compared"
    assert (comparison.lanes[2].id, comparison.lanes[2].remark) == (first, "The first #one")
    assert (comparison.reference, comparison.other) == (2, 0)
    assert again.panels["setup"].model_choice.box.currentText() == catalogue.entry(CHECKPOINT).title
    assert not again.notices.banner.isVisible(), again.notices.banner.text
    loaded(again, "f5-mini", qtbot)
    assert (chosen.options["guidance"], chosen.options["steps"], chosen.speaker.id) == (0.9, 12, "ella")
    loaded(again, CHECKPOINT, qtbot)
    assert chosen.model_folder == str(tmp_path / "mine"), "it is loaded from where it was"
    host = again.workspaces.shown.host
    assert not host.restoreState(host.saveState(99), 1), "another version's layout is refused"
    close(again, qtbot)
    again.settings.setValue("layouts/listen", QByteArray(b"not a layout"))
    third = make_window(parts=f"{SMALL} log")
    assert not third.workspaces["log"].isHidden(), "what cannot be restored gives the default layout"


@pytest.fixture
def mine(tmp_path: Path, qapp: object) -> Path:
    """The folder of the checkpoint that the last session had, with nothing in it."""
    folder = tmp_path / "mine"
    folder.mkdir()
    state = AppState(Jobs(lambda command: None))
    per_model.load(state, CHECKPOINT, str(folder))
    state.selection.set_option("steps", 5)
    keep(tmp_path, "selection", state.selection.remembered())
    return folder


def keep(folder: Path, key: str, value: str) -> None:
    """As a session before has kept it in its settings."""
    settings = QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat)
    settings.setValue(key, value)
    settings.sync()


@pytest.mark.parametrize("gone", ["folder", "weights"])
def test_a_model_folder_that_is_gone_is_said(make_window: MakeWindow, qtbot: QtBot, mine: Path, gone: str) -> None:
    if gone == "folder":
        mine.rmdir()
    again = ready(make_window(parts=SMALL), qtbot)
    chosen, banner = again.state.selection, again.notices.banner
    assert (chosen.model_id, chosen.model_folder) == ("f5-mini", "")
    assert str(mine) in banner.text and "F5 mini is loaded instead" in banner.text
    (button,) = banner.answers
    assert button.text() == "Choose folder…"
    if gone == "weights":
        return
    mine.with_name("moved").mkdir()
    (mine.with_name("moved") / "weights").write_bytes(b"")
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    (dialog,) = again.findChildren(QFileDialog)
    with qtbot.waitSignal(again.jobs.ended) as ended:
        dialog.fileSelected.emit(str(mine.with_name("moved")))
        dialog.close()
    assert ended.args[1] is Outcome.FINISHED
    assert (chosen.model_id, chosen.model_folder) == (CHECKPOINT, str(mine.with_name("moved")))
    assert chosen.options["steps"] == 5


def test_a_model_that_a_start_ended_with_is_asked_about(make_window: MakeWindow, qtbot: QtBot, mine: Path) -> None:
    (mine / "weights").write_bytes(b"")
    keep(mine.parent, "loading", CHECKPOINT)  # As it is where the process ended during that.
    again = ready(make_window(parts=SMALL), qtbot)
    assert again.state.selection.model_id == "f5-mini"
    assert "was being loaded when the last session broke off" in again.notices.banner.text
    (button,) = again.notices.banner.answers
    with qtbot.waitSignal(again.jobs.ended):
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert (again.state.selection.model_id, again.state.selection.model_folder) == (CHECKPOINT, str(mine))


def test_a_device_that_is_gone_is_said_and_replaced(make_window: MakeWindow, qtbot: QtBot, tmp_path: Path) -> None:
    state = AppState(Jobs(lambda command: None))
    state.loading.load_model("f5-mini", device="cuda:7")
    keep(tmp_path, "selection", state.selection.remembered().replace('"voice": "anna"', '"voice": "otto"'))
    again = ready(make_window(parts=SMALL), qtbot)
    assert (again.state.selection.model_id, again.state.selection.device_wanted) == ("f5-mini", "auto")
    assert "best device" in again.notices.banner.text
    again.notices.banner.dismiss()
    assert "the voice otto" in again.notices.banner.text, "what is passed over is said"


def test_the_first_start_plays_an_example_at_once(make_window: MakeWindow, null_sink: NullSink, qtbot: QtBot) -> None:
    window = make_window(load_model)
    Greeting(window, window.settings)
    with null_sink.recording() as recording:
        window.show()
        qtbot.waitUntil(lambda: bool(recording.samples.any()))
        assert not window.state.selection.ready and not window.jobs.busy, "nothing is loaded yet"
        ready(window, qtbot)
    take_a, take_b = window.state.comparison.take_a, window.state.comparison.take_b
    whole = resample(take_a.samples, take_a.sample_rate, RATE)
    likeness = np.correlate(recording.samples, whole, "valid") / (whole @ whole)
    assert 0.3 < likeness.max() <= 1.01, "it was take A, if with gaps on a starved machine"
    # What they were made with is selected, their table included, so that a next step is to compare them.
    assert not take_a.setting.techniques and window.state.selection.setting == take_b.setting
    assert window.state.synthesis.baseline_is_current and window.state.synthesis.accelerated_is_current
    assert window.state.availability.why_not_accelerate() == ""
    # They are takes like others, but for the user's figures; their place is in their study.
    takes, (study,) = window.results.takes, window.results.studies.values()
    assert {one.id for one in takes.all} == {take_a.id, take_b.id} == {one.id for one in takes.all if one.is_example}
    assert takes.measured == () and {take_a.id, take_b.id} <= set(study.takes)
    takes.delete([take_a.id])
    text = window.state.selection.text
    close(window, qtbot)
    again = make_window(load_model)
    Greeting(again, again.settings)
    assert again.first is None, "a second start has the last session"
    ready(again, qtbot)
    assert again.state.selection.text == text and again.state.comparison.take_b.id == take_b.id
    assert again.state.comparison.take_a is None, "what was removed stays away"


def test_what_the_user_types_comes_first(window: MainWindow, qtbot: QtBot) -> None:
    greeting = Greeting(window, QSettings("", QSettings.Format.IniFormat))
    window.state.selection.set_text("Something else.")
    window.first()
    qtbot.waitUntil(lambda: window.first is None)
    assert window.state.selection.text == "Something else." and window.state.comparison.take_a is None
    greeting.deleteLater()


def test_a_message_about_data_at_risk_is_not_covered(window: MainWindow, qtbot: QtBot) -> None:
    window.notices.ask("Nothing can be kept here.", ("Choose another folder…",), lambda _: None)
    Greeting(window, QSettings("", QSettings.Format.IniFormat))
    window.first()
    qtbot.waitUntil(lambda: window.panels["steps"].hint.text() == WORDS)
    assert [card.message.sentence for card in window.notices.banner.cards] == ["Nothing can be kept here."]


LOADING = f"{SMALL} strategy log"


@pytest.mark.timeout(900)
def test_closing_twice_during_calibration_waits_for_the_engine(make_window: MakeWindow, qtbot: QtBot) -> None:
    before = set(threading.enumerate())
    for _ in range(workload(50, 1)):
        window = ready(make_window(parts="" if workload(True, False) else LOADING), qtbot)
        window.state.selection.set_option("steps", 128)
        window.action["calibrate"].trigger()
        assert isinstance(window.jobs.running[-1].command.request, CalibrationRequest)
        window.close()
        close(window, qtbot)
        assert not any(one.name == "engine" for one in {*threading.enumerate()} - before)
    qtbot.waitUntil(lambda: threading.active_count() <= len(before))


@pytest.mark.timeout(600)
def test_closed_windows_leave_collector_and_theme_alone(
    make_window: MakeWindow, theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
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
    with monkeypatch.context() as patch:
        patch.setattr(EngineThread, "start", lambda engine: pytest.fail("closing before the first paint needs none"))
        close(make_window(parts=SMALL), qtbot)
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


def test_checkpoints_and_architectures_are_asked_for(make_window: MakeWindow, qtbot: QtBot, tmp_path: Path) -> None:
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
