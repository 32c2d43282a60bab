"""Running a study: tasks go to workers, and each result is stored in one transaction. Torch-free.

Cancelling or crashing loses at most the tasks in progress; the next run continues. Pausing lets them finish.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Protocol

import numpy as np

from paretone import database
from paretone.errors import Cancelled, PlainError, StudyError
from paretone.measure.machine import code_fingerprint
from paretone.measure.timing import running_order
from paretone.models.base import SpeechModel
from paretone.observer import Observer
from paretone.setting.setting import Artefact
from paretone.studies.evaluation_sets import StudySentence
from paretone.studies.search import Searcher
from paretone.studies.servers import Asking
from paretone.studies.store import RUNNING, Store, StoredTake
from paretone.studies.study import (
    BASELINE,
    SEARCH,
    SERVER,
    Candidate,
    Cell,
    Equipment,
    Failed,
    Made,
    MeasureReference,
    Outcome,
    Prepare,
    Prepared,
    ReferenceMeasured,
    Speak,
    Study,
    Task,
    seeded,
)
from paretone.studies.wording import described

if TYPE_CHECKING:
    from paretone.studies.execution import TaskRunner


# --- The queue --------------------------------------------------------------------------------------------------------
# The order of a study's tasks: which remain, which are ready, and how long the rest takes.
#
# A block is one utterance with one seed in one round, under every setting: its takes run in sequence on one worker, the
# baseline first and the others in an order that changes from block to block, so that slowdowns of the machine affect
# all settings alike (see :mod:`paretone.measure.timing`).
ATTEMPTS = 3
"""Maximum number of workers killed by a task before it is given up."""


@dataclass(eq=False)
class _Block:
    """Takes for one worker in sequence."""

    cells: deque[Cell] = field(default_factory=deque)
    owner: object = None
    stuck: int = -1
    """Change count at which none of its cells was ready: no new scan is needed until the next change."""


class Queue:
    """Hands out tasks and records finished ones. ``finished``: cells to skip."""

    def __init__(
        self,
        study: Study,
        candidates: Iterable[Candidate],
        finished: set[Cell],
        artefacts: Mapping[str, Artefact],
        referred: Iterable[str] = (),
    ) -> None:
        self._study = study
        self._spoken: dict[str, StudySentence] = {one.key: one for one in study.utterances}
        self._candidates: dict[str, Candidate] = {}
        self._artefacts = dict(artefacts)
        self._done = set(finished)
        self._blocks: list[_Block] = []
        self._changes = 0
        """Number of changes that may have made cells ready."""
        self._prepare: deque[Candidate] = deque()
        known = set(referred)
        self._refer = deque(one for one in study.utterances if study.judges and one.key not in known)
        self._out: dict[object, Task] = {}
        self._attempts: dict[object, int] = defaultdict(int)
        self._total = len(known) + len(self._refer) if study.judges else 0
        self._finished = len(known) if study.judges else 0
        self._pace = _Pace()
        self.coming = 0
        """Settings yet to be proposed by a search, counted in progress and estimate."""
        self.add(candidates)

    # --- Adding and handing out tasks ---------------------------------------------------------------------------------
    def add(self, candidates: Iterable[Candidate]) -> None:
        self._changes += 1
        new = [one for one in candidates if one.key not in self._candidates]
        self._candidates |= {one.key: one for one in new}
        self._pace.know([one.key for one in new])
        for one in new:
            if one.unprepared:
                self._total += 1
                if one.key in self._artefacts or self.complete(one):
                    self._finished += 1
                else:
                    self._prepare.append(one)
        baselines = [one.key for one in new if one.origin == BASELINE]
        others = [one.key for one in new if one.origin != BASELINE]
        study, number = self._study, len(self._blocks)
        for turn in range(study.rounds):
            for seed in study.seeds:
                for spoken in study.utterances:
                    # Takes that are spoken at once are best alike, and are not timed.
                    order = running_order(others, number) if others and study.batch == 1 else others
                    # First-round takes are measured against the baseline's, which must exist.
                    keys = (*baselines, *order) if turn == 0 else running_order((*baselines, *others), number)
                    cells = [Cell(key, spoken.key, seed, turn) for key in keys]
                    left = deque(cell for cell in cells if cell not in self._done)
                    self._total += len(cells)
                    self._finished += len(cells) - len(left)
                    number += 1
                    if left:
                        self._blocks.append(_Block(left))
                        for cell in left:
                            self._pace.expect(cell.setting, 1)

    def drop(self, setting: str) -> None:
        """Remove the remaining cells of a setting that cannot be run, and stop waiting for it."""
        self._changes += 1
        before = sum(len(block.cells) for block in self._blocks)
        for block in self._blocks:
            block.cells = deque(cell for cell in block.cells if cell.setting != setting)
        dropped = before - sum(len(block.cells) for block in self._blocks)
        self._total -= dropped
        self._pace.expect(setting, -dropped)
        self._done.update(self._study.cells(self._candidates[setting]))
        waiting = len(self._prepare)
        self._prepare = deque(one for one in self._prepare if one.key != setting)
        self._total -= waiting - len(self._prepare)

    def next(self, worker: object) -> Task | None:
        """Next task for ``worker``; ``None`` if none can begin now."""
        task = self._next(worker)
        if task is not None:
            self._out[worker] = task
        return task

    def _next(self, worker: object) -> Task | None:
        if self._refer:
            return MeasureReference(self._refer.popleft())
        if self._prepare:
            candidate = self._prepare.popleft()
            setting = seeded(candidate, self._study.seeds[0])
            return Prepare(candidate.key, candidate.unprepared, setting, self._study.calibration)
        self._blocks = [block for block in self._blocks if block.cells]
        # As a last resort, help with another worker's longest block, so that no worker idles.
        for block in (
            *(block for block in self._blocks if block.owner == worker),
            *(block for block in self._blocks if block.owner is None),
            *sorted(self._blocks, key=lambda block: -len(block.cells)),
        ):
            cell = self._ready(block)
            if cell is not None:
                block.cells.remove(cell)
                block.owner = worker if block.owner is None else block.owner
                spoken, artefact = self._spoken[cell.utterance], self._artefacts.get(cell.setting)
                return Speak.of(cell, self._candidates[cell.setting], spoken, artefact)
        return None

    def _ready(self, block: _Block) -> Cell | None:
        """First cell of a block that may begin: its artefact and its baseline's take exist."""
        if block.stuck == self._changes:
            return None
        for cell in block.cells:
            candidate = self._candidates[cell.setting]
            if candidate.unprepared and cell.setting not in self._artefacts:
                continue
            baseline = Cell(candidate.baseline, cell.utterance, cell.seed)
            compared = cell.round == 0 and cell != baseline and candidate.baseline in self._candidates
            if not compared or baseline in self._done:
                return cell
        block.stuck = self._changes
        return None

    # --- Recording results --------------------------------------------------------------------------------------------
    def done(self, worker: object, seconds: float, artefact: Artefact | None = None) -> None:
        """Record that ``worker`` has done its task in ``seconds``; ``artefact``: result of a preparation."""
        task = self._out.pop(worker)
        self._finished += 1
        self._changes += 1
        self._pace.note(task, seconds)
        if isinstance(task, Prepare) and artefact is not None:
            self._artefacts[task.key] = artefact
        elif isinstance(task, Speak):
            self._done.add(task.cell)

    def give_up(self, worker: object) -> None:
        """Record that ``worker`` could not do its task and no other can."""
        task = self._out.pop(worker)
        self._finished += 1
        self._changes += 1
        if isinstance(task, Speak):
            self._pace.expect(task.cell.setting, -1)
            # Takes to be measured next to it are still made.
            self._done.add(task.cell)

    def lost(self, worker: object) -> Task | None:
        """Record that ``worker`` died. Its task is requeued; after several deaths it is given up and returned."""
        for block in self._blocks:
            if block.owner == worker:
                block.owner = None
        task = self._out.pop(worker, None)
        if task is None:
            return None
        name = task.cell if isinstance(task, Speak) else task.key if isinstance(task, Prepare) else task.spoken.key
        self._attempts[name] += 1
        if self._attempts[name] >= ATTEMPTS:
            self._out[worker] = task
            self.give_up(worker)
            return task
        match task:
            case MeasureReference():
                self._refer.appendleft(task.spoken)
            case Prepare():
                self._prepare.appendleft(self._candidates[task.key])
            case Speak():
                self._blocks.insert(0, _Block(deque([task.cell])))
        return None

    def complete(self, candidate: Candidate) -> bool:
        """Whether every cell of a setting is done or given up."""
        return all(cell in self._done for cell in self._study.cells(candidate))

    @property
    def left(self) -> bool:
        return bool(self._out or self._refer or self._prepare or any(block.cells for block in self._blocks))

    @property
    def busy(self) -> bool:
        return bool(self._out)

    @property
    def progress(self) -> tuple[int, int]:
        return self._finished, self._total + self.coming * self._study.takes_each

    def seconds_left(self, workers: int = 1) -> float | None:
        out = Counter(type(task) for task in self._out.values())
        others = {
            Prepare: len(self._prepare) + out[Prepare],
            MeasureReference: len(self._refer) + out[MeasureReference],
        }
        return self._pace.estimate(self.coming * self._study.takes_each, others, workers)


class _Pace:
    """Remaining tasks and durations of finished ones: takes by setting, others by kind. Takes are counted in arrays
    over the settings: every take's estimate needs all of them."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        """Index of each setting in the arrays."""
        self._to_come, self._made, self._seconds = (np.zeros(0) for _ in range(3))
        """By setting: unfinished takes, in progress or not; finished ones of this run, and their seconds."""
        self._others: dict[type, list[float]] = defaultdict(list)

    def know(self, settings: Sequence[str]) -> None:
        self._places |= {one: len(self._places) + number for number, one in enumerate(settings)}
        more = 0, len(settings)
        self._to_come, self._made, self._seconds = (
            np.pad(one, more) for one in (self._to_come, self._made, self._seconds)
        )

    def expect(self, setting: str, more: int) -> None:
        self._to_come[self._places[setting]] += more

    def note(self, task: Task, seconds: float) -> None:
        if isinstance(task, Speak):
            place = self._places[task.cell.setting]
            self._to_come[place] -= 1
            self._made[place] += 1
            self._seconds[place] += seconds
        else:
            self._others[type(task)].append(seconds)

    def estimate(self, coming: int, others: Mapping[type, int], workers: int) -> float | None:
        """Seconds for the remaining takes, ``coming`` takes of settings yet unknown, and ``others`` tasks by kind.
        ``None`` before a similar task is finished."""
        heard = self._made > 0
        if self._to_come.any() and not heard.any():
            return None
        means = self._seconds / np.maximum(self._made, 1)
        usual = float(means[heard].mean()) if heard.any() else 0.0
        seconds = float(self._to_come @ np.where(heard, means, usual)) + coming * usual
        for kind, count in others.items():
            if count and not self._others[kind]:
                return None
            seconds += count * fmean(self._others[kind]) if count else 0.0
        return seconds / max(1, workers)


# --- Running ----------------------------------------------------------------------------------------------------------
LOCK = "running.sqlite"
"""Lock file of the process that runs a study."""
FINISHED, PAUSED = "finished", "paused"


class StudyFollower(Observer):
    """Follower of a study. This one lets it run to its end."""

    def begun(self, title: str, done: int, total: int) -> None:
        """Called when a task begins, with its title and the number of finished tasks."""

    def advanced(self, done: int, total: int, seconds_left: float | None) -> None:
        """Called after every task."""

    def take(self, take: StoredTake) -> None:
        """Called for every finished take after it is stored."""

    def pausing(self) -> bool:
        """Whether to start no further tasks."""
        return False


@dataclass(frozen=True)
class WorkerLost:
    why: str


class TaskExecutor(Protocol):
    def begin(self, equipment: Equipment, observer: Observer) -> str:
        """Make workers ready; returns the fingerprint of their weights."""

    def idle(self) -> list[object]:
        """Workers without a task."""

    def start(self, worker: object, task: Task) -> None: ...

    def wait(self, observer: Observer) -> list[tuple[object, Outcome | WorkerLost]]:
        """Wait for finished tasks. Raises :class:`StudyError` if no worker is left."""

    @property
    def size(self) -> int: ...

    def end(self) -> None: ...

    def log(self) -> list[str]:
        """Remarks on the workers, in sentences."""


class LocalExecutor:
    """This process as the only worker, which speaks as many takes at once as the study's batch."""

    def __init__(self, load: Callable[..., SpeechModel], model: SpeechModel | None = None) -> None:
        self._load, self._model, self._batch = load, model, 1
        self._runner: TaskRunner | None = None
        self._tasks: dict[object, Task] = {}
        self._interruption: BaseException | None = None
        """Raised once what was finished before it is kept."""
        self.size = 1

    def begin(self, equipment: Equipment, observer: Observer) -> str:
        # Imported here: only running a study needs torch.
        from paretone.studies.execution import TaskRunner

        self._batch = equipment.batch
        self._runner = TaskRunner(equipment, self._load, self._model)
        return self._runner.equip(observer).info.all_weights

    def idle(self) -> list[object]:
        return [place for place in range(self._batch) if place not in self._tasks]

    def start(self, worker: object, task: Task) -> None:
        self._tasks[worker] = task

    def wait(self, observer: Observer) -> list[tuple[object, Outcome | WorkerLost]]:
        if self._interruption is not None:
            raise self._interruption
        tasks, self._tasks = self._tasks, {}
        assert self._runner is not None and tasks
        if self._batch > 1:
            found: dict[int, Outcome] = {}
            try:
                self._runner.carry_out_together(list(tasks.values()), observer, found)
            except (Cancelled, KeyboardInterrupt) as error:
                if not found:
                    raise
                self._interruption = error
            return [(worker, found[place]) for place, worker in enumerate(tasks) if place in found]
        return [(worker, self._runner.carry_out(task, observer)) for worker, task in tasks.items()]

    def end(self) -> None:
        self._runner = None

    def log(self) -> list[str]:
        return []


def run(study: Study, store: Store, executor: TaskExecutor, follower: StudyFollower) -> str:
    """Run the remaining tasks of ``study``; returns ``FINISHED`` or ``PAUSED``. Raises :class:`StudyError` if it cannot
    be run or another process runs it, and :class:`paretone.errors.Cancelled`."""
    with alone_with(store.folder):
        return _Run(study, store, executor, follower).run()


class _Run:
    def __init__(self, study: Study, store: Store, executor: TaskExecutor, follower: StudyFollower) -> None:
        self._study, self._store, self._executor, self._follower = study, store, executor, follower
        self._searcher = Searcher(study, store) if study.search else None
        self._candidates = {one.key: one for one in study.candidates}
        self._problems = {one.key for one in store.settings() if one.problem}
        self._servers = [one for one in study.candidates if one.origin == SERVER]
        self._asked = 0
        """Finished takes of servers."""

    def run(self) -> str:
        study, store = self._study, self._store
        if not self._ask_servers():
            return PAUSED
        if len(self._servers) == len(study.candidates) and study.search is None:
            return FINISHED
        try:
            weights = self._executor.begin(study.equipment(study.judges), self._follower)
            store.settle_checkpoint(weights, code_fingerprint())
            referred = [key for key, (verdicts, _) in store.references().items() if verdicts]
            for server in self._servers:
                del self._candidates[server.key]
            finished = store.cells()
            lost = store.lost() if study.search else set()
            asked_again = {one.setting for one in store.trials() if one.state == RUNNING}
            for one in store.settings() if lost else ():
                cells = set(study.cells(one.candidate))
                if one.origin == SEARCH and one.key not in {*self._candidates, *asked_again} and cells & lost:
                    # A search does not return to finished trials: only lost audio is made again.
                    self._candidates[one.key] = one.candidate
                    finished |= cells - lost
            self._queue = Queue(study, self._candidates.values(), finished, store.artefacts(), referred)
            self._follower.status("Making takes")
            return self._loop()
        finally:
            self._executor.end()

    def _ask_servers(self) -> bool:
        """Ask all servers, before a model is loaded here that would take their processor; returns whether all were."""
        study, follower = self._study, self._follower
        if not self._servers:
            return True
        answered = lambda done: follower.advanced(self._asked + done, study.takes, None)  # noqa: E731
        asking, finished = Asking(study, follower, answered), self._store.cells()
        for candidate in self._servers:
            if follower.pausing():
                return False
            cells = set(study.cells(candidate))
            if missing := cells - finished:
                follower.status(f"Asking {candidate.name}")
                follower.begun(candidate.name, self._asked, study.takes)
                try:
                    for outcome in asking.replies(candidate, missing):
                        if isinstance(outcome, Made):
                            self._keep_take(outcome)
                        else:
                            self._keep_failure(outcome.task, outcome.sentence, False)
                except PlainError as error:
                    self._store.rule_out(candidate.key, str(error))
                    self._problems.add(candidate.key)
            self._asked += len(cells)
            follower.advanced(self._asked, study.takes, None)
        return True

    @property
    def _progress(self) -> tuple[int, int]:
        done, total = self._queue.progress
        return done + self._asked, total + self._asked

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
                        self._follower.begun(self._title(task), *self._progress)
            if not self._queue.busy:
                if pausing:
                    return PAUSED
                if self._queue.left and self._executor.idle():
                    raise StudyError("The study cannot continue: the remaining tasks wait for takes that failed.")
                asked_all = self._searcher is None or (self._searcher.open == 0 and self._searcher.exhausted)
                if not self._queue.left and asked_all:
                    # Trials of known settings end without a task.
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
        self._follower.advanced(*self._progress, self._queue.seconds_left(self._executor.size))

    def _title(self, task: Task) -> str:
        if isinstance(task, MeasureReference):
            return "reference speech"
        candidate = self._candidates[task.key if isinstance(task, Prepare) else task.cell.setting]
        title = candidate.name if candidate.name not in ("", BASELINE) else described(candidate.setting)
        return f"calibrating {title}" if isinstance(task, Prepare) else title

    # --- Searching ----------------------------------------------------------------------------------------------------
    def _ask(self) -> None:
        """Keep as many trials open as there are workers: further proposals would not know these results."""
        self._tell()
        while self._searcher is not None and self._searcher.open < self._executor.size:
            candidate = self._searcher.ask()
            if candidate is None:
                return
            self._candidates[candidate.key] = candidate
            self._queue.add([candidate])
            # A trial whose takes all exist is answered at once.
            self._tell()

    def _tell(self) -> None:
        if self._searcher is not None:
            self._searcher.report(lambda key: self._queue.complete(self._candidates[key]))

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
            # It works now; clear the old problem.
            self._store.rule_out(candidate.key, "")
            self._problems.discard(candidate.key)
        if kept is not None:
            self._follower.take(kept)

    def _with_baseline(self, task: Task) -> Task:
        """``task`` with its baseline for comparison, which the worker does, since this process serves all workers."""
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
    """Move damaged results with audio and lock file away, without opening anything; returns their new folder. Raises
    :class:`StudyError`, also if another process runs the study."""
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
    """Hold the lock of the study in ``folder`` against other processes. A dead process releases it. Raises
    :class:`StudyError` if another process holds it, or the folder is unusable."""
    lock = folder / LOCK
    if lock.is_symlink():
        raise StudyError(f"{lock} is a symbolic link, and nothing is written through one; delete the link.")
    try:
        with database.held(lock):
            yield
    except database.LockedError as error:
        raise StudyError(f"The study in {folder} is being run by another process; wait for it, or stop it.") from error
    except database.UnusableError as error:
        rest = "Delete it, and try again" if os.path.lexists(lock) else "Choose another folder for the study"
        raise StudyError(f"{error}. {rest}.") from error
