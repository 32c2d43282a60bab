"""Styles of points: each name has a mark with colour and shape, so that nothing depends on colour alone; a point with
two names is half each. Free of Qt."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

HUES = ("blue", "orange", "green", "purple", "yellow", "violet", "red")
"""Names of the colours below, in the order of every palette."""
SERIES_LIGHT = ("#0b64a8", "#c4520a", "#00795a", "#9c3f80", "#7a6a00")
SERIES_DARK = ("#6db5f0", "#f2a24b", "#3ecfa0", "#e08fc4", "#e6d84c")
"""After Okabe and Ito, with a contrast of at least 4.5 to the scheme's background."""
MORE_LIGHT = ("#5b4bc4", "#a81f2d")
MORE_DARK = ("#b3a6ff", "#ff8d95")
SERIES_ON_ANY = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#7c6ee0", "#d9434f")
"""Okabe and Ito's colours for pages on light and dark backgrounds alike, with a darker yellow, and violet, red."""
CELLS_LIGHT = ("#e3e8ef", "#0b64a8", "#eda52f")
CELLS_DARK = ("#2f3743", "#3f93d2", "#f2b84b")
"""Fills of cells: neutral, then blue and orange after Okabe and Ito, which differ in lightness, too."""
FILLED, HOLLOW, DOTTED = "filled", "hollow", "dotted"
SHAPES = ("circle", "square", "triangle", "diamond", "hexagon", "down")
"""Their number is coprime to that of the colours, so that no two of 42 names look alike."""
DERIVED_SHAPES = ("right", "left", "plus", "cross")
"""Shapes of marks derived from a name alone, distinct from declared ones."""
STAR = "star"
"""Glyph of points without a name."""
_CORNERS = {
    "square": (4, math.pi / 4, 1.18),
    "triangle": (3, math.pi / 2, 1.3),
    "down": (3, -math.pi / 2, 1.3),
    "diamond": (4, 0.0, 1.28),
    "hexagon": (6, 0.0, 1.1),
    "right": (3, 0.0, 1.3),
    "left": (3, math.pi, 1.3),
}
"""Number of corners, angle of the first, and radius, for equal apparent sizes."""
_STAR_OUTER, _STAR_INNER = 1.35, 0.45
_ARM = 0.42
"""Half the width of the arms of a plus or cross of length 1.15."""
_ROUND = 48
"""Corners of a circle for slicing."""


@dataclass(frozen=True)
class Mark:
    """Style of a name in every palette."""

    hue: str
    """One of :data:`HUES`."""
    shape: str


def derived_mark(name: str) -> Mark:
    """Mark of a name without a declared one, determined by the name alone in every process and release."""
    digest = hashlib.sha256(name.encode()).digest()
    return Mark(HUES[digest[0] % len(HUES)], DERIVED_SHAPES[digest[1] % len(DERIVED_SHAPES)])


def marks_in_turn(names: Sequence[str]) -> Callable[[str], Mark]:
    """Marks for names that occur within one figure only."""
    known = {name: Mark(HUES[place % len(HUES)], SHAPES[place % len(SHAPES)]) for place, name in enumerate(names)}
    return known.__getitem__


@dataclass(frozen=True)
class Glyph:
    colours: tuple[str, ...]
    """One per name, from the left."""
    shape: str
    look: str = FILLED


def corners(shape: str) -> tuple[tuple[float, float], ...]:
    """Corners of a shape of radius 1, y upwards; empty for a circle."""
    if shape == STAR:
        around = [
            (_STAR_OUTER * (_STAR_INNER if turn % 2 else 1.0), math.radians(90 + 36 * turn)) for turn in range(10)
        ]
    elif shape in ("plus", "cross"):
        return _arms(0.0 if shape == "plus" else math.pi / 4)
    else:
        count, first, far = _CORNERS.get(shape, (0, 0.0, 0.0))
        around = [(far, first + turn * 2 * math.pi / count) for turn in range(count)]
    return tuple((far * math.cos(angle), far * math.sin(angle)) for far, angle in around)


def _arms(turned: float) -> tuple[tuple[float, float], ...]:
    """Corners of a plus, rotated by the angle ``turned``."""
    found = []
    for turn in range(4):
        cos, sin = math.cos(turned + turn * math.pi / 2), math.sin(turned + turn * math.pi / 2)
        for x, y in ((1.15, -_ARM), (1.15, _ARM), (_ARM, _ARM)):
            found.append((x * cos - y * sin, x * sin + y * cos))
    return tuple(found)


def part(shape: str, number: int, count: int) -> tuple[tuple[float, float], ...]:
    """Corners of the ``number``-th of ``count`` vertical slices of a shape, from the left."""
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
    """Glyphs of names, by their marks; ``plain``: colour of points without a name."""

    def __init__(self, mark_of: Callable[[str], Mark], palette: Sequence[str], plain: str) -> None:
        self._mark_of, self._palette, self._plain = mark_of, dict(zip(HUES, palette, strict=True)), plain
        self._made: dict[tuple[tuple[str, ...], str], Glyph] = {}

    def server(self, look: str = FILLED) -> Glyph:
        """Glyph of servers, of which no technique is known."""
        return Glyph((self._plain,), "plus", look)

    def glyph(self, names: tuple[str, ...], look: str = FILLED) -> Glyph:
        """Glyph of a point with these ``names``; cached."""
        found = self._made.get((names, look))
        if found is None:
            marks = [self._mark_of(name) for name in names]
            colours = tuple(self._palette[one.hue] for one in marks) or (self._plain,)
            found = Glyph(colours, marks[0].shape if marks else STAR, look)
            self._made[names, look] = found
        return found
