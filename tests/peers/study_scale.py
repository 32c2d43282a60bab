"""What a study costs the process that runs it: time per take and memory, with simulated workers that speak in no time.

Everything but the workers is real: the queue, the study's file with its audio, the follower. A simulated worker answers
in simulated time, which is not waited for, so the wall time is the driver's. With many workers the driver must keep
up with all of them: 64 workers that need four seconds per take give it 16 takes per second.
"""

from __future__ import annotations

import argparse
import heapq
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from paretone import files
from paretone.bench.bundled import say
from paretone.bench.report import Report
from paretone.commands.arguments import at_least, positive
from paretone.commands.output import writable
from paretone.figures.curves import Curve, Curves, sheet
from paretone.figures.glyphs import SERIES_ON_ANY, SHAPES, Glyph
from paretone.figures.scatter import Dimension
from paretone.measure.estimates import estimates
from paretone.measure.machine import describe
from paretone.measure.memory import bytes_in_use
from paretone.observer import Observer
from paretone.setting.take import Measurements, Take, Trace
from paretone.studies import definition
from paretone.studies.running import StudyFollower, WorkerLost
from paretone.studies.running import run as run_study
from paretone.studies.store import Store, StoredTake
from paretone.studies.study import Equipment, Made, Outcome, Speak, Study, Task, take_id
from paretone.wording import grouped

NAME = "study-scale"
PARTS = 10
"""Parts of the study that the growth is shown by."""
DEFINITION = (
    "Takes per second that the driver of the study hands out, keeps on disk and reports, over tenths of the study; the "
    "workers are simulated and take no time."
)
_RATE = 24_000
_BANDS, _HOP = 100, 256
"""Of the spectrogram that a take has."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--settings", type=at_least(2), default=1_000, help="settings (default: %(default)s)")
    parser.add_argument("--sentences", type=positive, default=30, help="sentences (default: %(default)s)")
    parser.add_argument("--workers", type=positive, default=64, help="simulated workers (default: %(default)s)")
    parser.add_argument(
        "--samples", type=positive, default=240, help="samples of each take's audio at 24 kHz (default: %(default)s)"
    )
    parser.add_argument("--picture", metavar="FILE", help="write the growth as SVG")


def run(arguments: argparse.Namespace) -> Report:
    """Run the study, and take note of the driver's time and memory after each tenth."""
    picture = writable(arguments.picture) if arguments.picture else None
    study = simulated_study(arguments.settings, arguments.sentences)
    say(f"{grouped(study.takes)} takes on {arguments.workers} simulated workers …")
    workers = SimulatedWorkers(arguments.workers, arguments.samples)
    follower = Growth(study.takes, workers)
    with tempfile.TemporaryDirectory(prefix="paretone-scale-") as folder, TimedStore(Path(folder)) as store:
        store.begin(study)
        follower.watch(store)
        run_study(study, store, workers, follower)
    if picture is not None:
        files.write(picture, growth_picture(follower.parts, arguments.workers).encode())
        say(f"Wrote {picture}")
    rates = np.array([one.takes / one.seconds for one in follower.parts])
    (rate,) = estimates(rates[:, None], "mean", [len(rates)])
    rows = tuple(one.row for one in follower.parts)
    return Report(NAME, rate.value, (rate.low, rate.high), DEFINITION, rows, describe().to_json())


TIMES = "ms per take", "scheduling", "of that storing"
"""Columns of the report that are drawn over the takes, one curve each; next to them, :data:`MEMORY`."""
MEMORY = "memory (MB)"


def growth_picture(parts: Sequence[Part], workers: int) -> str:
    """The growth over ``parts`` of a study as SVG: time per take, and memory."""
    rows = [one.row for one in parts]
    takes = np.array([one.upto / 1000 for one in parts])

    def curve(name: str, number: int) -> Curve:
        values = np.array([float(str(row[name])) for row in rows])
        tips = tuple(
            f"{name}, {grouped(one.upto)} takes: {value:.3g}" for one, value in zip(parts, values, strict=True)
        )
        glyph = Glyph((SERIES_ON_ANY[number],), SHAPES[number])
        return Curve(glyph, takes, np.repeat(values[:, None], 3, axis=1), tips)

    over, drawn = Dimension("thousand takes made"), tuple(curve(name, number) for number, name in enumerate(TIMES))
    times = Curves(over, Dimension("ms per take"), drawn, linear=True)
    memory = Curves(over, Dimension(MEMORY), (curve(MEMORY, len(TIMES)),), linear=True)
    titles = "whole", "scheduling", "storing"
    legend = [(SERIES_ON_ANY[number], title) for number, title in enumerate(titles)]
    return sheet([(f"{grouped(parts[-1].upto)} takes, {workers} workers", legend, (times, memory))])


def simulated_study(settings: int, sentences: int) -> Study:
    """A study of this size: ``settings`` that differ in a knob, and their baseline."""
    thresholds = [round(0.001 * (1 + number), 3) for number in range(settings - 1)]
    return definition.parse(
        {
            "title": "Scale",
            "sentences": [f"Sentence number {number}." for number in range(sentences)],
            "grid": {"first_block.threshold": ["off", *thresholds]},
            "limit": settings * sentences,
        }
    )


class SimulatedWorkers:
    """Workers that speak noise; see :class:`paretone.studies.running.TaskExecutor`. Each take lasts between a half and
    one and a half units of a time that is only counted, so that workers finish in a mixed order."""

    def __init__(self, count: int, samples: int) -> None:
        self.size = count
        random_ = random.Random(0)
        self._durations = [random_.uniform(0.5, 1.5) for _ in range(1009)]
        noise = np.random.default_rng(0).standard_normal(samples).astype(np.float32)
        self._samples = 0.1 * noise
        self._mel = np.zeros((-(-samples // _HOP), _BANDS), np.float32)
        self._now = 0.0
        self._started = 0
        self._busy: list[tuple[float, int, Task]] = []
        self._waiting = list(range(count))
        self.seconds = 0.0
        """Wall seconds spent in simulating, which are not the driver's."""

    def begin(self, equipment: Equipment, observer: Observer) -> str:
        return "0" * 64

    def idle(self) -> list[object]:
        return list(self._waiting)

    def start(self, worker: object, task: Task) -> None:
        assert isinstance(worker, int)
        duration = self._durations[self._started % len(self._durations)]
        self._started += 1
        self._waiting.remove(worker)
        heapq.heappush(self._busy, (self._now + duration, worker, task))

    def wait(self, observer: Observer) -> list[tuple[object, Outcome | WorkerLost]]:
        began = time.perf_counter()
        self._now, worker, task = heapq.heappop(self._busy)
        self._waiting.append(worker)
        assert isinstance(task, Speak)
        take = Take(
            take_id(task.cell),
            datetime.now(UTC).isoformat(timespec="milliseconds"),
            task.spoken.text,
            task.spoken.voice.id,
            task.setting,
            _RATE,
            self._samples,
            Trace(mel=self._mel),
            measurements=Measurements(1.0, 3.0, 0.5, ops_ratio=0.5, device="cpu"),
            machine="simulated",
        )
        made = Made(task, take, 1.0, "simulated time", 1.0)
        self.seconds += time.perf_counter() - began
        return [(worker, made)]

    def end(self) -> None:
        self._waiting = []

    def log(self) -> list[str]:
        return []


class TimedStore(Store):
    """Store that counts the seconds of keeping takes."""

    seconds = 0.0

    def add_take(self, made: Made, keep_spectrogram: bool) -> StoredTake | None:
        began = time.perf_counter()
        kept = super().add_take(made, keep_spectrogram)
        self.seconds += time.perf_counter() - began
        return kept


@dataclass(frozen=True)
class Part:
    """The driver's figures over a part of the study."""

    upto: int
    """Takes made by its end."""
    takes: int
    seconds: float
    storing: float
    resident: int
    """Bytes of memory at its end."""

    @property
    def row(self) -> dict[str, object]:
        """As reports have it."""
        return {
            "takes": self.upto,
            "ms per take": 1000 * self.seconds / self.takes,
            "of that storing": 1000 * self.storing / self.takes,
            "scheduling": 1000 * (self.seconds - self.storing) / self.takes,
            "memory (MB)": self.resident / 1e6,
        }


@dataclass
class Growth(StudyFollower):
    """Takes note of the driver's time and memory after each part of the study."""

    total: int
    workers: SimulatedWorkers
    parts: list[Part] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._store: TimedStore | None = None
        self._made = 0
        self._before = (0.0, 0.0, 0.0)

    def watch(self, store: TimedStore) -> None:
        """Begin, with the store of the study."""
        self._store, self._before = store, self._clocks(store)

    def take(self, take: StoredTake) -> None:
        self._made += 1
        done = self.parts[-1].upto if self.parts else 0
        if self._store is None or self._made < self.total * (len(self.parts) + 1) / PARTS:
            return
        now = self._clocks(self._store)
        wall, storing, simulating = (after - before for after, before in zip(now, self._before, strict=True))
        self.parts.append(Part(self._made, self._made - done, wall - simulating, storing, bytes_in_use()))
        say(f"  {grouped(self._made)} takes, {1000 * (wall - simulating) / (self._made - done):.2f} ms each")
        self._before = now

    def _clocks(self, store: TimedStore) -> tuple[float, float, float]:
        return time.perf_counter(), store.seconds, self.workers.seconds

    def check(self) -> None: ...

    def status(self, text: str) -> None: ...

    def step(self, report: object) -> None: ...

    def progress(self, done: int, total: int) -> None: ...

    def begun(self, title: str, done: int, total: int) -> None: ...

    def advanced(self, done: int, total: int, seconds_left: float | None) -> None: ...

    def pausing(self) -> bool:
        return False
