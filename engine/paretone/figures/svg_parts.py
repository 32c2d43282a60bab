"""Text, marks and legends as SVG, in the page's own text colour; what all plots of reports are made of. Torch-free."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from paretone.figures.glyphs import FILLED, Glyph, corners, part
from paretone.figures.scatter import Dimension

_NO_XML = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
"""Source: W3C, Extensible Markup Language 1.0, production Char."""
RADIUS = 5.0
LINE = 18
"""Distance of lines of text."""


def escape(words: str) -> str:
    """``words`` for a text or an attribute; characters that XML cannot hold, such as control characters, are shown as
    �."""
    return html.escape(_NO_XML.sub("�", words))


def label(x: float, y: float, words: str, anchor: str = "start", size: int = 12) -> str:
    """``words`` at a place; ``anchor``: which end of them is there."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'


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
