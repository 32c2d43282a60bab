"""Measuring the parts of a loaded model: pieces of a forward pass, run in its order, with the clock read between them.

The pieces are the model's own modules and products on inputs of the real shapes, layer by layer, so that weights come
from where they come from in a real pass. On a processor what reading the clock takes is measured and taken off; on a
graphics card the clock is the device's own events, and work that is recorded as a CUDA graph is run part by part, each
as a graph of its own. The whole forward is measured in the same rounds, as it is and without a clock inside: what it
takes beyond its parts is the rest, and is shown as such.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median

import torch

from engine.measure.roofline.counts import Work
from engine.measure.roofline.launches import counted, launches
from engine.measure.roofline.report import Component, Phase
from engine.measure.timing import stopwatch

ROUNDS = 5
LEAST_SECONDS = 0.01
"""Of a timed block on a processor, whose clock is coarse; on a graphics card its own events need less."""
MOST_REPEATS = 200
WARM_UPS = 3

Run = Callable[[], object]


@dataclass(frozen=True)
class Part:
    """One component of one forward pass."""

    name: str
    """Of :data:`engine.measure.roofline.report.TITLES`."""
    work: Work | None = None
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
    pieces: tuple[tuple[str, Run], ...] = field(repr=False)
    """One forward, piece by piece: the name of the part that each belongs to, and what to run."""
    whole: Run | None = None
    """Forwards as the setting runs them; ``None`` where the pieces are all there is to them."""
    whole_forwards: int = 1
    """How many of them ``whole`` runs."""
    layers: Sequence[Run] = field(default=(), repr=False)
    """Each layer by itself, or where that is not to be had, the forward without it."""
    without: bool = False
    """Whether ``layers`` are forwards without one."""
    shape: str = ""
    graphed: bool = False
    """Whether it runs as a CUDA graph."""
    compiled: bool = False
    """Whether ``whole`` is compiled; what it launches is then taken to be what its pieces do."""


class Clock:
    """Measures stages on ``device``. ``tick`` is called after every block and may raise to stop."""

    def __init__(self, device: torch.device, tick: Callable[[], None] = lambda: None, rounds: int = ROUNDS) -> None:
        self._device, self._tick, self._rounds = device, tick, rounds
        self.overhead = self._overhead()
        """Seconds that reading the clock between two pieces takes; taken off. 0 where the device's events are read."""

    def blocks(self, stages: Sequence[Stage]) -> int:
        """How often ``tick`` will be called."""
        return sum((1 + (stage.whole is not None)) * (self._rounds + 1) for stage in stages)

    @torch.inference_mode()
    def measure(self, stage: Stage) -> Phase:
        """Run everything in ``stage``."""
        pieces = _as_graphs(stage) if stage.graphed else stage.pieces
        repeats = self._repeats(lambda: _run_all(pieces))
        whole_repeats = 0 if stage.whole is None else self._repeats(stage.whole)
        found: dict[str, list[float]] = {part.name: [] for part in stage.parts}
        wholes: list[float] = []
        for _ in range(self._rounds):
            for name, seconds in self._pieces(pieces, repeats).items():
                found[name].append(seconds)
            self._tick()
            if stage.whole is not None:
                with stopwatch(str(self._device)) as watch:
                    for _ in range(whole_repeats):
                        stage.whole()
                wholes.append(watch.seconds / whole_repeats / stage.whole_forwards)
                self._tick()
        # The least, as what runs beside only ever adds; and ceilings are the best as well.
        components = tuple(self._component(stage, part, min(found[part.name])) for part in stage.parts)
        if stage.whole is None or stage.compiled:
            started = sum(one.launches * part.calls for one, part in zip(components, stage.parts, strict=True))
        else:
            started = launches(stage.whole, self._device) / stage.whole_forwards
        layers = tuple(launches(run, self._device) for run in stage.layers)
        return Phase(
            stage.name,
            stage.title,
            stage.forwards,
            components,
            min(wholes) if wholes else None,
            started,
            tuple(round(started) - one for one in layers) if stage.without else layers,
            stage.shape,
            stage.graphed,
        )

    def _component(self, stage: Stage, part: Part, seconds: float) -> Component:
        def run() -> None:
            _run_all([piece for piece in stage.pieces if piece[0] == part.name])

        operators, counted_work = counted(run)
        started = operators if self._device.type != "cuda" else launches(run, self._device)
        return Component(
            part.name,
            part.calls * part.share * stage.forwards,
            counted_work * (1 / part.calls) if part.work is None else part.work,
            part.precision,
            started / part.calls,
            seconds / part.calls,
            part.note,
        )

    def _repeats(self, run: Run) -> int:
        """How often ``run`` has to run for what surrounds it not to count."""
        run()
        with stopwatch(str(self._device)) as watch:
            run()
        self._tick()
        return min(MOST_REPEATS, max(1, math.ceil(LEAST_SECONDS / max(watch.seconds, 1e-7))))

    def _pieces(self, pieces: Sequence[tuple[str, Run]], repeats: int) -> dict[str, float]:
        """Seconds of every part in one forward, mean over ``repeats``."""
        found = dict.fromkeys((name for name, _ in pieces), 0.0)
        between = self._between_events if self._device.type == "cuda" else self._between_readings
        for _ in range(repeats):
            for (name, _), seconds in zip(pieces, between(pieces), strict=True):
                found[name] += seconds / repeats
        return found

    def _between_readings(self, pieces: Sequence[tuple[str, Run]]) -> list[float]:
        # Collected first and worked out afterwards, so that nothing but the clock lies between two pieces.
        readings = [self._now()]
        for _, run in pieces:
            run()
            readings.append(self._now())
        return [max(0.0, after - before - self.overhead) for before, after in itertools.pairwise(readings)]

    def _between_events(self, pieces: Sequence[tuple[str, Run]]) -> list[float]:
        events = [torch.cuda.Event(enable_timing=True) for _ in range(len(pieces) + 1)]
        torch.cuda.synchronize(self._device)
        events[0].record()
        for event, (_, run) in zip(events[1:], pieces, strict=True):
            run()
            event.record()
        events[-1].synchronize()
        return [before.elapsed_time(after) / 1000 for before, after in itertools.pairwise(events)]

    def _now(self) -> float:
        if self._device.type == "mps":
            torch.mps.synchronize()
            return time.perf_counter()
        return time.process_time()

    def _overhead(self) -> float:
        if self._device.type == "cuda":
            return 0.0
        readings = [self._now() for _ in range(201)]
        return median(after - before for before, after in itertools.pairwise(readings))


def _run_all(pieces: Sequence[tuple[str, Run]]) -> None:
    for _, run in pieces:
        run()


def _as_graphs(stage: Stage) -> tuple[tuple[str, Run], ...]:
    """All pieces of each part as one CUDA graph; as they are where one cannot be recorded."""
    graphs = []
    for part in stage.parts:
        mine = [piece for piece in stage.pieces if piece[0] == part.name]
        try:
            graphs.append((part.name, recorded(partial(_run_all, mine))))
        except RuntimeError:
            return stage.pieces
    return tuple(graphs)


def recorded(run: Run) -> Run:
    """``run`` as a CUDA graph, warm. Raises :class:`RuntimeError` where it cannot be recorded."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UPS):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay
