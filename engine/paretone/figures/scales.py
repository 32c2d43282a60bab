"""From figures to places along an axis, linear or logarithmic, and the round numbers next to it. Free of Qt."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

_PADDING = 0.05
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_MANTISSAS = (tuple(range(1, 10)), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,))
"""Marks per decade of a logarithmic axis, from the densest to the sparsest."""
_FEW = 3
"""With fewer marks than this, a logarithmic axis has those of an even one: it spans less than a decade."""
_NEAREST = 0.75
"""Two marks of a logarithmic axis lie at least so near, as a share of the distance of even ones."""
_GREATEST = 1e300
"""Ends of an axis are no greater, and no nearer to each other than its inverse."""
_SHORTEST = 1e-12
"""An axis that is shorter than this share of its ends has no numbers between them."""
_CLOSEST = 1e-3
"""The shortest section of an axis, as a share of everything."""


@dataclass(frozen=True)
class Scale:
    """One axis from ``low`` to ``high``; both are positive if it is logarithmic. Ends that no axis can have are those
    of an axis without figures: an exception while an axis is painted would end the application."""

    low: float = 0.0
    high: float = 1.0
    logarithmic: bool = False

    def __post_init__(self) -> None:
        least = 1 / _GREATEST if self.logarithmic else -_GREATEST
        if not (least <= self.low <= _GREATEST and least <= self.high <= _GREATEST):
            object.__setattr__(self, "low", 0.1 if self.logarithmic else 0.0)
            object.__setattr__(self, "high", 1.0)

    @classmethod
    def of(cls, values: np.ndarray, logarithmic: bool = False) -> Scale:
        """With room for ``values``, of any shape; those that are not finite do not count, nor do those on a logarithmic
        axis that have no logarithm."""
        counting = values[np.isfinite(values) & ((values > 0.0) | (not logarithmic))]
        if not len(counting):
            return cls(0.1, 1.0, True) if logarithmic else cls()
        low, high = float(counting.min()), float(counting.max())
        if logarithmic:
            room = (high / low) ** _PADDING if high > low else 1.25
            return cls(low / room, high * room, True)
        if high <= low:
            # Most figures are never below 0.
            return cls(low - 0.1 * abs(low), high + 0.1 * abs(high)) if low else cls(-_PADDING, 1.0)
        room = (high - low) * _PADDING
        return cls(low - room, high + room)

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends in what the axis is even in: figures, or their decimal logarithms."""
        return (math.log10(self.low), math.log10(self.high)) if self.logarithmic else (self.low, self.high)

    def even(self, values: np.ndarray) -> np.ndarray:
        """Figures in what the axis is even in. What has no logarithm is a whole axis before its beginning."""
        if not self.logarithmic:
            return values
        first, last = self.ends
        there = values > 0.0
        return np.where(there, np.log10(np.where(there, values, 1.0)), 2 * first - last)

    def share(self, values: np.ndarray) -> np.ndarray:
        """Position along the axis, from 0 to 1."""
        first, last = self.ends
        return (self.even(values) - first) / ((last - first) or 1.0)

    def at(self, share: float) -> float:
        """The figure so far along the axis, from 0 to 1."""
        first, last = self.ends
        even = first + share * (last - first)
        return 10.0**even if self.logarithmic else even

    @property
    def flipped(self) -> Scale:
        """The other way around: heat maps are drawn from the top."""
        return replace(self, low=self.high, high=self.low)

    # --- Sections ----------------------------------------------------------------------------------------------------
    def _from(self, first: float, last: float) -> Scale:
        if self.logarithmic:
            first, last = 10.0**first, 10.0**last
        return replace(self, low=first, high=last)

    def zoomed(self, factor: float, around: float, whole: Scale) -> Scale:
        """A section ``factor`` times as long, in which what is at the share ``around`` stays there; never beyond
        ``whole``."""
        if self.low > self.high:
            return self.flipped.zoomed(factor, 1.0 - around, whole.flipped).flipped
        first, last = self.ends
        start, end = whole.ends
        length = max((last - first) * factor, (end - start) * _CLOSEST)
        return self._placed(first + around * (last - first) - around * length, length, whole)

    def moved(self, by: float, whole: Scale) -> Scale:
        """The section that lies ``by`` of its length further on; never beyond ``whole``."""
        if self.low > self.high:
            return self.flipped.moved(-by, whole.flipped).flipped
        first, last = self.ends
        return self._placed(first + by * (last - first), last - first, whole)

    def _placed(self, first: float, length: float, whole: Scale) -> Scale:
        start, end = whole.ends
        if length >= (end - start) * (1 - 1e-9):
            return whole
        first = min(max(first, start), end - length)
        return self._from(first, first + length)

    # --- Marks -------------------------------------------------------------------------------------------------------
    def ticks(self, most: int) -> tuple[float, ...]:
        """At most this many round numbers, or, on a logarithmic axis, such that lie as far apart as those would. An
        axis without length has its first number only."""
        if self.low > self.high:
            return self.flipped.ticks(most)
        if self.high - self.low <= max(_SHORTEST * max(abs(self.low), abs(self.high)), 1 / _GREATEST):
            return (self.low,)
        found = next((one for one in self._decades() if self._apart(one, most)), ()) if self.logarithmic else ()
        return found if len(found) >= _FEW else self._even(max(most, 4) if self.logarithmic else most)

    def _decades(self) -> Iterator[tuple[float, ...]]:
        """Round numbers of each decade, ever fewer of them, then of every second decade, every third, and so on."""
        first, last = (math.floor(one) for one in self.ends)
        choices = [(mantissas, 1) for mantissas in _MANTISSAS] + [((1,), stride) for stride in range(2, last - first)]
        for mantissas, stride in choices:
            found = [one * 10.0**power for power in range(first, last + 1) for one in mantissas if not power % stride]
            yield tuple(one for one in found if self.low * (1 - 1e-9) <= one <= self.high * (1 + 1e-9))

    def _apart(self, marks: tuple[float, ...], most: int) -> bool:
        gaps = np.diff(self.share(np.array(marks)))
        return bool((gaps >= _NEAREST / max(1, most)).all())

    def _even(self, most: int) -> tuple[float, ...]:
        rough = (self.high - self.low) / max(1, most)
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(one * size for one in _STEPS if one * size >= rough * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return tuple(number * step for number in range(first, last + 1))


def tick_text(value: float) -> str:
    """A round number, without noise in its last digits."""
    return f"{0.0 if abs(value) < 1e-12 else value:.6g}".replace("-", "−")
