"""Shared by the peers: threads and precisions, rounds that fit into a time, and rows of the comparison."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence

import torch

from paretone import device as devices
from paretone.bench import bundled
from paretone.bench.budget import Budget
from paretone.bench.peers.limits import Limit, verdict
from paretone.bench.report import Report
from paretone.measure.machine import describe
from paretone.measure.timing import Interval, PairedTimes, interval, paired_ratio

OFFICIAL, OURS, GRAPHS = "official", "ours", "ours, CUDA graphs"
AGAIN = "official, again (A/A)"


def prepared(arguments: argparse.Namespace) -> torch.device:
    """The device, with the process set up as the application does: both implementations profit."""
    device = devices.choose(arguments.device)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    devices.keep_freed_memory()
    return device


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
        ways,
        rounds,
        warm_up=0,
        device=str(device),
        on_round=lambda done: bundled.say(f"round {done} of {rounds}"),
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
