"""When iterative demasking commits how much. Torch-free: a front end foresees the steps with the same numbers.

Source: k2-fsa/OmniVoice, ``omnivoice/models/omnivoice.py``. Its counts follow from float32 times, so these do.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from engine.errors import SettingError
from engine.sampling.schedules import uniform_times


def demasking_times(steps: int, shift: float) -> np.ndarray:
    """The ``steps + 1`` shares of the canvas that are committed before and after each step, from 0 to 1, float32.

    A ``shift`` below 1 commits little at first and much at the end; at 1 every step commits the same.
    """
    if steps < 1:
        raise SettingError(f"The number of steps must be at least 1, not {steps}.")
    times, bend = uniform_times(steps), np.float32(shift)
    return bend * times / (np.float32(1) + np.float32(shift - 1) * times)


def commit_counts(cells: int, steps: int, shift: float) -> tuple[int, ...]:
    """How many of ``cells`` codes each step commits; the last one takes the rest. On a short canvas the rest may be
    gone before: what follows is 0."""
    times, left, counts = demasking_times(steps, shift).tolist(), cells, []
    for before, after in itertools.pairwise(times):
        last = len(counts) == steps - 1
        counts.append(left if last else min(math.ceil(cells * (after - before)), left))
        left -= counts[-1]
    return tuple(counts)


@dataclass(frozen=True)
class Block:
    """Frames that are committed before any behind them: ``start`` to ``end`` of the canvas, in ``steps``."""

    start: int
    end: int
    steps: int

    @property
    def frames(self) -> int:
        """How many frames it has."""
        return self.end - self.start


def block_bounds(frames: int, size: int, first: int = 0) -> tuple[tuple[int, int], ...]:
    """Where the blocks of a canvas begin and end: ``size`` frames at most, all nearly as long, so that none is a mere
    rest. Where ``first`` is not 0, the first block has so many frames."""
    start = min(first, frames)
    rest = math.ceil((frames - start) / size)
    edges = [start + round((frames - start) * place / rest) for place in range(rest + 1)] if rest else [frames]
    starts = edges if edges[0] == 0 else [0, *edges]
    return tuple(itertools.pairwise(starts))
