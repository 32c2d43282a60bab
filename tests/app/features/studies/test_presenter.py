"""Studies in the window on the real engine: made, run, paused, resumed, searched, reported, and damaged ones."""

import shlex
import shutil
import sqlite3
import tomllib
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QObject, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from paretone.errors import StudyError
from paretone.models import catalogue, load_model
from paretone.models.base import SpeechModel
from paretone.models.voices import own_voice
from paretone.session.events import Event, StudyTakeDone
from paretone.setting.profile import Profile
from paretone.studies import definition, example
from paretone.studies.results import read
from paretone.studies.store import DATABASE, Store
from paretone.studies.study import results_folder
from paretone.studies.wording import figure_text
from paretone_app.audio.sound import Sound
from paretone_app.features.studies.forms import Bound, Span, Varied, Within
from paretone_app.features.studies.maker import StudyMaker
from paretone_app.features.studies.panel import CLUSTER, StudiesPanel
from paretone_app.features.tradeoff.scene import Filter
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Outcome
from tests.app.conftest import PATIENCE_MILLISECONDS, MakeWindow, activated, close, ready, run
from tests.app.damage import spoil_database
from tests.app.features.studies.studying import MANY, created, ended, finish, opened, run_once, shown, texts, write
from tests.app.features.tradeoff.using import SHOWN, choose_look
from tests.app.holding import Posts
from tests.engine import small_speech
from tests.engine.studies import small
from tests.engine.training.toy_model import toy_model
from tests.tools import example_study
from tests.voices import FIRST
from tests.workload import only_in_full

LOOKED_AT = ("studies", "takes")
MODEL = "f5-mini"
"""The model that the user has another checkpoint of."""
OFFICIAL = "F5TTS_v1_Base"
"""One whose weights are nowhere but in a folder of the user's."""


@pytest.fixture(scope="module")
def loads() -> list[str]:
    return []


@pytest.fixture(scope="module")
def loader(loads: list[str]) -> Callable[..., SpeechModel]:
    """Loads real checkpoints from folders, and otherwise the small model."""

    def load(model: str, folder: str, *given: Any, **named: Any) -> SpeechModel:
        loads.append(model)
        real = folder and model != OFFICIAL
        return (load_model if real else small_speech.load)(model, folder, *given, **named)

    return load


def stop_after(window: MainWindow, posts: Posts, takes: int, stop: Callable[[], object]) -> None:
    """Do ``stop`` once so many takes are there; the engine makes no more before."""
    came: list[Event] = []

    def note(event: Event) -> None:
        if isinstance(event, StudyTakeDone):
            came.append(event)
            if len(came) == takes:
                stop()
                posts.go_on()

    posts.hold_at(StudyTakeDone, takes)
    window.bridge.happened.connect(note)


# --- Opening and running ----------------------------------------------------------------------------------------------
def test_a_study_is_run_and_filled_in(panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    told: list[Path] = []
    window.results.study_changed.connect(told.append)
    opened(window, write(tmp_path), qtbot)
    assert "3 settings, 6 takes" in panel.state
    settings = (f"{one}, cross-fade 0" for one in ("baseline, steps 4", "Step pruning 2", "Step pruning 3"))
    assert [row[1:] for row in texts(panel)] == [[one, "0/2"] for one in settings]
    assert 'title = "Small"' in panel.file.toPlainText()
    progress: list[str] = []
    window.bridge.progress.connect(lambda _: progress.append(panel.progress.format()))
    finish(window, lambda: qtbot.keyClick(window, Qt.Key.Key_F5), qtbot)
    assert panel.state == "Finished: 6 takes made." and progress[-1].startswith("6 of 6")
    assert [row[2] for row in texts(panel)] == ["2/2"] * 3
    figure = read(tmp_path / "small.study").settings[1].figures["speed_up"]
    column = 3 + [one.name for one in panel.table.study.metrics].index("speed_up")
    assert texts(panel)[1][column] == figure_text(panel.table.study.metrics[column - 3], figure)
    assert "n = 2 takes of 2 sentences" in panel.table.study.index(1, column).data(Qt.ItemDataRole.ToolTipRole)
    assert set(told) == {tmp_path / "small.study"} and list(window.results.studies) == [tmp_path / "small.study"]
    assert panel.run_button.text() == "Ru&n again"


def test_a_paused_study_is_resumed(window: MainWindow, shared_posts: Posts, tmp_path: Path, qtbot: QtBot) -> None:
    file = write(tmp_path, sentences=MANY)
    folder, panel = file.with_suffix(".study"), opened(window, file, qtbot)
    stop_after(window, shared_posts, 2, lambda: qtbot.mouseClick(panel.pause_button, Qt.MouseButton.LeftButton))
    outcome, _ = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.PAUSED and "Paused" in panel.state and panel.run_button.text() == "Resume"
    before, kept = created(folder), tomllib.loads(file.read_text(encoding="utf-8"))
    assert 2 <= len(before) < 3 * MANY
    window.features["studies"].close()
    assert not window.results.studies and panel.summary is None
    file.unlink()
    opened(window, folder, qtbot)
    assert "There is no study" in panel.state
    finish(window, panel.run_button.click, qtbot)
    after = created(folder)
    assert len(after) == 3 * MANY and before.items() <= after.items()
    assert tomllib.loads(file.read_text(encoding="utf-8")) == kept


def test_cancelling_keeps_takes(window: MainWindow, shared_posts: Posts, tmp_path: Path, qtbot: QtBot) -> None:
    file = write(tmp_path, sentences=MANY)
    panel = opened(window, file, qtbot)
    stop_after(window, shared_posts, 2, lambda: qtbot.mouseClick(panel.cancel_button, Qt.MouseButton.LeftButton))
    outcome, _ = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.CANCELLED and "Cancelled" in panel.state
    summary = window.features["studies"].summary
    assert 2 <= len(created(file.with_suffix(".study"))) == summary.made < 3 * MANY
    assert summary.left == 3 * MANY - summary.made and panel.run_button.isEnabled()


def test_after_a_restart_a_study_goes_on(make_window: MakeWindow, posts: Posts, tmp_path: Path, qtbot: QtBot) -> None:
    file = write(tmp_path, sentences=MANY)
    folder = file.with_suffix(".study")
    first = ready(make_window(), qtbot)
    opened(first, file, qtbot)
    look = replace(SHOWN, dominated=False, log_y=True)
    choose_look(first.panels["tradeoff"], look)
    first.panels["tradeoff"].set_filter(Filter(hidden=frozenset({"steps"})))
    stop_after(first, posts, 3, first.close)
    first.panels["studies"].run_button.click()
    qtbot.waitUntil(lambda: first.is_closed)
    close(first, qtbot)
    before = created(folder)
    assert 2 < len(before) < 3 * MANY
    second = ready(make_window(), qtbot)
    qtbot.waitUntil(lambda: second.features["studies"].summary is not None)
    panel, tradeoff = second.panels["studies"], second.panels["tradeoff"]
    assert f"{len(before)} takes finished, {3 * MANY - len(before)} left, about" in panel.state
    assert [one.data() for one in panel.recent_menu.actions() if one.isVisible()] == [str(file)]
    shown = Filter(model="F5 mini", hidden=frozenset({"steps"}))  # As after each load, the model's own points.
    second.workspaces.go_to("tradeoff")
    qtbot.waitUntil(lambda: (tradeoff.options, tradeoff.filter) == (look, shown))
    assert second.action["point_log_y"].isChecked() and not second.action["point_dominated"].isChecked()
    finish(second, panel.run_button.click, qtbot)
    after = created(folder)
    assert len(after) == 3 * MANY and before.items() <= after.items()


@only_in_full("cluster")
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_study_runs_on_a_ray_cluster(panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    pytest.importorskip("ray", reason="the extra [cluster] is not installed")
    opened(window, write(tmp_path), qtbot)
    panel.where.setFocus()
    qtbot.keyClick(panel.where, Qt.Key.Key_Down)
    qtbot.keyClick(panel.where, Qt.Key.Key_Tab)
    assert panel.where.currentData() == CLUSTER and panel.address.hasFocus()
    panel.address.selectAll()
    qtbot.keyClicks(panel.address, "local")
    qtbot.keyClick(panel.address, Qt.Key.Key_Tab)
    qtbot.keyClick(panel.workers, Qt.Key.Key_Up)
    assert panel.cluster == ("local", 1)
    # Ray may take half a minute to begin, twice, and its worker loads a model of its own.
    finish(window, lambda: qtbot.keyClick(window, Qt.Key.Key_F5), qtbot, 3 * PATIENCE_MILLISECONDS)
    assert panel.state.startswith("Finished: 6 takes made. Tasks done: 6 on node ")
    # The window goes on: the model that it holds itself is still there.
    assert run(window, window.action.baseline, qtbot) is Outcome.FINISHED


# --- Making -----------------------------------------------------------------------------------------------------------
def verdict(window: MainWindow, words: str, qtbot: QtBot) -> str:
    maker = window.features["studies"].maker
    qtbot.waitUntil(lambda: words in maker.verdict.text())
    return maker.verdict.text()


def made(window: MainWindow, title: str) -> StudyMaker:
    window.panels["studies"].new_button.click()
    maker = window.features["studies"].maker
    maker.title.setText(title)
    for box in maker.judges.values():
        box.setChecked(False)
    maker.count.setValue(1)
    maker.axes.lines[0].choose(Varied("steps", "steps", "2"))
    return maker


def test_a_study_is_made_and_started(panel: StudiesPanel, window: MainWindow, qtbot: QtBot) -> None:
    window.state.selection.set_option("steps", 4)
    window.state.selection.set_option("cross_fade", 0.0)
    run(window, window.action.baseline, qtbot)
    maker = made(window, "Steps of the small one")
    assert maker.path.text().endswith("studies/steps-of-the-small-one.toml")
    maker.count.setValue(2)
    maker.seeds.setText("0..1")
    maker.axes.lines[0].choose(Varied("steps", "steps", "2, 3"))
    assert "About" in verdict(window, "12 takes: 3 settings × 2 sentences × 1 voice × 2 seeds × 1 round", qtbot)
    path = Path(maker.path.text())
    finish(window, maker.start_button.click, qtbot)
    material = {"sentences": "harvard", "count": 2, "voices": [FIRST], "seeds": [0, 1]}
    settings = {"options": {"cross_fade": 0.0, "steps": 4}, "grid": {"steps": {"steps": [2, 3]}}}
    expected = {"title": "Steps of the small one", "model": "f5-mini", **material, **settings}
    assert tomllib.loads(path.read_text(encoding="utf-8")) == expected
    assert window.features["studies"].summary.made == 12 and window.features["studies"].maker is None


def test_an_evaluation_set_has_voices(panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    voice = catalogue.voices("f5-mini")[0]
    path = tmp_path / "meta.lst"
    lines = [f"{name}|{voice.transcript}|{voice.audio}|Sentence {name}.\n" for name in ("one", "two", "three")]
    path.write_text("".join(lines), encoding="utf-8")
    window.action["new_study"].trigger()
    maker = window.features["studies"].maker
    maker.sentences.setCurrentIndex(maker.sentences.findText("Evaluation set"))
    assert maker.recordings.isVisible() and maker.text_file.isVisible() and not maker.voices.isVisible()
    verdict(window, "Choose the list.", qtbot)
    maker.text_file.setText(str(path))
    maker.count.setValue(2)
    said = verdict(window, "takes: ", qtbot)
    assert "× 2 sentences × 1 voice ×" in said and "meta.lst: 3 lines, " in said and "recorded and not checked" in said
    assert maker.definition is not None and maker.definition["manifest"] == str(path)
    assert "voices" not in maker.definition and "sentences" not in maker.definition
    maker.sentences.setCurrentIndex(0)
    assert maker.voices.isVisible() and not maker.recordings.isVisible()
    maker.reject()


def test_what_cannot_be_saved(panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    window.action["new_study"].trigger()
    maker = window.features["studies"].maker
    maker.count.setValue(2)  # While the first form is being checked.
    qtbot.waitUntil(maker.start_button.isEnabled)
    assert maker.definition is not None and maker.definition["count"] == 2
    before = (there := write(tmp_path)).read_bytes()
    long = "x" * 300 + ".toml", "too long"
    for name, says in ((there, "exists; type another name"), ("x.json", "must end in .toml"), long):
        maker.path.setText(str(tmp_path / name))
        qtbot.waitUntil(maker.save_button.isEnabled)
        maker.save_button.click()
        assert says in maker.verdict.text()
    assert there.read_bytes() == before
    maker.axes.lines[0].choose(Varied("first_block", "threshold", "0.0001..0.9999 by 0.0001"))
    maker.axes.add(Varied("ditreducio", "threshold", "0.001..1 by 0.001"))
    said = verdict(window, "takes (", qtbot)
    assert "this would be 19,998,000 takes (9,999,000 settings × 2 utterances)" in said and "days" in said
    assert not maker.start_button.isEnabled()
    maker.axes.lines[0].values.setText("nonsense")
    verdict(window, "not “nonsense”", qtbot)
    maker.reject()


def test_the_answer_of_a_search_is_used(panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    pytest.importorskip("optuna")
    window.state.selection.set_option("steps", 4)
    maker = made(window, "Found")
    maker.kind.setCurrentIndex(1)
    for line in list(maker.goals.bounds.lines):
        line.remove.click()
    maker.goals.goals[0].setCurrentIndex(maker.goals.goals[0].findData("ops_ratio"))
    maker.goals.bounds.add(Bound("log_mel_distance", "at_least", 0.0))
    maker.goals.trials.setValue(3)
    maker.axes.lines[0].choose(Varied("steps", "steps", "1..3"))
    maker.path.setText(str(tmp_path / "found.toml"))
    verdict(window, "4 takes: 4 settings", qtbot)
    finish(window, maker.start_button.click, qtbot)
    found = panel.found.toPlainText()
    assert "The setting with the lowest Ops ratio whose Log-mel distance is at least 0." in found
    assert "of computing" in found
    (answer,) = [one for one in window.features["studies"].summary.rows if one.answer]
    assert window.features["studies"].summary.left == 0
    panel.table.choose(answer.key)
    qtbot.keyClick(activated(window, qtbot), Qt.Key.Key_J, Qt.KeyboardModifier.ControlModifier)
    assert window.state.selection.is_used("steps")
    assert window.state.selection.knobs("steps") == answer.setting.technique("steps").knobs
    assert not window.state.selection.is_used("ditreducio") and "Ctrl+E exports a profile" in window.notices.banner.text


def test_a_setting_brings_its_table(panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    opened(window, write(tmp_path, sentences=1, more="seeds = [7]", grid="ditreducio.threshold = [1.5]"), qtbot)
    finish(window, panel.run_button.click, qtbot)
    window.features["studies"].use(window.features["studies"].summary.rows[1].key)
    window.features["export"].write(tmp_path / "used.json")
    quoted = Profile.load(tmp_path / "used.json").evidence
    assert (quoted.text, quoted.seed) == ("This is sentence 0.", 7) and "speed_up" in quoted.metrics
    with Store(tmp_path / "small.study", read_only=True) as store:
        (table,) = store.artefacts().values()
    assert window.features["strategy"].state.table == table and window.features["strategy"].state.threshold == 1.5
    assert window.state.availability.why_not_accelerate() == "" and window.action.export_profile.isEnabled()


def test_what_is_not_installed_is_said_where_it_would_be_used(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paretone.extras.find_spec", lambda name: None)
    search = "[search]\ntrials = 2\n[search.space]\nsteps.steps = [2, 3]\n"
    path = tmp_path / "search.toml"
    path.write_text(f'sentences = ["One."]\n{search}', encoding="utf-8")
    opened(window, path, qtbot)
    assert not panel.run_button.isEnabled() and "pip install 'paretone[search]'" in panel.run_button.toolTip()
    assert not panel.where.model().item(panel.where.findData(CLUSTER)).isEnabled()
    assert "pip install 'paretone[cluster]'" in panel.where.toolTip()
    window.action["new_study"].trigger()
    assert not window.features["studies"].maker.kind.model().item(1).isEnabled()
    assert "paretone[search]" in window.features["studies"].maker.no_search.text()
    window.features["studies"].maker.reject()


def test_one_press_opens_the_example(
    window: MainWindow, panel: StudiesPanel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    file = write(tmp_path, "example", sentences=1)
    monkeypatch.setattr(example, "FILE", file)
    presenter = window.features["studies"]
    small.finished(tmp_path / "made.study", definition.read(file))
    example_study.pack(tmp_path / "made.study", results_folder(file), file)
    assert panel.example_button.isVisibleTo(panel), "the empty panel offers it"
    qtbot.mouseClick(panel.example_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: presenter.summary is not None)
    shown(window, qtbot)
    summary = presenter.summary
    assert summary.folder.parent == window.results.library.folder.parent / "studies" and summary.title == "Small"
    assert (summary.made, summary.left) == (3, 0)
    assert panel.table.isVisibleTo(panel) and panel.run_button.text() == "Ru&n again"


# --- The user's own models and voices ---------------------------------------------------------------------------------
def place(window: MainWindow, model: str, folder: Path, qtbot: QtBot, variant: str = "") -> str:
    qtbot.waitUntil(lambda: not window.jobs.busy)
    with qtbot.waitSignal(window.jobs.ended) as loaded:
        window.state.loading.load_model(model, str(folder) if str(folder) != "." else "", variant, "cpu")
    assert loaded.args[1] is Outcome.FINISHED, loaded.args[2]
    return window.state.selection.loaded.fingerprint


def test_a_study_runs_the_users_checkpoint(window: MainWindow, loads: list[str], tmp_path: Path, qtbot: QtBot) -> None:
    selection = window.state.selection
    usual = selection.loaded.fingerprint
    mine = place(window, MODEL, toy_model(tmp_path / "mine"), qtbot)
    assert mine != usual
    selection.set_option("steps", 3)
    maker = made(window, "Mine")
    assert str(tmp_path / "mine") in maker.checkpoint.text()
    qtbot.waitUntil(maker.start_button.isEnabled)
    path, before = Path(maker.path.text()), len(loads)
    finish(window, maker.start_button.click, qtbot)
    assert len(loads) == before, "it is the loaded model, which is not loaded a second time"
    written = tomllib.loads(path.read_text(encoding="utf-8"))
    assert (written["folder"], written["device"]) == (str(tmp_path / "mine"), "cpu")
    with Store(path.with_suffix(".study"), read_only=True) as store:
        assert store.about()["checkpoint"] == mine
    # The command that runs a profile names the folder, too.
    selection.switch("ditreducio", False)
    window.features["export"].write(tmp_path / "my profile.json")
    said = shlex.split(window.notices.banner.text.partition("Run it: ")[2])
    profile, mine_at = str(tmp_path / "my profile.json"), str(tmp_path / "mine")
    assert said[:6] == ["paretone", "speak", "--profile", profile, "--folder", mine_at]
    # With other weights, its settings are used with a caution.
    place(window, MODEL, Path(), qtbot)
    window.features["studies"].use(window.features["studies"].summary.rows[1].key)
    assert "was made with other weights" in window.notices.banner.text and usual[:12] in window.notices.banner.text
    place(window, MODEL, Path(), qtbot)


def test_models_in_folders_of_the_users_are_offered(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    folder = tmp_path / "other"
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
    window.features["studies"].begin_within(Within(OFFICIAL, (Span("", "steps", (4.0, 8.0)),), ()))
    maker = window.features["studies"].maker
    assert maker.definition is not None and maker.definition["folder"] == str(folder)
    maker.reject()
    folder.rename(tmp_path / "elsewhere")
    setup = window.panels["setup"].model_choice
    setup.show_models()
    assert setup.box.itemText(index).endswith("(weights not installed)")


def test_voices_are_those_of_setup_and_stay_ticked(window: MainWindow, tmp_path: Path) -> None:
    state = window.state
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


def test_a_study_is_told_where_its_model_is(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    studies = window.features["studies"]
    folder, moved = toy_model(tmp_path / "mine"), tmp_path / "moved"
    path = write(tmp_path, "moving", 1, f'# By hand.\nmodel = "{MODEL}"\nfolder = "{folder}"\ndevice = "cpu"')
    panel = opened(window, path, qtbot)
    assert not panel.folder_button.isVisibleTo(panel)
    finish(window, panel.run_button.click, qtbot)
    made_first = studies.summary.made
    path.write_text(path.read_text(encoding="utf-8").replace("[2, 3]", "[1, 2, 3]"), encoding="utf-8")
    folder.rename(moved)
    window.results.read_study(path.with_suffix(".study"))
    shown(window, qtbot)
    assert panel.folder_button.isVisibleTo(panel) and panel.folder_button.text() == "Choose folder…"
    assert f"The model's folder {folder} is gone" in panel.state
    panel.run_button.click()
    assert not window.jobs.busy and "is gone" in window.notices.banner.text
    window.notices.banner.answers[0].click()
    dialog = window.findChild(QFileDialog)
    assert dialog is not None
    dialog.reject()
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
    finish(window, panel.run_button.click, qtbot)
    assert studies.summary.made > made_first > 0
    window.action["close_study"].trigger()


# --- Results ----------------------------------------------------------------------------------------------------------
def test_a_finished_study_is_heard_and_tells_how_long_another_takes(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(window, run_once(tmp_path), qtbot)
    presenter, player = window.features["studies"], window.features["player"]
    played: list[Sound] = []
    monkeypatch.setattr(player, "hear_sound", played.append)
    monkeypatch.setattr(player, "why_not_hear", lambda: "")
    take = next(iter(presenter.summary.takes))
    panel.worst.take_chosen.emit(take, "Quick", "This is sentence 0.")
    assert (played[0].title, played[0].key) == ("Quick", take)
    assert len(played[0].samples) == presenter.summary.takes[take].frames
    with pytest.raises(StudyError, match="its audio is not there"):
        presenter.hear("gone", "", "")
    window.action["new_study"].trigger()
    assert "judging by takes without techniques" in verdict(window, "20 takes: 4 settings", qtbot)
    presenter.maker.reject()


class Browser(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.pages: list[str] = []

    @Slot(QUrl)
    def show(self, page: QUrl) -> None:
        self.pages.append(page.toLocalFile())


def test_a_report_is_written_and_opened(panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    opened(window, run_once(tmp_path), qtbot)
    browser = Browser()
    QDesktopServices.setUrlHandler("file", browser, "show")
    try:
        qtbot.keyClick(window, Qt.Key.Key_F5, Qt.KeyboardModifier.ControlModifier)
        qtbot.waitUntil(lambda: bool(browser.pages))
    finally:
        QDesktopServices.unsetUrlHandler("file")
    place = tmp_path / "small.study" / "report"
    assert browser.pages == [str(place / "report.html")]
    assert {one.name for one in place.iterdir()} == {"report.html", "results.csv", "takes.csv", "results.tex"}
    assert str(place / "report.html") in window.notices.banner.text


def test_results_that_disagree_are_told(panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    verify = window.action["verify_study"]
    opened(window, write(tmp_path, "empty"), qtbot)
    assert not verify.isEnabled() and verify.reason == "No takes yet; run the study first."
    opened(window, run_once(tmp_path), qtbot)
    with closing(sqlite3.connect(tmp_path / "small.study" / DATABASE)) as database, database:
        database.execute("UPDATE takes SET text = 'Another.'")
    assert run(window, verify, qtbot) is Outcome.FINISHED
    assert window.notices.banner.text.startswith("The results in small.study do not agree. Texts: Takes say")


# --- Damage -----------------------------------------------------------------------------------------------------------
def test_files_that_are_no_studies(panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    window.features["studies"].open(write(tmp_path, grid="warp_drive.speed = [9]"))
    qtbot.waitUntil(lambda: "There is no technique named 'warp_drive'" in window.notices.banner.text)
    assert window.features["studies"].summary is None and not window.results.studies
    file = write(tmp_path)
    opened(window, file, qtbot)
    file.write_text("[grid", encoding="utf-8")
    outcome, sentence = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.FAILED and "is not valid TOML" in sentence and "is not valid TOML" in panel.state
    assert not panel.run_button.isEnabled()
    write(tmp_path)
    window.features["studies"].opened.choose(tmp_path / "small.study")
    qtbot.waitUntil(panel.run_button.isEnabled)


def test_a_damaged_study_is_set_aside(panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    file = run_once(tmp_path)
    folder = file.with_suffix(".study")
    with closing(sqlite3.connect(folder / DATABASE)) as direct, direct:
        direct.execute("CREATE INDEX takes_by_text ON takes (text)")
    spoil_database(folder / DATABASE, "takes_by_text")
    opened(window, file, qtbot)
    assert "damaged" in panel.state and "damaged" in window.notices.banner.text and not panel.run_button.isEnabled()
    assert [row[2] for row in texts(panel)] == ["1", "1", "1", "0/2", "0/2", "0/2"]
    assert panel.aside_button.isVisibleTo(panel)
    panel.aside_button.click()
    shown(window, qtbot)
    (backup,) = folder.glob("damaged-*")
    assert (backup / DATABASE).exists() and list((backup / "audio").glob("*.wav"))
    finish(window, panel.run_button.click, qtbot)
    assert window.features["studies"].summary.made == 6


def test_a_full_disk_stops_the_study(panel: StudiesPanel, window: MainWindow, tiny_disk: Path, qtbot: QtBot) -> None:
    # Sentences whose takes do not fit onto the tiny disk.
    opened(window, write(tiny_disk, sentences=40), qtbot)
    outcome, sentence = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.FAILED
    assert "the disk is full; free some space" in sentence and "the disk is full" in panel.state
    assert window.features["studies"].summary.made == len(created(tiny_disk / "small.study")) > 0
    assert run(window, window.action.baseline, qtbot) is Outcome.FINISHED
