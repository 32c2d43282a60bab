"""Styles of points: each name has a colour and a shape, so that nothing depends on colour alone; a point with two
names is half each. Free of Qt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

SERIES_LIGHT = ("#0b64a8", "#c4520a", "#00795a", "#9c3f80", "#7a6a00")
SERIES_DARK = ("#6db5f0", "#f2a24b", "#3ecfa0", "#e08fc4", "#e6d84c")
"""After Okabe and Ito, with a contrast of at least 4.5 to the ground of the scheme."""
MORE_LIGHT = ("#5b4bc4", "#a81f2d")
MORE_DARK = ("#b3a6ff", "#ff8d95")
SERIES_ON_ANY = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#3f9bd8", "#7f7f7f")
"""Okabe and Ito's for pages that are read on light and dark grounds alike, with a darker yellow, plus grey."""
CELLS_LIGHT = ("#e3e8ef", "#0b64a8", "#eda52f")
CELLS_DARK = ("#2f3743", "#3f93d2", "#f2b84b")
"""Fills of cells: unremarkable, then blue and orange after Okabe and Ito. They also differ in lightness, so that they
stay apart in grey."""
FILLED, HOLLOW, DOTTED = "filled", "hollow", "dotted"
SHAPES = ("circle", "square", "triangle", "diamond", "hexagon", "down")
"""Their number has no common factor with that of the colours, so that no two of 42 names look alike."""
STAR = "star"
"""Glyph of points without a name."""
_CORNERS = {
    "square": (4, math.pi / 4, 1.18),
    "triangle": (3, math.pi / 2, 1.3),
    "down": (3, -math.pi / 2, 1.3),
    "diamond": (4, 0.0, 1.28),
    "hexagon": (6, 0.0, 1.1),
}
"""Number of corners, the angle of the first, and how far out they are, so that all shapes look equally large."""
_STAR_OUTER, _STAR_INNER = 1.35, 0.45
_ROUND = 48
"""Corners of a circle of which a slice is wanted."""


@dataclass(frozen=True)
class Glyph:
    """Style of a point."""

    colours: tuple[str, ...]
    """One for each name, the first on the left."""
    shape: str
    look: str = FILLED


def corners(shape: str) -> tuple[tuple[float, float], ...]:
    """The corners of a shape of radius 1, y upwards; none for a circle."""
    if shape == STAR:
        around = [
            (_STAR_OUTER * (_STAR_INNER if turn % 2 else 1.0), math.radians(90 + 36 * turn)) for turn in range(10)
        ]
    else:
        count, first, far = _CORNERS.get(shape, (0, 0.0, 0.0))
        around = [(far, first + turn * 2 * math.pi / count) for turn in range(count)]
    return tuple((far * math.cos(angle), far * math.sin(angle)) for far, angle in around)


def part(shape: str, number: int, count: int) -> tuple[tuple[float, float], ...]:
    """The corners of the ``number``-th of ``count`` upright slices of a shape, from the left."""
    around = corners(shape) or tuple(
        (math.cos(turn * math.tau / _ROUND), math.sin(turn * math.tau / _ROUND)) for turn in range(_ROUND)
    )
    far = max(abs(x) for x, _ in around)
    ends = (-far + 2 * far * edge / count for edge in (number, number + 1))
    for end, sign in zip(ends, (1.0, -1.0), strict=True):
        kept = []
        for one, other in zip(around, (*around[1:], around[0]), strict=True):
            inside, next_inside = sign * (one[0] - end) >= 0, sign * (other[0] - end) >= 0
            if inside:
                kept.append(one)
            if inside != next_inside:
                share = (end - one[0]) / (other[0] - one[0])
                kept.append((end, one[1] + share * (other[1] - one[1])))
        around = tuple(kept)
    return around


class Glyphs:
    """Those of the names that there are; ``plain`` is the colour of points without a name."""

    def __init__(self, names: Sequence[str], palette: Sequence[str], plain: str) -> None:
        self._known = {
            name: (palette[place % len(palette)], SHAPES[place % len(SHAPES)]) for place, name in enumerate(names)
        }
        self._plain = plain
        self._made: dict[tuple[tuple[str, ...], str], Glyph] = {}

    def glyph(self, names: tuple[str, ...], look: str = FILLED) -> Glyph:
        """The glyph of a point with these ``names``; the same object for all of them."""
        found = self._made.get((names, look))
        if found is None:
            colours = tuple(self._known[name][0] for name in names) or (self._plain,)
            found = Glyph(colours, self._known[names[0]][1] if names else STAR, look)
            self._made[names, look] = found
        return found
