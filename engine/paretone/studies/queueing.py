"""The order in which a study is done: what is left, what may begin, how long it will take. Torch-free.

A block is one utterance with one seed in one round, under every setting: its takes run one after the other on one
worker, the baseline first and the others in an order that changes from block to block, so that what slows the machine
down meets all settings alike (see :mod:`paretone.measure.timing`).
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np

from paretone.measure.timing import running_order
from paretone.setting.setting import Artefact
from paretone.studies.study import BASELINE, Candidate, Cell, Study, StudySentence, seeded
from paretone.studies.tasks import MeasureReference, Prepare, Speak, Task

ATTEMPTS = 3
"""Maximum number of workers that a task may kill before it is given up."""


@dataclass(eq=False)
class _Block:
    """Takes that one worker does in a row."""

    cells: deque[Cell] = field(default_factory=deque)
    owner: object = None
    stuck: int = -1
    """The change after which none of its cells was ready: until the next one it need not be looked through again."""


class Queue:
    """Hands out tasks and takes note of what is done. ``finished`` are cells that need not be done again."""

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
        """Number of changes after which a cell may be ready that was not."""
        self._prepare: deque[Candidate] = deque()
        known = set(referred)
        self._refer = deque(one for one in study.utterances if study.judges and one.key not in known)
        self._out: dict[object, Task] = {}
        """Task of each worker."""
        self._attempts: dict[object, int] = defaultdict(int)
        self._total = len(known) + len(self._refer) if study.judges else 0
        self._finished = len(known) if study.judges else 0
        self._pace = _Pace()
        self.coming = 0
        """Settings that a search will still ask for: part of the progress and of the estimate."""
        self.add(candidates)

    # --- What is to be done -------------------------------------------------------------------------------------------
    def add(self, candidates: Iterable[Candidate]) -> None:
        """Put all cells of further settings in."""
        self._changes += 1
        new = [one for one in candidates if one.key not in self._candidates]
        self._candidates |= {one.key: one for one in new}
        self._pace.know([one.key for one in new])
        for one in new:
            if one.unprepared:
                self._total += 1
                if one.key in self._artefacts:
                    self._finished += 1
                elif not all(cell in self._done for cell in self._study.cells(one)):
                    self._prepare.append(one)
                else:
                    self._finished += 1
        baselines = [one.key for one in new if one.origin == BASELINE]
        others = [one.key for one in new if one.origin != BASELINE]
        study, number = self._study, len(self._blocks)
        for turn in range(study.rounds):
            for seed in study.seeds:
                for spoken in study.utterances:
                    # In the first round the others are measured against the baseline, so that has to be there.
                    order = running_order(others, number) if others else ()
                    keys = (*baselines, *order) if turn == 0 else running_order((*baselines, *others), number)
                    cells = [Cell(key, spoken.key, seed, turn) for key in keys]
                    left = deque(cell for cell in cells if cell not in self._done)
                    self._total += len(cells)
                    self._finished += len(cells) - len(left)
                    number += 1
                    if left:
                        self._blocks.append(_Block(left))
                        for cell in left:
                            self._pace.expect(cell.setting)

    def drop(self, setting: str) -> None:
        """Take out what is left of a setting that cannot be run. Nothing waits for it any more."""
        self._changes += 1
        before = sum(len(block.cells) for block in self._blocks)
        for block in self._blocks:
            block.cells = deque(cell for cell in block.cells if cell.setting != setting)
        self._total -= before - sum(len(block.cells) for block in self._blocks)
        under_way = sum(isinstance(task, Speak) and task.cell.setting == setting for task in self._out.values())
        self._pace.expect_only(setting, under_way)
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
        # The last resort is to help with another's longest block, so that no worker is idle while one is left.
        for block in (
            *(block for block in self._blocks if block.owner == worker),
            *(block for block in self._blocks if block.owner is None),
            *sorted(self._blocks, key=lambda block: -len(block.cells)),
        ):
            cell = self._ready(block)
            if cell is not None:
                block.cells.remove(cell)
                block.owner = worker if block.owner is None else block.owner
                return self._speak(cell)
        return None

    def _ready(self, block: _Block) -> Cell | None:
        """The first cell of a block that may begin: its artefact is there, and the take of its baseline."""
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

    def _speak(self, cell: Cell) -> Speak:
        candidate = self._candidates[cell.setting]
        artefact = self._artefacts.get(cell.setting)
        setting = seeded(candidate, cell.seed, artefact.fingerprint if artefact else "")
        return Speak(cell, setting, self._spoken[cell.utterance], (artefact,) if artefact else ())

    # --- What has been done -------------------------------------------------------------------------------------------
    def done(self, worker: object, seconds: float, artefact: Artefact | None = None) -> None:
        """``worker`` has done its task, which took so long; ``artefact`` is what a preparation gave."""
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
            self._pace.give_up(task.cell.setting)
            # What was to be measured next to it is made all the same.
            self._done.add(task.cell)

    def lost(self, worker: object) -> Task | None:
        """``worker`` died. Its task goes to another; if several died with it, it is given up and returned."""
        for block in self._blocks:
            if block.owner == worker:
                block.owner = None
        task = self._out.pop(worker, None)
        if task is None:
            return None
        name = _name(task)
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
        """Whether anything is left, what workers are doing included."""
        return bool(self._out or self._refer or self._prepare or any(block.cells for block in self._blocks))

    @property
    def busy(self) -> bool:
        """Whether any worker is at work."""
        return bool(self._out)

    @property
    def progress(self) -> tuple[int, int]:
        """Tasks that are done, and all of them."""
        return self._finished, self._total + self.coming * self._cells_each

    def seconds_left(self, workers: int = 1) -> float | None:
        """An estimate, once something was done."""
        out = Counter(type(task) for task in self._out.values())
        others = {
            Prepare: len(self._prepare) + out[Prepare],
            MeasureReference: len(self._refer) + out[MeasureReference],
        }
        return self._pace.estimate(self.coming * self._cells_each, others, workers)

    @property
    def _cells_each(self) -> int:
        return self._study.takes_each


def _name(task: Task) -> object:
    """Identity of a task, equal if it is handed out again."""
    match task:
        case MeasureReference():
            return task.spoken.key
        case Prepare():
            return task.key
        case Speak():
            return task.cell


class _Pace:
    """What is still to be done, and how long such tasks took: takes by their setting, others by their kind.

    Takes are counted in arrays over the settings, because the estimate after every take goes through all of them.
    """

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        """Of each setting in the rows."""
        self._to_come, self._made, self._seconds = (np.zeros(0) for _ in range(3))
        """By setting: takes that are not done, under way or not; those that are, in this run, and their seconds."""
        self._others: dict[type, list[float]] = defaultdict(list)

    def know(self, settings: Sequence[str]) -> None:
        """Make room for further settings."""
        self._places |= {one: len(self._places) + number for number, one in enumerate(settings)}
        more = 0, len(settings)
        self._to_come, self._made, self._seconds = (
            np.pad(one, more) for one in (self._to_come, self._made, self._seconds)
        )

    def expect(self, setting: str) -> None:
        """One more take is to come."""
        self._to_come[self._places[setting]] += 1

    def expect_only(self, setting: str, takes: int) -> None:
        """Set how many takes of a setting are to come."""
        self._to_come[self._places[setting]] = takes

    def give_up(self, setting: str) -> None:
        """One take will not come."""
        self._to_come[self._places[setting]] -= 1

    def note(self, task: Task, seconds: float) -> None:
        """A task is done, and took so long."""
        if isinstance(task, Speak):
            place = self._places[task.cell.setting]
            self._to_come[place] -= 1
            self._made[place] += 1
            self._seconds[place] += seconds
        else:
            self._others[type(task)].append(seconds)

    def estimate(self, coming: int, others: Mapping[type, int], workers: int) -> float | None:
        """Seconds for what is to be done: the takes, as many ``coming`` of settings that are not known yet, and so
        many ``others`` of each kind. ``None`` if nothing like it was done yet."""
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
