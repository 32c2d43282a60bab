"""A figure over the values of one knob, as a description: a curve for each way the rest is set, and levels that hold
for all values. A report draws it as SVG. Free of Qt."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from paretone.figures.glyphs import Glyph
from paretone.figures.scales import Scale
from paretone.figures.scatter import Dimension

LOGARITHMIC_FROM = 8.0
"""Values that are all positive and span more than this factor have a logarithmic axis."""


@dataclass(frozen=True)
class Curve:
    """One line through points."""

    glyph: Glyph
    places: np.ndarray = field(repr=False)
    """(n,): values of the knob, ascending; numbers of names, if it has names."""
    values: np.ndarray = field(repr=False)
    """(n, 3): value, low and high end of the interval."""
    tips: tuple[str, ...] = ()


@dataclass(frozen=True)
class Level:
    """A value that needs no knob: a horizontal line."""

    value: float
    title: str
    colour: str = "currentColor"
    dashed: bool = True
    """Dashed; else dotted."""


@dataclass(frozen=True)
class Curves:
    """A small plot."""

    x: Dimension
    y: Dimension
    curves: tuple[Curve, ...] = ()
    levels: tuple[Level, ...] = ()
    names: tuple[str, ...] = ()
    """Names of the knob's values, at places 0, 1 …; none for numbers."""
    linear: bool = False
    """Whether the X axis is linear, however wide it is."""

    def scales(self) -> tuple[Scale, Scale]:
        """Scales of the X axis and the Y axis, with room for every point, interval and level."""
        places = np.concatenate([one.places for one in self.curves])
        wide = not (self.names or self.linear) and places.min() > 0 and places.max() / places.min() >= LOGARITHMIC_FROM
        heights = [one.values.ravel() for one in self.curves]
        up = np.concatenate([*heights, np.array([one.value for one in self.levels])])
        return Scale.of(places, bool(wide)), Scale.of(up)

    def ticks(self) -> tuple[tuple[float, str], ...]:
        """The values of the knob, with their names."""
        if self.names:
            return tuple((float(place), name) for place, name in enumerate(self.names))
        found = sorted({float(place) for one in self.curves for place in one.places})
        return tuple((place, f"{place:.4g}".replace("-", "−")) for place in found)
