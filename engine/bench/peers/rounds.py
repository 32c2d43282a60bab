"""Shared by the peers: threads and precisions, rounds that fit into a time, and rows of the comparison."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence

import torch

from engine import device as devices
from engine.bench import LEAST_ROUNDS, bundled
from engine.bench.peers.limits import Limit, verdict
from engine.bench.report import Report
from engine.measure.machine import describe
from engine.measure.timing import Interval, PairedTimes, interval, paired_ratio

OFFICIAL, OURS, GRAPHS = "official", "ours", "ours, CUDA graphs"
AGAIN = "official, again (A/A)"


class Budget:
    """The wall time of a bench, from now on."""

    def __init__(self, minutes: float, most: int) -> None:
        """``most`` rounds at most."""
        self._end, self._most = time.monotonic() + 60 * minutes, most

    @property
    def left(self) -> float:
        """Seconds."""
        return self._end - time.monotonic()

    def rounds(self, seconds: float, share: float = 1.0) -> int:
        """How many rounds of ``seconds`` each fit into a ``share`` of what is left, at least :data:`LEAST_ROUNDS`."""
        return max(LEAST_ROUNDS, min(self._most, int(share * self.left / max(seconds, 1e-9))))

    def length(self, seconds: float, most: int, least: int, begin: float = 0.0) -> int:
        """How many tokens or steps of ``seconds`` each, after ``begin`` seconds, may be spoken at once, so that the
        fewest rounds fit into what is left: at most ``most``, at least ``least``."""
        runs = 2 + 3 * LEAST_ROUNDS  # Each way once, then, in every round, the official one twice and ours once.
        return max(least, min(most, int((self.left / runs - begin) / max(seconds, 1e-9))))


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
