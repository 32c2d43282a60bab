"""Running a study: tasks go out to workers, what comes back is kept, one transaction for each. Torch-free.

Stopping at any moment, by cancelling or by a crash, loses at most what workers were doing; running again continues
from there. Pausing lets them finish.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from paretone import locks
from paretone.errors import StudyError
from paretone.models.base import SpeechModel
from paretone.observer import Observer
from paretone.studies.queueing import Queue
from paretone.studies.search import Searcher
from paretone.studies.store import Store
from paretone.studies.stored import RUNNING, StoredTake
from paretone.studies.study import SEARCH, Candidate, Cell, Study
from paretone.studies.tasks import (
    Equipment,
    Failed,
    Made,
    MeasureReference,
    Outcome,
    Prepare,
    Prepared,
    ReferenceMeasured,
    Speak,
    Task,
)
from paretone.studies.wording import described

if TYPE_CHECKING:
    from paretone.studies.execution import TaskRunner

LOCK = "running.sqlite"
"""What the process that runs a study holds."""
FINISHED, PAUSED = "finished", "paused"


class StudyFollower(Observer):
    """Follower of a study. This one lets it run to its end."""

    def begun(self, title: str, done: int, total: int) -> None:
        """Called when a task begins: what it is, and how many are done."""

    def advanced(self, done: int, total: int, seconds_left: float | None) -> None:
        """Called after every task."""

    def take(self, take: StoredTake) -> None:
        """Called for every finished take, which is kept by then."""

    def pausing(self) -> bool:
        """Whether no further tasks are to begin."""
        return False


@dataclass(frozen=True)
class WorkerLost:
    """A worker died."""

    why: str


class TaskExecutor(Protocol):
    """Workers, and their tasks."""

    def begin(self, equipment: Equipment, observer: Observer) -> str:
        """Make workers ready; the fingerprint of the weights that they have."""

    def idle(self) -> list[object]:
        """Workers that wait for a task."""

    def start(self, worker: object, task: Task) -> None:
        """Give a worker its task."""

    def wait(self, observer: Observer) -> list[tuple[object, Outcome | WorkerLost]]:
        """Wait for finished tasks. Raises :class:`StudyError` if no worker is left."""

    @property
    def size(self) -> int:
        """Number of workers."""

    def end(self) -> None:
        """Let the workers go."""

    def log(self) -> list[str]:
        """Remarks on the workers, in sentences."""


class LocalExecutor:
    """The one worker that is this process."""

    def __init__(self, load: Callable[..., SpeechModel], model: SpeechModel | None = None) -> None:
        self._load, self._model = load, model
        self._runner: TaskRunner | None = None
        self._task: Task | None = None
        self.size = 1

    def begin(self, equipment: Equipment, observer: Observer) -> str:
        # Imported here: only running a study needs torch.
        from paretone.studies.execution import TaskRunner

        self._runner = TaskRunner(equipment, self._load, self._model)
        return self._runner.equip(observer).info.all_weights

    def idle(self) -> list[object]:
        return [] if self._task else ["here"]

    def start(self, worker: object, task: Task) -> None:
        self._task = task

    def wait(self, observer: Observer) -> list[tuple[object, Outcome | WorkerLost]]:
        if self._runner is None or self._task is None:
            raise StudyError("There is no task to wait for.")
        try:
            return [("here", self._runner.carry_out(self._task, observer))]
        finally:
            self._task = None

    def end(self) -> None:
        self._runner = None

    def log(self) -> list[str]:
        return []


def run(study: Study, store: Store, executor: TaskExecutor, follower: StudyFollower) -> str:
    """Do what is left of ``study``; ``FINISHED`` or ``PAUSED``.

    Raises :class:`StudyError` if it cannot be run at all or is being run by another process, and
    :class:`paretone.errors.Cancelled`.
    """
    with alone_with(store.folder):
        return _Run(study, store, executor, follower).run()


class _Run:
    """One run of a study."""

    def __init__(self, study: Study, store: Store, executor: TaskExecutor, follower: StudyFollower) -> None:
        self._study, self._store, self._executor, self._follower = study, store, executor, follower
        self._searcher = Searcher(study, store) if study.search else None

    def run(self) -> str:
        study, store = self._study, self._store
        texts = tuple(dict.fromkeys(one.text for one in study.utterances))
        equipment = Equipment(
            study.model, study.folder, study.variant, study.device, study.judges, texts, study.vocoder
        )
        try:
            store.settle_checkpoint(self._executor.begin(equipment, self._follower))
            referred = [key for key, (verdicts, _) in store.references().items() if verdicts]
            self._candidates = {one.key: one for one in study.candidates}
            finished = store.cells()
            for candidate, lost in self._lost_by_search():
                # A search does not come back to a trial that it has ended: only what was lost is made again.
                self._candidates[candidate.key] = candidate
                finished |= set(study.cells(candidate)) - lost
            self._queue = Queue(study, self._candidates.values(), finished, store.artefacts(), referred)
            self._problems = {one.key for one in store.settings() if one.problem}
            self._follower.status("Making takes")
            return self._loop()
        finally:
            self._executor.end()

    def _lost_by_search(self) -> Iterator[tuple[Candidate, set[Cell]]]:
        """Settings that an earlier run's search asked for and whose audio was lost since, each with those cells."""
        lost = self._store.lost() if self._study.search else set()
        asked_again = {one.setting for one in self._store.trials() if one.state == RUNNING}
        for one in self._store.settings() if lost else ():
            cells = lost & set(self._study.cells(one.candidate))
            if one.origin == SEARCH and one.key not in {*self._candidates, *asked_again} and cells:
                yield one.candidate, cells

    def _loop(self) -> str:
        while True:
            self._follower.check()
            pausing = self._follower.pausing()
            if not pausing:
                self._ask()
                for worker in self._executor.idle():
                    task = self._queue.next(worker)
                    if task is not None:
                        self._executor.start(worker, self._with_baseline(task))
                        self._follower.begun(self._title(task), *self._queue.progress)
            if not self._queue.busy:
                if pausing:
                    return PAUSED
                if self._queue.left and self._executor.idle():
                    raise StudyError("The study cannot continue: the remaining tasks wait for takes that failed.")
                if not self._queue.left and self._asked_all():
                    # Trials whose setting was known already end without a task.
                    self._advance()
                    return FINISHED
                if not self._queue.left:
                    continue
            for worker, outcome in self._executor.wait(self._follower):
                self._keep(worker, outcome)
            self._tell()
            self._advance()

    def _advance(self) -> None:
        if self._searcher is not None:
            self._queue.coming = self._searcher.left
        self._follower.advanced(*self._queue.progress, self._queue.seconds_left(self._executor.size))

    def _title(self, task: Task) -> str:
        """A task in words."""
        if isinstance(task, MeasureReference):
            return "reference speech"
        candidate = self._candidates[task.key if isinstance(task, Prepare) else task.cell.setting]
        title = candidate.name or described(candidate.setting)
        return f"calibrating {title}" if isinstance(task, Prepare) else title

    # --- Searching ----------------------------------------------------------------------------------------------------
    def _ask(self) -> None:
        """Have as many trials open as there are workers: more would be asked for without knowing of these."""
        self._tell()
        while self._searcher is not None and self._searcher.open < self._executor.size:
            candidate = self._searcher.ask()
            if candidate is None:
                return
            self._candidates[candidate.key] = candidate
            self._queue.add([candidate])
            # One whose takes are all there already is answered at once.
            self._tell()

    def _tell(self) -> None:
        if self._searcher is not None:
            self._searcher.report(lambda key: self._queue.complete(self._candidates[key]))

    def _asked_all(self) -> bool:
        return self._searcher is None or (self._searcher.open == 0 and self._searcher.exhausted)

    # --- Keeping ------------------------------------------------------------------------------------------------------
    def _keep(self, worker: object, outcome: Outcome | WorkerLost) -> None:
        match outcome:
            case Made():
                self._keep_take(outcome)
                self._queue.done(worker, outcome.busy_seconds)
            case Prepared():
                self._store.add_artefact(outcome)
                self._queue.done(worker, outcome.seconds, outcome.artefact)
            case ReferenceMeasured():
                self._store.add_reference(outcome)
                self._queue.done(worker, outcome.seconds)
            case Failed():
                self._queue.give_up(worker)
                self._keep_failure(outcome.task, outcome.sentence, outcome.whole_setting)
            case WorkerLost():
                given_up = self._queue.lost(worker)
                if given_up is not None:
                    self._keep_failure(given_up, f"Several workers died running it; the last: {outcome.why}", False)

    def _keep_take(self, made: Made) -> None:
        candidate = self._candidates[made.task.cell.setting]
        kept = self._store.add_take(made, keep_spectrogram=candidate.key == candidate.baseline)
        if candidate.key in self._problems:
            # It works now, whatever was wrong before.
            self._store.rule_out(candidate.key, "")
            self._problems.discard(candidate.key)
        if kept is not None:
            self._follower.take(kept)

    def _with_baseline(self, task: Task) -> Task:
        """``task`` with what its take is compared with: by the worker, since this process serves all of them."""
        if not isinstance(task, Speak) or task.cell.round != 0:
            return task
        baseline = self._candidates[task.cell.setting].baseline
        stored = self._store.take(replace(task.cell, setting=baseline))
        if baseline == task.cell.setting or stored is None or not self._store.is_heard(stored):
            return task
        mel = self._store.spectrogram(stored.take)
        if mel is None:
            return task
        return replace(task, baseline=(mel, (self._store.audio(stored.take), stored.sample_rate)))

    def _keep_failure(self, task: Task, sentence: str, whole_setting: bool) -> None:
        match task:
            case MeasureReference():
                self._store.add_reference(ReferenceMeasured(task, (), 0.0, sentence))
            case Prepare():
                self._rule_out(task.key, sentence)
            case Speak() if whole_setting:
                self._rule_out(task.cell.setting, sentence)
            case Speak():
                self._store.add_failure(task.cell, sentence)

    def _rule_out(self, key: str, sentence: str) -> None:
        self._store.rule_out(key, sentence)
        self._problems.add(key)
        self._queue.drop(key)


def set_aside(folder: Path) -> Path:
    """Move damaged results away, audio included, and what is in the place of the lock; their new folder. Nothing of it
    is opened. Raises :class:`StudyError`, also if another process runs the study."""
    lock = folder / LOCK
    if not os.path.lexists(lock) or (lock.is_file() and not lock.is_symlink()):
        with alone_with(folder):
            return Store.set_aside(folder)
    backup = Store.set_aside(folder)
    with suppress(OSError):
        lock.rename(backup / LOCK)
    return backup


@contextmanager
def alone_with(folder: Path) -> Iterator[None]:
    """Hold the study in ``folder``, so that no other process runs it. A process that dies releases it.

    Raises :class:`StudyError` if another one holds it, or if the folder cannot be used.
    """
    lock = folder / LOCK
    if lock.is_symlink():
        raise StudyError(f"{lock} is a symbolic link, and nothing is written through one; delete the link.")
    try:
        with locks.held(lock):
            yield
    except locks.LockedError as error:
        raise StudyError(f"The study in {folder} is being run by another process; wait for it, or stop it.") from error
    except locks.UnusableError as error:
        rest = "Delete it, and try again" if os.path.lexists(lock) else "Choose another folder for the study"
        raise StudyError(f"{error}. {rest}.") from error
