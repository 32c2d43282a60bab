"""Timing on a machine with other load.

Variants are compared within rounds: every round runs each of them once, in an order that rotates and is reversed every
other round, so that drift and other load affect all of them alike. Compared is CPU time on a CPU and device events on a
GPU, as ratios within a round; the median is reported. The baseline runs twice in every round: the ratio of the two
(A/A) shows what this session would report for no difference.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from paretone.by_name import meant
from paretone.errors import SettingError
from paretone.fields import typed
from paretone.measure.estimates import median_interval
from paretone.measure.processor_time import clock_name, device_kind
from paretone.reading import shown
from paretone.setting.take import Measurements

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

    def columns(self, name: str = "speed-up") -> dict[str, float]:
        """Columns of a bench's row, the median under ``name``."""
        return {name: self.median, "low": self.low, "high": self.high}


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
        return ratios(self.seconds[self.baseline], self.seconds[variant])


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
    """Compare ``variants`` with the first of them, interleaved. Every variant first runs ``warm_up`` times, unmeasured.
    ``on_round`` receives the number of finished rounds and may raise to stop. Raises :class:`ValueError` for fewer than
    two variants or one round."""
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
    return PairedTimes(
        baseline=baseline,
        clock=clock_name(device),
        seconds=seconds,
        wall_seconds={name: tuple(watch.wall_seconds for watch in watches[name]) for name in variants},
        speed_up={name: interval(ratios(seconds[baseline], seconds[name])) for name in variants if name != baseline},
        same=interval(ratios(seconds[baseline], again)),
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    )


def running_order(names: Sequence[_One], number: int) -> tuple[_One, ...]:
    """Order of round ``number``: rotated by one each round, and reversed in every other round. An even number of names
    is reversed in every other full turn instead: otherwise half of the orders would be missing."""
    start = number % len(names)
    order = (*names[start:], *names[:start])
    turned = number if len(names) % 2 else number // len(names)
    return order[::-1] if turned % 2 else order


def interval(values: Sequence[float], seed: int = 0) -> Interval:
    """Median of ``values`` with its 95 % percentile-bootstrap interval (Efron); equal values give equal intervals."""
    return Interval(*median_interval(values, seed=seed))


class Repeated(Protocol):
    """A take, or speech in Python, that may have been timed again."""

    @property
    def repeats(self) -> tuple[Measurements, ...]: ...


@typed
def spread(take: Repeated, name: str) -> Interval | None:
    """Interval of a time, by its name in :class:`Measurements`, over two or more repeats of ``take``, or ``None``."""
    if not hasattr(Measurements, name):
        raise SettingError(f"A take has no time {shown(name)}; {meant(name, vars(Measurements()), 'it has')}")
    values = [value for one in take.repeats if (value := getattr(one, name)) is not None]
    return interval(values) if len(values) > 1 else None


def ratios(baseline: Sequence[float], others: Sequence[float]) -> tuple[float, ...]:
    """By round: the baseline's seconds over the others'."""
    return tuple(one / two for one, two in zip(baseline, others, strict=True))
