"""Jobs of the engine thread are cancelled, at work and while they wait, or held: nothing computes until a release."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from paretone.session import events
from paretone.session.commands import Cancel, CaptureAttention, Command, Hold, LoadModel, Release, RunStudy
from paretone.session.engine_thread import EngineThread
from paretone.session.executor import RunningJob
from paretone.session.jobs import StudyObserver
from paretone.techniques.ditreducio.record import Trial
from tests.engine import small_speech
from tests.engine.recorder import Gate, Recorder, is_of
from tests.engine.running import running
from tests.engine.session.small_jobs import calibration, loaded, synthesis
from tests.engine.small_speech import VOICE, setting


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (synthesis(2, chosen=setting(steps=100)), events.Progress),
        (synthesis(2, text="A. " * 100), events.AudioReady),
        (calibration(2, steps=30), Trial),
        (CaptureAttention(2, "One.", VOICE, setting(steps=100), layer=0, step=99), events.Progress),
    ],
    ids=["step", "chunk", "trial", "attention"],
)
def test_cancel_takes_effect_within_one_step(
    engine: EngineThread, recorder: Recorder, command: Command, kind: type
) -> None:
    loaded(engine, recorder)
    gate = Gate(recorder, kind)
    engine.submit(command)
    gate.reached()
    engine.submit(Cancel(0, 2))
    gate.open()
    assert isinstance(recorder.end_of(2), events.JobCancelled)
    seen = [event for event in recorder.of(2) if is_of(event, kind)]
    assert len(seen) == 1, "the step at which it was cancelled is the last"
    assert bool(recorder.of(2, events.TakeReady)) == (kind is events.AudioReady), "only what was finished is a take"
    assert not recorder.of(2, events.Prepared)


def test_cancel_while_waiting(engine: EngineThread, recorder: Recorder) -> None:
    loaded(engine, recorder)
    gate = Gate(recorder, events.Progress)
    for job in (2, 3, 4):
        engine.submit(synthesis(job))
    gate.reached()
    engine.submit(Cancel(0, 3))
    assert recorder.of(3) == [events.JobCancelled(3)], "a waiting job is cancelled at once, not when its turn comes"
    gate.open()
    assert isinstance(recorder.end_of(4), events.JobFinished)
    assert recorder.of(3) == [events.JobCancelled(3)]
    assert isinstance(recorder.end_of(2), events.JobFinished)


def test_cancelling_twice_or_after_the_end_ends_once(engine: EngineThread, recorder: Recorder) -> None:
    loaded(engine, recorder)
    gate = Gate(recorder, events.Progress)
    engine.submit(synthesis(2))
    gate.reached()
    engine.cancel(2)
    engine.cancel(2)
    gate.open()
    recorder.end_of(2)
    for target in (1, 2, 99):
        engine.submit(Cancel(0, target))
    engine.submit(synthesis(3))
    assert isinstance(recorder.end_of(3), events.JobFinished), "a cancelled job must not take the next one with it"


def held_in_the_middle(engine: EngineThread, recorder: Recorder) -> None:
    """Hold the engine while it calibrates, and wait until it rests."""
    loaded(engine, recorder)
    gate = Gate(recorder, Trial)
    engine.submit(calibration(2))
    gate.reached()
    engine.submit(Hold(0))
    assert not [one for one in recorder.events if isinstance(one, events.EngineHeld)], "it still computes"
    gate.open()
    recorder.wait_for_kind(events.EngineHeld)


def test_a_running_job_waits_and_goes_on(engine: EngineThread, recorder: Recorder) -> None:
    held_in_the_middle(engine, recorder)
    before = len(recorder.events)
    time.sleep(0.3)
    assert len(recorder.events) == before, "nothing happens meanwhile"
    assert isinstance(recorder.events[-1], events.EngineHeld)
    engine.submit(Release(0))
    assert isinstance(recorder.end_of(2), events.JobFinished)
    assert len(recorder.reports(2, Trial)) > 1
    assert sum(isinstance(one, events.EngineHeld) for one in recorder.events) == 1


def test_a_job_that_rests_can_be_cancelled(engine: EngineThread, recorder: Recorder) -> None:
    held_in_the_middle(engine, recorder)
    engine.submit(Cancel(0, 2))
    assert isinstance(recorder.end_of(2), events.JobCancelled)


def test_an_engine_that_rests_can_be_shut_down(recorder: Recorder) -> None:
    with running(recorder, small_speech.load) as engine:
        held_in_the_middle(engine, recorder)
    assert isinstance(recorder.end_of(2), events.JobCancelled)


def test_a_take_is_finished_first_because_a_rest_would_be_in_its_figures(
    engine: EngineThread, recorder: Recorder
) -> None:
    loaded(engine, recorder)
    gate = Gate(recorder, events.Telemetry)
    engine.submit(synthesis(2))
    gate.reached()
    engine.submit(Hold(0))
    gate.open()
    recorder.wait_for_kind(events.EngineHeld)
    kinds = [type(one) for one in recorder.events]
    assert kinds.index(events.TakeReady) < kinds.index(events.EngineHeld)
    assert kinds.index(events.JobFinished) < kinds.index(events.EngineHeld)


def test_nothing_begins_while_the_engine_is_held(engine: EngineThread, recorder: Recorder) -> None:
    loaded(engine, recorder)
    engine.submit(Hold(0))
    engine.submit(Hold(0))
    recorder.wait_for_kind(events.EngineHeld)
    engine.submit(synthesis(2))
    engine.submit(LoadModel(3, "small"))
    time.sleep(0.2)
    assert recorder.of(2) == []
    engine.submit(Cancel(0, 3))
    assert recorder.of(3) == [events.JobCancelled(3)]
    engine.submit(Release(0))
    assert isinstance(recorder.end_of(2), events.JobFinished)
    assert sum(isinstance(one, events.EngineHeld) for one in recorder.events) == 1


def test_a_study_rests_between_takes(engine: EngineThread, recorder: Recorder, tmp_path: Path) -> None:
    """A held study waits between takes and then continues as if it had not been held."""
    seen: list[bool] = []

    def carry_out(command, post, cancelled, pausing) -> None:
        observer = StudyObserver(RunningJob(command.job, post, cancelled, pausing))
        observer.status("between takes")
        engine.hold()
        observer.check()  # In the middle of a take: it goes on.
        seen.append(observer.pausing())

    recorder.wait_for_kind(events.EngineReady)
    engine._executor.carry_out = carry_out
    engine.submit(RunStudy(2, str(tmp_path / "none.toml"), ""))
    recorder.wait_for_kind(events.EngineHeld)
    assert seen == []
    engine.submit(Release(0))
    assert isinstance(recorder.end_of(2), events.JobFinished)
    assert seen == [False]
