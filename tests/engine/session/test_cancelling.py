"""Cancelling jobs of the engine thread, at work and while they wait."""

from __future__ import annotations

import pytest

from paretone.session.commands import Cancel, CaptureAttention, Command
from paretone.session.engine_thread import EngineThread
from paretone.session.events import (
    AudioReady,
    EngineReady,
    EngineStatus,
    JobCancelled,
    JobFinished,
    Prepared,
    Progress,
    TakeReady,
)
from paretone.techniques.ditreducio.record import Trial
from paretone.techniques.ditreducio.requests import Similarities
from tests.engine.recorder import Gate, Recorder, is_of
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
