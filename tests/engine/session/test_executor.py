"""The executor: every command is carried out by somebody, or refused; failures of jobs, and what is left of them."""

import dataclasses
import inspect
import threading
from dataclasses import dataclass
from importlib import import_module

import numpy as np
import pytest

from paretone.errors import Cancelled, SettingError
from paretone.models.base import Utterance
from paretone.observer import RemainingTime
from paretone.session import commands
from paretone.session.commands import CaptureAttention, Command, JudgeTake, LoadModel
from paretone.session.engine_thread import EngineThread
from paretone.session.events import AudioReady, Event, JobFailed, JobFinished, Progress, TakeJudged
from paretone.session.executor import Executor
from paretone.setting.plan import imported
from paretone.setting.setting import Setting
from paretone.techniques import Technique, techniques
from paretone.techniques.base import Job
from tests.engine import small_speech
from tests.engine.recorder import Clock, Recorder
from tests.engine.session.small_jobs import calibrate, calibration, loaded, synthesis
from tests.engine.small_speech import VOICE, setting

AT_ONCE = {commands.Cancel, commands.PauseStudy, commands.Hold, commands.Release, commands.ShutDown}
"""Commands that the engine thread carries out itself, even during a job."""


def kinds(base: type[Command] = Command) -> set[type[Command]]:
    return {one for kind in base.__subclasses__() for one in kinds(kind)} or {base}


COMMANDS = sorted((one for one in kinds() - AT_ONCE if one.__module__.startswith("paretone.")), key=str)


@pytest.mark.parametrize("kind", COMMANDS, ids=lambda kind: kind.__name__)
def test_a_command_says_what_it_does_and_who_does_it(kind: type[Command]) -> None:
    module, _, name = kind.carried_out_by.partition(":")
    work = getattr(import_module(module), name)
    assert list(inspect.signature(work).parameters) == ["command", "executor", "job"]
    if kind is not commands.Prepare:  # That is called what its request is.
        assert kind.activity[0].islower() and kind.activity.split()[0].endswith("ing")


@pytest.mark.parametrize(
    ("technique", "job"),
    [pytest.param(one, job, id=f"{one.name} {job.name}") for one in techniques() for job in one.jobs],
)
def test_every_preparation_is_carried_out_by_its_technique(technique: Technique, job: Job) -> None:
    request, work = imported(job.request), imported(job.run)
    assert list(inspect.signature(work).parameters) == ["task"]
    assert request.activity[0].islower() and request.activity.split()[0].endswith("ing")
    fields = {one.name for one in dataclasses.fields(request)}
    assert ("setting" in fields) if job.on_loaded_model else ("model" in fields)


def test_a_preparation_that_no_technique_takes_is_refused() -> None:
    prepared = commands.Prepare(1, techniques()[0].name, Dance(1))
    with pytest.raises(SettingError, match="has no preparation that takes a Dance"):
        Executor(small_speech.load).carry_out(prepared, lambda event: None, threading.Event())


@dataclass(frozen=True)
class Dance(Command):
    """A command that no function carries out."""


def test_a_command_that_nobody_carries_out_is_an_error() -> None:
    posted: list[Event] = []
    with pytest.raises(TypeError, match="There is no function for the command Dance"):
        Executor(small_speech.load).carry_out(Dance(1), posted.append, threading.Event())
    with pytest.raises(TypeError, match="Dance is not a command that can be carried out"):
        EngineThread(posted.append, small_speech.load).submit(Dance(1))
    assert posted == []


def test_a_take_is_judged_without_a_model() -> None:
    told: list[Event] = []
    samples = np.zeros(24_000, np.float32)
    executor = Executor(lambda *names, **options: pytest.fail("no model is needed"))
    result = executor.carry_out(JudgeTake(3, "a" * 32, samples, 24_000), told.append, threading.Event())
    assert result == TakeJudged(3, "a" * 32, {}), "silence has no figures"
    assert told == [result]
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(Cancelled):
        executor.carry_out(JudgeTake(4, "a" * 32, samples, 24_000), told.append, cancelled)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (synthesis(2, chosen=Setting("other")), ("'other'", "'small' is loaded", "load 'other' first")),
        (synthesis(2, text=small_speech.ENDLESS), ("ran out of memory while synthesising", "shorter text")),
        (calibrate(2, Utterance(small_speech.ENDLESS, VOICE), setting()), ("memory while calibrating", "shorter")),
        (LoadModel(2, "small", folder="/nowhere"), ("/nowhere/weights is missing", "choose another")),
        (LoadModel(2, "small", variant="huge"), ("ran out of memory while loading", "unload the current model first")),
        (LoadModel(2, "small", variant="strange"), ("unexpected went wrong while loading the model: KeyError", "log")),
        (CaptureAttention(2, "One.", VOICE, setting(), layer=99, step=0), ("no layer 100",)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Command) else "",
)
def test_failure_says_what_to_do_and_the_engine_goes_on(
    engine: EngineThread, recorder: Recorder, command: Command, words: tuple[str, ...]
) -> None:
    loaded(engine, recorder)
    engine.submit(command)
    engine.submit(synthesis(3))
    failed = recorder.end_of(2)
    assert isinstance(failed, JobFailed)
    assert all(word in failed.sentence for word in words)
    assert "\n" not in failed.sentence and failed.sentence.endswith(".")
    assert isinstance(recorder.end_of(3), JobFinished), "the model loaded before is still there"


def test_only_an_unforeseen_error_leaves_its_traceback(engine: EngineThread, recorder: Recorder) -> None:
    engine.submit(LoadModel(1, "small", variant="strange"))
    failed = recorder.end_of(1)
    assert "Traceback" in failed.details and "an error that nobody foresaw" in failed.details
    engine.submit(synthesis(2))
    foreseen = recorder.end_of(2)
    assert "No model is loaded" in foreseen.sentence and foreseen.details == ""


@pytest.mark.parametrize(
    ("variant", "command"), [("damaged", synthesis(2)), ("damaged", calibration(2)), ("careless", synthesis(2))]
)
def test_not_a_number_is_not_played(engine: EngineThread, recorder: Recorder, variant: str, command: Command) -> None:
    """Of weights, or of an adapter that does not look at what it made."""
    engine.submit(LoadModel(1, "small", variant=variant))
    engine.submit(command)
    failed = recorder.end_of(2)
    assert isinstance(failed, JobFailed) and failed.details == ""
    assert "precision" in failed.sentence or "invalid numbers (NaN) for piece 1" in failed.sentence
    assert not recorder.of(2, AudioReady), "noise must not be played"


def test_front_end_that_fails_does_not_stop_the_engine(engine: EngineThread, recorder: Recorder) -> None:
    loaded(engine, recorder)

    def fail(event: Event) -> None:
        raise RuntimeError("the window is gone")

    recorder.react = fail
    recorder.finish(engine, synthesis(2))


def test_commands_that_cannot_be_taken(engine: EngineThread, recorder: Recorder) -> None:
    with pytest.raises(TypeError, match="Command is not a command that can be carried out"):
        engine.submit(Command(7))
    with pytest.raises(ValueError, match="numbered from 1"):
        engine.submit(LoadModel(0, "small"))
    loaded(engine, recorder)
    with recorder.stopped_at(Progress, engine, synthesis(2), synthesis(3)):
        for taken in (2, 3):
            with pytest.raises(ValueError, match=f"{taken} is taken"):
                engine.submit(synthesis(taken))
    assert isinstance(recorder.end_of(3), JobFinished)


def run(pace: list[float], total: int) -> list[float | None]:
    """Estimates after units that took ``pace`` seconds each."""
    clock = Clock()
    remaining = RemainingTime(clock)
    estimates = []
    for done, seconds in enumerate(pace, start=1):
        clock.now += seconds
        estimates.append(remaining.update(done, total))
    return estimates


def test_even_pace_is_estimated_exactly() -> None:
    estimates = run([9.0] + [0.25] * 9, total=20)
    assert estimates[3:] == pytest.approx([0.25 * (20 - done) for done in range(4, 11)])


def test_no_estimate_without_evidence() -> None:
    assert run([2.0, 2.0], total=9) == [None, None]
    assert run([0.01] * 5, total=9) == [None] * 5
    assert run([0.01], total=1) == [0.0], "nothing is left at the end"
