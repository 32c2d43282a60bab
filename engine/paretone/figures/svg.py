"""Plots as SVG elements of a page, without display and libraries, in the page's own text colour. Torch-free."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence

import numpy as np

from paretone.figures.glyphs import FILLED, Glyph, corners, part
from paretone.figures.scatter import Corners, Dimension, Scale, Scatter, tick_texts

_NO_XML = "[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]"
"""Source: W3C, Extensible Markup Language 1.0, production Char."""
RADIUS = 5.0
LINE = 18


def escape(words: str) -> str:
    """``words`` as text or attribute; characters not allowed in XML, such as control characters, become �."""
    return html.escape(re.sub(_NO_XML, "�", words))


def label(x: float, y: float, words: str, anchor: str = "start", size: int = 12) -> str:
    """``words`` at a place; ``anchor``: their end at this place."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'


def picture(width: float, height: float, attributes: str, parts: Sequence[str]) -> str:
    opening = (
        f'<svg viewBox="0 0 {width} {height}" {attributes} '
        'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12" fill="currentColor">'
    )
    return "\n".join([opening, *parts, "</svg>"])


def better(along: Dimension, first: float, last: float, level: float) -> str:
    """The word "better" at the better end of an axis."""
    if not along.towards:
        return ""
    at_end = along.towards.endswith("→")
    return label(last if at_end else first, level, along.towards, "end" if at_end else "start", 11)


def mark(x: float, y: float, glyph: Glyph) -> list[str]:
    """A shape, in slices if it has several colours."""
    found: list[str] = []
    count = len(glyph.colours)
    for number, colour in enumerate(glyph.colours):
        look = f'fill="{colour if glyph.look == FILLED else "none"}" stroke="{colour}" stroke-width="1.6"'
        if count == 1 and not corners(glyph.shape):
            found.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" {look}/>')
            continue
        around = part(glyph.shape, number, count)
        path = " ".join(f"{x + RADIUS * dx:.1f},{y - RADIUS * dy:.1f}" for dx, dy in around)
        found.append(f'<polygon points="{path}" {look}/>')
    return found


def legend(entries: Sequence[tuple[Glyph, str]], left: float, right: float, top: float, columns: int) -> list[str]:
    """Marks with their titles, in ``columns``, from ``top`` on."""
    parts: list[str] = []
    width = (right - left) / columns
    for index, (glyph, title) in enumerate(entries):
        x, y = left + 8 + width * (index % columns), top + LINE * (index // columns)
        parts += [*mark(x, y - 4, glyph), label(x + 12, y, title)]
    return parts


class Plane:
    """The area of a plot between its axes, with a scale along each."""

    def __init__(self, scales: tuple[Scale, Scale], left: float, top: float, right: float, bottom: float) -> None:
        self.across, self.up = scales
        self.left, self.top, self.right, self.bottom = left, top, right, bottom

    def frame(self) -> str:
        along = f"M{self.left} {self.top:.1f} V{self.bottom} H{self.right}"
        return f'<path d="{along}" fill="none" stroke="currentColor" opacity=".5"/>'

    def _x(self, value: float) -> float:
        return self.left + float(self.across.share(np.array(value))) * (self.right - self.left)

    def _y(self, value: float) -> float:
        return self.bottom - float(self.up.share(np.array(value))) * (self.bottom - self.top)


# --- Scatter plots ----------------------------------------------------------------------------------------------------
WIDTH, HEIGHT = 720, 430
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 20, 56
_TICKS_ACROSS, _TICKS_UP = 8, 6
_LONGEST_IN_TWO = 46
"""Maximum number of letters in a legend's entries for two columns."""


def draw(shown: Scatter) -> str:
    """An ``<svg>`` element of ``shown``, with its legend above; ``""`` without points."""
    if not shown.glyphs:
        return ""
    columns = 2 if max((len(title) for _, title in shown.legend), default=0) <= _LONGEST_IN_TWO else 1
    top = TOP + LINE * math.ceil(len(shown.legend) / columns)
    named = f"{escape(shown.y.title)} against {escape(shown.x.title)}"
    parts = [*_Plot(shown, top).parts(), *legend(shown.legend, LEFT, WIDTH - RIGHT, TOP, columns)]
    return picture(WIDTH, HEIGHT, f'role="img" aria-label="{named}"', parts)


class _Plot(Plane):
    def __init__(self, shown: Scatter, top: float) -> None:
        super().__init__(shown.scales(), LEFT, top, WIDTH - RIGHT, HEIGHT - BOTTOM)
        self.shown = shown

    def parts(self) -> list[str]:
        edge, _ = self.shown.edge(self.across, self.up)
        points = [self._point(index) for index in range(len(self.shown.glyphs))]
        return [*self._axes(), *self._line(edge), *points]

    def _axes(self) -> list[str]:
        middle, centre, bottom = (self.top + self.bottom) / 2, (LEFT + self.right) / 2, self.bottom
        parts = [self.frame()]
        across, up = self.across.ticks(_TICKS_ACROSS), self.up.ticks(_TICKS_UP)
        for value, text in zip(across, tick_texts(across, self.shown.x.unit), strict=True):
            parts.append(f'<path d="M{self._x(value):.1f} {bottom} v5" stroke="currentColor" opacity=".5"/>')
            parts.append(label(self._x(value), bottom + LINE, text, "middle"))
        for value, text in zip(up, tick_texts(up, self.shown.y.unit), strict=True):
            parts.append(f'<path d="M{LEFT} {self._y(value):.1f} H{self.right}" stroke="currentColor" opacity=".12"/>')
            parts.append(label(LEFT - 8, self._y(value) + 4, text, "end"))
        parts.append(label(centre, HEIGHT - 14, self.shown.x.title, "middle"))
        parts.append(better(self.shown.x, LEFT, self.right, HEIGHT - 14))
        parts.append(f'<g transform="translate(16 {middle:.1f}) rotate(-90)">')
        half = (self.bottom - self.top) / 2
        parts += [label(0, 0, self.shown.y.title, "middle"), better(self.shown.y, -half, half, 0), "</g>"]
        return parts

    def _line(self, edge: Corners) -> list[str]:
        if len(self.shown.front) < 2:
            return []
        path = " ".join(f"{self._x(x):.1f},{self._y(y):.1f}" for x, y in edge)
        return [f'<polyline points="{path}" fill="none" stroke="currentColor" stroke-dasharray="4 3" opacity=".6"/>']

    def _point(self, index: int) -> str:
        shown, glyph = self.shown, self.shown.glyphs[index]
        x, left, right = map(self._x, shown.across[index])
        y, low, high = map(self._y, shown.up[index])
        lines = f"M{left:.1f} {y:.1f} H{right:.1f} M{x:.1f} {low:.1f} V{high:.1f}"
        parts = [
            f"<g><title>{escape(shown.tips[index])}</title>",
            f'<path d="{lines}" stroke="{glyph.colours[0]}" opacity=".45"/>',
            *mark(x, y, glyph),
        ]
        if index in shown.doubtful:
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="9" fill="none" stroke="currentColor" stroke-dasharray="3 2"/>'
            )
        if shown.labels[index]:
            parts.append(label(x + 7, y - 6, shown.labels[index], "start", 11))
        return "\n".join([*parts, "</g>"])
