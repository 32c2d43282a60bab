"""Colours and dashes of figures; the colour-blind can distinguish them too, and shapes do so without colour."""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import Qt

from paretone.figures.glyphs import CELLS_DARK, CELLS_LIGHT, SERIES_DARK, SERIES_LIGHT
from paretone_app.shell.colours import DARK, Colours

DASHES = (Qt.PenStyle.SolidLine, Qt.PenStyle.DashLine, Qt.PenStyle.DashDotLine, Qt.PenStyle.DotLine)


def series_colour(colours: Colours, index: int) -> str:
    """The colour of a series."""
    palette = SERIES_DARK if colours == DARK else SERIES_LIGHT
    return palette[index % len(palette)]


def magnitude_map(colours: Colours) -> pg.ColorMap:
    """Perceptually uniform, from the colour of the ground up."""
    return pg.colormap.get("magma" if colours == DARK else "CET-L17")


def category_colours(colours: Colours, count: int) -> tuple[str, ...]:
    """Fills of kinds; the first is that of what is not remarkable."""
    fills = CELLS_DARK if colours == DARK else CELLS_LIGHT
    return tuple((*fills, *(series_colour(colours, index) for index in range(2, count)))[:count])
