"""Schedule of iterative demasking: codes committed per step. Torch-free: front ends predict the steps by it.

Source: k2-fsa/OmniVoice, ``omnivoice/models/omnivoice.py``. Its counts follow from float32 times, so these do.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from paretone.errors import SettingError
from paretone.sampling.schedules import uniform_times


def demasking_times(steps: int, shift: float) -> np.ndarray:
    """Committed shares of the canvas before and after each step: ``steps + 1`` values from 0 to 1, float32. A ``shift``
    below 1 commits little at first and much at the end; at 1 every step commits the same."""
    if steps < 1:
        raise SettingError(f"The number of steps must be at least 1, not {steps}.")
    times, bend = uniform_times(steps), np.float32(shift)
    return bend * times / (np.float32(1) + np.float32(shift - 1) * times)


def commit_counts(cells: int, steps: int, shift: float) -> tuple[int, ...]:
    """Codes that each step commits, of ``cells``; the last one takes the rest. On a short canvas there may be none."""
    return tuple(_shares(cells, cells, demasking_times(steps, shift)))


def _shares(left: int, cells: int, times: np.ndarray) -> list[int]:
    """Divide the ``left`` codes of ``cells`` among the steps between ``times``; the last one takes the rest."""
    counts: list[int] = []
    for before, after in itertools.pairwise(times.tolist()):
        last = len(counts) == len(times) - 2
        counts.append(left if last else min(math.ceil(cells * (after - before)), left))
        left -= counts[-1]
    return counts


class CommitPlan:
    """Number of codes that each step of a block commits. The remaining steps can be reduced at any time."""

    def __init__(self, cells: int, steps: int, shift: float) -> None:
        self._cells, self._shift = cells, shift
        self._counts = list(commit_counts(cells, steps, shift))
        self._share = 0.0
        """Position in the schedule at which the next step begins, from 0 to 1."""

    @property
    def steps(self) -> int:
        """Number of remaining steps, without those at the end of a short block that commit nothing."""
        return sum(map(bool, self._counts))

    def next(self) -> int:
        """Number of codes that the next step commits."""
        self._share += (1.0 - self._share) / len(self._counts)
        return self._counts.pop(0)

    def instead(self, planned: int, count: int) -> None:
        """Replace the ``planned`` codes of the step from :meth:`next` by ``count``. Extra codes come from the end of
        the schedule; missing ones go to a step after its end, or to the last one."""
        if count < planned:
            self._counts = self._counts or [0]
            self._counts[min(self.steps, len(self._counts) - 1)] += planned - count
        more = max(count - planned, 0)
        for place in reversed(range(len(self._counts))):
            taken = min(more, self._counts[place])
            self._counts[place] -= taken
            more -= taken

    @property
    def left(self) -> int:
        """Number of codes that the remaining steps commit."""
        return sum(self._counts)

    def shorten(self, steps: int) -> None:
        """Reduce the remaining steps to ``steps``, at least one: they divide the rest of the schedule equally."""
        steps = max(steps, 1)
        if steps >= self.steps:
            return
        shares = np.linspace(self._share, 1.0, steps + 1)
        times = self._shift * shares / (1.0 + (self._shift - 1.0) * shares)
        self._counts = _shares(self.left, self._cells, times)


@dataclass(frozen=True)
class Block:
    """Frames from ``start`` to ``end`` of the canvas, committed in ``steps`` before any later frames."""

    start: int
    end: int
    steps: int

    @property
    def frames(self) -> int:
        return self.end - self.start


def block_bounds(frames: int, size: int, first: int = 0) -> tuple[tuple[int, int], ...]:
    """Bounds of a canvas's blocks, of at most ``size`` frames and nearly equal length, so that no short one remains. If
    ``first`` is not 0, the first block has that many frames and each next one at most twice as many as the one before,
    so that it is ready before playback needs it."""
    start = min(first, frames)
    edges = [0, start] if start else [0]
    grown = 2 * first
    while 0 < grown < size and frames - start > grown:
        start += grown
        edges.append(start)
        grown *= 2
    rest = math.ceil((frames - start) / size)
    edges += [start + round((frames - start) * place / rest) for place in range(1, rest + 1)]
    return tuple(itertools.pairwise(edges))
