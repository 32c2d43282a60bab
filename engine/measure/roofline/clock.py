"""Measuring the parts of a loaded model: each runs by itself, with the model's own modules on inputs of the real shapes.

Clocks inside a forward pass would slow it down and, on a graphics card, measure the wait for kernels that others
started. So a part is run for all layers in a row, as often as makes reading the clock not count, in rounds that give
every part the same weather; and the whole forward is measured in the same rounds, as it is. What the whole takes beyond
its parts is the rest, and is shown as such.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

import torch

from engine.measure.roofline.counts import Work
from engine.measure.roofline.launches import counted, launches
from engine.measure.roofline.report import Component, Phase
from engine.measure.timing import running_order, stopwatch

ROUNDS = 5
LEAST_SECONDS = 0.01
"""Of a timed block on a processor, whose clock is coarse; on a graphics card its own events need less."""
MOST_REPEATS = 200

Run = Callable[[], object]

_WHOLE = "whole"


@dataclass(frozen=True)
class Part:
    """One component of one forward pass."""

    name: str
    """Of :data:`engine.measure.roofline.report.TITLES`."""
    run: Run
    """All of its calls in one forward."""
    work: Work | None
    """Of one call by formula; ``None``: counted from the operators that run."""
    calls: int = 1
    """In one forward."""
    share: float = 1.0
    """How much of its calls the setting computes, mean over the forwards."""
    precision: str = "float32"
    note: str = ""


@dataclass(frozen=True)
class Stage:
    """What a synthesis runs ``forwards`` times, taken apart."""

    name: str
    title: str
    forwards: float
    parts: tuple[Part, ...]
    whole: Run | None = None
    """Forwards as the setting runs them; ``None`` where they are their only part."""
    whole_forwards: int = 1
    """How many of them ``whole`` runs."""
    layers: Sequence[Run] = field(default=(), repr=False)
    """Each layer by itself, or where that is not to be had, the forward without it."""
    without: bool = False
    """Whether ``layers`` are forwards without one."""
    shape: str = ""
    graphed: bool = False


class Clock:
    """Measures stages on ``device``. ``tick`` is called after every block and may raise to stop."""

    def __init__(self, device: torch.device, tick: Callable[[], None] = lambda: None, rounds: int = ROUNDS) -> None:
        self._device, self._tick, self._rounds = device, tick, rounds

    def blocks(self, stages: Sequence[Stage]) -> int:
        """How often ``tick`` will be called."""
        return sum((len(stage.parts) + (stage.whole is not None)) * (self._rounds + 1) for stage in stages)

    @property
    def overhead(self) -> float:
        """Seconds that reading the clock takes by itself, median of many."""
        found = []
        for _ in range(50):
            with stopwatch(str(self._device)) as watch:
                pass
            found.append(watch.seconds)
        return median(found)

    @torch.inference_mode()
    def measure(self, stage: Stage) -> Phase:
        """Run everything in ``stage``."""
        runs: dict[object, Run] = dict(enumerate(part.run for part in stage.parts))
        if stage.whole is not None:
            runs[_WHOLE] = stage.whole
        repeats = {name: self._repeats(run) for name, run in runs.items()}
        found: dict[object, list[float]] = {name: [] for name in runs}
        for number in range(self._rounds):
            for name in running_order(tuple(runs), number):
                with stopwatch(str(self._device)) as watch:
                    for _ in range(repeats[name]):
                        runs[name]()
                found[name].append(watch.seconds / repeats[name])
                self._tick()
        # The least, as what runs beside only ever adds; and ceilings are the best as well.
        seconds = {name: min(values) for name, values in found.items()}
        components = tuple(
            self._component(part, seconds[number], stage.forwards) for number, part in enumerate(stage.parts)
        )
        if stage.whole is None:
            whole, started = None, sum(one.launches * one.calls for one in components) / stage.forwards
        else:
            whole = seconds[_WHOLE] / stage.whole_forwards
            started = launches(stage.whole, self._device) / stage.whole_forwards
        layers = tuple(launches(run, self._device) for run in stage.layers)
        return Phase(
            stage.name,
            stage.title,
            stage.forwards,
            components,
            whole,
            started,
            tuple(round(started) - one for one in layers) if stage.without else layers,
            stage.shape,
            stage.graphed,
        )

    def _repeats(self, run: Run) -> int:
        """How often ``run`` has to run for the clock not to count."""
        run()
        with stopwatch(str(self._device)) as watch:
            run()
        self._tick()
        return min(MOST_REPEATS, max(1, math.ceil(LEAST_SECONDS / max(watch.seconds, 1e-7))))

    def _component(self, part: Part, seconds: float, forwards: float) -> Component:
        started = launches(part.run, self._device)
        work = part.work if part.work is not None else counted(part.run)[1] * (1 / part.calls)
        return Component(
            part.name,
            part.calls * part.share * forwards,
            work,
            part.precision,
            started / part.calls,
            seconds / part.calls,
            part.note,
        )
