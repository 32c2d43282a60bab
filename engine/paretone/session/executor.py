"""Executor of a session: owns the loaded model and its device, and carries out commands with them.

Both front ends have one: the window through its engine thread, the command line directly. Only this module and what it
calls touch torch.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from dataclasses import replace

import torch

from paretone import device
from paretone.computing import computing
from paretone.errors import SettingError
from paretone.measure.machine import describe
from paretone.models.base import ModelInfo, SpeechModel
from paretone.observer import stoppable
from paretone.reading import shown
from paretone.session.commands import Command, LoadModel
from paretone.session.events import EngineReady, Event
from paretone.session.observers import JobObserver, Post, RunningJob
from paretone.setting.plan import imported
from paretone.setting.setting import Setting

Load = Callable[..., SpeechModel]
"""See :func:`paretone.models.load_model`."""


class Executor:
    """Carries out commands, one at a time. ``load`` is how models are loaded."""

    def __init__(self, load: Load) -> None:
        torch.set_num_threads(device.thread_count())
        self.load = load
        self.model: SpeechModel | None = None
        self.device = str(device.choose())
        """Device of the model, loaded or not."""
        self.machine = describe().line
        """The machine in a line."""
        self.loaded: LoadModel | None = None
        """Command that loaded :attr:`model`."""

    @property
    def ready(self) -> EngineReady:
        there, threads = device.available(), torch.get_num_threads()
        title = device.title(self.device)
        if self.device == "cpu":
            title += f", {threads} thread{'s' * (threads != 1)}"
        return EngineReady(0, self.device, there, self.machine, computing(there, title))

    def carry_out(
        self, command: Command, post: Post, cancelled: threading.Event, pausing: threading.Event | None = None
    ) -> Event | None:
        """Carry out ``command``; returns the event with its outcome, which is posted as well.

        ``pausing`` is set when a study is to end after the takes under way. Raises what goes wrong,
        :class:`paretone.errors.Cancelled` soon after ``cancelled`` is set, and :class:`TypeError` for a command without
        a function."""
        work = _work_of(type(command))
        job = RunningJob(command.job, post, cancelled, pausing or threading.Event())
        with stoppable(JobObserver(job).check):
            result = work(command, self, job)
        if result is not None:
            post(result)
        return result

    def load_model(self, command: LoadModel, observer: JobObserver) -> ModelInfo:
        """Load a model in place of the present one, which stays in use where the other cannot be loaded."""
        observer.check()
        chosen = str(device.choose(command.device))
        model = self.load(
            command.model,
            folder=command.folder,
            variant=command.variant,
            device=chosen,
            status=observer.status,
            check=observer.check,
            **({"vocoder": command.vocoder} if command.vocoder else {}),
        )
        observer.check()
        replaces = self.model is not None
        self.model, self.device, self.loaded = model, chosen, command
        if replaces:
            self.tidy()
        return model.info

    def model_for(self, setting: Setting) -> SpeechModel:
        """The loaded model. Raises :class:`SettingError` if it is not that of ``setting``."""
        if self.model is None:
            raise SettingError(f"No model is loaded; load {shown(setting.model)} first.")
        if self.model.info.id != setting.model:
            raise SettingError(
                f"The setting is for the model {shown(setting.model)}, but {shown(self.model.info.id)} is loaded; "
                f"load {shown(setting.model)} first."
            )
        return self.model

    def recover(self, post: Post) -> None:
        """Load the model again after its device was lost: there if it answers again, else on the processor."""
        lost, command = self.device, self.loaded
        if self.model is None or command is None:
            return
        self._let_go()
        wanted = torch.device(lost).type if device.answers(lost) else "cpu"
        again = replace(command, job=0, device=wanted)
        self.carry_out(again, post, threading.Event())
        observer = JobObserver(RunningJob(0, post, threading.Event()))
        observer.status(f"{self.model.info.title} was loaded again, on {self.model.info.device}.")

    def _let_go(self) -> None:
        self.model = None
        self.tidy()

    @staticmethod
    def tidy() -> None:
        """Give memory back that nothing uses any more."""
        gc.collect()
        device.release_memory()


def _work_of(kind: type[Command]) -> Callable[[Command, Executor, RunningJob], Event | None]:
    """The function that carries out commands of ``kind``: see :mod:`paretone.session.jobs`."""
    if not kind.carried_out_by:
        raise TypeError(f"There is no function for the command {kind.__name__}.")
    return imported(kind.carried_out_by)
