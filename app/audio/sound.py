"""A sound to be heard alone, with what it is called."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Sound:
    """Something to hear that is neither A nor B: a take of the library, a point of a study, a part of a take."""

    samples: np.ndarray
    """(n,) float32 mono."""
    rate: int
    """In hertz."""
    title: str
    """What it is and where it comes from, in a line."""
    detail: str = ""
    """Its text, for tooltips."""
    key: str = ""
    """What it is known by: the id of its take, for one."""
    part_of: tuple[str, float] | None = None
    """The side that it is a part of, and where in that it begins, in seconds."""

    @property
    def seconds(self) -> float:
        """Its length."""
        return len(self.samples) / self.rate
