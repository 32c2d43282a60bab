"""The lab's presenter in the real window: what can be compared, what is kept, and that the engine rests meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.features.lab.setup import COMPARED, LIBRARY
from app.listening import results, trials
from app.shell.window import MainWindow
from app.state.jobs import Kind, Outcome
from engine.errors import PlainError
from engine.models.base import Utterance
from engine.session.commands import RunStudy
from engine.session.events import AudioReady, PreparationReport
from engine.setting.knobs import Values
from engine.setting.library import Library
from engine.setting.setting import Engaged, Setting
from engine.setting.take import Take
from tests.app.conftest import PATIENCE_MILLISECONDS, close
from tests.app.holding import Posts
from tests.app.listening.test_results import abx_session
from tests.sound import NullSink, null_sink  # noqa: F401

PLAIN = Setting("f5-mini", seed=7)
FAST = PLAIN.with_technique(Engaged("ditreducio", Values({"threshold": 0.2}), "a" * 16))
RATE = 24000


def take(number: int, setting: Setting, text: str) -> Take:
    samples = (0.1 * np.random.default_rng(number).standard_normal(RATE // 2)).astype(np.float32)
    created = f"2026-01-01T00:00:{number:02d}.000+00:00"
    return Take(f"{number:032x}", created, text, "slt", setting, RATE, samples)


TAKES = [take(2 * n + place, one, f"Sentence {n}.") for n in range(3) for place, one in enumerate((PLAIN, FAST))]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder whose library has three sentences in two settings."""
    folder = tmp_path / "data"
    with Library(folder / "takes") as library:
        for one in TAKES:
            library.add(one)
    return folder


@pytest.fixture
def quiet(data: Path, make_window: Callable[..., MainWindow], qtbot: QtBot) -> MainWindow:
    """A window that may have no sound."""
    window = make_window(data=data)
    window.show()
    window.activateWindow()
    qtbot.waitUntil(lambda: window.is_built and not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    window.action.listening_test.trigger()
    qtbot.waitUntil(window.panels["lab"].isVisible)
    return window


@pytest.fixture
def window(null_sink: NullSink, quiet: MainWindow, qtbot: QtBot) -> Iterator[MainWindow]:  # noqa: F811
    """A window with sound."""
    player = quiet.panels["listen"].player
    qtbot.waitUntil(lambda: player.usable, timeout=PATIENCE_MILLISECONDS)
    yield quiet
    if isValid(quiet) and not quiet.is_closed:
        close(quiet, qtbot)  # Before the sound server goes.


def compare(window: MainWindow) -> None:
    window.state.comparison.set_a(TAKES[0])
    window.state.comparison.set_b(TAKES[1])


def tick_all(window: MainWindow) -> None:
    setup = window.panels["lab"].setup
    setup.source.setCurrentIndex(setup.source.findData(LIBRARY))
    for row in range(setup.ticks.count()):
        setup.ticks.item(row).setCheckState(Qt.CheckState.Checked)


def ask_for_a_test(window: MainWindow, length: int = 2, practice: int = 0) -> None:
    lab = window.panels["lab"]
    lab.setup.length.setValue(length)
    lab.setup.practice.setValue(practice)
    assert lab.setup.begin_button.isEnabled(), lab.setup.begin_button.toolTip()
    lab.setup.begin_button.click()


def come_to_the_volume(window: MainWindow, qtbot: QtBot, length: int = 2, practice: int = 0) -> None:
    ask_for_a_test(window, length, practice)
    qtbot.waitUntil(lambda: window.panels["lab"].volume is not None, timeout=PATIENCE_MILLISECONDS)


def begin(window: MainWindow, qtbot: QtBot, length: int = 2, practice: int = 0) -> None:
    come_to_the_volume(window, qtbot, length, practice)
    window.panels["lab"].volume.begin_button.click()
    assert window.panels["lab"].trial is not None


def answer(window: MainWindow) -> None:
    page = window.panels["lab"].trial
    page.hear(2)
    page.say(0)


def test_settings_and_sentences_come_from_the_library(quiet: MainWindow) -> None:
    setup = quiet.panels["lab"].setup
    tick_all(quiet)
    assert [setup.ticks.item(row).text() for row in range(setup.ticks.count())] == ["baseline", "DiTReducio δ 0.2"]
    assert "3 sentences in common" in setup.plan.text()
    quiet.features["takes"].library.add(take(50, PLAIN, "New."))
    quiet.features["takes"].takes.add(quiet.features["takes"].library.add(take(51, FAST, "New.")))
    assert "4 sentences in common" in setup.plan.text()
    quiet.features["takes"].library.delete(f"{51:032x}")
    quiet.features["takes"].takes.reload()
    assert "3 sentences in common" in setup.plan.text()


def test_without_sound_no_test_begins_but_one_can_be_exported(quiet: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    lab = quiet.panels["lab"]
    if quiet.panels["listen"].player.usable:
        pytest.skip("this machine has sound")
    tick_all(quiet)
    assert not lab.setup.begin_button.isEnabled()
    qtbot.waitUntil(lambda: "works" in lab.setup.remarks.text(), timeout=PATIENCE_MILLISECONDS)
    assert lab.setup.export_button.isEnabled()
    folder = tmp_path / "exported"
    quiet.features["lab"].write_test(folder)
    qtbot.waitUntil(lambda: "Wrote" in quiet.notices.banner.text, timeout=PATIENCE_MILLISECONDS)
    (made,) = folder.iterdir()
    config = yaml.safe_load((made / f"{made.name}.yaml").read_text())
    _, *practice, pages, _ = config["pages"]
    assert [one["id"] for one in practice] == ["practice_1", "practice_2"]
    pages = pages[1:]
    assert len(pages) == 16
    for page in pages:
        for path in (page["reference"], *page["stimuli"].values()):
            assert (made / Path(path).name).exists()
    assert len(list(made.glob("*.wav"))) == 6 + 1, "and the noise that the volume is set by"


def test_takes_of_a_study_can_be_offered(quiet: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    studied = [take(60 + place, setting, "Studied.") for place, setting in enumerate((PLAIN, FAST))]
    with Library(tmp_path / "study") as elsewhere:
        found = [elsewhere.add(one) for one in studied]
    sounds = {one.id: (one.samples, RATE) for one in studied}
    quiet.features["lab"].offer(found, lambda one: sounds[one])
    tick_all(quiet)
    assert "4 sentences in common" in quiet.panels["lab"].setup.plan.text()
    quiet.features["lab"].write_test(tmp_path / "exported")
    qtbot.waitUntil(lambda: "Wrote" in quiet.notices.banner.text, timeout=PATIENCE_MILLISECONDS)
    (about,) = tmp_path.glob("exported/*/*.json")
    assert [one["text"] for one in json.loads(about.read_text())["sounds"]][:2] == ["Studied."] * 2


def test_a_study_on_a_cluster_is_to_be_paused_first(quiet: MainWindow) -> None:
    quiet.jobs.hold()  # So that it only waits.
    compare(quiet)
    quiet.jobs.start(Kind.STUDY, lambda job: RunStudy(job, "none.toml", "", ray="local"))
    assert "A study is running on a cluster" in quiet.panels["lab"].setup.remarks.text()
    with pytest.raises(PlainError, match="pause the study first"):
        quiet.features["lab"].begin()
    quiet.jobs.cancel_all()


def test_a_choice_that_makes_no_test_says_why(quiet: MainWindow) -> None:
    setup = quiet.panels["lab"].setup
    assert "Choose two takes as A and B first." in setup.remarks.text()
    quiet.state.comparison.set_a(TAKES[0])
    quiet.state.comparison.set_b(replace(TAKES[2], setting=replace(PLAIN, seed=8)))
    assert "A and B have the same setting" in setup.remarks.text()
    with pytest.raises(PlainError, match="same setting"):
        quiet.features["lab"].begin()
    with pytest.raises(PlainError, match="same setting"):
        quiet.features["lab"].write_test(Path("nowhere"))
    setup.method.setCurrentIndex(1)
    compare(quiet)
    assert not setup.export_button.isEnabled()
    assert "no graded comparison" in setup.export_button.toolTip()


def test_what_else_differs_between_a_and_b_is_said(quiet: MainWindow) -> None:
    quiet.state.comparison.set_a(TAKES[0])
    quiet.state.comparison.set_b(TAKES[3])
    assert quiet.panels["lab"].setup.choice.source == COMPARED
    assert "also differ in text" in quiet.panels["lab"].setup.remarks.text()


@pytest.mark.slow
def test_the_engine_begins_nothing_during_a_test(window: MainWindow, qtbot: QtBot) -> None:
    compare(window)
    begin(window, qtbot)
    assert not window.panels["listen"].isEnabled()
    assert not window.action.compare.isEnabled()
    assert "listening test is on" in window.features["guide"].guide.hint
    assert [place.name for place, dock in window.docks if dock.isVisible()] == ["lab"]
    ended: list[tuple] = []
    window.jobs.ended.connect(lambda job, outcome, _: ended.append((job.kind, outcome)))
    window.state.loading.load_model("f5-mini")
    assert "starts after the listening test" in window.notices.banner.text
    assert window.jobs.busy
    qtbot.wait(300)
    assert ended == [], "it waits"
    window.action.cancel.trigger()
    qtbot.waitUntil(lambda: ended == [(Kind.LOAD, Outcome.CANCELLED)], timeout=PATIENCE_MILLISECONDS)
    window.state.loading.load_model("f5-mini")
    answer(window)
    answer(window)
    page = window.panels["lab"].trial
    while page is not None and not page.session.finished:  # A starved machine voids trials.
        answer(window)
        page = window.panels["lab"].trial
    qtbot.waitUntil(lambda: len(ended) == 2, timeout=PATIENCE_MILLISECONDS)
    assert ended[1] == (Kind.LOAD, Outcome.FINISHED)
    assert "listening test" not in window.features["guide"].guide.hint
    assert not window.docks["setup"].isHidden()
    assert window.panels["listen"].isEnabled()


@pytest.mark.slow
def test_a_running_job_rests_while_a_trial_sounds_and_goes_on_after_it(
    window: MainWindow, posts: Posts, qtbot: QtBot
) -> None:
    compare(window)
    trials_done: list[PreparationReport] = []
    ended: list[Outcome] = []
    window.bridge.reports.connect(trials_done.extend)
    window.jobs.ended.connect(lambda job, outcome, _: ended.append(outcome))
    window.state.selection.engage("ditreducio", True)
    posts.hold_at(PreparationReport)
    window.features["strategy"].state.calibrate_on(
        tuple(Utterance(f"Sentence number {one}.", window.state.selection.voice) for one in range(12))
    )
    qtbot.waitUntil(lambda: bool(trials_done), timeout=PATIENCE_MILLISECONDS)
    ask_for_a_test(window)
    qtbot.waitUntil(lambda: window.jobs.held, timeout=PATIENCE_MILLISECONDS)
    posts.go_on()
    qtbot.waitUntil(lambda: window.panels["lab"].volume is not None, timeout=PATIENCE_MILLISECONDS)
    window.panels["lab"].volume.begin_button.click()
    assert [one.kind for one in window.jobs.running] == [Kind.CALIBRATE], "it is in the middle of its work"
    window.bridge.drain()
    before = len(trials_done)
    page = window.panels["lab"].trial
    page.hear(2)
    qtbot.waitUntil(lambda: page.player.playing, timeout=PATIENCE_MILLISECONDS)
    qtbot.wait(400)
    window.bridge.drain()
    assert len(trials_done) == before, "nothing computes while it sounds"
    assert ended == []
    posts.hold_at(PreparationReport)
    page.leave_button.click()
    page.leave_button.click()
    qtbot.waitUntil(lambda: len(trials_done) > before, timeout=PATIENCE_MILLISECONDS)
    window.action.cancel.trigger()
    posts.go_on()
    qtbot.waitUntil(lambda: ended == [Outcome.CANCELLED], timeout=PATIENCE_MILLISECONDS)


@pytest.mark.slow
def test_a_take_is_finished_before_a_test_begins_and_one_need_not_wait(
    window: MainWindow, posts: Posts, qtbot: QtBot
) -> None:
    compare(window)
    lab = window.panels["lab"]
    ended: list[Outcome] = []
    window.jobs.ended.connect(lambda job, outcome, _: ended.append(outcome))
    window.state.selection.set_text("One. Two. Three. Four. Five. Six. Seven. Eight.")
    posts.hold_at(AudioReady)
    window.state.synthesis.synthesise_baseline()
    ask_for_a_test(window)
    qtbot.waitUntil(lab._waiting.cancel_button.isVisible, timeout=PATIENCE_MILLISECONDS)
    lab._waiting.cancel_button.click()
    assert lab.setup.isVisible()
    assert not window.jobs.held
    assert lab.volume is None
    ask_for_a_test(window)
    qtbot.waitUntil(lab._waiting.cancel_button.isVisible, timeout=PATIENCE_MILLISECONDS)
    assert (lab.volume, ended) == (None, [])
    posts.go_on()
    qtbot.waitUntil(lambda: lab.volume is not None, timeout=PATIENCE_MILLISECONDS)
    assert ended == [Outcome.FINISHED], "the take first"


@pytest.mark.slow
def test_the_volume_is_set_and_the_test_is_practised_before_anything_counts(
    window: MainWindow, data: Path, qtbot: QtBot
) -> None:
    tick_all(window)
    come_to_the_volume(window, qtbot, 2, practice=1)
    lab = window.panels["lab"]
    assert [place.name for place, dock in window.docks if dock.isVisible()] == ["lab"]
    lab.volume.hear(0)
    player = window.panels["listen"].player
    qtbot.waitUntil(lambda: player.playing, timeout=PATIENCE_MILLISECONDS)
    lab.volume.begin_button.click()
    session = lab.trial.session
    assert lab.volume is None
    assert len({round(one.target, 3) for one in session.items}) == 1, "one volume for all sentences"
    assert session.practising
    answer(window)
    assert not session.practising
    assert trials.read(data / "listening").trials == ()
    while not session.finished:
        answer(window)
    assert sum(not one.void for one in trials.read(data / "listening").trials) == 2


@pytest.mark.slow
def test_leaving_the_volume_page_leaves_the_test(window: MainWindow, data: Path, qtbot: QtBot) -> None:
    compare(window)
    come_to_the_volume(window, qtbot)
    window.panels["lab"].volume.leave_button.click()
    assert window.panels["lab"].setup.isVisible()
    assert not window.jobs.held
    assert window.panels["listen"].isEnabled()


@pytest.mark.slow
def test_a_test_on_the_library_is_kept_counted_and_shown(window: MainWindow, data: Path, qtbot: QtBot) -> None:
    tick_all(window)
    begin(window, qtbot, 6)
    session = window.panels["lab"].trial.session
    assert {one.record.text for one in session.items} == {"Sentence 0.", "Sentence 1.", "Sentence 2."}
    with qtbot.waitSignal(window.features["lab"].carried_through, timeout=PATIENCE_MILLISECONDS):
        while not session.finished:
            answer(window)
    found = trials.read(data / "listening")
    assert found.trials == tuple(
        replace(one, created=other.created) for one, other in zip(session.records, found.trials, strict=True)
    )
    hits = sum(one.order[2] == 0 and not one.void for one in found.trials)
    assert f"{hits} of 6 right" in window.panels["lab"].results.page.toPlainText()
    (score,) = results.scores(data / "listening")
    assert (score.mean, score.n) == (pytest.approx(hits / 6), 6)
    assert window.panels["lab"].setup.choice.listener == session.listener, "the same listener goes on"
    written = window.features["lab"].write_results(data / "exported")
    assert [path.name for path in written] == ["paired_comparison.csv"]


@pytest.mark.slow
def test_what_was_broken_off_counts_for_nothing(window: MainWindow, data: Path, qtbot: QtBot) -> None:
    compare(window)
    begin(window, qtbot, 5)
    answer(window)
    leave = window.panels["lab"].trial.leave_button
    leave.click()
    leave.click()
    assert window.panels["lab"].trial is None
    assert "not scored" in window.notices.banner.text
    assert not window.jobs.held
    assert window.panels["listen"].isEnabled()
    assert len(trials.read(data / "listening").trials) == 1
    assert results.scores(data / "listening") == ()
    with pytest.raises(PlainError, match="nothing to export"):
        window.features["lab"].write_results(data)


@pytest.mark.slow
def test_a_trial_that_cannot_be_written_ends_the_test_with_a_sentence(
    window: MainWindow, data: Path, qtbot: QtBot
) -> None:
    compare(window)
    begin(window, qtbot, 5)
    (data / "listening").write_text("in the way")
    answer(window)
    assert "could not be written" in window.notices.banner.text
    assert "is not scored" in window.notices.banner.text
    assert window.panels["lab"].trial is None
    assert not window.jobs.held


@pytest.mark.slow
def test_a_take_that_is_gone_is_a_sentence(window: MainWindow, qtbot: QtBot) -> None:
    tick_all(window)
    window.features["takes"].library.audio_path(TAKES[0].id).unlink()
    window.panels["lab"].setup.begin_button.click()
    qtbot.waitUntil(lambda: "could not be read" in window.notices.banner.text, timeout=PATIENCE_MILLISECONDS)
    assert window.panels["lab"].trial is None
    assert window.panels["lab"].setup.isVisible()


@pytest.mark.slow
def test_closing_in_the_middle_of_a_test_leaves_its_trials(window: MainWindow, data: Path, qtbot: QtBot) -> None:
    compare(window)
    begin(window, qtbot, 5)
    answer(window)
    QTest.qWait(50)
    close(window, qtbot)
    assert len(trials.read(data / "listening").trials) == 1


def test_damaged_results_are_reported_with_the_others(quiet: MainWindow, data: Path) -> None:
    for one in abx_session("s", 12):
        path = trials.append(one, data / "listening")
    path.write_text(path.read_text() + "nonsense\n")
    quiet.panels["lab"].setup.results_button.click()
    text = quiet.panels["lab"].results.page.toPlainText()
    assert "12 of 16 right" in text
    assert f"Damaged lines in {path}: 1." in text
