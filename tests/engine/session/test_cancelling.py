"""Jobs of the engine thread are cancelled, at work and while they wait, or held: nothing computes until a release."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paretone.models.base import Utterance
from paretone.session.commands import (
    Cancel,
    CaptureAttention,
    Command,
    Hold,
    LoadModel,
    Release,
    RunStudy,
    ShutDown,
    Synthesise,
)
from paretone.session.engine_thread import EngineThread
from paretone.session.events import (
    AudioReady,
    EngineHeld,
    EngineReady,
    EngineStatus,
    JobCancelled,
    JobFinished,
    Prepared,
    Progress,
    TakeReady,
    Telemetry,
)
from paretone.session.executor import RunningJob
from paretone.session.jobs import StudyObserver
from paretone.setting.setting import UsedTechnique
from paretone.techniques.ditreducio.record import Similarities, Trial
from tests.engine import small_speech
from tests.engine.preparing import calibrate
from tests.engine.recorder import PATIENCE_SECONDS, Gate, Recorder, is_of
from tests.engine.running import running
from tests.engine.session.small_jobs import LOAD, calibration, loaded, synthesis
from tests.engine.small_speech import VOICE, setting


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (synthesis(2, chosen=setting(steps=100)), Progress),
        (synthesis(2, text="A. " * 100), AudioReady),
        (calibration(2, steps=30), Trial),
        (calibration(2, steps=30), Similarities),
        (CaptureAttention(2, "One.", VOICE, setting(steps=100), layer=0, step=99), Progress),
    ],
    ids=["step", "chunk", "trial", "check phase", "attention"],
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
    assert isinstance(recorder.end_of(2), JobCancelled)
    seen = [event for event in recorder.of(2) if is_of(event, kind)]
    assert len(seen) == 1, "the step at which it was cancelled is the last"
    assert bool(recorder.of(2, TakeReady)) == (kind is AudioReady), "only what was finished is a take"
    assert not recorder.of(2, Prepared)


def test_cancel_from_another_thread_while_steps_go_on(engine: EngineThread, recorder: Recorder) -> None:
    loaded(engine, recorder)
    engine.submit(synthesis(2, text="A. " * 500, chosen=setting(steps=128)))
    recorder.wait_for(lambda event: isinstance(event, Progress) and event.done >= 20)
    engine.cancel(2)
    seen = len(recorder.of(2, Progress))
    assert isinstance(recorder.end_of(2), JobCancelled)
    assert len(recorder.of(2, Progress)) - seen <= 1


def test_cancel_while_loading(engine: EngineThread, recorder: Recorder) -> None:
    recorder.wait_for_kind(EngineReady)
    gate = Gate(recorder, EngineStatus)
    engine.submit(LOAD)
    gate.reached()
    engine.cancel(1)
    gate.open()
    assert isinstance(recorder.end_of(1), JobCancelled)
    engine.submit(synthesis(2))
    assert "No model is loaded" in recorder.end_of(2).sentence


def test_cancel_while_waiting(engine: EngineThread, recorder: Recorder) -> None:
    loaded(engine, recorder)
    gate = Gate(recorder, Progress)
    for job in (2, 3, 4):
        engine.submit(synthesis(job))
    gate.reached()
    engine.submit(Cancel(0, 3))
    assert recorder.of(3) == [JobCancelled(3)], "a waiting job is cancelled at once, not when its turn comes"
    gate.open()
    assert isinstance(recorder.end_of(4), JobFinished)
    assert recorder.of(3) == [JobCancelled(3)]
    assert isinstance(recorder.end_of(2), JobFinished)


def test_cancel_after_the_end_is_harmless(engine: EngineThread, recorder: Recorder) -> None:
    loaded(engine, recorder)
    engine.submit(synthesis(2))
    recorder.end_of(2)
    for target in (1, 2, 99):
        engine.submit(Cancel(0, target))
    engine.submit(synthesis(3))
    assert isinstance(recorder.end_of(3), JobFinished)


def test_cancel_twice_ends_once(engine: EngineThread, recorder: Recorder) -> None:
    loaded(engine, recorder)
    gate = Gate(recorder, Progress)
    engine.submit(synthesis(2))
    gate.reached()
    engine.cancel(2)
    engine.cancel(2)
    gate.open()
    recorder.end_of(2)
    engine.submit(synthesis(3))
    assert isinstance(recorder.end_of(3), JobFinished), "a cancelled job must not take the next one with it"


CALIBRATION = calibrate(2, (Utterance("One sentence.", VOICE),), setting(4).with_technique(UsedTechnique("ditreducio")))
SYNTHESIS = Synthesise(2, "One sentence.", VOICE, setting(4))


@pytest.fixture
def loaded_engine(recorder: Recorder) -> Iterator[EngineThread]:
    """An engine with the small model loaded."""
    with running(recorder, small_speech.load, LoadModel(1, "small")) as engine:
        yield engine


def held_in_the_middle(loaded_engine: EngineThread, recorder: Recorder) -> None:
    """Hold the engine while it calibrates, and wait until it rests."""
    gate = Gate(recorder, Trial)
    loaded_engine.submit(CALIBRATION)
    gate.reached()
    loaded_engine.submit(Hold(0))
    assert not [one for one in recorder.events if isinstance(one, EngineHeld)], "it still computes"
    gate.open()
    recorder.wait_for_kind(EngineHeld)


def test_a_running_job_waits_and_goes_on(loaded_engine: EngineThread, recorder: Recorder) -> None:
    held_in_the_middle(loaded_engine, recorder)
    before = len(recorder.events)
    time.sleep(0.3)
    assert len(recorder.events) == before, "nothing happens meanwhile"
    assert isinstance(recorder.events[-1], EngineHeld)
    loaded_engine.submit(Release(0))
    assert isinstance(recorder.end_of(2), JobFinished)
    assert len(recorder.reports(2, Trial)) > 1
    assert sum(isinstance(one, EngineHeld) for one in recorder.events) == 1


def test_a_job_that_rests_can_be_cancelled(loaded_engine: EngineThread, recorder: Recorder) -> None:
    held_in_the_middle(loaded_engine, recorder)
    loaded_engine.submit(Cancel(0, 2))
    assert isinstance(recorder.end_of(2), JobCancelled)


def test_an_engine_that_rests_can_be_shut_down(loaded_engine: EngineThread, recorder: Recorder) -> None:
    held_in_the_middle(loaded_engine, recorder)
    loaded_engine.submit(ShutDown(0))
    assert loaded_engine.join(PATIENCE_SECONDS)
    assert isinstance(recorder.end_of(2), JobCancelled)


def test_a_take_is_finished_first_because_a_rest_would_be_in_its_figures(
    loaded_engine: EngineThread, recorder: Recorder
) -> None:
    gate = Gate(recorder, Telemetry)
    loaded_engine.submit(SYNTHESIS)
    gate.reached()
    loaded_engine.submit(Hold(0))
    gate.open()
    recorder.wait_for_kind(EngineHeld)
    kinds = [type(one) for one in recorder.events]
    assert kinds.index(TakeReady) < kinds.index(EngineHeld)
    assert kinds.index(JobFinished) < kinds.index(EngineHeld)


def test_nothing_begins_while_the_engine_is_held(loaded_engine: EngineThread, recorder: Recorder) -> None:
    loaded_engine.submit(Hold(0))
    loaded_engine.submit(Hold(0))
    recorder.wait_for_kind(EngineHeld)
    loaded_engine.submit(SYNTHESIS)
    loaded_engine.submit(LoadModel(3, "small"))
    time.sleep(0.2)
    assert recorder.of(2) == []
    loaded_engine.submit(Cancel(0, 3))
    assert recorder.of(3) == [JobCancelled(3)]
    loaded_engine.submit(Release(0))
    assert isinstance(recorder.end_of(2), JobFinished)
    assert sum(isinstance(one, EngineHeld) for one in recorder.events) == 1


def test_an_engine_that_starts_rests_once_it_is_there(recorder: Recorder) -> None:
    loaded_engine = EngineThread(recorder.post, small_speech.load)
    loaded_engine.submit(Hold(0))
    loaded_engine.start()
    recorder.wait_for_kind(EngineHeld)
    kinds = [type(one) for one in recorder.events]
    assert kinds.index(EngineReady) < kinds.index(EngineHeld)
    loaded_engine.submit(ShutDown(0))
    assert loaded_engine.join(PATIENCE_SECONDS)


def test_a_study_rests_between_takes(loaded_engine: EngineThread, recorder: Recorder, tmp_path: Path) -> None:
    """A held study waits between takes and then continues as if it had not been held."""
    seen: list[bool] = []

    def carry_out(command, post, cancelled, pausing) -> None:
        observer = StudyObserver(RunningJob(command.job, post, cancelled, pausing))
        observer.status("between takes")
        loaded_engine.hold()
        observer.check()  # In the middle of a take: it goes on.
        seen.append(observer.pausing())

    loaded_engine._executor.carry_out = carry_out
    loaded_engine.submit(RunStudy(2, str(tmp_path / "none.toml"), ""))
    recorder.wait_for_kind(EngineHeld)
    assert seen == []
    loaded_engine.submit(Release(0))
    assert isinstance(recorder.end_of(2), JobFinished)
    assert seen == [False]
