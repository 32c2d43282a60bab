"""Studies in the window on the real engine: opened, run, paused, resumed, reported."""

from __future__ import annotations

import sqlite3
import tomllib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from pytestqt.qtbot import QtBot

from paretone.errors import StudyError
from paretone.models import load_model
from paretone.session.events import Event, StudyTakeDone
from paretone.studies.results import read
from paretone.studies.store import DATABASE
from paretone_app.audio.sound import Sound
from paretone_app.features.studies.panel import CLUSTER, StudiesPanel
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Outcome
from tests.app.conftest import PATIENCE_MILLISECONDS, close
from tests.app.features.studies.studying import MANY, created, ended, opened, run_once, write
from tests.app.holding import Posts
from tests.prompts import short_prompts  # noqa: F401
from tests.workload import workload


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


def test_a_take_with_many_errors_is_played(
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
    monkeypatch.setattr(player, "why_not_hear", lambda: "no sound")
    with pytest.raises(StudyError, match="cannot be played: no sound"):
        presenter.hear(take, "", "")


# --- Opening and running ----------------------------------------------------------------------------------------------
def test_a_study_is_counted_run_and_filled_in(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    told: list[Path] = []
    window.results.study_changed.connect(told.append)
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
    assert list(window.results.studies) == [tmp_path / "small.study"]
    assert panel.run_button.text() == "Ru&n again"


def test_pausing_finishes_the_take_and_resuming_redoes_nothing(
    panel: StudiesPanel, window: MainWindow, posts: Posts, tmp_path: Path, qtbot: QtBot
) -> None:
    file = write(tmp_path, sentences=MANY)
    opened(window, file, qtbot)
    stop_after(window, posts, 2, lambda: qtbot.mouseClick(panel.pause_button, Qt.MouseButton.LeftButton))
    outcome, _ = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.PAUSED
    assert "Paused" in panel.state
    before = created(file.with_suffix(".study"))
    assert 2 <= len(before) < 3 * MANY
    assert panel.run_button.text() == "Resume"
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
    assert not window.results.studies
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
    opened(window, write(tmp_path, grid='guidance_free.used = ["off", "on"]'), qtbot)
    outcome, _ = ended(window, panel.run_button.click, qtbot)
    assert outcome is Outcome.FINISHED
    assert panel.tabs.tabText(1) == "Failures (1)"
    assert "CFG-free weights" in panel.failures.item(0, 2).text()
    assert panel.table.texts()[1][0] == "!"
    assert window.features["studies"].summary.left == 0


@pytest.mark.slow
@pytest.mark.usefixtures("short_prompts")
def test_the_bundled_model_is_studied(
    make_window: Callable[..., MainWindow], posts: Posts, tmp_path: Path, qtbot: QtBot
) -> None:
    window = make_window(load_model)
    window.show()
    qtbot.waitUntil(lambda: window.is_built and window.state.selection.ready, timeout=PATIENCE_MILLISECONDS)
    file, count = tmp_path / "bundled.toml", workload(5, 2)
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
    files = {"report.html", "results.csv", "takes.csv", "results.tex"}
    assert {one.name for one in place.iterdir()} == files
    assert str(place / "report.html") in window.notices.banner.text


def test_results_are_verified_and_what_does_not_agree_is_told(
    panel: StudiesPanel, window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    verify = window.action["verify_study"]
    opened(window, write(tmp_path), qtbot)
    assert not verify.isEnabled() and verify.reason == "No takes yet; run the study first."
    ended(window, lambda: qtbot.keyClick(window, Qt.Key.Key_F5), qtbot)
    for said in ("The results in small.study agree", "The results in small.study do not agree. Texts: Takes say"):
        with qtbot.waitSignal(window.jobs.ended, timeout=PATIENCE_MILLISECONDS) as blocker:
            verify.trigger()
        assert blocker.args[1] is Outcome.FINISHED
        assert window.notices.banner.text.startswith(said)
        with closing(sqlite3.connect(tmp_path / "small.study" / DATABASE)) as database, database:
            database.execute("UPDATE takes SET text = 'Another.'")
