"""Shared by the comparisons: options, rounds that fit into a time, rows, and how near the processor's limit ours is.

Passes over many rows are bound by arithmetic: the operations of their products and attention a second, against those of
the best float32 product of several sizes and kernels. Passes of one token are bound by reading weights: bytes a second,
against the fastest reading of a block that no cache holds. Both are measured in the same process as the run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch.autograd.profiler import profile

from paretone import device as devices
from paretone.bench import LEAST_ROUNDS, bundled
from paretone.bench.budget import Budget
from paretone.bench.report import Report
from paretone.commands.arguments import above_zero, positive
from paretone.measure.machine import describe
from paretone.measure.roofline.benchmarks import best_seconds
from paretone.measure.timing import Interval, PairedTimes, interval, paired_ratio, stopwatch
from paretone.models.kernels import products
from paretone.models.kernels.products import PackedProduct
from paretone.own_process import keep_freed_memory
from paretone.wording import percent

OFFICIAL, OURS, GRAPHS = "official", "ours", "ours, CUDA graphs"
AGAIN = "official, again (A/A)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that the comparisons have in common."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds at most (default: %(default)s)")
    parser.add_argument(
        "--minutes",
        type=above_zero,
        default=3.5,
        help="time for measuring: fewer rounds if they would take longer, but two at least (default: %(default)s)",
    )
    parser.add_argument("--layers", type=positive, default=0, help="layers of the full-size model, if not all of them")


def prepared(arguments: argparse.Namespace) -> torch.device:
    """The device, with the process set up as the application does: both implementations profit."""
    device = devices.choose(arguments.device)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    keep_freed_memory()
    return device


def length(budget: Budget, seconds: float, most: int, least: int, begin: float = 0.0) -> int:
    """Number of tokens or steps of ``seconds`` each, after ``begin`` seconds, such that the fewest rounds fit into the
    remaining time: between ``least`` and ``most``."""
    runs = 2 + 3 * LEAST_ROUNDS  # Each way once, then, in every round, the official one twice and ours once.
    return max(least, min(most, int((budget.left / runs - begin) / max(seconds, 1e-9))))


def precisions(device: torch.device) -> tuple[torch.dtype, ...]:
    """The precisions that are compared on ``device``."""
    return (torch.float16, torch.bfloat16, torch.float32) if device.type == "cuda" else (torch.float32,)


def name_of(precision: torch.dtype) -> str:
    """``float32`` and the like."""
    return str(precision).removeprefix("torch.")


def timed(
    ways: Mapping[str, Callable[[], object]],
    seconds: Mapping[str, float],
    device: torch.device,
    budget: Budget,
    what: str,
    share: float = 1.0,
) -> PairedTimes:
    """Compare ``ways``, which are warm, with the first; ``seconds`` is the wall time that each took before."""
    first = next(iter(ways))
    rounds = budget.rounds(sum(seconds.values()) + seconds[first], share)
    bundled.say(f"{what}: {rounds} rounds of each …")
    return paired_ratio(
        ways, rounds, warm_up=0, device=str(device), on_round=lambda done: bundled.say(f"round {done} of {rounds}")
    )


def rows_of(
    comparison: PairedTimes, shared: Mapping[str, object], own: Mapping[str, Mapping[str, object]]
) -> list[dict[str, object]]:
    """A row for each way, with what all of them ``shared`` and what is its ``own``; last, A/A."""
    rows = []
    for way, seconds in comparison.seconds.items():
        row = {**shared, "way": way, "rounds": len(seconds), comparison.clock: interval(seconds).median}
        gain = comparison.speed_up.get(way)
        row |= {"speed-up": None, "low": None, "high": None}
        if gain is not None:
            row |= {"speed-up": gain.median, "low": gain.low, "high": gain.high}
        rows.append({**row, **own.get(way, {})})
    same = comparison.same
    again = {**shared, "way": AGAIN, "speed-up": same.median, "low": same.low, "high": same.high}
    return [*rows, again]


def reported(headline: Interval, definition: str, limit: Limit | None, rows: Sequence[Mapping[str, object]]) -> Report:
    """The report, whose definition ends with the verdict."""
    said = f"{definition} {verdict(headline, limit)}"
    return Report("peers", headline.median, (headline.low, headline.high), said, tuple(rows), describe().to_json())


# --- The limit of the processor ---------------------------------------------------------------------------------------
KINDS = {
    "matrix products": ("addmm", "::mm", "bmm", "mkl_linear", "linear"),
    "attention": ("scaled_dot_product",),
    "convolutions": ("convolution", "conv"),
    "activations": ("gelu", "mish", "softplus", "tanh", "silu", "sigmoid"),
    "norms": ("norm",),
    "copies": ("copy", "cat", "clone", "contiguous", "stack"),
    "sums and products": ("::add", "::mul", "::sub", "::neg", "addcmul"),
}
"""Parts of operators' names, by kind; the first kind that fits counts."""
REST = "everything else"


def seconds_by_kind(run: Callable[[], object]) -> dict[str, float]:
    """Seconds that one ``run`` spends in operators of each kind, without the operators that these call."""
    with profile() as profiler:
        run()
    seconds = dict.fromkeys((*KINDS, REST), 0.0)
    for event in profiler.key_averages():
        kind = next((kind for kind, parts in KINDS.items() if any(part in event.key for part in parts)), REST)
        seconds[kind] += event.self_cpu_time_total / 1e6
    return seconds


TARGET = 1.15
"""The speed-up over the official implementation that is aimed at."""
COUNTED = ("matrix products", "attention")
SHARE, RATE = 0.8, 0.75
"""From which share of time in products and attention on, and from which part of the best rate on, a run counts as
standing at the limit: at most 1.67 times as fast would be possible if all else took no time and every product, however
narrow, ran as fast as the best one."""
PRODUCTS = ((256, 1024, 4096), (512, 1024, 2048), (1024, 1024, 1024), (1024, 2048, 1024))
"""Rows, inputs and outputs of the products that are tried."""
READ_BYTES = 512 * 2**20


@dataclass(frozen=True)
class Limit:
    """Where a run stands."""

    share: float
    """Share of its time in products and attention."""
    reached: float
    """What these do a second."""
    best: float
    """What the processor can do a second."""
    unit: str
    """``GFLOP/s`` or ``GB/s``."""

    @property
    def stands(self) -> bool:
        """Whether little is left to gain."""
        return self.share >= SHARE and self.reached >= RATE * self.best

    @property
    def possible(self) -> float:
        """How many times as fast the run would be if all of its time were products and attention at the best rate."""
        return self.best / (self.share * self.reached)

    @property
    def row(self) -> dict[str, object]:
        """Its row in a report."""
        return {
            "way": "ours: processor's limit",
            "share of its time": self.share,
            f"reached ({self.unit})": self.reached,
            f"best here ({self.unit})": self.best,
            "possible at most": self.possible,
            "at the limit": self.stands,
        }

    @property
    def sentence(self) -> str:
        """The same for people."""
        return (
            f"Ours spends {percent(self.share)} of its time in products and attention, at {self.reached:.3g} "
            f"{self.unit} of the {self.best:.3g} {self.unit} that this processor reached at best"
        )


def verdict(speed_up: Interval, limit: Limit | None) -> str:
    """Whether the target is reached, or the processor's limit, or neither; ``limit`` is known on processors only."""
    figure = f"{speed_up.median:.2f}×"
    if speed_up.median >= TARGET:
        said = f"{figure} reaches the target of {TARGET}×."
    elif limit is not None and limit.stands:
        said = f"{figure} is below the target of {TARGET}×, but ours stands at this processor's limit."
    else:
        said = f"{figure} is below the target of {TARGET}×, and not explained by this processor's limit."
    return said if limit is None else f"{said} {limit.sentence}."


def arithmetic(run: Callable[[], object], operations: float, sizes: Sequence[tuple[int, int, int]] = PRODUCTS) -> Limit:
    """The limit of a ``run`` over many rows, with the ``operations`` of its products and attention."""
    share, seconds = _profiled(run)
    return Limit(share, operations / seconds / 1e9, best_product(sizes) / 1e9, "GFLOP/s")


def reading(run: Callable[[], object], read: float, size: int = READ_BYTES) -> Limit:
    """The limit of a ``run`` of one-token passes, with the bytes that its products and attention ``read``."""
    share, seconds = _profiled(run)
    return Limit(share, read / seconds / 1e9, best_reading(size) / 1e9, "GB/s")


def _profiled(run: Callable[[], object]) -> tuple[float, float]:
    """Share of time, and CPU seconds, of products and attention. The profiler's own clock runs on while other programs
    have the processor, so it only says the share."""
    taken = 0.0

    def clocked() -> None:
        nonlocal taken
        with stopwatch() as watch:
            run()
        taken = watch.seconds

    found = seconds_by_kind(clocked)
    # Of machine code the profiler knows nothing: then all of the time counts.
    share = sum(found[kind] for kind in COUNTED) / sum(found.values()) or 1.0
    return share, share * taken


@torch.inference_mode()
def best_product(sizes: Sequence[tuple[int, int, int]] = PRODUCTS) -> float:
    """Operations a second of the best float32 product, by any kernel that ours may use."""
    best = 0.0
    for rows, inputs, outputs in sizes:
        x, weight = torch.randn(rows, inputs), torch.randn(outputs, inputs)
        ways: list[Callable[[], object]] = [lambda x=x, weight=weight: F.linear(x, weight)]  # type: ignore[misc]
        if products.can_pack(weight):
            packed = PackedProduct(weight, many_rows=True)
            ways.append(lambda x=x, packed=packed: packed(x))  # type: ignore[misc]
        fastest = min(best_seconds(way, torch.device("cpu")) for way in ways)
        best = max(best, 2.0 * rows * inputs * outputs / fastest)
    return best


@torch.inference_mode()
def best_reading(size: int = READ_BYTES) -> float:
    """Bytes a second of reading ``size`` bytes of float32 once: by a product with one row, or by adding them up."""
    weight = torch.ones(size // (4 * 4096), 4096)
    x = torch.ones(1, 4096)
    ways: tuple[Callable[[], object], ...] = (lambda: F.linear(x, weight), weight.sum)
    return weight.nbytes / min(best_seconds(way, torch.device("cpu")) for way in ways)
