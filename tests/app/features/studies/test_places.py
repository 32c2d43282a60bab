"""A study that is made in the window runs the checkpoint that Setup has, in whatever folder of the user's it is."""

from __future__ import annotations

import shlex
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from paretone.models import catalogue, load_model
from paretone.models.base import SpeechModel
from paretone.models.voices import own_voice
from paretone.studies.store import Store
from paretone_app.features.studies.forms import Span, Varied, Within
from paretone_app.features.studies.maker import StudyMaker
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Outcome
from tests.app.conftest import PATIENCE_MILLISECONDS
from tests.app.features.studies.studying import ended, opened, shown, write
from tests.engine import small_speech
from tests.engine.training.toy_model import toy_model
from tests.voices import FIRST

MODEL = "f5-mini"
"""The model that the user has another checkpoint of."""
OFFICIAL = "F5TTS_v1_Base"
"""One whose weights are nowhere but in a folder of the user's."""


@pytest.fixture(scope="module")
def loads() -> list[str]:
    """The models that were loaded."""
    return []


@pytest.fixture(scope="module")
def loader(loads: list[str]) -> Callable[..., SpeechModel]:
    """Loads real checkpoints; of the official model a small one, since its own is too large."""

    def load(model: str, *given: Any, **named: Any) -> SpeechModel:
        loads.append(model)
        return (small_speech.load if model == OFFICIAL else load_model)(model, *given, **named)

    return load


def place(window: MainWindow, model: str, folder: Path, qtbot: QtBot, variant: str = "") -> str:
    """Load ``model`` from ``folder``; its fingerprint."""
    qtbot.waitUntil(lambda: not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    with qtbot.waitSignal(window.jobs.ended, timeout=PATIENCE_MILLISECONDS) as loaded:
        window.state.loading.load_model(model, str(folder) if str(folder) != "." else "", variant, "cpu")
    assert loaded.args[1] is Outcome.FINISHED, loaded.args[2]
    return window.state.selection.loaded.fingerprint


def made(window: MainWindow, title: str) -> StudyMaker:
    """The dialog for a small study, opened by its action."""
    window.action["new_study"].trigger()
    maker = window.features["studies"].maker
    maker.title.setText(title)
    for box in maker.judges.values():
        box.setChecked(False)
    maker.count.setValue(1)
    maker.axes.lines[0].choose(Varied("steps", "steps", "2"))
    return maker


def test_a_study_runs_the_checkpoint_in_the_users_folder(
    borrowed_window: MainWindow, loads: list[str], tmp_path: Path, qtbot: QtBot
) -> None:
    window, selection = borrowed_window, borrowed_window.state.selection
    usual = selection.loaded.fingerprint
    mine = place(window, MODEL, toy_model(tmp_path / "mine"), qtbot)
    assert mine != usual
    selection.set_option("steps", 3)
    maker = made(window, "Mine")
    assert str(tmp_path / "mine") in maker.checkpoint.text()
    qtbot.waitUntil(maker.start_button.isEnabled, timeout=PATIENCE_MILLISECONDS)
    path, before = Path(maker.path.text()), len(loads)
    outcome, sentence = ended(window, maker.start_button.click, qtbot)
    assert outcome is Outcome.FINISHED, sentence
    assert len(loads) == before, "it is the loaded model, which is not loaded a second time"
    written = tomllib.loads(path.read_text(encoding="utf-8"))
    assert (written["folder"], written["device"]) == (str(tmp_path / "mine"), "cpu")
    with Store(path.with_suffix(".study"), read_only=True) as store:
        assert store.about()["checkpoint"] == mine

    # The command that runs a profile names the folder, too.
    selection.switch("ditreducio", False)
    window.features["export"].write(tmp_path / "my profile.json")
    said = shlex.split(window.notices.banner.text.partition("Run it: ")[2])
    assert said[:6] == [
        *("paretone", "speak", "--profile", str(tmp_path / "my profile.json")),
        *("--folder", str(tmp_path / "mine")),
    ]

    # With other weights, its settings are used with a caution.
    place(window, MODEL, Path(), qtbot)
    window.features["studies"].use(window.features["studies"].summary.rows[1].key)
    assert "was made with other weights" in window.notices.banner.text
    assert usual[:12] in window.notices.banner.text
    place(window, MODEL, Path(), qtbot)


def test_models_in_folders_of_the_users_are_offered(borrowed_window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    window, folder = borrowed_window, tmp_path / "other"
    maker = made(window, "None yet")
    index = maker.model.findData(OFFICIAL)
    assert not maker.model.model().item(index).isEnabled() and "not installed" in maker.model.itemData(index, 3)
    assert not maker.checkpoint.isVisibleTo(maker)
    maker.reject()
    folder.mkdir()
    (folder / "weights").write_bytes(b"")
    place(window, OFFICIAL, folder, qtbot)
    place(window, MODEL, Path(), qtbot)
    maker = made(window, "Of another")
    assert maker.model.model().item(index).isEnabled()
    maker.model.setCurrentIndex(index)
    maker.check()
    assert maker.definition is not None
    assert (maker.definition["model"], maker.definition["folder"]) == (OFFICIAL, str(folder))
    maker.reject()
    within = Within(OFFICIAL, (Span("", "steps", (4.0, 8.0)),), ())
    window.features["studies"].begin_within(within)
    maker = window.features["studies"].maker
    assert maker.definition is not None and maker.definition["folder"] == str(folder)
    maker.reject()
    folder.rename(tmp_path / "elsewhere")
    setup = window.panels["setup"].model_choice
    setup.show_models()
    assert setup.box.itemText(index).endswith("(weights not installed)")


def test_the_voices_are_those_of_setup_and_stay_ticked(
    borrowed_window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    window, state = borrowed_window, borrowed_window.state
    for name in ("one", "two"):
        audio = Path(shutil.copyfile(catalogue.voice(FIRST).audio, tmp_path / f"{name}.wav"))
        state.own_voices.add(own_voice(str(audio), "Some words."))
    own = state.selection.own_voices[1]
    assert state.selection.voice == own
    maker = made(window, "Voices")
    listed = [maker.voices.item(row).text() for row in range(maker.voices.count())]
    assert listed == [one.title for one in state.selection.voices], "in the order of Setup"
    assert maker.voices.ticked == (own,), "the one that is chosen in Setup"
    maker.voices.item(0).setCheckState(Qt.CheckState.Checked)
    first = state.selection.voices[0]
    assert maker.voices.ticked == (first, own)
    maker.model.setCurrentIndex(maker.model.findData("lm-mini"))
    assert maker.voices.ticked == (first, own), "both are possible with this one"
    # One that speaks only with latents, which the recordings have not.
    maker.model.setCurrentIndex(maker.model.findData("MegaTTS3"))
    entry = maker.voices.item(maker.voices.count() - 1)
    assert entry.text() == own.title and not entry.flags() & Qt.ItemFlag.ItemIsEnabled and entry.toolTip()
    assert maker.voices.ticked == ()
    maker.model.setCurrentIndex(maker.model.findData("f5-mini"))
    assert maker.voices.ticked == (first, own)
    maker.voices.item(maker.voices.count() - 1).setCheckState(Qt.CheckState.Unchecked)
    maker.model.setCurrentIndex(maker.model.findData("lm-mini"))
    assert maker.voices.ticked == (first,), "what was unticked stays so"
    maker.reject()


def test_a_study_whose_model_moved_is_told_where_it_is(
    borrowed_window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    window, studies = borrowed_window, borrowed_window.features["studies"]
    folder, moved = toy_model(tmp_path / "mine"), tmp_path / "moved"
    path = write(tmp_path, "moving", 1, f'# By hand.\nmodel = "{MODEL}"\nfolder = "{folder}"\ndevice = "cpu"')
    panel = opened(window, path, qtbot)
    assert not panel.folder_button.isVisibleTo(panel)
    assert ended(window, panel.run_button.click, qtbot)[0] is Outcome.FINISHED
    made_first = studies.summary.made
    path.write_text(path.read_text(encoding="utf-8").replace("[2, 3]", "[1, 2, 3]"), encoding="utf-8")
    folder.rename(moved)
    window.results.read_study(path.with_suffix(".study"))
    shown(window, qtbot)
    assert panel.folder_button.isVisibleTo(panel) and panel.folder_button.text() == "Choose folder…"
    assert f"The model's folder {folder} is gone" in panel._state.text()
    panel.run_button.click()
    assert not window.jobs.busy and "is gone" in window.notices.banner.text
    window.notices.banner.answers[0].click()
    dialog = window.findChild(QFileDialog)
    assert dialog is not None
    dialog.reject()
    moved.rename(folder)  # As a disk that is there again.
    assert ended(window, panel.run_button.click, qtbot)[0] is Outcome.FINISHED
    folder.rename(moved)
    # Other weights are told from those that the takes are of.
    studies.set_model_folder(catalogue.entry(MODEL).folder)
    shown(window, qtbot)
    outcome, sentence = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.FAILED and "with other weights" in sentence
    studies.set_model_folder(moved)
    shown(window, qtbot)
    assert not panel.folder_button.isVisibleTo(panel)
    text = path.read_text(encoding="utf-8")
    assert "# By hand." in text and tomllib.loads(text)["folder"] == str(moved)
    outcome, sentence = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.FINISHED, sentence
    assert studies.summary.made > made_first > 0
    window.action["close_study"].trigger()
