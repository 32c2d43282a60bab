"""Points by two figures, as a description: where they are, what they look like, which of them are on the front. The
window draws it with pyqtgraph, a report as SVG. Free of Qt."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np

from paretone.figures.glyphs import Glyph
from paretone.figures.scales import Scale
from paretone.measure.metrics import HIGHER, NEITHER

Corners = list[tuple[float, float]]


@dataclass(frozen=True)
class Dimension:
    title: str
    """Title with the unit."""
    short: str = ""
    """Title without the unit, for little room."""
    better: str = NEITHER
    """``LOWER``, ``HIGHER`` or ``NEITHER``, as metrics have it."""
    logarithmic: bool = False
    levels: tuple[float, ...] = ()
    """Values that every point is compared with."""

    @property
    def towards(self) -> str:
        """Label at the better end of the axis."""
        return {HIGHER: "better →", NEITHER: ""}.get(self.better, "← better")


@dataclass(frozen=True)
class Scatter:
    """Arrays and tuples go with the points, the lowest drawn first."""

    x: Dimension
    y: Dimension
    across: np.ndarray = field(default_factory=lambda: np.empty((0, 3)), repr=False)
    """(n, 3): value, low and high end of the interval along x."""
    up: np.ndarray = field(default_factory=lambda: np.empty((0, 3)), repr=False)
    glyphs: tuple[Glyph, ...] = field(default=(), repr=False)
    labels: tuple[str, ...] = field(default=(), repr=False)
    """Label of a point, drawn where there is room; ``""`` for none."""
    tips: tuple[str, ...] = field(default=(), repr=False)
    """Tooltips of points; none if the caller makes them."""
    front: tuple[int, ...] = ()
    """The points that no other one beats in both figures, from left to right."""
    strands: tuple[tuple[int, ...], ...] = ()
    """Points that a faint line joins."""
    legend: tuple[tuple[Glyph, str], ...] = ()
    level_title: str = ""
    intervals: bool = True
    doubtful: tuple[int, ...] = ()
    """Points that other processes on the machine have displaced; each has a dashed ring."""

    def scales(self) -> tuple[Scale, Scale]:
        """Scales of the X axis and the Y axis, with room for every point, its intervals and the levels."""
        return self._scale(self.across, self.x), self._scale(self.up, self.y)

    def _scale(self, places: np.ndarray, along: Dimension) -> Scale:
        levels = np.repeat(np.array(along.levels, float), 3).reshape(-1, 3)
        values = np.r_[places, levels]
        if not self.intervals:
            values = values[:, :1]
        elif along.logarithmic:
            # An interval that comes close to 0 would take all room, so one that ends more than a decade below the
            # least value is cut off.
            least = values[:, 0].min(initial=np.inf) / 10.0
            values = np.where(values < least, values[:, :1], values)
        return Scale.of(values, along.logarithmic)

    def edge(self, across: Scale, up: Scale) -> tuple[Corners, Corners]:
        """The front as a line of steps within these scales, and the corners of the area that it dominates: there, some
        point is at least as good in both figures."""
        if not self.front:
            return [], []
        places = [(float(self.across[one, 0]), float(self.up[one, 0])) for one in self.front]
        right, top = self.x.better != HIGHER, self.y.better != HIGHER
        # If only a section is shown, points may lie beyond the scales.
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
