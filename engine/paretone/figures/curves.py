"""A figure over the values of one knob, as a description: a curve per remaining setting, and levels independent of the
knob. A report draws it as SVG. Free of Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from paretone.figures.glyphs import Glyph
from paretone.figures.scatter import Dimension, Scale, tick_texts
from paretone.figures.svg import LINE, Plane, escape, label, mark, picture
from paretone.measure.metrics import HIGHER, LOWER
from paretone.wording import in_unit

LOGARITHMIC_FROM = 8.0
"""Positive values that span more than this factor get a logarithmic axis."""


@dataclass(frozen=True)
class Curve:
    glyph: Glyph
    places: np.ndarray = field(repr=False)
    """(n,): values of the knob, ascending; indices for named values."""
    values: np.ndarray = field(repr=False)
    """(n, 3): value, low and high end of the interval."""
    tips: tuple[str, ...] = ()


@dataclass(frozen=True)
class Level:
    """A value independent of the knob, drawn as a horizontal line."""

    value: float
    title: str
    colour: str = "currentColor"
    dashed: bool = True


@dataclass(frozen=True)
class Curves:
    x: Dimension
    y: Dimension
    curves: tuple[Curve, ...] = ()
    levels: tuple[Level, ...] = ()
    names: tuple[str, ...] = ()
    """Names of the knob's values, at places 0, 1 …; empty for numbers."""
    linear: bool = False
    """Whether the X axis is linear at any range."""

    def scales(self) -> tuple[Scale, Scale]:
        """Scales of the X axis and the Y axis, with room for every point, interval and level."""
        places = np.concatenate([one.places for one in self.curves])
        wide = not (self.names or self.linear) and places.min() > 0 and places.max() / places.min() >= LOGARITHMIC_FROM
        heights = [one.values.ravel() for one in self.curves]
        up = np.concatenate([*heights, np.array([one.value for one in self.levels])])
        return Scale.of(places, bool(wide)), Scale.of(up)

    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Values of the knob with their names."""
        if self.names:
            return tuple((float(place), name) for place, name in enumerate(self.names))
        found = sorted({float(place) for one in self.curves for place in one.places})
        return tuple((place, f"{place:.4g}".replace("-", "−")) for place in found)


# --- As SVG -----------------------------------------------------------------------------------------------------------
WIDTH, HEIGHT = 340, 230
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 28, 42
_TICKS_UP = 4
_BETTER = {HIGHER: "better ↑", LOWER: "better ↓"}
_NEAREST = 26
"""Distance between numbers along the X axis."""
_LETTER = 6.5
"""Width of a letter in these numbers."""
_HEAD = 34
"""Height of the title of a row of plots."""


def draw(shown: Curves) -> str:
    """An ``<svg>`` element of ``shown``; ``""`` without curves."""
    if not shown.curves:
        return ""
    named = f"{escape(shown.y.title)} over {escape(shown.x.title)}"
    return picture(WIDTH, HEIGHT, f'width="{WIDTH}" role="img" aria-label="{named}"', _Plot(shown).parts())


def sheet(rows: Sequence[tuple[str, Sequence[tuple[str, str]], Sequence[Curves]]]) -> str:
    """One picture of many plots: for each row its title, its curves' titles with their colours, and its plots; a plot
    without curves leaves its place empty. Drawn dark on white, as it stands alone."""
    width, height = max(len(plots) for _, _, plots in rows) * WIDTH, len(rows) * (HEIGHT + _HEAD)
    parts = [f'<rect width="{width}" height="{height}" fill="white"/>']
    for number, (title, curves, plots) in enumerate(rows):
        top = number * (HEIGHT + _HEAD)
        parts.append(label(LEFT, top + 24, title, size=16))
        x = LEFT + _LETTER * 1.6 * len(title)
        for colour, name in curves:
            parts.append(f'<g fill="{colour}">{label(x, top + 24, f"■ {name}")}</g>')
            x += _LETTER * (len(name) + 6)
        for column, one in enumerate(plots):
            if one.curves:
                parts += [f'<g transform="translate({column * WIDTH} {top + _HEAD})">', *_Plot(one).parts(), "</g>"]
    return picture(width, height, f'width="{width}" color="#222222"', parts)


class _Plot(Plane):
    def __init__(self, shown: Curves) -> None:
        super().__init__(shown.scales(), LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM)
        self.shown = shown

    def parts(self) -> list[str]:
        shown = self.shown
        return [
            label(LEFT, 14, shown.y.title),
            label(self.right, 14, _BETTER.get(shown.y.better, ""), "end", 11),
            *self._axes(),
            *(part for one in shown.levels for part in self._level(one)),
            *(part for one in shown.curves for part in self._curve(one)),
        ]

    def _axes(self) -> list[str]:
        parts = [self.frame()]
        free = float("-inf")
        for value, name in self.shown.ticks():
            x, half = self._x(value), max(_NEAREST, _LETTER * len(name)) / 2
            parts.append(f'<path d="M{x:.1f} {self.bottom} v5" stroke="currentColor" opacity=".5"/>')
            if x - half >= free:
                parts.append(label(x, self.bottom + LINE, name, "middle", 11))
                free = x + half
        figures = self.up.ticks(_TICKS_UP)
        for value, text in zip(figures, tick_texts(figures, self.shown.y.unit), strict=True):
            y = self._y(value)
            parts.append(f'<path d="M{LEFT} {y:.1f} H{self.right}" stroke="currentColor" opacity=".12"/>')
            parts.append(label(LEFT - 6, y + 4, text, "end", 11))
        parts.append(label((LEFT + self.right) / 2, HEIGHT - 6, self.shown.x.title, "middle", 11))
        return parts

    def _level(self, one: Level) -> list[str]:
        y, dashes = self._y(one.value), "6 4" if one.dashed else "1 4"
        return [
            f"<g><title>{escape(one.title)}: {in_unit(one.value, self.shown.y.unit)}</title>",
            f'<path d="M{LEFT} {y:.1f} H{self.right}" stroke="{one.colour}" stroke-dasharray="{dashes}" '
            'stroke-width="1.5" opacity=".8"/></g>',
        ]

    def _curve(self, one: Curve) -> list[str]:
        colour = one.glyph.colours[0]
        path = " ".join(
            f"{self._x(place):.1f},{self._y(value):.1f}"
            for place, value in zip(one.places, one.values[:, 0], strict=True)
        )
        parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>']
        for place, (value, low, high), tip in zip(one.places, one.values, one.tips, strict=True):
            x = self._x(place)
            parts += [
                f"<g><title>{escape(tip)}</title>",
                f'<path d="M{x:.1f} {self._y(low):.1f} V{self._y(high):.1f}" stroke="{colour}" opacity=".5"/>',
                *mark(x, self._y(value), one.glyph),
                "</g>",
            ]
        return parts
