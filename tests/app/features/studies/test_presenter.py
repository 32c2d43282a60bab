"""Studies in the window on the real engine: made, opened, run, paused, gone on with, searched, used, reported."""

from __future__ import annotations

import sqlite3
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from pytestqt.qtbot import QtBot

from app.features.studies.forms import Bound, Varied
from app.features.studies.panel import CLUSTER, StudiesPanel
from app.shell.window import MainWindow
from app.state.jobs import Kind, Outcome
from engine.models import load_model
from engine.session.events import Event, StudyTakeDone
from engine.studies.results import read
from engine.studies.store import DATABASE, Store
from tests.app.conftest import PATIENCE_MILLISECONDS, close
from tests.app.damage import spoil_database
from tests.app.holding import Posts
from tests.disk import tiny_disk  # noqa: F401
from tests.engine.studies import small
from tests.workload import workload

MANY = 40
"""Sentences of a study that is still running when somebody says stop."""


def write(folder: Path, name: str = "small", sentences: int = 2, more: str = "", grid: str = "") -> Path:
    """A study's file: three settings on so many sentences."""
    texts = ", ".join(f'"This is sentence {number}."' for number in range(sentences))
    path = folder / f"{name}.toml"
    path.write_text(
        f'title = "Small"\nsentences = [{texts}]\n{more}\n[options]\nsteps = 4\ncross_fade = 0.0\n'
        f"[grid]\n{grid or 'steps.steps = [2, 3]'}\n",
        encoding="utf-8",
    )
    return path


@pytest.fixture
def panel(window: MainWindow, qtbot: QtBot) -> StudiesPanel:
    """The panel, in front."""
    window.docks.go_to("studies")
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=PATIENCE_MILLISECONDS)
    return window.panels["studies"]


def opened(window: MainWindow, place: Path, qtbot: QtBot) -> StudiesPanel:
    """The panel with the study at ``place``."""
    folder = place if place.is_dir() else place.with_suffix(".study")
    window.features["studies"].open(place)
    qtbot.waitUntil(
        lambda: window.features["studies"].summary is not None and window.features["studies"].summary.folder == folder,
        timeout=PATIENCE_MILLISECONDS,
    )
    return window.panels["studies"]


def ended(
    window: MainWindow, begin: Callable[[], object], qtbot: QtBot, patience: int = PATIENCE_MILLISECONDS
) -> tuple[Outcome, str]:
    """Outcome and message of the study that ``begin`` starts, once its results are shown."""
    with qtbot.waitSignal(window.jobs.ended, timeout=patience) as blocker:
        begin()
    assert blocker.args[0].kind is Kind.STUDY
    shown(window, qtbot)
    return blocker.args[1], blocker.args[2]


def shown(window: MainWindow, qtbot: QtBot) -> None:
    """Wait until all that the thread was asked for is shown."""
    done: list[bool] = []
    window.features["studies"]._background.run(lambda: None, lambda _: done.append(True))
    qtbot.waitUntil(lambda: bool(done), timeout=PATIENCE_MILLISECONDS)


def created(folder: Path) -> dict[object, str]:
    with Store(folder, read_only=True) as store:
        return {one.cell: one.created for one in store.takes()}


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
def test_a_study_is_counted_run_and_filled_in(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    told: list[Path] = []
    window.state.open_studies.changed.connect(told.append)
    opened(window, write(tmp_path), qtbot)
    assert "3 settings, 6 takes" in panel.state
    assert [row[1:] for row in panel.table.texts()] == [
        ["baseline, steps 4, cross-fade 0", "0/2"],
        ["Step pruning 2, steps 4, cross-fade 0", "0/2"],
        ["Step pruning 3, steps 4, cross-fade 0", "0/2"],
    ]
    assert 'title = "Small"' in panel.file.toPlainText()
    progress: list[str] = []
    window.bridge.progress.connect(lambda _: progress.append(panel.progress.format()))
    outcome, sentence = ended(window, lambda: qtbot.keyClick(window, Qt.Key.Key_F5), qtbot)
    assert outcome is Outcome.FINISHED, sentence
    assert panel.state == "Finished: 6 takes made."
    assert progress[-1].startswith("6 of 6")
    assert [row[2] for row in panel.table.texts()] == ["2/2"] * 3
    found = read(tmp_path / "small.study")
    figure = found.settings[1].figures["speed_up"]
    column = 3 + [one.name for one in panel.table.study.metrics].index("speed_up")
    assert panel.table.texts()[1][column] == f"{figure.value:.4g} ({figure.low:.3g}–{figure.high:.3g})"
    tip = panel.table.study.index(1, column).data(Qt.ItemDataRole.ToolTipRole)
    assert "n = 2 takes of 2 sentences" in tip
    assert set(told) == {tmp_path / "small.study"}
    assert window.state.open_studies.folders == (tmp_path / "small.study",)
    assert panel.run_button.text() == "Ru&n again"


def test_pausing_finishes_the_take_and_resuming_redoes_nothing(
    panel: StudiesPanel, window: MainWindow, posts: Posts, tmp_path: Path, qtbot: QtBot
) -> None:
    file = write(tmp_path, sentences=MANY)
    opened(window, file, qtbot)
    stop_after(window, posts, 2, lambda: qtbot.mouseClick(panel.pause_button, Qt.MouseButton.LeftButton))
    outcome, _ = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.FINISHED
    assert "Paused" in panel.state
    before = created(file.with_suffix(".study"))
    assert 2 <= len(before) < 3 * MANY
    assert panel.run_button.text() == "R&esume"
    outcome, _ = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.FINISHED
    after = created(file.with_suffix(".study"))
    assert len(after) == 3 * MANY
    assert before.items() <= after.items()


def test_cancelling_keeps_what_is_finished(
    panel: StudiesPanel, window: MainWindow, posts: Posts, tmp_path: Path, qtbot: QtBot
) -> None:
    file = write(tmp_path, sentences=MANY)
    opened(window, file, qtbot)
    stop_after(window, posts, 2, lambda: qtbot.mouseClick(panel.cancel_button, Qt.MouseButton.LeftButton))
    outcome, _ = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.CANCELLED
    assert "Cancelled" in panel.state
    assert 2 <= len(created(file.with_suffix(".study"))) < 3 * MANY
    assert window.features["studies"].summary.left == 3 * MANY - window.features["studies"].summary.made
    assert panel.run_button.isEnabled()


def test_after_a_restart_the_study_is_there_and_goes_on(
    make_window: Callable[..., MainWindow], posts: Posts, tmp_path: Path, qtbot: QtBot
) -> None:
    file = write(tmp_path, sentences=MANY)
    folder = file.with_suffix(".study")
    first = make_window()
    first.show()
    qtbot.waitUntil(
        lambda: first.is_built and first.state.selection.ready and not first.jobs.busy, timeout=PATIENCE_MILLISECONDS
    )
    opened(first, file, qtbot)
    stop_after(first, posts, 3, first.close)
    first.panels["studies"].run_button.click()
    qtbot.waitUntil(lambda: first.is_closed, timeout=PATIENCE_MILLISECONDS)
    close(first, qtbot)
    before = created(folder)
    assert 2 < len(before) < 3 * MANY
    second = make_window()
    second.show()
    qtbot.waitUntil(
        lambda: second.features["studies"].summary is not None and second.state.selection.ready,
        timeout=PATIENCE_MILLISECONDS,
    )
    qtbot.waitUntil(lambda: not second.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    panel = second.panels["studies"]
    assert f"{len(before)} takes finished, {3 * MANY - len(before)} left, about" in panel.state
    outcome, _ = ended(second, panel.run_button.click, qtbot)
    assert outcome is Outcome.FINISHED
    after = created(folder)
    assert len(after) == 3 * MANY
    assert before.items() <= after.items()


def test_a_folder_goes_on_although_its_file_is_gone(
    panel: StudiesPanel, window: MainWindow, posts: Posts, tmp_path: Path, qtbot: QtBot
) -> None:
    file = write(tmp_path, sentences=MANY)
    opened(window, file, qtbot)
    stop_after(window, posts, 1, window.features["studies"].pause)
    ended(window, panel.run_button.click, qtbot)
    before = created(file.with_suffix(".study"))
    kept = tomllib.loads(file.read_text(encoding="utf-8"))
    window.features["studies"].close()
    assert window.state.open_studies.folders == ()
    assert panel.summary is None
    file.unlink()
    opened(window, file.with_suffix(".study"), qtbot)
    assert "There is no study" in panel.state
    outcome, _ = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.FINISHED
    assert tomllib.loads(file.read_text(encoding="utf-8")) == kept
    assert before.items() <= created(file.with_suffix(".study")).items()


def test_a_setting_that_cannot_be_run_is_listed_with_its_sentence(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    # The small model has no CFG-free weights.
    opened(window, write(tmp_path, grid='guidance_free.engaged = ["off", "on"]'), qtbot)
    outcome, _ = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.FINISHED
    assert panel.tabs.tabText(1) == "Failures (1)"
    assert "CFG-free weights" in panel.failures.item(0, 2).text()
    assert panel.table.texts()[1][0] == "!"
    assert window.features["studies"].summary.left == 0


@pytest.mark.slow
def test_the_bundled_model_is_studied(
    make_window: Callable[..., MainWindow], posts: Posts, tmp_path: Path, qtbot: QtBot
) -> None:
    window = make_window(load_model)
    window.show()
    qtbot.waitUntil(lambda: window.is_built and window.state.selection.ready, timeout=PATIENCE_MILLISECONDS)
    file, count = tmp_path / "bundled.toml", workload(5, 3)
    file.write_text(
        f'title = "Bundled"\nmodel = "f5-mini"\nsentences = "harvard"\ncount = {count}\n[options]\nsteps = 3\n'
        "[grid]\nsteps.steps = [2]\n",
        encoding="utf-8",
    )
    opened(window, file, qtbot)
    qtbot.waitUntil(lambda: not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    stop_after(window, posts, 1, window.features["studies"].pause)
    ended(window, window.panels["studies"].run_button.click, qtbot)
    before = created(tmp_path / "bundled.study")
    assert 1 <= len(before) < 2 * count
    outcome, sentence = ended(window, window.panels["studies"].run_button.click, qtbot)
    assert outcome is Outcome.FINISHED, sentence
    after = created(tmp_path / "bundled.study")
    assert len(after) == 2 * count
    assert before.items() <= after.items()
    figures = window.features["studies"].summary.rows[1].figures
    assert 0 < figures["ops_ratio"].value < 1
    assert figures["log_mel_distance"].value > 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_study_runs_on_a_ray_cluster_that_is_chosen_by_keys(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    pytest.importorskip("ray", reason="the extra [cluster] is not installed")
    opened(window, write(tmp_path), qtbot)
    panel.where.setFocus()
    qtbot.keyClick(panel.where, Qt.Key.Key_Down)
    assert panel.where.currentData() == CLUSTER
    qtbot.keyClick(panel.where, Qt.Key.Key_Tab)
    assert panel.address.hasFocus()
    panel.address.selectAll()
    qtbot.keyClicks(panel.address, "local")
    qtbot.keyClick(panel.address, Qt.Key.Key_Tab)
    assert panel.workers.hasFocus()
    qtbot.keyClick(panel.workers, Qt.Key.Key_Up)
    assert panel.cluster == ("local", 1)
    # Ray may take half a minute to begin, twice, and its worker loads a model of its own.
    outcome, sentence = ended(window, lambda: qtbot.keyClick(window, Qt.Key.Key_F5), qtbot, 3 * PATIENCE_MILLISECONDS)
    assert outcome is Outcome.FINISHED, sentence
    assert panel.state.startswith("Finished: 6 takes made. Tasks done: 6 on node ")
    assert [row[2] for row in panel.table.texts()] == ["2/2"] * 3
    # The window goes on: the model that it holds itself is still there.
    window.state.synthesis.synthesise_baseline()
    qtbot.waitUntil(lambda: not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    assert window.state.comparison.take_a is not None


# --- Making -----------------------------------------------------------------------------------------------------------
def verdict(window: MainWindow, words: str, qtbot: QtBot) -> str:
    """The dialog's verdict, once it contains ``words``."""
    maker = window.features["studies"].maker
    qtbot.waitUntil(lambda: words in maker.verdict.text(), timeout=PATIENCE_MILLISECONDS)
    return maker.verdict.text()


def test_a_study_is_made_counted_saved_and_started(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    window.state.selection.set_option("steps", 4)
    window.state.selection.set_option("cross_fade", 0.0)
    window.state.synthesis.synthesise_baseline()
    qtbot.waitUntil(lambda: not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    panel.new_button.click()
    maker = window.features["studies"].maker
    maker.title.setText("Steps of the small one")
    assert maker.path.text().endswith("studies/steps-of-the-small-one.toml")
    for box in maker.judges.values():
        box.setChecked(False)
    maker.count.setValue(2)
    maker.seeds.setText("0..1")
    maker.axes.lines[0].choose(Varied("steps", "steps", "2, 3"))
    said = verdict(window, "12 takes: 3 settings × 2 sentences × 1 voice × 2 seeds × 1 round", qtbot)
    assert "About" in said
    path = Path(maker.path.text())
    outcome, sentence = ended(window, maker.start_button.click, qtbot)
    assert outcome is Outcome.FINISHED, sentence
    assert tomllib.loads(path.read_text(encoding="utf-8")) == {
        "title": "Steps of the small one",
        "model": "f5-mini",
        "sentences": "harvard",
        "count": 2,
        "voices": ["slt"],
        "seeds": [0, 1],
        "options": {"cross_fade": 0.0, "steps": 4},
        "grid": {"steps": {"steps": [2, 3]}},
    }
    assert window.features["studies"].summary.made == 12
    assert window.features["studies"].maker is None


def test_ten_million_combinations_are_refused_with_count_and_estimate(
    panel: StudiesPanel, window: MainWindow, qtbot: QtBot
) -> None:
    window.action.new_study.trigger()
    maker = window.features["studies"].maker
    maker.axes.lines[0].choose(Varied("first_block", "threshold", "0.0001..0.9999 by 0.0001"))
    maker.axes.add(Varied("ditreducio", "threshold", "0.001..1 by 0.001"))
    said = verdict(window, "takes (", qtbot)
    assert "this would be 49,995,000 takes (9,999,000 settings × 5 utterances)" in said
    assert "years" in said or "days" in said
    assert not maker.start_button.isEnabled()
    maker.axes.lines[0].values.setText("nonsense")
    verdict(window, "not “nonsense”", qtbot)
    maker.reject()


def test_how_long_it_takes_is_known_from_studies_as_well(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    opened(window, run_once(tmp_path), qtbot)
    assert window.state.comparison.take_a is None
    window.action.new_study.trigger()
    assert "judging by takes without techniques" in verdict(window, "20 takes: 4 settings", qtbot)
    window.features["studies"].maker.reject()


def test_a_file_that_is_there_is_not_replaced_unasked(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    window.action.new_study.trigger()
    maker = window.features["studies"].maker
    path = write(tmp_path)
    before = path.read_bytes()
    maker.path.setText(str(path))
    qtbot.waitUntil(maker.save_button.isEnabled, timeout=PATIENCE_MILLISECONDS)
    maker.save_button.click()
    assert "exists; type another name" in maker.verdict.text()
    assert path.read_bytes() == before
    maker.path.setText(str(tmp_path / "none" / "such" / "x.json"))
    qtbot.waitUntil(maker.save_button.isEnabled, timeout=PATIENCE_MILLISECONDS)
    maker.save_button.click()
    assert "must end in .toml" in maker.verdict.text()
    maker.reject()


# --- Searching --------------------------------------------------------------------------------------------------------
def test_a_search_is_set_up_run_and_its_answer_used(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    pytest.importorskip("optuna")
    window.state.selection.set_option("steps", 4)
    window.action.new_study.trigger()
    maker = window.features["studies"].maker
    maker.kind.setCurrentIndex(1)
    for line in list(maker.goals.bounds):
        line.remove.click()
    for box in maker.judges.values():
        box.setChecked(False)
    maker.goals.goals[0].setCurrentIndex(maker.goals.goals[0].findData("ops_ratio"))
    maker.goals.add(Bound("log_mel_distance", "at_least", 0.0))
    maker.goals.trials.setValue(3)
    maker.count.setValue(1)
    maker.axes.lines[0].choose(Varied("steps", "steps", "1..3"))
    maker.path.setText(str(tmp_path / "found.toml"))
    verdict(window, "4 takes: 4 settings", qtbot)
    outcome, sentence = ended(window, maker.start_button.click, qtbot)
    assert outcome is Outcome.FINISHED, sentence
    found = panel.found.toPlainText()
    assert "The setting with the lowest Ops ratio whose Log-mel distance is at least 0." in found
    assert "of computing" in found
    (answer,) = [one for one in window.features["studies"].summary.rows if one.answer]
    assert window.features["studies"].summary.left == 0
    panel.table.choose(answer.key)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=PATIENCE_MILLISECONDS)
    qtbot.keyClick(window, Qt.Key.Key_J, Qt.KeyboardModifier.ControlModifier)
    assert window.state.selection.is_engaged("steps")
    assert window.state.selection.knobs("steps") == answer.setting.engaged("steps").knobs
    assert not window.state.selection.is_engaged("ditreducio")
    assert "Ctrl+E exports a profile" in window.notices.banner.text


def test_a_setting_is_used_with_its_strategy_table(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    opened(window, write(tmp_path, sentences=1, grid="ditreducio.threshold = [1.5]"), qtbot)
    outcome, sentence = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.FINISHED, sentence
    window.features["studies"].use(window.features["studies"].summary.rows[1].key)
    with Store(tmp_path / "small.study", read_only=True) as store:
        (table,) = store.artefacts().values()
    assert window.features["strategy"].state.table == table
    assert window.features["strategy"].state.threshold == 1.5
    assert window.state.availability.why_not_accelerate() == ""
    assert window.action.export_profile.isEnabled()


def test_what_is_not_installed_is_said_where_it_would_be_used(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.studies.extras.find_spec", lambda name: None)
    search = "[search]\ntrials = 2\n[search.space]\nsteps.steps = [2, 3]\n"
    path = tmp_path / "search.toml"
    path.write_text(f'sentences = ["One."]\n{search}', encoding="utf-8")
    opened(window, path, qtbot)
    assert not panel.run_button.isEnabled()
    assert "pip install 'paretone[search]'" in panel.run_button.toolTip()
    item = panel.where.model().item(panel.where.findData(CLUSTER))
    assert not item.isEnabled()
    assert "pip install 'paretone[cluster]'" in panel.where.toolTip()
    window.action.new_study.trigger()
    assert not window.features["studies"].maker.kind.model().item(1).isEnabled()
    assert "paretone[search]" in window.features["studies"].maker.no_search.text()
    window.features["studies"].maker.reject()


# --- What goes wrong --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("more", "grid", "sentence"),
    [
        ("", "warp_drive.speed = [9]", "There is no technique named 'warp_drive'"),
        ('voices = ["nobody"]', "", "There is no voice named 'nobody'"),
        ('voices = [{ audio = "gone.wav", transcript = "x" }]', "", "there is no recording"),
        (
            "",
            f"first_block.threshold = {[n / 2000 for n in range(1, 2001)]}\n"
            f"ditreducio.threshold = {[n / 5000 for n in range(1, 5001)]}",
            "this would be 20,000,000 takes (10,000,000 settings × 2 utterances); at a second each they take 231 days",
        ),
    ],
)
def test_a_file_that_is_no_study_is_told_by_a_sentence(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot, more: str, grid: str, sentence: str
) -> None:
    window.features["studies"].open(write(tmp_path, more=more, grid=grid))
    qtbot.waitUntil(lambda: sentence in window.notices.banner.text, timeout=PATIENCE_MILLISECONDS)
    assert window.features["studies"].summary is None
    assert window.state.open_studies.folders == ()
    opened(window, write(tmp_path, name="good"), qtbot)
    assert panel.run_button.isEnabled()


def test_a_file_that_was_spoilt_meanwhile_fails_with_its_sentence(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    file = write(tmp_path)
    opened(window, file, qtbot)
    file.write_text("[grid", encoding="utf-8")
    outcome, sentence = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.FAILED
    assert "is not valid TOML" in sentence
    assert "is not valid TOML" in panel.state
    assert not panel.run_button.isEnabled()
    write(tmp_path)
    window.features["studies"].opened.choose(tmp_path / "small.study")
    qtbot.waitUntil(panel.run_button.isEnabled, timeout=PATIENCE_MILLISECONDS)


def run_once(folder: Path) -> Path:
    """A finished study's file."""
    file = write(folder)
    small.finished(file.with_suffix(".study"), small.study(sentences=["This is sentence 0."]))
    return file


@pytest.mark.parametrize("readable", [True, False])
def test_a_damaged_study_is_read_and_can_be_set_aside(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot, readable: bool
) -> None:
    file = run_once(tmp_path)
    folder = file.with_suffix(".study")
    with sqlite3.connect(folder / DATABASE) as direct:
        direct.execute("CREATE INDEX takes_by_text ON takes (text)")
    direct.close()
    spoil_database(folder / DATABASE, "takes_by_text" if readable else "")
    opened(window, file, qtbot)
    assert "damaged" in panel.state
    assert "damaged" in window.notices.banner.text
    assert not panel.run_button.isEnabled()
    if readable:
        # What was made is shown with what the file asks for.
        assert [row[2] for row in panel.table.texts()] == ["1", "1", "1", "0/2", "0/2", "0/2"]
    assert panel.aside_button.isVisibleTo(panel)
    panel.aside_button.click()
    shown(window, qtbot)
    (backup,) = folder.glob("damaged-*")
    assert (backup / DATABASE).exists()
    assert list((backup / "audio").glob("*.wav"))
    outcome, sentence = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.FINISHED, sentence
    assert window.features["studies"].summary.made == 6


def test_a_newer_study_is_left_alone(panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    file = run_once(tmp_path)
    with sqlite3.connect(file.with_suffix(".study") / DATABASE) as direct:
        direct.execute("PRAGMA user_version = 99")
    direct.close()
    opened(window, file, qtbot)
    assert "written by a newer Paretone" in panel.state
    assert not panel.run_button.isEnabled()
    assert not panel.aside_button.isVisibleTo(panel)


def test_a_locked_study_fails_with_a_sentence(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = run_once(tmp_path)
    opened(window, file, qtbot)
    other = sqlite3.connect(file.with_suffix(".study") / DATABASE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with monkeypatch.context() as impatient:
        impatient.setattr("engine.database._PATIENCE_SECONDS", 0.1)
        outcome, sentence = ended(window, panel.run_button.click, qtbot)
    other.close()
    assert outcome is Outcome.FAILED
    assert "another program is writing to it" in sentence
    assert "another program is writing to it" in panel.state
    outcome, sentence = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.FINISHED, sentence


def test_a_full_disk_stops_the_study_and_nothing_else(
    panel: StudiesPanel,
    window: MainWindow,
    tiny_disk: Path,  # noqa: F811
    qtbot: QtBot,
) -> None:
    opened(window, write(tiny_disk, sentences=MANY), qtbot)
    outcome, sentence = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.FAILED
    assert "the disk is full; free some space" in sentence
    assert "the disk is full" in panel.state
    assert window.features["studies"].summary.made == len(created(tiny_disk / "small.study")) > 0
    window.state.synthesis.synthesise_baseline()
    qtbot.waitUntil(lambda: not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    assert window.state.comparison.take_a is not None


# --- Reporting --------------------------------------------------------------------------------------------------------
class Browser(QObject):
    """Takes the place of the user's browser."""

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
        qtbot.waitUntil(lambda: bool(browser.pages), timeout=PATIENCE_MILLISECONDS)
    finally:
        QDesktopServices.unsetUrlHandler("file")
    place = tmp_path / "small.study" / "report"
    assert browser.pages == [str(place / "report.html")]
    assert {one.name for one in place.iterdir()} == {"report.html", "results.csv", "takes.csv", "results.tex"}
    assert str(place / "report.html") in window.notices.banner.text
