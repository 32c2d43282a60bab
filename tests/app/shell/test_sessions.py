"""What a window had is there again when it is opened the next time, on the same data folder and with the same settings
file."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray, QSettings, Qt
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from paretone.models import catalogue
from paretone_app.shell.theme import Scheme
from paretone_app.shell.window import MainWindow
from paretone_app.state.app_state import AppState
from paretone_app.state.jobs import Jobs, Outcome
from tests.app.conftest import SMALL, MakeWindow, close, ready
from tests.app.features.setup.test_choosing_models import choose
from tests.app.shell.running import run
from tests.app.state.test_per_model import load

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
    again.settings.setValue("layouts/listen", QByteArray(b"not a layout"))
    again._restore()
    assert not again.workspaces["log"].isHidden(), "what cannot be restored gives the default layout"


@pytest.fixture
def mine(tmp_path: Path, qapp: object) -> Path:
    """The folder of the checkpoint that the last session had, with nothing in it."""
    folder = tmp_path / "mine"
    folder.mkdir()
    state = AppState(Jobs(lambda command: None))
    load(state, CHECKPOINT, str(folder))
    state.selection.set_option("steps", 5)
    keep(tmp_path, "selection", state.selection.remembered())
    return folder


def keep(folder: Path, key: str, value: str) -> None:
    """As a session before has kept it in its settings."""
    settings = QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat)
    settings.setValue(key, value)
    settings.sync()


@pytest.mark.parametrize("gone", ["folder", "weights"])
def test_a_model_whose_folder_is_gone_is_said_and_another_folder_can_be_chosen(
    make_window: MakeWindow, qtbot: QtBot, mine: Path, gone: str
) -> None:
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


def test_a_model_that_a_start_ended_with_is_not_loaded_again_unasked(
    make_window: MakeWindow, qtbot: QtBot, mine: Path
) -> None:
    (mine / "weights").write_bytes(b"")
    keep(mine.parent, "loading", CHECKPOINT)  # As it is where the process ended during that.
    again = ready(make_window(parts=SMALL), qtbot)
    assert again.state.selection.model_id == "f5-mini"
    assert "was being loaded when the last session broke off" in again.notices.banner.text
    (button,) = again.notices.banner.answers
    with qtbot.waitSignal(again.jobs.ended):
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert (again.state.selection.model_id, again.state.selection.model_folder) == (CHECKPOINT, str(mine))


def test_a_device_that_is_gone_is_said_and_the_model_runs_on_another(
    make_window: MakeWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    state = AppState(Jobs(lambda command: None))
    state.loading.load_model("f5-mini", device="cuda:7")
    keep(tmp_path, "selection", state.selection.remembered().replace('"voice": "anna"', '"voice": "otto"'))
    again = ready(make_window(parts=SMALL), qtbot)
    assert (again.state.selection.model_id, again.state.selection.device_wanted) == ("f5-mini", "auto")
    assert "best device" in again.notices.banner.text
    again.notices.banner.dismiss()
    assert "the voice otto" in again.notices.banner.text, "what is passed over is said"
