"""Scatter plots as SVG text, with intervals, the front and labels. Torch-free, and without any library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 720, 430
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 20, 56
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#b8a000")
"""Okabe and Ito's, which people with any kind of colour vision can tell apart; grey and a darker yellow besides."""
SHAPES = ("circle", "square", "diamond", "triangle")
"""With the colour, so that colour alone says nothing."""

LONGEST_IN_TWO = 46
"""Letters of a legend's longest entry that leave room for another beside it."""


@dataclass(frozen=True)
class Point:
    """One point with its intervals."""

    x: float
    y: float
    x_interval: tuple[float, float]
    y_interval: tuple[float, float]
    group: str
    label: str
    """What is shown when it is pointed at."""
    mark: str = ""
    """Written beside it; points on the front have one."""
    on_front: bool = False


def scatter(points: Sequence[Point], x_label: str, y_label: str) -> str:
    """An ``<svg>`` element of all ``points``; colours and shapes by group, with a legend."""
    if not points:
        return ""
    groups = list(dict.fromkeys(point.group for point in points))
    columns = 2 if max(map(len, groups)) <= LONGEST_IN_TWO else 1
    across = _Scale([value for point in points for value in (point.x, *point.x_interval)], LEFT, WIDTH - RIGHT)
    legend = TOP + 18 * math.ceil(len(groups) / columns)
    down = _Scale([value for point in points for value in (point.y, *point.y_interval)], HEIGHT - BOTTOM, legend + 8)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(y_label)} against {escape(x_label)}" '
        'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12" fill="currentColor">',
        *_axes(across, down, x_label, y_label),
        *_front_line(points, across, down),
    ]
    for point in points:
        parts += _point(point, across, down, groups.index(point.group))
    parts += _legend(groups, columns)
    return "\n".join([*parts, "</svg>"])


class _Scale:
    """From values to places, with round ticks."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        low, high = min(values), max(values)
        margin = 0.05 * (high - low) or 0.5 * abs(high) or 0.5
        # What is never negative has no negative ticks; a point at zero stays clear of the axis all the same.
        self._low = low - margin if low < 0 else max(low - margin, -0.05 * (high or 1.0))
        self._high = high + margin
        self._begin, self._end = begin, end

    def __call__(self, value: float) -> float:
        share = (value - self._low) / (self._high - self._low)
        return self._begin + share * (self._end - self._begin)

    @property
    def ticks(self) -> list[float]:
        """Some four to six round values."""
        raw = (self._high - self._low) / 6
        power = 10 ** math.floor(math.log10(raw))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
        first = math.ceil(self._low / step)
        return [number * step for number in range(first, math.floor(self._high / step) + 1)]


def _axes(across: _Scale, down: _Scale, x_label: str, y_label: str) -> list[str]:
    bottom, top = HEIGHT - BOTTOM, down._end - 8
    parts = [f'<path d="M{LEFT} {top:.1f} V{bottom} H{WIDTH - RIGHT}" fill="none" stroke="currentColor" opacity=".5"/>']
    for value in across.ticks:
        place = across(value)
        parts.append(f'<path d="M{place:.1f} {bottom} v5" stroke="currentColor" opacity=".5"/>')
        parts.append(f'<text x="{place:.1f}" y="{bottom + 18}" text-anchor="middle">{value:.4g}</text>')
    for value in down.ticks:
        place = down(value)
        parts.append(f'<path d="M{LEFT} {place:.1f} H{WIDTH - RIGHT}" stroke="currentColor" opacity=".12"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{place + 4:.1f}" text-anchor="end">{value:.4g}</text>')
    middle = (top + bottom) / 2
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 14}" text-anchor="middle">{escape(x_label)}</text>'
    )
    parts.append(
        f'<text x="16" y="{middle:.1f}" text-anchor="middle" transform="rotate(-90 16 {middle:.1f})">'
        f"{escape(y_label)}</text>"
    )
    return parts


def _front_line(points: Sequence[Point], across: _Scale, down: _Scale) -> list[str]:
    best = sorted((point.x, point.y) for point in points if point.on_front)
    if len(best) < 2:
        return []
    path = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in best)
    return [f'<polyline points="{path}" fill="none" stroke="currentColor" stroke-dasharray="4 3" opacity=".6"/>']


def _point(point: Point, across: _Scale, down: _Scale, group: int) -> list[str]:
    x, y = across(point.x), down(point.y)
    colour = COLOURS[group % len(COLOURS)]
    left, right = (across(value) for value in point.x_interval)
    low, high = (down(value) for value in point.y_interval)
    parts = [
        f"<g><title>{escape(point.label)}</title>",
        f'<path d="M{left:.1f} {y:.1f} H{right:.1f} M{x:.1f} {low:.1f} V{high:.1f}" stroke="{colour}" opacity=".45"/>',
        _shape(x, y, _shape_of(group), colour, point.on_front),
    ]
    if point.mark:
        parts.append(f'<text x="{x + 7:.1f}" y="{y - 6:.1f}" font-size="11">{escape(point.mark)}</text>')
    return [*parts, "</g>"]


def _shape_of(group: int) -> str:
    """Another one each time the colours begin again, so that 32 groups look different."""
    return SHAPES[(group + group // len(COLOURS)) % len(SHAPES)]


def _shape(x: float, y: float, shape: str, colour: str, filled: bool) -> str:
    look = f'fill="{colour if filled else "none"}" stroke="{colour}" stroke-width="1.6"'
    size = 5.0
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" {look}/>'
    corners = {
        "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
        "diamond": [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
        "triangle": [(0, -1.2), (1.2, 1), (-1.2, 1)],
    }[shape]
    places = " ".join(f"{x + size * dx:.1f},{y + size * dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{places}" {look}/>'


def _legend(groups: Sequence[str], columns: int) -> list[str]:
    parts, width = [], (WIDTH - LEFT - RIGHT) / columns
    for index, group in enumerate(groups):
        x, y = LEFT + 8 + width * (index % columns), TOP + 18 * (index // columns)
        parts.append(_shape(x, y - 4, _shape_of(index), COLOURS[index % len(COLOURS)], True))
        parts.append(f'<text x="{x + 12:.1f}" y="{y}">{escape(group)}</text>')
    return parts
