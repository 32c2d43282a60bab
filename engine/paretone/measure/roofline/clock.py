"""Measuring the parts of a loaded model: pieces of a forward pass, run in its order, with clock readings between them.

The pieces are the model's own modules and products on inputs of the real shapes, layer by layer, so that weights are
loaded from where a real pass finds them. On a CPU the clock's overhead is measured and subtracted; on a GPU the clock
is the device's events, and work recorded as a CUDA graph runs part by part, each as its own graph. The whole forward is
measured in the same rounds, without clock readings inside, alternately before and after its parts. The result is the
median of the whole over the rounds, and for the parts the median of their shares of the same round's whole, so that
rounds with much other load count as much as the others. The remainder is the rest; the interval of its share shows
whether it differs from zero.
"""

from __future__ import annotations

import itertools
import math
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from paretone.errors import PlainError
from paretone.files import TEMPORARY, explained, write_through
from paretone.measure.roofline.counts import Work
from paretone.measure.roofline.report import Component, Phase
from paretone.measure.timing import interval, running_order, stopwatch
from paretone.models.kernels.graphs import record_cuda

ROUNDS = 5
LEAST_ROUNDS = 3
"""Minimum number of rounds for an interval of the rest."""
LEAST_SECONDS = 0.01
"""Minimum length of a timed block on a CPU, whose clock is coarse; a GPU's events need less."""
MOST_REPEATS = 200

Run = Callable[[], object]


@dataclass(frozen=True)
class TimedComponent:
    name: str
    """One of :data:`paretone.measure.roofline.report.TITLES`."""
    work: Work | None = None
    """Work of one call by formula; ``None``: counted from the operators run."""
    calls: int = 1
    """Calls per forward."""
    share: float = 1.0
    """Computed share of its calls, mean over the forwards."""
    precision: str = "float32"
    note: str = ""


@dataclass(frozen=True)
class TimedPhase:
    """Components of a phase of synthesis that runs ``forwards`` times."""

    name: str
    title: str
    forwards: float
    parts: tuple[TimedComponent, ...]
    pieces: tuple[tuple[str, Run], ...] = field(repr=False)
    """One forward in pieces: each with its component's name and a function to run."""
    whole: Run | None = None
    """Runs forwards as the setting does; ``None`` if the pieces are complete."""
    whole_forwards: int = 1
    """Forwards run by ``whole``."""
    layers: Sequence[Run] = field(default=(), repr=False)
    """Runs each layer alone or, if that is impossible, the forward without it."""
    without: bool = False
    """Whether ``layers`` are forwards without one layer."""
    shape: str = ""
    graphed: bool = False
    """Whether it runs as a CUDA graph."""
    compiled: bool = False
    """Whether ``whole`` is compiled; its launches are then taken to be those of its pieces."""


def once(name: str, title: str, component: str, run: Run, shape: str, note: str = "") -> TimedPhase:
    """A phase that runs once and is one component."""
    return TimedPhase(name, title, 1, (TimedComponent(component, note=note),), ((component, run),), shape=shape)


class Clock:
    """Measures phases on ``device``. ``tick`` is called after every block and may raise to stop."""

    def __init__(self, device: torch.device, tick: Callable[[], None] = lambda: None, rounds: int = ROUNDS) -> None:
        """Without ``rounds`` phases are counted, and not measured."""
        self._device, self._tick, self._rounds = device, tick, rounds
        readings = [] if device.type == "cuda" else [self._now() for _ in range(201)]
        self.overhead = median([after - before for before, after in itertools.pairwise(readings)] or [0.0])
        """Seconds of a clock reading between two pieces, subtracted; 0 with device events."""

    def blocks(self, stages: Sequence[TimedPhase]) -> int:
        """Number of calls of ``tick``."""
        if not self._rounds:
            return len(stages)
        return sum((1 + (stage.whole is not None)) * (self._rounds + 1) for stage in stages)

    def _time(self, stage: TimedPhase) -> tuple[dict[str, list[float]], list[float]]:
        """Seconds of each part, and of the whole, by round."""
        pieces = _as_graphs(stage) if stage.graphed else stage.pieces
        repeats = self._repeats(lambda: run_all(pieces))
        whole_repeats = 0 if stage.whole is None else self._repeats(stage.whole)
        between = self._between_events if self._device.type == "cuda" else self._between_readings
        found: dict[str, list[float]] = {part.name: [] for part in stage.parts}
        wholes: list[float] = []

        def run_pieces() -> None:
            spent = dict.fromkeys((name for name, _ in pieces), 0.0)
            for _ in range(repeats):
                for (name, _), seconds in zip(pieces, between(pieces), strict=True):
                    spent[name] += seconds / repeats
            for name, seconds in spent.items():
                found[name].append(seconds)

        def run_whole(whole: Run) -> None:
            with stopwatch(str(self._device)) as watch:
                for _ in range(whole_repeats):
                    whole()
            wholes.append(watch.seconds / whole_repeats / stage.whole_forwards)

        blocks: list[Run] = [run_pieces]
        if stage.whole is not None:
            blocks.append(partial(run_whole, stage.whole))
        for number in range(self._rounds):
            for run in running_order(blocks, number):
                run()
                self._tick()
        return found, wholes

    @torch.inference_mode()
    def measure(self, stage: TimedPhase) -> Phase:
        found, wholes = self._time(stage) if self._rounds else ({}, [])
        typical = median(wholes) if wholes else None
        seconds = {name: _typical(values, wholes) for name, values in found.items()}
        components = tuple(self._component(stage, part, seconds.get(part.name)) for part in stage.parts)
        if not self._rounds:
            self._tick()
        if stage.whole is None or stage.compiled:
            started = sum(one.launches * part.calls for one, part in zip(components, stage.parts, strict=True))
        else:
            started = launches(stage.whole, self._device) / stage.whole_forwards
        layers = tuple(launches(run, self._device) for run in stage.layers)
        if stage.without:
            layers = tuple(round(started) - one for one in layers)
        name, shape, rest = stage.name, stage.shape, _rest_range(stage, found, wholes)
        return Phase(
            name, stage.title, stage.forwards, components, typical, started, layers, shape, stage.graphed, rest
        )

    def _component(self, stage: TimedPhase, part: TimedComponent, seconds: float | None) -> Component:
        def run() -> None:
            run_all([piece for piece in stage.pieces if piece[0] == part.name])

        operators, counted_work = counted(run)
        started = operators if self._device.type != "cuda" else launches(run, self._device)
        calls, each = part.calls * part.share * stage.forwards, None if seconds is None else seconds / part.calls
        work = counted_work * (1 / part.calls) if part.work is None else part.work
        return Component(part.name, calls, work, part.precision, started / part.calls, each, part.note)

    def _repeats(self, run: Run) -> int:
        """Repetitions of ``run`` that make the surrounding overhead negligible."""
        run()
        with stopwatch(str(self._device)) as watch:
            run()
        self._tick()
        return min(MOST_REPEATS, max(1, math.ceil(LEAST_SECONDS / max(watch.seconds, 1e-7))))

    def _between_readings(self, pieces: Sequence[tuple[str, Run]]) -> list[float]:
        # Evaluated afterwards, so that only the clock runs between two pieces.
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


def _typical(seconds: Sequence[float], wholes: Sequence[float]) -> float:
    """Typical seconds of a part, from its seconds by round and those of the wholes of the same rounds, if any."""
    if not wholes:
        return median(seconds)
    return median(wholes) * median(one / whole for one, whole in zip(seconds, wholes, strict=True))


def _rest_range(
    stage: TimedPhase, found: Mapping[str, Sequence[float]], wholes: Sequence[float]
) -> tuple[float, float] | None:
    """Interval of the rest of one forward, from the seconds of all parts and of the whole by round."""
    if len(wholes) < LEAST_ROUNDS:
        return None
    # The whole contains only a share of parts that some forwards skip.
    parts = zip(*([part.share * one for one in found[part.name]] for part in stage.parts), strict=True)
    left = interval([1 - sum(ones) / whole for whole, ones in zip(wholes, parts, strict=True)])
    shown = median(wholes) - sum(part.share * _typical(found[part.name], wholes) for part in stage.parts)
    return min(shown, left.low * median(wholes)), max(shown, left.high * median(wholes))


def run_all(pieces: Sequence[tuple[str, Run]]) -> None:
    for _, run in pieces:
        run()


def _as_graphs(stage: TimedPhase) -> tuple[tuple[str, Run], ...]:
    """All pieces of each part as one CUDA graph; unchanged if recording fails."""
    graphs = []
    for part in stage.parts:
        mine = [piece for piece in stage.pieces if piece[0] == part.name]
        try:
            graphs.append((part.name, record_cuda(partial(run_all, mine))[0]))
        except RuntimeError:
            return stage.pieces
    return tuple(graphs)


# --- Launches ---------------------------------------------------------------------------------------------------------
# On a GPU, torch's profiler counts kernels, including those in CUDA graphs. A CPU has no kernel launches but operator
# calls; counted are those that compute, without views and allocations.
#
# Kineto, the base of torch's profiler, writes "USDT:… profiler_start" and the like to standard error, above a level
# that it reads on first use. Silencing it is harmless: failures raise, or the profiler's users check for them.
os.environ.setdefault("KINETO_LOG_LEVEL", "6")

_NO_WORK = {"empty", "empty_like", "empty_strided", "new_empty", "resize_", "set_", "_local_scalar_dense"}
"""Operators that are not views but compute nothing."""
_WHOLE = {"fbgemm_linear_fp16_weight_fp32_activation"}
"""Operators that torch lists as composite, but that compute themselves."""
_PACKED = {"_linear_pointwise", "_mkl_linear", *_WHOLE}
"""Products with packed weights, whose operations torch does not know: rows come first."""


class OperatorCounter(TorchDispatchMode):
    """Counts the operators run while entered: number, operations, bytes read and written. Operations are those known to
    torch: products, convolutions and attention. Every operator's inputs and outputs count as bytes, even if one
    operator's outputs are the next one's inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.launches = 0
        self.work = Work()

    def __torch_dispatch__(
        self, func: torch._ops.OpOverload, types: Sequence[type], args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> object:
        kwargs = kwargs or {}
        name = func._schema.name.partition("::")[2]
        if func._overloadpacket not in flop_registry and name not in _WHOLE:
            with self:
                whole = func.decompose(*args, **kwargs)
            if whole is not NotImplemented:
                return whole
        result = func(*args, **kwargs)
        returned = [one.alias_info for one in func._schema.returns]
        is_view = bool(returned) and all(one is not None and not one.is_write for one in returned)
        if not is_view and name not in _NO_WORK:
            self.launches += 1
            operations = _operations(func, name, args, kwargs, result)
            # MKL is given the weights twice, packed and not, and reads them once.
            read = (args[0], *args[2:]) if name == "_mkl_linear" else args
            tensors = [one for one in tree_leaves((read, kwargs, result)) if isinstance(one, Tensor)]
            # An in-place result is input and output, and counts once as each.
            self.work += Work(float(operations), float(sum(one.numel() * one.element_size() for one in tensors)))
        return result


def counted(run: Callable[[], object]) -> tuple[int, Work]:
    """Number and cost of the operators called by one ``run``."""
    counter = OperatorCounter()
    with torch.inference_mode(), counter:
        run()
    return counter.launches, counter.work


def launches(run: Callable[[], object], device: torch.device) -> int:
    """Kernels started by one warm ``run`` on a GPU; operators called on a CPU."""
    if device.type != "cuda":
        return counted(run)[0]
    with torch.inference_mode(), profile(activities=[ProfilerActivity.CUDA]) as profiler:
        run()
        torch.cuda.synchronize(device)
    gpu = torch.autograd.DeviceType.CUDA  # type: ignore[attr-defined]  # torch does not declare that it is public.
    kernels = (one for one in profiler.events() if one.device_type == gpu)
    return sum(not one.name.startswith(("Memset", "Memcpy HtoD", "Memcpy DtoH")) for one in kernels)


def write_chrome_trace(run: Callable[[], object], path: Path, device: torch.device) -> None:
    """Write one ``run``, operator by operator, for ``chrome://tracing`` and Perfetto. Raises :class:`PlainError`."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    with torch.inference_mode(), profile(activities=activities, record_shapes=True) as profiler:
        run()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    problem = f"The trace {path} could not be written"
    # Torch reports an unwritable path on standard error only.
    with explained(PlainError, problem), tempfile.TemporaryDirectory(prefix=TEMPORARY) as folder:
        made = Path(folder) / f"trace{path.suffix}"
        profiler.export_chrome_trace(str(made))
        write_through(path, made.read_bytes())


def _operations(func: torch._ops.OpOverload, name: str, args: tuple, kwargs: dict, result: object) -> float:
    if func._overloadpacket in flop_registry:
        return flop_registry[func._overloadpacket](*args, **kwargs, out_val=result)
    if name in _PACKED and isinstance(result, Tensor):
        return 2.0 * args[0].numel() * result.shape[-1]
    if name.startswith("_scaled_dot_product"):  # torch does not count the CPU's variant.
        query, key = args[:2]
        return 4.0 * query.numel() * key.shape[-2]
    return 0.0
