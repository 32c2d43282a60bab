"""The lab's presenter in the real window with sound: tests are held and kept, and the engine rests meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from paretone.errors import PlainError
from paretone.listening import results, trials
from paretone.models.base import Utterance
from paretone.session.events import AudioReady, PreparationReport
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Kind, Outcome
from paretone_app.state.playing import Heard, Origin
from tests.app.conftest import PATIENCE_MILLISECONDS, close
from tests.app.features.lab.testing import (
    TAKES,
    answer,
    ask_for_a_test,
    at_the_lab,
    begin,
    come_to_the_volume,
    compare,
    folder_of,
    tick_all,
)
from tests.app.holding import Posts
from tests.sound import NullSink, lasting_sink  # noqa: F401

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def surroundings(lasting_sink: NullSink) -> NullSink:  # noqa: F811
    """Sound, before there is a window."""
    return lasting_sink


@pytest.fixture
def window(borrowed_window: MainWindow, qtbot: QtBot) -> Iterator[MainWindow]:
    """A window with sound. Its library has three sentences in two settings."""
    player = borrowed_window.features["player"].player
    qtbot.waitUntil(lambda: player.usable, timeout=PATIENCE_MILLISECONDS)
    with at_the_lab(borrowed_window, qtbot):
        yield borrowed_window


def test_the_engine_begins_nothing_during_a_test(window: MainWindow, qtbot: QtBot) -> None:
    compare(window)
    begin(window, qtbot)
    assert not window.panels["listen"].isEnabled()
    assert not window.action.compare.isEnabled()
    labels = window.panels["player"].findChildren(QLabel)
    assert [one.text() for one in labels if one.isVisible()] == ["A listening test is using the player."]
    assert window.state.playing.now == Heard(Origin.TEST)
    assert "listening test is on" in window.features["guide"].guide.hint
    assert [place.name for place, dock in window.workspaces if dock.isVisible()] == ["lab"]
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
    assert not window.workspaces["setup"].isHidden()
    assert window.panels["listen"].isEnabled()
    qtbot.waitUntil(lambda: window.state.playing.now.origin is Origin.COMPARED, timeout=PATIENCE_MILLISECONDS)


def test_a_running_job_rests_while_a_trial_sounds_and_goes_on_after_it(
    window: MainWindow, posts: Posts, qtbot: QtBot
) -> None:
    compare(window)
    trials_done: list[PreparationReport] = []
    ended: list[Outcome] = []
    window.bridge.reports.connect(trials_done.extend)
    window.jobs.ended.connect(lambda job, outcome, _: ended.append(outcome))
    window.state.selection.switch("ditreducio", True)
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


def test_the_volume_is_set_and_the_test_is_practised_before_anything_counts(window: MainWindow, qtbot: QtBot) -> None:
    tick_all(window)
    come_to_the_volume(window, qtbot, 2, practice=1)
    lab = window.panels["lab"]
    assert [place.name for place, dock in window.workspaces if dock.isVisible()] == ["lab"]
    lab.volume.hear(0)
    player = window.features["player"].player
    qtbot.waitUntil(lambda: player.playing, timeout=PATIENCE_MILLISECONDS)
    lab.volume.begin_button.click()
    session = lab.trial.session
    assert lab.volume is None
    assert len({round(one.target, 3) for one in session.items}) == 1, "one volume for all sentences"
    assert session.practising
    answer(window)
    assert not session.practising
    assert trials.read(folder_of(window) / trials.FOLDER).trials == ()
    while not session.finished:
        answer(window)
    assert sum(not one.void for one in trials.read(folder_of(window) / trials.FOLDER).trials) == 2


def test_leaving_the_volume_page_leaves_the_test(window: MainWindow, qtbot: QtBot) -> None:
    compare(window)
    come_to_the_volume(window, qtbot)
    window.panels["lab"].volume.leave_button.click()
    assert window.panels["lab"].setup.isVisible()
    assert not window.jobs.held
    assert window.panels["listen"].isEnabled()


def test_a_test_on_the_library_is_kept_counted_and_shown(window: MainWindow, qtbot: QtBot) -> None:
    tick_all(window)
    begin(window, qtbot, 6)
    session = window.panels["lab"].trial.session
    assert {one.record.text for one in session.items} == {"Sentence 0.", "Sentence 1.", "Sentence 2."}
    with qtbot.waitSignal(window.features["lab"].carried_through, timeout=PATIENCE_MILLISECONDS):
        while not session.finished:
            answer(window)
    found = trials.read(folder_of(window) / trials.FOLDER)
    assert found.trials == tuple(
        replace(one, created=other.created) for one, other in zip(session.records, found.trials, strict=True)
    )
    hits = sum(one.order[2] == 0 and not one.void for one in found.trials)
    assert f"{hits} of 6 right" in window.panels["lab"].results.page.toPlainText()
    (score,) = results.scores(folder_of(window) / trials.FOLDER)
    assert (score.mean, score.n) == (pytest.approx(hits / 6), 6)
    assert window.panels["lab"].setup.choice.listener == session.listener, "the same listener goes on"
    written = window.features["lab"].write_results(folder_of(window) / "exported")
    assert [path.name for path in written] == ["paired_comparison.csv"]


def test_what_was_broken_off_counts_for_nothing(window: MainWindow, qtbot: QtBot) -> None:
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
    assert len(trials.read(folder_of(window) / trials.FOLDER).trials) == 1
    assert results.scores(folder_of(window) / trials.FOLDER) == ()
    with pytest.raises(PlainError, match="nothing to export"):
        window.features["lab"].write_results(folder_of(window))


def test_a_trial_that_cannot_be_written_ends_the_test_with_a_sentence(window: MainWindow, qtbot: QtBot) -> None:
    compare(window)
    begin(window, qtbot, 5)
    (folder_of(window) / trials.FOLDER).write_text("in the way")
    answer(window)
    assert "could not be written" in window.notices.banner.text
    assert "is not scored" in window.notices.banner.text
    assert window.panels["lab"].trial is None
    assert not window.jobs.held


def test_similarity_to_the_voice_is_rated_by_keys_and_becomes_a_score(window: MainWindow, qtbot: QtBot) -> None:
    tick_all(window)
    setup = window.panels["lab"].setup
    setup.method.setCurrentIndex(setup.method.findData(trials.SIMILARITY))
    begin(window, qtbot, 4)
    page = window.panels["lab"].trial
    assert "same speaker" in page.question.text()
    assert [one.text() for one in page.answer_buttons][::4] == ["Bad  (1)", "Excellent  (5)"]
    votes = iter((5, 3, 4, 4, *(4,) * 50))
    while window.panels["lab"].trial is not None:
        for button in (0, 1):
            page.hear(button)
            qtbot.waitUntil(lambda: page.player.playing, timeout=PATIENCE_MILLISECONDS)
            page.session.heard_to_the_end(button)
        assert not page.session.why_not_answer()
        page.vote(next(votes))
    shown = window.panels["lab"].results.page.toPlainText()
    assert "MOS: how much like the voice" in shown and "votes by one listener" in shown
    assert {one.method for one in results.scores(folder_of(window) / trials.FOLDER)} == {trials.SIMILARITY}


def test_a_voice_that_is_gone_is_a_sentence(window: MainWindow, qtbot: QtBot) -> None:
    strange = [
        replace(one, id=f"{50 + n:032x}", voice="own:gone.wav:00", text="Strange.") for n, one in enumerate(TAKES[:2])
    ]
    for one in strange:
        window.results.takes.add(one)
    tick_all(window)
    setup = window.panels["lab"].setup
    setup.method.setCurrentIndex(setup.method.findData(trials.SIMILARITY))
    setup.begin_button.click()
    qtbot.waitUntil(lambda: "is not at hand" in window.notices.banner.text, timeout=PATIENCE_MILLISECONDS)
    assert "gone.wav" in window.notices.banner.text and window.panels["lab"].trial is None
    window.results.takes.delete([one.id for one in strange])


def test_a_take_that_is_gone_is_a_sentence(window: MainWindow, qtbot: QtBot) -> None:
    tick_all(window)
    window.results.library.audio_path(TAKES[0].id).unlink()
    window.panels["lab"].setup.begin_button.click()
    qtbot.waitUntil(lambda: "could not be read" in window.notices.banner.text, timeout=PATIENCE_MILLISECONDS)
    assert window.panels["lab"].trial is None
    assert window.panels["lab"].setup.isVisible()


def test_the_tour_leads_through_a_short_test(window: MainWindow, qtbot: QtBot) -> None:
    compare(window)
    window.action["tour"].trigger()
    tour, lab = window.features["tour"], window.panels["lab"]
    while tour.course.stop.name != "blind":
        tour.card.next_button.click()
    tour.card.help_button.click()
    qtbot.waitUntil(lambda: lab.volume is not None, timeout=PATIENCE_MILLISECONDS)
    lab.volume.begin_button.click()
    assert (lab.setup.choice.length, lab.setup.choice.practice) == (4, 0)
    qtbot.waitUntil(lambda: "answer" in tour.card.hint)
    said = tour.card.said
    assert not any(one in said for one in ("ditreducio", "DiTReducio", "baseline")), "nobody is told which is which"
    while lab.trial is not None and not lab.trial.session.finished:
        answer(window)
    qtbot.waitUntil(lambda: tour.course.part is None, timeout=PATIENCE_MILLISECONDS)
    tour.end()


def test_closing_in_the_middle_of_a_test_leaves_its_trials(
    surroundings: NullSink, make_window: Callable[..., MainWindow], qtbot: QtBot
) -> None:
    window = make_window()
    window.show()
    window.activateWindow()
    qtbot.waitUntil(lambda: window.is_built and not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    qtbot.waitUntil(lambda: window.features["player"].player.usable, timeout=PATIENCE_MILLISECONDS)
    window.action["listening_test"].trigger()
    qtbot.waitUntil(window.panels["lab"].isVisible)
    compare(window)
    begin(window, qtbot, 5)
    answer(window)
    QTest.qWait(50)
    folder = folder_of(window) / trials.FOLDER
    close(window, qtbot)
    assert len(trials.read(folder).trials) == 1
