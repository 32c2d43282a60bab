"""Axes, and points by two figures, as a description: places, styles, and the Pareto front. The window draws it with
pyqtgraph, a report as SVG. Free of Qt."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from paretone.figures.glyphs import Glyph
from paretone.measure.metrics import HIGHER, NEITHER, Metric
from paretone.wording import per_one

_PADDING = 0.05
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_MANTISSAS = (tuple(range(1, 10)), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,))
"""Ticks per decade of a logarithmic axis, from the densest to the sparsest."""
_FEW = 3
"""With fewer ticks, a logarithmic axis uses linear ones: it spans less than a decade."""
_NEAREST = 0.75
"""Minimum distance of two ticks of a logarithmic axis, as a share of the linear ticks' distance."""
_GREATEST = 1e300
"""Limit of an axis's ends; its inverse is the minimum of their difference."""
_SHORTEST = 1e-12
"""An axis shorter than this share of its ends has no ticks between them."""
_CLOSEST = 1e-3
"""Minimum length of a section of an axis, as a share of the whole."""


@dataclass(frozen=True)
class Scale:
    """An axis from ``low`` to ``high``; both are positive if it is logarithmic. Invalid ends are replaced by those of
    an empty axis: an exception while painting would end the application."""

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
        """Axis with room for ``values``, of any shape; those not finite, or without a needed logarithm, are ignored."""
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
        """Both ends, or their decimal logarithms on a logarithmic axis."""
        return (math.log10(self.low), math.log10(self.high)) if self.logarithmic else (self.low, self.high)

    def even(self, values: np.ndarray) -> np.ndarray:
        """Figures, or their decimal logarithms on a logarithmic axis; values without one lie a whole axis before it."""
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
        """Figure at the position ``share``, from 0 to 1."""
        first, last = self.ends
        even = first + share * (last - first)
        return 10.0**even if self.logarithmic else even

    @property
    def flipped(self) -> Scale:
        """The reversed axis: heat maps are drawn from the top."""
        return replace(self, low=self.high, high=self.low)

    # --- Sections ----------------------------------------------------------------------------------------------------
    def zoomed(self, factor: float, around: float, whole: Scale) -> Scale:
        """Section ``factor`` times as long, with a fixed point at the share ``around``, within ``whole``."""
        if self.low > self.high:
            return self.flipped.zoomed(factor, 1.0 - around, whole.flipped).flipped
        first, last = self.ends
        start, end = whole.ends
        length = max((last - first) * factor, (end - start) * _CLOSEST)
        return self._placed(first + around * (last - first) - around * length, length, whole)

    def moved(self, by: float, whole: Scale) -> Scale:
        """Section moved by the share ``by`` of its length, within ``whole``."""
        if self.low > self.high:
            return self.flipped.moved(-by, whole.flipped).flipped
        first, last = self.ends
        return self._placed(first + by * (last - first), last - first, whole)

    def _placed(self, first: float, length: float, whole: Scale) -> Scale:
        start, end = whole.ends
        if length >= (end - start) * (1 - 1e-9):
            return whole
        first = min(max(first, start), end - length)
        ends = first, first + length
        low, high = (10.0**one for one in ends) if self.logarithmic else ends
        return replace(self, low=low, high=high)

    # --- Marks -------------------------------------------------------------------------------------------------------
    def ticks(self, most: int) -> tuple[float, ...]:
        """At most ``most`` round numbers, on a logarithmic axis at similar distances; without length only the first."""
        if self.low > self.high:
            return self.flipped.ticks(most)
        if self.high - self.low <= max(_SHORTEST * max(abs(self.low), abs(self.high)), 1 / _GREATEST):
            return (self.low,)
        found = next((one for one in self._decades() if self._apart(one, most)), ()) if self.logarithmic else ()
        return found if len(found) >= _FEW else self._even(max(most, 4) if self.logarithmic else most)

    def _decades(self) -> Iterator[tuple[float, ...]]:
        """Round numbers of each decade, ever fewer, then of every second decade, every third, and so on."""
        first, last = (math.floor(one) for one in self.ends)
        choices = [(mantissas, 1) for mantissas in _MANTISSAS] + [((1,), stride) for stride in range(2, last - first)]
        for mantissas, stride in choices:
            found = [one * 10.0**power for power in range(first, last + 1) for one in mantissas if not power % stride]
            yield tuple(one for one in found if self.low * (1 - 1e-9) <= one <= self.high * (1 + 1e-9))

    def _apart(self, marks: tuple[float, ...], most: int) -> bool:
        return bool((np.diff(self.share(np.array(marks))) >= _NEAREST / max(1, most)).all())

    def _even(self, most: int) -> tuple[float, ...]:
        rough = (self.high - self.low) / max(1, most)
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(one * size for one in _STEPS if one * size >= rough * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return tuple(number * step for number in range(first, last + 1))


def tick_text(value: float, form: str = ".6g") -> str:
    """A round number without floating-point noise."""
    return f"{0.0 if abs(value) < 1e-12 else value:{form}}".replace("-", "−")


def tick_texts(values: Sequence[float], unit: str = "") -> list[str]:
    """The numbers of an axis; all with the same decimals where they are at equal distances. Shares are in ``%``."""
    values = [per_one(unit) * one for one in values]
    texts, gaps = [tick_text(one) for one in values], np.diff(values)
    if any("e" in one for one in texts) or not np.allclose(gaps, gaps[:1], atol=0.0):
        return texts
    places = max((len(one.partition(".")[2]) for one in texts), default=0)
    return [tick_text(one, f".{places}f") for one in values]


Corners = list[tuple[float, float]]


@dataclass(frozen=True)
class Dimension:
    title: str
    """Title with the unit."""
    short: str = ""
    """Title without the unit, for small spaces."""
    better: str = NEITHER
    logarithmic: bool = False
    levels: tuple[float, ...] = ()
    """Reference values for all points."""
    unit: str = ""
    """Unit of metrics, see :func:`paretone.wording.in_unit`; values are as measured."""

    @classmethod
    def of(cls, one: Metric) -> Dimension:
        return cls(one.label, one.title, one.better, unit=one.unit)

    @property
    def towards(self) -> str:
        """Label at the better end of the axis."""
        return {HIGHER: "better →", NEITHER: ""}.get(self.better, "← better")


@dataclass(frozen=True)
class Scatter:
    """Arrays and tuples are by point, the first drawn at the bottom."""

    x: Dimension
    y: Dimension
    across: np.ndarray = field(default_factory=lambda: np.empty((0, 3)), repr=False)
    """(n, 3): value, low and high end of the interval along x."""
    up: np.ndarray = field(default_factory=lambda: np.empty((0, 3)), repr=False)
    glyphs: tuple[Glyph, ...] = field(default=(), repr=False)
    labels: tuple[str, ...] = field(default=(), repr=False)
    """Label of a point, drawn if there is room; ``""``: none."""
    tips: tuple[str, ...] = field(default=(), repr=False)
    front: tuple[int, ...] = ()
    """Points on the Pareto front, from left to right."""
    strands: tuple[tuple[int, ...], ...] = ()
    """Points joined by a faint line."""
    legend: tuple[tuple[Glyph, str], ...] = ()
    level_title: str = ""
    intervals: bool = True
    doubtful: tuple[int, ...] = ()
    """Points with doubtful times because of other processes, drawn with a dashed ring."""

    def scales(self) -> tuple[Scale, Scale]:
        """Scales of the X axis and the Y axis, with room for every point, its intervals and the levels."""
        return self._scale(self.across, self.x), self._scale(self.up, self.y)

    def _scale(self, places: np.ndarray, along: Dimension) -> Scale:
        values = np.r_[places, np.repeat(np.array(along.levels, float), 3).reshape(-1, 3)]
        if not self.intervals:
            values = values[:, :1]
        elif along.logarithmic:
            # An interval close to 0 would take all room; one that ends more than a decade below the smallest value is
            # cut off.
            least = values[:, 0].min(initial=np.inf) / 10.0
            values = np.where(values < least, values[:, :1], values)
        return Scale.of(values, along.logarithmic)

    def edge(self, across: Scale, up: Scale) -> tuple[Corners, Corners]:
        """The front as a step line within these scales, and the corners of the area that it dominates: there, some
        point is at least as good in both figures."""
        if not self.front:
            return [], []
        places = [(float(self.across[one, 0]), float(self.up[one, 0])) for one in self.front]
        right, top = self.x.better != HIGHER, self.y.better != HIGHER
        # If only a section is shown, points may lie outside the scales.
        x_ends = [across.low, across.high, *(x for x, _ in places)]
        y_ends = [up.low, up.high, *(y for _, y in places)]
        worst = (max(x_ends) if right else min(x_ends)), (max(y_ends) if top else min(y_ends))
        # The worse end of each axis is reached from the point that is best in the other.
        found = [(places[0][0], worst[1]) if right else (worst[0], places[0][1])]
        for one, other in itertools.pairwise(places):
            x = max(one[0], other[0]) if right else min(one[0], other[0])
            y = max(one[1], other[1]) if top else min(one[1], other[1])
            found += [one, (x, y)]
        found += [places[-1], (worst[0], places[-1][1]) if right else (places[-1][0], worst[1])]
        return found, [*found, worst]
