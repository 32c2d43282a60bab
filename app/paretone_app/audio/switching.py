"""Position on a switch between takes: kept if takes have the same timing, else restarted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from paretone_app.numbers import fixed

ALIGNMENT_TOLERANCE = 0.020
"""Takes whose lengths differ by more than this many seconds are never switched sample-synchronously."""


class Mode(StrEnum):
    """Effect of a switch on the position."""

    SYNC = "sync"
    RESTART = "restart"
    STREAM = "stream"
    ALONE = "alone"


@dataclass(frozen=True)
class Switching:
    """The active mode, and why, as a sentence."""

    mode: Mode
    reason: str


def comparison(seconds: Sequence[float], aligned: bool = True) -> Switching:
    """The mode for takes of these lengths. ``aligned``: whether their models keep the timing from take to take."""
    if not aligned:
        return Switching(Mode.RESTART, "Timing differs between takes, so a switch starts from the beginning.")
    spread = max(seconds, default=0.0) - min(seconds, default=0.0)
    if spread > ALIGNMENT_TOLERANCE:
        return Switching(
            Mode.RESTART, f"The takes differ by {fixed(spread, 2)} s in length, so a switch starts from the beginning."
        )
    return Switching(Mode.SYNC, "The takes have the same timing, so a switch keeps the position.")
