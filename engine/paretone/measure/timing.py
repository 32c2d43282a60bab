"""Timing on a machine with other load.

Variants are compared within rounds: every round runs each of them once, in an order that rotates and is reversed every
other round, so that drift and other load affect all of them alike. Compared is CPU time on a CPU and device events on a
GPU, as ratios within a round; the median is reported. The baseline runs twice in every round: the ratio of the two
(A/A) shows what this session would report for no difference.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from paretone.measure.estimates import median_interval
from paretone.setting.take import BUSY_SHARE, Measurements, Timed
from paretone.wording import percent


def device_kind(device: object) -> str:
    """``cpu``, ``cuda`` or ``mps``, from a device with or without index."""
    return str(device).partition(":")[0]


def clock_name(device: str = "cpu") -> str:
    """Name of the quantity that :func:`paretone.measure.timing.stopwatch` measures on ``device``."""
    names = {"cuda": "seconds between CUDA events", "mps": "wall seconds, device synchronised"}
    return names.get(device_kind(device), "CPU seconds of the process")


_STAT = Path("/proc/stat")
_IDLE = frozenset({3, 4})
"""Fields of a core's line that are not work: idle and waiting for a disk."""
_TICKS_A_SECOND = 100
"""Linux's unit for programs, independent of its internal tick."""
_COUNTED = 8
"""Counted fields of a core's line; the later ones, of guests, are part of the first two."""


@dataclass(frozen=True)
class ProcessorTime:
    """CPU seconds since an arbitrary moment."""

    own: float
    """All threads of this process."""
    all: float | None
    """All processes on the cores available to this one; ``None`` if unknown."""
    cores: int
    """Number of these cores, hyper-threads included."""

    def since(self, before: ProcessorTime) -> tuple[float, float | None]:
        """Seconds of this process and of all others since ``before``."""
        own = self.own - before.own
        if self.all is None or before.all is None or self.cores != before.cores:
            return own, None
        return own, max(0.0, self.all - before.all - own)

    def earlier(self, own: float, others: float | None) -> ProcessorTime:
        """This time minus ``own`` seconds of this process and ``others`` of the others."""
        before = None if self.all is None or others is None else self.all - own - others
        return ProcessorTime(self.own - own, before, self.cores)


def processor_time() -> ProcessorTime:
    own = time.process_time()
    if sys.platform == "linux":
        cores = os.sched_getaffinity(0)
        return ProcessorTime(own, _linux_seconds(cores), len(cores))
    else:
        return ProcessorTime(own, _psutil_seconds(), os.cpu_count() or 1)


def _linux_seconds(cores: set[int]) -> float | None:
    names = {f"cpu{number}" for number in cores}
    try:
        lines = [line.split() for line in _STAT.read_text(encoding="ascii").splitlines()]
        ticks = [[int(value) for value in line[1 : 1 + _COUNTED]] for line in lines if line and line[0] in names]
    except (OSError, ValueError):
        return None
    if len(ticks) != len(cores):
        return None
    busy = sum(value for line in ticks for field, value in enumerate(line) if field not in _IDLE)
    return busy / _TICKS_A_SECOND


def _psutil_seconds() -> float | None:
    try:
        psutil: Any = import_module("psutil")
    except ImportError:
        return None
    times = psutil.cpu_times()
    return sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq", "interrupt", "dpc"))


BUSY = "the machine was busy"
"""Mark of takes with doubtful times."""


def busy_words(took: str = "", during: str = "") -> str:
    """Clause that other processes make times doubtful. ``took``: their usage, by default above the limit; ``during``:
    the measured activity, if not obvious."""
    when = f" during {during}" if during else ""
    return f"{BUSY}{when}: other processes took {took or f'more than {percent(BUSY_SHARE)} of the cores'}"


def busy_line(took: str = "", during: str = "") -> str:
    """Sentences of :func:`busy_words` with the consequences."""
    said = busy_words(took, during)
    return f"{said[0].upper()}{said[1:]}. RTF, TTFA and waits are doubtful; RTF in CPU time is less so."


def load_words(measured: Measurements) -> str:
    """CPU share of other processes, such as ``25 % of the cores``; ``""`` if unknown."""
    return "" if measured.other_share is None else f"{percent(measured.other_share)} of the cores"


def load_line(measured: Measurements) -> str:
    """Sentences on the CPU share of other processes and its consequences."""
    took = load_words(measured)
    if not took:
        return "The load of other processes is unknown on this system."
    return busy_line(took) if measured.busy else f"Other processes took {took} meanwhile."


_BASELINE_AGAIN = "\0baseline again"
_One = TypeVar("_One")


@dataclass
class Stopwatch:
    """Result of :func:`stopwatch`, after its block has ended."""

    seconds: float = 0.0
    """CPU seconds of all threads of the process on a CPU; seconds between two events on a GPU."""
    wall_seconds: float = 0.0


@dataclass(frozen=True)
class Interval:
    """A median with its 95 % bootstrap interval."""

    median: float
    low: float
    high: float

    @property
    def excludes_one(self) -> bool:
        """Whether a ratio differs from 1; if not, it must not be reported as a difference."""
        return not self.low <= 1 <= self.high


@dataclass(frozen=True)
class PairedTimes:
    """Result of :func:`paired_ratio`. The baseline is the first variant."""

    baseline: str
    clock: str
    """The measured quantity, in words."""
    seconds: Mapping[str, tuple[float, ...]] = field(repr=False)
    """Seconds by ``clock`` of each round, by variant."""
    wall_seconds: Mapping[str, tuple[float, ...]] = field(repr=False)
    """Wall seconds of each round, by variant."""
    speed_up: Mapping[str, Interval]
    """By variant except the baseline: the baseline's seconds over its own, above 1 if faster."""
    same: Interval
    """A/A: the baseline over itself in the same rounds."""
    load: float | None
    """System load over the last minute, at the end."""

    def ratios(self, variant: str) -> tuple[float, ...]:
        """The baseline's seconds over ``variant``'s, by round."""
        return tuple(one / two for one, two in zip(self.seconds[self.baseline], self.seconds[variant], strict=True))


@contextmanager
def stopwatch(device: str = "cpu") -> Iterator[Stopwatch]:
    """Time a block that runs on ``device``. A GPU is synchronised only at the block's ends."""
    watch = Stopwatch()
    kind = device_kind(device)
    if kind == "cuda":
        import torch

        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize(device)
        wall = time.perf_counter()
        begin.record(torch.cuda.current_stream(device))
        yield watch
        end.record(torch.cuda.current_stream(device))
        end.synchronize()
        watch.wall_seconds = time.perf_counter() - wall
        watch.seconds = begin.elapsed_time(end) / 1000
    elif kind == "mps":
        import torch

        torch.mps.synchronize()
        wall = time.perf_counter()
        yield watch
        torch.mps.synchronize()
        watch.seconds = watch.wall_seconds = time.perf_counter() - wall
    else:
        wall, processor = time.perf_counter(), time.process_time()
        yield watch
        watch.seconds = time.process_time() - processor
        watch.wall_seconds = time.perf_counter() - wall


def paired_ratio(
    variants: Mapping[str, Callable[[], object]],
    rounds: int = 9,
    warm_up: int = 1,
    device: str = "cpu",
    on_round: Callable[[int], None] | None = None,
) -> PairedTimes:
    """Compare ``variants`` with the first of them, interleaved.

    Every variant first runs ``warm_up`` times, unmeasured. ``on_round`` receives the number of finished rounds and may
    raise to stop. Raises :class:`ValueError` for fewer than two variants or one round.
    """
    if len(variants) < 2 or rounds < 1:
        raise ValueError("A comparison needs at least two variants and one round.")
    baseline = next(iter(variants))
    runs = {**variants, _BASELINE_AGAIN: variants[baseline]}
    for _ in range(warm_up):
        for run in variants.values():
            run()
    watches: dict[str, list[Stopwatch]] = {name: [] for name in runs}
    for number in range(rounds):
        for name in running_order(tuple(runs), number):
            with stopwatch(device) as watch:
                runs[name]()
            watches[name].append(watch)
        if on_round is not None:
            on_round(number + 1)

    seconds = {name: tuple(watch.seconds for watch in watches[name]) for name in runs}
    again = seconds.pop(_BASELINE_AGAIN)
    speed_up = {name: interval(_ratios(seconds[baseline], seconds[name])) for name in variants if name != baseline}
    return PairedTimes(
        baseline=baseline,
        clock=clock_name(device),
        seconds=seconds,
        wall_seconds={name: tuple(watch.wall_seconds for watch in watches[name]) for name in variants},
        speed_up=speed_up,
        same=interval(_ratios(seconds[baseline], again)),
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    )


def running_order(names: Sequence[_One], number: int) -> tuple[_One, ...]:
    """Order of round ``number``: rotated by one each round, and reversed in every other round. An even number of names
    is reversed in every other full turn instead: otherwise only half of the orders would occur, and only one for two
    names."""
    start = number % len(names)
    order = (*names[start:], *names[:start])
    turned = number if len(names) % 2 else number // len(names)
    return order[::-1] if turned % 2 else order


def interval(values: Sequence[float], seed: int = 0) -> Interval:
    """Median of ``values`` with its 95 % percentile-bootstrap interval (Efron); equal values give equal intervals."""
    return Interval(*median_interval(values, seed=seed))


def spread(take: Timed, name: str) -> Interval | None:
    """Interval of a time, by its name in :class:`Measurements`, over the repeats of ``take``; ``None`` for fewer than
    two."""
    values = [value for one in take.repeats if (value := getattr(one, name)) is not None]
    return interval(values) if len(values) > 1 else None


def _ratios(baseline: Sequence[float], others: Sequence[float]) -> list[float]:
    return [one / two for one, two in zip(baseline, others, strict=True)]
