"""Executor of a session: owns the loaded model and its device, and carries out commands with them, observed.

Both front ends have one: the window through its engine thread, the command line directly. Only this module and its
callees use torch.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch

from paretone import device
from paretone.computing import computing
from paretone.errors import Cancelled, SettingError
from paretone.front_end.pronunciations import as_taught
from paretone.measure.machine import describe
from paretone.measure.memory import PeakMemory
from paretone.models.base import ModelInfo, SpeechModel
from paretone.models.families.pacing import Pace
from paretone.observer import Observer, RemainingTime, StepReport, stoppable
from paretone.reading import shown
from paretone.session.commands import Command, LoadModel
from paretone.session.events import Caution, EngineReady, EngineStatus, Event, PreparationReport, Progress, Telemetry
from paretone.setting.plan import imported
from paretone.setting.setting import Setting
from paretone.training.requests import TrainingProgress

Post = Callable[[Event], None]


@dataclass(frozen=True)
class RunningJob:
    number: int
    post: Post
    cancelled: threading.Event
    pausing: threading.Event = field(default_factory=threading.Event)
    """Set to end a study after the takes in progress."""


class JobObserver(Observer):
    """Base of all jobs' observers. Every method raises :class:`Cancelled` once the job is cancelled."""

    def __init__(self, job: RunningJob) -> None:
        self.job = job.number
        self.post = job.post
        self._cancelled = job.cancelled
        self._remaining = RemainingTime()

    def check(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled

    def status(self, text: str) -> None:
        self.check()
        self.post(EngineStatus(self.job, text))

    def caution(self, sentence: str) -> None:
        self.check()
        self.post(Caution(self.job, sentence))

    def step(self, report: StepReport) -> None:
        """Report the progress of a sampling loop; chunks and steps count from 0."""
        self.check()
        self.advance(report.steps_done, report.steps_in_all, _position(report))

    def progress(self, done: int, total: int, text: str = "") -> None:
        self.check()
        self.advance(done, total, text)

    def advance(self, done: int, total: int, text: str) -> None:
        self.post(Progress(self.job, done, total, self._remaining.update(done, total), text))


class SynthesisObserver(JobObserver):
    def __init__(self, job: RunningJob, device: str, live: bool = True) -> None:
        """``live``: whether to post telemetry."""
        super().__init__(job)
        self._live = live
        self.memory = PeakMemory(device)
        self._pace = Pace(time.perf_counter())
        self._report: StepReport | None = None
        self._audio_seconds = 0.0
        self._sampled_seconds = 0.0
        """Share of the running chunk's audio that corresponds to its finished steps."""

    def begin(self) -> None:
        """Start timing: waiting for other jobs and preparing the model are excluded."""
        self._pace = Pace(time.perf_counter())

    @property
    def first_audio_seconds(self) -> float | None:
        """Seconds from :meth:`begin` to the first piece."""
        return self._pace.first_audio_seconds if self._pace.playing else None

    def step(self, report: StepReport) -> None:
        super().step(report)
        self._report = report
        self._sampled_seconds = (report.step + 1) / report.steps * report.audio_seconds
        self._tell(report)

    def delivered(self, seconds: float) -> None:
        self._pace.delivered(seconds)
        self._audio_seconds += seconds
        self._sampled_seconds = 0.0
        if self._report is not None:
            self._tell(self._report)

    def _tell(self, report: StepReport) -> None:
        memory = self.memory.sample()
        if not self._live:
            return
        elapsed = time.perf_counter() - self._pace.started
        # Partial chunks count in proportion, so that the figure exists from the first step and converges to the final
        # one.
        made = self._audio_seconds + self._sampled_seconds
        if report.tokens is not None:
            # Audio lags behind the tokens, so count the tokens.
            made = report.tokens * report.audio_seconds / report.steps
        self.post(
            Telemetry(
                self.job,
                chunk=report.chunk,
                chunks=report.chunks,
                step=report.step,
                steps=report.steps,
                step_seconds=report.seconds,
                steps_per_second=self._remaining.units_per_second or 1 / max(report.seconds, 1e-9),
                elapsed_seconds=elapsed,
                audio_seconds=self._audio_seconds,
                real_time_factor=elapsed / made if made else None,
                first_audio_seconds=self.first_audio_seconds,
                memory_bytes=memory,
                tokens=report.tokens,
                tokens_per_second=None if report.tokens is None else self._remaining.units_per_second or None,
                largest_gap_seconds=self._pace.largest_gap,
                pause_seconds=self._pace.pause_so_far,
            )
        )


class MeasuringObserver(JobObserver):
    """Observes a measurement of many utterances: progress is in the job's own units, not in steps of single ones."""

    def step(self, report: StepReport) -> None:
        self.check()


class PreparationObserver(MeasuringObserver):
    def __init__(self, job: RunningJob, technique: str, title: str) -> None:
        super().__init__(job)
        self._technique = technique
        self._title = title

    def progress(self, done: int, total: int, text: str = "") -> None:
        super().progress(done, total, text or self._title)

    def report(self, name: str, value: object) -> None:
        self.check()
        self.post(PreparationReport(self.job, self._technique, value))
        if isinstance(value, TrainingProgress):
            self.post(Progress(self.job, round(1000 * value.share), 1000, value.seconds_left, f"Step {value.step}"))


class RepeatingObserver(JobObserver):
    """Observes a repeated synthesis: progress is counted in hundredths of each run."""

    def __init__(self, job: RunningJob, times: int) -> None:
        super().__init__(job)
        self._times = times
        self.done = 0

    def step(self, report: StepReport) -> None:
        self.check()
        share = min(1.0, report.steps_done / report.steps_in_all)
        text = f"Repeat {self.done + 1} of {self._times}"
        self.advance(100 * self.done + int(100 * share), 100 * self._times, text)


def _position(report: StepReport) -> str:
    unit = "step" if report.tokens is None else "token"
    step = f"{unit} {report.step + 1} of {report.steps}"
    return step.capitalize() if report.chunks == 1 else f"Chunk {report.chunk + 1} of {report.chunks}, {step}"


Load = Callable[..., SpeechModel]
"""See :func:`paretone.models.load_model`."""


class Executor:
    """Carries out commands, one at a time. ``load`` loads models."""

    def __init__(self, load: Load) -> None:
        torch.set_num_threads(device.thread_count())
        self.load = load
        self.model: SpeechModel | None = None
        self.device = str(device.choose())
        """Device of the model, loaded or not."""
        self.machine = describe().line
        self.loaded: LoadModel | None = None

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
        """Carry out ``command``; returns its result event, which is also posted. ``pausing`` is set to end a study
        after the takes in progress. Raises the errors of the job, :class:`paretone.errors.Cancelled` soon after
        ``cancelled`` is set, and :class:`TypeError` for a command without a function."""
        if not command.carried_out_by:
            raise TypeError(f"There is no function for the command {type(command).__name__}.")
        work = imported(command.carried_out_by)
        job = RunningJob(command.job, post, cancelled, pausing or threading.Event())
        with as_taught(command.lexicon), stoppable(JobObserver(job).check):
            result: Event | None = work(command, self, job)
        if result is not None:
            post(result)
        return result

    def load_model(self, command: LoadModel, observer: JobObserver) -> ModelInfo:
        """Load a model in place of the present one, which stays in use if loading fails."""
        observer.check()
        chosen = str(device.choose(command.device))
        named = {"folder": command.folder, "variant": command.variant, "device": chosen}
        named |= {"vocoder": command.vocoder} if command.vocoder else {}
        model = self.load(command.model, status=observer.status, check=observer.check, **named)
        observer.check()
        replaces = self.model is not None
        self.model, self.device, self.loaded = model, chosen, command
        if replaces:
            self.tidy()
        return model.info

    def model_for(self, setting: Setting) -> SpeechModel:
        """The loaded model. Raises :class:`SettingError` unless it is the model of ``setting``."""
        if self.model is None:
            raise SettingError(f"No model is loaded; load {shown(setting.model)} first.")
        if self.model.info.id != setting.model:
            raise SettingError(
                f"The setting is for the model {shown(setting.model)}, but {shown(self.model.info.id)} is loaded; "
                f"load {shown(setting.model)} first."
            )
        return self.model

    def recover(self, post: Post) -> None:
        """Reload the model after its device was lost: on the same device if it answers, otherwise on the CPU."""
        lost, command = self.device, self.loaded
        if self.model is None or command is None:
            return
        self._let_go()
        wanted = torch.device(lost).type if device.answers(lost) else "cpu"
        self.carry_out(replace(command, job=0, device=wanted), post, threading.Event())
        observer = JobObserver(RunningJob(0, post, threading.Event()))
        observer.status(f"{self.model.info.title} was loaded again, on {self.model.info.device}.")

    def _let_go(self) -> None:
        self.model = None
        self.tidy()

    @staticmethod
    def tidy() -> None:
        gc.collect()
        device.release_memory()
