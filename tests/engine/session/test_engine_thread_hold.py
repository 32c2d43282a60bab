"""The engine is held: nothing computes until it is released, and what measures its own time is finished first."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paretone.models.base import Utterance
from paretone.session.commands import Cancel, Hold, LoadModel, Release, ShutDown, Synthesise
from paretone.session.engine_thread import EngineThread
from paretone.session.events import EngineHeld, EngineReady, JobCancelled, JobFinished, TakeReady, Telemetry
from paretone.setting.setting import UsedTechnique
from paretone.techniques.ditreducio.record import Trial
from tests.engine import small_speech
from tests.engine.preparing import calibrate
from tests.engine.recorder import PATIENCE_SECONDS, Gate, Recorder
from tests.engine.running import running
from tests.engine.small_speech import VOICE, setting

CALIBRATION = calibrate(2, (Utterance("One sentence.", VOICE),), setting(4).with_technique(UsedTechnique("ditreducio")))
SYNTHESIS = Synthesise(2, "One sentence.", VOICE, setting(4))


@pytest.fixture
def engine(recorder: Recorder) -> Iterator[EngineThread]:
    """An engine with the small model loaded."""
    with running(recorder, small_speech.load, LoadModel(1, "small")) as engine:
        yield engine


def held_in_the_middle(engine: EngineThread, recorder: Recorder) -> None:
    """Hold the engine while it calibrates, and wait until it rests."""
    gate = Gate(recorder, Trial)
    engine.submit(CALIBRATION)
    gate.reached()
    engine.submit(Hold(0))
    assert not [one for one in recorder.events if isinstance(one, EngineHeld)], "it still computes"
    gate.open()
    recorder.wait_for_kind(EngineHeld)


def test_a_running_job_waits_and_goes_on(engine: EngineThread, recorder: Recorder) -> None:
    held_in_the_middle(engine, recorder)
    before = len(recorder.events)
    time.sleep(0.3)
    assert len(recorder.events) == before, "nothing happens meanwhile"
    assert isinstance(recorder.events[-1], EngineHeld)
    engine.submit(Release(0))
    assert isinstance(recorder.end_of(2), JobFinished)
    assert len(recorder.reports(2, Trial)) > 1
    assert sum(isinstance(one, EngineHeld) for one in recorder.events) == 1


def test_a_job_that_rests_can_be_cancelled(engine: EngineThread, recorder: Recorder) -> None:
    held_in_the_middle(engine, recorder)
    engine.submit(Cancel(0, 2))
    assert isinstance(recorder.end_of(2), JobCancelled)


def test_an_engine_that_rests_can_be_shut_down(engine: EngineThread, recorder: Recorder) -> None:
    held_in_the_middle(engine, recorder)
    engine.submit(ShutDown(0))
    assert engine.join(PATIENCE_SECONDS)
    assert isinstance(recorder.end_of(2), JobCancelled)


def test_a_take_is_finished_first_because_a_rest_would_be_in_its_figures(
    engine: EngineThread, recorder: Recorder
) -> None:
    gate = Gate(recorder, Telemetry)
    engine.submit(SYNTHESIS)
    gate.reached()
    engine.submit(Hold(0))
    gate.open()
    recorder.wait_for_kind(EngineHeld)
    kinds = [type(one) for one in recorder.events]
    assert kinds.index(TakeReady) < kinds.index(EngineHeld)
    assert kinds.index(JobFinished) < kinds.index(EngineHeld)


def test_nothing_begins_while_the_engine_is_held(engine: EngineThread, recorder: Recorder) -> None:
    engine.submit(Hold(0))
    engine.submit(Hold(0))
    recorder.wait_for_kind(EngineHeld)
    engine.submit(SYNTHESIS)
    engine.submit(LoadModel(3, "small"))
    time.sleep(0.2)
    assert recorder.of(2) == []
    engine.submit(Cancel(0, 3))
    assert recorder.of(3) == [JobCancelled(3)]
    engine.submit(Release(0))
    assert isinstance(recorder.end_of(2), JobFinished)
    assert sum(isinstance(one, EngineHeld) for one in recorder.events) == 1


def test_an_engine_that_starts_rests_once_it_is_there(recorder: Recorder) -> None:
    engine = EngineThread(recorder.post, small_speech.load)
    engine.submit(Hold(0))
    engine.start()
    recorder.wait_for_kind(EngineHeld)
    kinds = [type(one) for one in recorder.events]
    assert kinds.index(EngineReady) < kinds.index(EngineHeld)
    engine.submit(ShutDown(0))
    assert engine.join(PATIENCE_SECONDS)


def test_a_study_rests_between_takes(engine: EngineThread, recorder: Recorder, tmp_path: Path) -> None:
    """A held study waits between takes and then continues as if it had not been held."""
    from paretone.session.jobs import StudyObserver
    from paretone.session.observers import RunningJob

    seen: list[bool] = []

    def carry_out(command, post, cancelled, pausing) -> None:
        observer = StudyObserver(RunningJob(command.job, post, cancelled, pausing))
        observer.status("between takes")
        engine.hold()
        observer.check()  # In the middle of a take: it goes on.
        seen.append(observer.pausing())

    from paretone.session.commands import RunStudy

    engine._executor.carry_out = carry_out
    engine.submit(RunStudy(2, str(tmp_path / "none.toml"), ""))
    recorder.wait_for_kind(EngineHeld)
    assert seen == []
    engine.submit(Release(0))
    assert isinstance(recorder.end_of(2), JobFinished)
    assert seen == [False]
