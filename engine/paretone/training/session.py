"""Running a recipe: budget, checkpoints, resuming, stopping, and the log that is committed.

A recipe only makes optimiser steps; everything else that long runs need is here.
"""

from __future__ import annotations

import json
import math
import platform
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from paretone.errors import Cancelled, CheckpointError, PlainError, TrainingError, is_out_of_memory
from paretone.files import append_line, reason, require_room, write_atomically
from paretone.models.files.checkpoints import read_checkpoint
from paretone.observer import stoppable
from paretone.own_process import handling
from paretone.reading import first_line, legible, parsed_json, read_bytes, shortened, shown
from paretone.training.processes import Processes
from paretone.training.requests import CHECKPOINT, TrainingProgress
from paretone.wording import percent


class Diverged(TrainingError):
    """A loss, a gradient or a weight is not finite."""


class Recipe(Protocol):
    @property
    def device(self) -> torch.device: ...

    @property
    def name(self) -> str:
        """Name in the log and in checkpoints."""

    def describe(self) -> dict[str, Any]:
        """JSON description of the run for the log's header: data, sizes, loss weights."""

    def step(self, number: int, progress: float) -> dict[str, float]:
        """Optimiser step ``number`` (from 1) at ``progress`` of the budget; returns losses by name. Raises
        :class:`Diverged`, with unchanged weights, if a loss or a gradient is not finite."""

    def validate(self) -> dict[str, float]:
        """Figures on held-out clips with the averaged weights, deterministic."""

    def state(self) -> dict[str, Any]:
        """State that the next step depends on: weights, averages, optimisers, random generators."""

    def restore(self, state: Mapping[str, Any]) -> None: ...


def require_finite(value: float, what: str, number: int) -> float:
    """``value`` if finite. Raises :class:`Diverged` with ``what`` and the step ``number``."""
    if not math.isfinite(value):
        raise Diverged(
            f"Training stopped at step {number}: the {what} is {value}. The last good checkpoint is kept; "
            "resume from it with lower learning rates."
        )
    return value


def require_same_choices(earlier: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Raise :class:`TrainingError` if a run is resumed with another choice, as far as both name it."""
    for name, value in earlier.items():
        if now.get(name, value) != value:
            raise TrainingError(
                f"The run to resume was started with {name.replace('_', ' ')} = {shown(value)}, not "
                f"{shown(now[name])}; resume it as it was started, or choose another work folder."
            )


class StopRequest(threading.Event):
    number = 0


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Event set by a signal that cancels; a second one raises :class:`KeyboardInterrupt` at once. Outside the
    main thread, which cannot handle signals, nothing sets it."""
    asked = StopRequest()

    def ask(number: int) -> None:
        if asked.number:
            raise KeyboardInterrupt
        asked.number = number
        asked.set()

    with handling(ask):
        yield asked


LOG = "training.jsonl"


@dataclass(frozen=True)
class Budget:
    """Length of a training: CPU minutes (on a GPU: wall minutes), steps, or epochs.

    CPU minutes do not advance while other programs use the machine, so a busy machine does not distort the schedule.
    Only budgets in steps and epochs resume bit for bit: with minutes, the schedule depends on the clock.
    """

    minutes: float | None = None
    steps: int | None = None
    epochs: float | None = None

    def __post_init__(self) -> None:
        given = [value for value in (self.minutes, self.steps, self.epochs) if value is not None]
        if len(given) != 1 or not 0 < given[0] < math.inf:
            raise PlainError("A training budget is a number of minutes, of steps or of epochs, above zero.")

    def progress(self, seconds: float, steps: int, epochs: float = 0.0) -> float:
        if self.epochs:
            return min(1.0, epochs / self.epochs)
        spent = steps / self.steps if self.steps else seconds / (60 * (self.minutes or math.inf))
        return min(1.0, spent)


@dataclass(frozen=True)
class Intervals:
    log_steps: int = 25
    validation_steps: int = 250
    checkpoint_seconds: float = 90.0
    validates_first: bool = False


class SingleProcess:
    is_first, count = True, 1

    def agree(self, progress: float, stop: bool) -> tuple[float, bool]:
        return progress, stop


def check_place(work: Path, resume: bool, export: Path | None = None) -> None:
    """Check the work folder and the folder for the result before any preparation. Raises :class:`PlainError` if one of
    them is a file, if there is nothing to resume, or if a fresh start would overwrite a checkpoint."""
    for folder in filter(None, (work, export)):
        file = next((one for one in (folder, *folder.parents) if one.exists() and not one.is_dir()), None)
        if file is not None:
            raise PlainError(f"{file} is a file; give the name of a folder.")
    path = work / CHECKPOINT
    if resume and not path.exists():
        raise PlainError(f"There is no {path} to resume from; start afresh.")
    if not resume and path.exists():
        raise PlainError(f"{path} holds an earlier run; resume it, or choose another work folder.")


class TrainingSession:
    """One run of a recipe in a work folder.

    ``report`` receives lines for people, ``follow`` every milestone; both may raise :class:`Cancelled`, which
    stops the run after the current step. Of several processes, only the first writes, validates and reports.
    """

    def __init__(
        self,
        recipe: Recipe,
        work: Path,
        budget: Budget,
        intervals: Intervals = Intervals(),
        report: Callable[[str], None] = print,
        follow: Callable[[TrainingProgress], None] = lambda milestone: None,
        team: Processes | SingleProcess = SingleProcess(),
    ) -> None:
        self.recipe, self.work, self.budget, self.intervals, self.report = recipe, work, budget, intervals, report
        self.follow, self.team = follow, team
        self.number, self.seconds = 0, 0.0
        self.validation: dict[str, float] = {}
        self._stop = StopRequest()
        self._began: tuple[float, float] | None = None
        self._clock = time.process_time if recipe.device.type == "cpu" else time.monotonic
        self._last = 0.0
        self._validated_at = 0
        self._logged_at = -1
        with self._writing():
            work.mkdir(parents=True, exist_ok=True)

    def begin(self, resume: bool) -> None:
        """Start afresh, or resume from the checkpoint in the work folder. Raises like :func:`check_place`, and
        :class:`PlainError` if the checkpoint is of another run."""
        check_place(self.work, resume)
        if self.budget.epochs and not hasattr(self.recipe, "epochs"):
            raise PlainError(f"{self.recipe.name} draws no clips to count epochs by; give minutes or steps.")
        path = self.work / CHECKPOINT
        if not resume:
            needed = sum(value.nbytes for _, value in _floating_tensors(self.recipe.state()))
            require_room(TrainingError, self.work, needed, "a checkpoint")
            if self.team.is_first:
                with self._writing():
                    write_atomically(self.work / LOG, _line(self._header() | {"run": secrets.token_hex(8)}))
            return
        try:
            checkpoint = read_checkpoint(path)
            recipe, state, step, seconds = (checkpoint[name] for name in ("recipe", "state", "step", "seconds"))
        except CheckpointError as error:
            raise TrainingError(f"{error} Or start afresh elsewhere.") from None
        except KeyError as error:
            raise TrainingError(f"{path} lacks {shown(error.args[0])}; start afresh elsewhere.") from None
        if recipe != self.recipe.name:
            raise PlainError(
                f"{path} belongs to {shortened(str(recipe))}, not to {self.recipe.name}; choose another folder."
            )
        try:
            self.recipe.restore(state)
            self.number, self.seconds = int(step), float(seconds)
        except (LookupError, RuntimeError, TypeError, ValueError, AttributeError) as error:
            if is_out_of_memory(error):
                raise
            raise TrainingError(
                f"{path} does not hold the state of this training ({first_line(error)}); start afresh elsewhere."
            ) from error
        if self.team.is_first:
            self._forget_log_after(self.number)
        self._log({"resumed": self._header()})

    def train(self, resume: bool) -> None:
        """:meth:`begin` and :meth:`run`, with their errors. Raises :class:`Cancelled` if stopped, after writing a
        checkpoint."""
        self.begin(resume)
        self.report("Training")
        if not self.run():
            stopped = Cancelled(f"Stopped at step {self.number}; the work folder holds a checkpoint to resume from.")
            stopped.signal = self._stop.number
            raise stopped

    def run(self) -> bool:
        """Train until the budget is spent (true) or a stop is requested (false), and leave a checkpoint. Raises
        :class:`Diverged`; the checkpoint on disk then is the last good one."""
        with stop_requests() as self._stop:
            try:
                stopped = self._train()
            except Diverged:
                # No checkpoint yet: save this state, which is good, as a diverging step changes nothing.
                if not (self.work / CHECKPOINT).exists():
                    self.save()
                raise
            if not stopped and self._validated_at != self.number:
                self._validate()
                _, stopped = self.team.agree(1.0, self._stop.is_set())
            self.save()
        return not stopped

    def _train(self) -> bool:
        """Make steps until the budget is spent, or until a stop is requested; returns whether it was."""
        if self.intervals.validates_first and self.number == 0:
            self._validate()
        self._last = self._clock()
        saved = time.monotonic()
        sums: dict[str, float] = {}
        counted = 0
        while True:
            share, stopped = self.team.agree(self._spent, self._stop.is_set())
            if stopped or share >= 1.0:
                break
            self._began = self._began or (time.monotonic(), share)
            losses = self.recipe.step(self.number + 1, share)
            self.number += 1
            now = self._clock()
            self.seconds += now - self._last
            self._last = now
            for name, value in losses.items():
                sums[name] = sums.get(name, 0.0) + require_finite(value, name, self.number)
            counted += 1
            self._tell(losses=losses)
            if self.number % self.intervals.log_steps == 0:
                self._log_losses({name: total / counted for name, total in sums.items()})
                sums, counted = {}, 0
            if self.number % self.intervals.validation_steps == 0:
                self._validate()
            if time.monotonic() - saved > self.intervals.checkpoint_seconds:
                self.save()
                saved = time.monotonic()
        return stopped

    def save(self) -> None:
        """Write the checkpoint atomically. Raises :class:`Diverged` for weights that are not finite."""
        state = self.recipe.state()
        for name, value in _floating_tensors(state):
            if not torch.isfinite(value).all():
                kept = (self.work / CHECKPOINT).exists()
                raise Diverged(
                    f"Training stopped at step {self.number}: {name} is not finite. "
                    + ("The last good checkpoint is kept." if kept else "There was no checkpoint yet: start afresh.")
                )
        if not self.team.is_first:
            return
        content = {"recipe": self.recipe.name, "step": self.number, "seconds": self.seconds, "state": state}
        unfinished = self.work / (CHECKPOINT + ".part")
        try:
            with self._writing():
                torch.save(content, unfinished)
                unfinished.replace(self.work / CHECKPOINT)
        except (RuntimeError, TrainingError) as error:
            unfinished.unlink(missing_ok=True)
            if isinstance(error, TrainingError):
                raise
            # torch.save's own error after a system error gives no reason.
            raise self._unwritten("the disk is full or was taken away") from error

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._unwritten(reason(error)) from error

    def _unwritten(self, why: str) -> TrainingError:
        kept = (self.work / CHECKPOINT).exists()
        then = "The last checkpoint there is complete; resume from it" if kept else "It has no checkpoint; start afresh"
        return TrainingError(f"{self.work} could not be written at step {self.number}: {why}. {then}.")

    def _header(self) -> dict[str, Any]:
        device = self.recipe.device
        cuda = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
        name = cuda or platform.processor() or platform.machine()
        machine = f"{device.type} ({name}), {torch.get_num_threads()} threads, torch {torch.__version__}"
        return {"recipe": self.recipe.name, "machine": machine, **self.recipe.describe()}

    @property
    def _spent(self) -> float:
        """Spent share of the budget, 0 to 1."""
        epochs = getattr(self.recipe, "epochs", 0.0) * self.team.count
        return self.budget.progress(self.seconds, self.number, epochs)

    @property
    def _seconds_left(self) -> float | None:
        """By the wall clock, whose pace a budget of processor time need not have."""
        if self._began is None:
            return None
        (began, first_share), share = self._began, self._spent
        return (time.monotonic() - began) * (1 - share) / max(share - first_share, 1e-9)

    def _log_losses(self, losses: dict[str, float]) -> None:
        self._log({"losses": losses})
        figures = "  ".join(f"{name} {value:.4f}" for name, value in losses.items())
        left = "" if self._seconds_left is None else f", about {self._seconds_left / 60:.1f} min left"
        line = f"step {self.number}  {percent(self._spent, 1)}{left}  {figures}"
        self._call(lambda: self.report(line))

    def _validate(self) -> None:
        """Compute the validation figures; a stop request interrupts, as a large model takes minutes."""
        self._validated_at = self.number
        if not self.team.is_first:
            return
        try:
            with stoppable(self._require_no_stop):
                self.validation = self.recipe.validate()
        except Cancelled:
            self._stop.set()
            return
        for name, value in self.validation.items():
            require_finite(value, f"held-out {name}", self.number)
        self._last = self._clock()  # Validation time is not charged to the budget.
        if self._logged_at != self.number:  # A finished run is validated again when resumed.
            self._log({"validation": self.validation})
            self._logged_at = self.number
        figures = "  ".join(f"{name} {value:.4f}" for name, value in self.validation.items())
        self._call(lambda: self.report(f"step {self.number}  held out: {figures}"))
        self._tell(validation=self.validation)

    def _require_no_stop(self) -> None:
        if self._stop.is_set():
            raise Cancelled

    def _tell(self, **figures: Mapping[str, float]) -> None:
        milestone = TrainingProgress(self.number, self._spent, self.seconds, self._seconds_left, **figures)
        self._call(lambda: self.follow(milestone))

    def _call(self, callback: Callable[[], None]) -> None:
        if self.team.is_first:
            try:
                callback()
            except Cancelled:
                self._stop.set()

    def _log(self, entry: dict[str, Any]) -> None:
        if not self.team.is_first:
            return
        line = {"step": self.number, "seconds": round(self.seconds, 1), **entry}
        with self._writing():
            append_line(self.work / LOG, json.dumps(_rounded(line)))

    def _forget_log_after(self, number: int) -> None:
        """Drop log entries after the last checkpoint, whose steps are repeated, and unreadable lines, such as the
        partial last line of a killed run."""
        path = self.work / LOG
        kept = [one for one in read_log(path) if one.get("step", 0) <= number]
        self._logged_at = max((one.get("step", 0) for one in kept if "validation" in one), default=-1)
        with self._writing():
            write_atomically(path, b"".join(map(_line, kept)))


def _line(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry).encode() + b"\n"


def read_log(path: Path) -> list[dict[str, Any]]:
    """Valid entries of a run's log; empty without a log. Raises :class:`TrainingError` if the log cannot be read."""
    if not path.exists():
        return []
    with legible(TrainingError, "log", path):
        lines = read_bytes(path).splitlines()
    found = []
    for line in lines:
        with suppress(ValueError):
            entry = parsed_json(line)
            if isinstance(entry, dict) and isinstance(entry.get("step", 0), int):
                found.append(entry)
    return found


def _floating_tensors(state: Any, name: str = "state") -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(state, torch.Tensor):
        if state.is_floating_point():
            yield name, state
    elif isinstance(state, Mapping):
        for key, value in state.items():
            yield from _floating_tensors(value, f"{name}.{key}")
    elif isinstance(state, (list, tuple)):
        for index, value in enumerate(state):
            yield from _floating_tensors(value, f"{name}.{index}")


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: inner if key == "seconds" else _rounded(inner) for key, inner in value.items()}
    return value
