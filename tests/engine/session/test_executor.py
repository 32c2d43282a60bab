"""The executor: every command is carried out by somebody, or refused."""

from __future__ import annotations

import dataclasses
import inspect
import threading
from dataclasses import dataclass
from importlib import import_module

import numpy as np
import pytest

from paretone.errors import Cancelled, SettingError
from paretone.session import commands
from paretone.session.commands import Command, JudgeTake, LoadModel, Synthesise
from paretone.session.engine_thread import EngineThread
from paretone.session.events import Event, ModelLoaded, TakeJudged, TakeReady
from paretone.session.executor import Executor
from paretone.setting.plan import imported
from paretone.techniques import Technique, techniques
from paretone.techniques.base import Job
from tests.engine import small_speech
from tests.engine.small_speech import VOICE, setting

AT_ONCE = {commands.Cancel, commands.PauseStudy, commands.Hold, commands.Release, commands.ShutDown}
"""Commands that the engine thread carries out itself, even during a job."""


def kinds(base: type[Command] = Command) -> set[type[Command]]:
    """All commands that can be sent."""
    below = {one for kind in base.__subclasses__() for one in kinds(kind)}
    return below or {base}


COMMANDS = sorted(
    (one for one in kinds() - AT_ONCE if one.__module__.startswith("paretone.")), key=lambda one: one.__name__
)


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


def test_what_came_of_a_command_is_posted_and_returned() -> None:
    executor, posted = Executor(small_speech.load), []
    loaded = executor.carry_out(LoadModel(1, "small"), posted.append, threading.Event())
    assert isinstance(loaded, ModelLoaded) and posted[-1] is loaded
    spoken = executor.carry_out(Synthesise(2, "One.", VOICE, setting()), posted.append, threading.Event())
    assert isinstance(spoken, TakeReady) and posted[-1] is spoken
    assert spoken.take.machine == executor.machine


def test_without_a_model_there_is_no_speech() -> None:
    with pytest.raises(SettingError, match="No model is loaded; load 'small' first"):
        Executor(small_speech.load).carry_out(
            Synthesise(1, "One.", VOICE, setting()), lambda event: None, threading.Event()
        )


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
