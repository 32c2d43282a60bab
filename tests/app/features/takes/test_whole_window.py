"""Takes in the real window: played and compared by keys, kept in part when cancelled, judged when nothing else runs."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from paretone.audio.recording import read_recording
from paretone.models.catalogue import voice
from paretone.models.voices import own_voice
from paretone.session.commands import Cancel, Command, JudgeTake, LoadModel, ShutDown
from paretone.session.engine_thread import EngineThread
from paretone.session.events import Event, JobCancelled, JobFailed, JobFinished, Progress, TakeJudged
from paretone_app.features.takes.presenter import TakeJudging, voice_of
from paretone_app.numbers import significant
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Jobs, Kind, Outcome
from tests.app.conftest import run
from tests.app.features.takes.test_panel import shown, take
from tests.app.holding import Posts
from tests.app.sharing import borrowed  # noqa: F401
from tests.engine import small_speech
from tests.voices import FIRST

TEXT = "One. Two. Three. Four. Five."
LOOKED_AT = ("takes",)
BEFORE = "lasting_sink"


def cancel(window: MainWindow, posts: Posts, qtbot: QtBot) -> None:
    """Cancel the job at which the engine is held, and wait for its end."""
    with qtbot.waitSignal(window.jobs.ended) as blocker:
        window.action.cancel.trigger()
        posts.go_on()
    assert blocker.args[1] is Outcome.CANCELLED


def test_takes_are_played_compared_and_used_by_keys(window: MainWindow, qtbot: QtBot) -> None:
    panel, compared = window.panels["takes"], window.state.comparison
    qtbot.waitUntil(lambda: window.features["player"].player.usable)
    for index in range(3):
        window.results.takes.add(take(index))
    window.workspaces.go_to("takes")
    panel.table.setFocus()
    qtbot.waitUntil(panel.table.hasFocus)
    panel.table.selectRow(1)
    for key in (Qt.Key.Key_B, Qt.Key.Key_Return):
        qtbot.keyClick(panel.table, key)
    assert compared.take_b is not None and compared.take_b.id == window.state.playing.now.key == take(1).id
    np.testing.assert_array_equal(compared.take_b.samples, take(1).samples)
    qtbot.keyClick(panel.table, Qt.Key.Key_Down)
    window.action["set_a"].trigger()
    assert compared.take_a.id == take(0).id
    panel.go_to(take(2).id)
    qtbot.keyClick(panel.table, Qt.Key.Key_L)
    assert [one.id for one in compared.lanes] == [take(number).id for number in range(3)]
    window.action["add_lane"].trigger()
    assert window.notices.banner.text == "The selected takes are lanes already."
    window.action.undo.trigger()
    assert len(compared.lanes) == 2
    panel.go_to(take(0).id)
    window.state.selection.set_text("Something else.")
    qtbot.keyClick(panel.table, Qt.Key.Key_R)
    assert window.state.selection.text == "Sentence 0."
    panel.go_to(take(2).id)
    window.results.library.audio_path(take(2).id).unlink()
    qtbot.keyClick(panel.table, Qt.Key.Key_A)
    assert f"{2:032x}" in window.notices.banner.text
    panel.table.clearSelection()
    window.action["set_b"].trigger()
    assert window.notices.banner.text == "Select one take in the Takes panel first."


def test_a_cancelled_text_is_a_shorter_take(window: MainWindow, shared_posts: Posts, qtbot: QtBot) -> None:
    window.state.selection.set_text(TEXT)
    run(window, window.action.baseline, qtbot)
    whole = window.state.comparison.take_a
    assert whole is not None and not whole.unfinished
    shared_posts.hold_at(Progress, 3 * window.state.selection.options_in_force["steps"] + 1)
    window.action.baseline.trigger()
    qtbot.waitUntil(lambda: shared_posts.held)
    cancel(window, shared_posts, qtbot)
    assert shown(window.panels["takes"], "Setting")[0].startswith("Cancelled after 3 of 5 passages: ")
    assert window.state.comparison.take_a is whole, "A stays what can be compared"
    (cut, kept) = window.results.library.summaries()
    assert (cut.unfinished, kept.unfinished) == ("cancelled after 3 of 5 passages", "")
    assert 0 < cut.seconds <= kept.seconds
    panel = window.panels["takes"]
    panel.table.selectRow(0)
    panel.can["set_b"].trigger()
    assert window.state.comparison.headline().startswith("No speed-up is given: B was cancelled after 3 of 5")
    window.state.comparison.set_b(None)


def test_repeat_keeps_what_was_timed_so_far(window: MainWindow, shared_posts: Posts, qtbot: QtBot) -> None:
    repeat = window.action["repeat"]
    assert not repeat.isEnabled()
    window.state.selection.set_text("One.")
    window.state.selection.set_option("steps", 2)
    run(window, window.action.baseline, qtbot)
    run(window, repeat, qtbot)
    take = window.state.comparison.take_a
    assert len(take.repeats) == 5 and window.results.library.summary(take.id).repeats == take.repeats
    assert shown(window.panels["takes"], "RTF") == [significant(take.measurements.real_time_factor, 3)]
    window.workspaces.bring_forward("meters")
    qtbot.waitUntil(lambda: window.features["meters"].meters is not None)
    meters = window.features["meters"].meters
    assert "5 repeats" in meters.summaries["A"].text()
    (button,) = [one for one in meters.findChildren(QPushButton) if one.text() == "Repeat ×5"]
    shared_posts.hold_at(Progress, 2 * 2 + 1)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: shared_posts.held)
    cancel(window, shared_posts, qtbot)
    kept = window.state.comparison.take_a
    assert len(kept.repeats) == 7, "those that were finished before the cancel count"
    assert window.results.library.summary(take.id).repeats == kept.repeats
    assert "after 2 of 5 repeats, which are kept: its times are now those of 7 repeats" in window.notices.banner.text
    assert "7 repeats" in meters.summaries["A"].text()


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> list[Command]:
    monkeypatch.setattr("paretone_app.state.jobs.IDLE_MILLISECONDS", 10)
    return []


@pytest.fixture
def jobs(submitted: list, qtbot: QtBot) -> Jobs:
    return Jobs(submitted.append)


@pytest.fixture
def judged(jobs: Jobs) -> TakeJudging:
    made = TakeJudging(jobs)
    yield made
    made.shut_down()


def test_takes_are_judged_one_by_one(judged: TakeJudging, jobs: Jobs, submitted: list, qtbot: QtBot) -> None:
    said: list[tuple[str, dict]] = []
    judged.judged.connect(lambda one, figures, _found: said.append((one, figures)))
    for index in range(2):
        judged.add(take(index))
    for index in range(2):
        qtbot.waitUntil(lambda index=index: len(submitted) == index + 1)
        command = submitted[index]
        assert isinstance(command, JudgeTake) and command.take == take(index).id
        np.testing.assert_array_equal(command.samples, take(index).samples)
        assert not jobs.busy
        judged.follow(TakeJudged(command.job, command.take, {"naturalness": 4.0}))
        judged.follow(JobFinished(command.job))
    assert said == [(take(index).id, {"naturalness": 4.0}) for index in range(2)]


def test_jobs_and_listening_tests_go_first(judged: TakeJudging, jobs: Jobs, submitted: list, qtbot: QtBot) -> None:
    judged.add(take(0))
    qtbot.waitUntil(lambda: bool(submitted))
    first = submitted[0].job
    job = jobs.start(Kind.LOAD, lambda number: LoadModel(number, "f5-mini"))
    assert [type(one) for one in submitted[1:]] == [LoadModel, Cancel] and submitted[-1].target == first
    judged.follow(JobCancelled(first))
    qtbot.wait(50)
    assert len(submitted) == 3, "the job still runs"
    jobs.hold()
    jobs.handle(JobFinished(job.number))
    qtbot.wait(50)
    assert not any(isinstance(one, JudgeTake) for one in submitted[1:])
    jobs.release()
    qtbot.waitUntil(lambda: isinstance(submitted[-1], JudgeTake))
    assert submitted[-1].take == take(0).id


def test_what_fails_once_is_not_tried_with_every_take(judged: TakeJudging, submitted: list, qtbot: QtBot) -> None:
    for index in range(3):
        judged.add(take(index))
    qtbot.waitUntil(lambda: bool(submitted))
    judged.follow(JobFailed(submitted[0].job, "The file of weights is damaged."))
    qtbot.wait(50)
    assert len(submitted) == 1


def test_the_engine_judges_takes_of_any_model(only_words: None, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> None:
    monkeypatch.setattr("paretone_app.state.jobs.IDLE_MILLISECONDS", 10)
    events: list[Event] = []
    engine = EngineThread(events.append, small_speech.load)
    engine.start()
    judged, said = TakeJudging(Jobs(engine.submit)), []
    judged.judged.connect(lambda one, *found: said.extend((one, each) for each in found))
    heard = read_recording(voice(FIRST).audio)
    samples = np.concatenate([heard.samples, np.zeros(2 * heard.sample_rate, np.float32)])
    text = voice(FIRST).transcript
    spoken = replace(take(0), samples=samples, sample_rate=heard.sample_rate, text=text, voice=FIRST)
    try:
        judged.add(spoken)
        qtbot.waitUntil(lambda: any(isinstance(one, JobFinished | JobFailed) for one in events))
    finally:
        judged.shut_down()
        engine.submit(ShutDown(99))
        engine.join()
    for event in events:
        judged.follow(event)
    (one, figures), (_, checked) = said
    assert one == spoken.id and 0 < figures["pitch_range"] < 1
    assert figures["faults"] == len(checked.findings) == 1 and checked.findings[0].fault == "silence"
    assert checked.findings[0].start == pytest.approx(heard.seconds, abs=0.6)


def test_the_voice_of_a_take_is_found() -> None:
    assert voice_of(replace(take(0), voice=FIRST)) == voice(FIRST, "f5-mini")
    mine = own_voice("/home/me.wav")
    assert voice_of(replace(take(0), voice=mine.id), [voice(FIRST), mine]) == mine
    assert voice_of(replace(take(0), voice=mine.id), [voice(FIRST)]) is None
    assert voice_of(replace(take(0), voice="gone")) is None
