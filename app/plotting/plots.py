"""Drawing the panels of a figure as pyqtgraph plots."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor

from app.plotting.cells import Cells
from app.plotting.palette import DASHES, MARKS, category_colours, magnitude_map, series_colour
from app.plotting.reading import GROUP_WIDTH, bar_centre
from app.shell.theme import Colours, style_plot
from engine.views.figure import Bars, HeatMap, Lines, Panel

TITLE_POINTS = 10
_TICK_ROOM = (26, 16)
"""Pixels that a number needs along an axis and across it."""
_TICK_LETTERS = 26
"""Of all names of groups of bars together; more do not fit beside each other."""
_SHADES = 256
_LEGEND_SHARE = (0.7, 0.4)
"""What a legend may take of a plot, across and upwards."""
_LEGEND_POINTS = 40
"""Of each curve, to see where it runs."""

Ends = tuple[float, float]


class WholeAxis(pg.AxisItem):
    """Ticks at whole numbers only, as many as fit."""

    def tickSpacing(self, least: float, greatest: float, size: float) -> list[tuple[float, float]]:
        room = _TICK_ROOM[self.orientation in ("left", "right")]
        wanted = abs(greatest - least) * room / max(size, 1.0)
        return [(next((one for one in (1, 2, 3, 5, 10, 20, 50, 100) if one >= wanted), 1000), 0)]

    def tickValues(self, least: float, greatest: float, size: float) -> list[tuple[float, list[float]]]:
        ((spacing, _),) = self.tickSpacing(least, greatest, size)
        least, greatest = sorted((least, greatest))
        # From 1 on: steps and layers are counted so.
        first = 1 + spacing * math.ceil((least - 1) / spacing)
        return [(spacing, [first + spacing * index for index in range(int((greatest - first) // spacing) + 1)])]


def axes_for(panel: Panel) -> dict[str, pg.AxisItem]:
    """The axes that a plot of ``panel`` has to be made with."""
    return {side: WholeAxis(side) for side in ("bottom", "left")} if isinstance(panel, HeatMap) else {}


def draw(plot: pg.PlotItem, panel: Panel, colours: Colours, ends: Ends) -> None:
    """Draw ``panel`` in the empty ``plot``. The colours of a heat map go from one of ``ends`` to the other."""
    style_plot(plot, colours)
    plot.setMenuEnabled(False)
    plot.hideButtons()
    plot.setMouseEnabled(x=False, y=False)
    plot.setTitle(panel.title, color=colours.text, size=f"{TITLE_POINTS}pt")
    for side, axis in (("bottom", panel.x), ("left", panel.y)):
        plot.getAxis(side).enableAutoSIPrefix(False)
        plot.setLabel(side, axis.label, color=colours.muted)
    match panel:
        case HeatMap():
            _draw_heat_map(plot, panel, colours, ends)
        case Lines():
            _draw_lines(plot, panel, colours)
        case Bars():
            _draw_bars(plot, panel, colours)


def ends_of(panels: Sequence[Panel]) -> dict[str, Ends]:
    """The least and the greatest value of all heat maps whose colours mean the same, by that meaning."""
    values: dict[str, list[float]] = {}
    for panel in panels:
        if isinstance(panel, HeatMap) and not panel.categories:
            found = [value for row in panel.values for value in row if math.isfinite(value)]
            values.setdefault(panel.colour.label, []).extend(found)
    return {name: (min(found), max(found)) for name, found in values.items() if found}


def colour_scale(name: str, ends: Ends, colours: Colours) -> pg.ColorBarItem:
    """A bar that says what the colours of heat maps mean."""
    low, high = _apart(ends)
    bar = pg.ColorBarItem(
        values=(low, high), width=12, colorMap=magnitude_map(colours), interactive=False, rounding=1e-6
    )
    bar.axis.setPen(QColor(colours.border))
    bar.axis.setTextPen(QColor(colours.muted))
    bar.axis.enableAutoSIPrefix(False)
    bar.setLabel("right", name, color=colours.muted)
    return bar


def legend_text(names: Sequence[str], colours: Colours) -> str:
    """A legend of kinds as rich text."""
    fills = category_colours(colours, len(names))
    return "&nbsp;&nbsp;&nbsp;".join(
        f'<span style="color:{fill}">■</span> <span style="color:{colours.text}">{name}</span>'
        for name, fill in zip(names, fills, strict=True)
    )


def _draw_heat_map(plot: pg.PlotItem, panel: HeatMap, colours: Colours, ends: Ends) -> None:
    cells = Cells(panel.columns, panel.rows, panel.values, _shades(panel, colours, ends))
    plot.addItem(cells)
    view = plot.getViewBox()
    view.invertY(True)
    bounds = cells.boundingRect()
    view.setRange(bounds, padding=0)
    view.setLimits(xMin=bounds.left(), xMax=bounds.right(), yMin=bounds.top(), yMax=bounds.bottom())


def _shades(panel: HeatMap, colours: Colours, ends: Ends) -> Callable[[float], QColor]:
    if panel.categories:
        fills = [QColor(one) for one in category_colours(colours, len(panel.categories))]
        return lambda value: fills[int(value)]
    table = magnitude_map(colours).getLookupTable(nPts=_SHADES, alpha=False)
    low, high = _apart(ends)
    return lambda value: QColor(*map(int, table[round((value - low) / (high - low) * (_SHADES - 1))]))


def _draw_lines(plot: pg.PlotItem, panel: Lines, colours: Colours) -> None:
    legend = _legend(plot, colours)
    for index, curve in enumerate(panel.curves):
        colour = colours.muted if curve.reference else series_colour(colours, index)
        dash = Qt.PenStyle.DotLine if curve.reference else DASHES[index % len(DASHES)]
        if curve.low and any(map(math.isfinite, curve.low)):
            plot.addItem(_intervals(curve.x, curve.y, curve.low, curve.high, colour, _span(panel) / 60))
        item = plot.plot(
            np.array(curve.x),
            np.array(curve.y),
            pen=pg.mkPen(colour, width=2, style=dash),
            symbol=None if curve.reference and not curve.notes else MARKS[index % len(MARKS)],
            symbolSize=9,
            symbolPen=pg.mkPen(colours.base, width=1),
            symbolBrush=colour,
        )
        legend.addItem(item, curve.name)
    legend.setOffset(_emptiest_corner(panel))
    plot.showGrid(x=True, y=True, alpha=0.2)
    view = plot.getViewBox()
    view.enableAutoRange()
    view.setDefaultPadding(0.08)
    if _heights(panel).min() >= 0:
        # What cannot be negative shall not look as if it could; marks at zero keep some room.
        view.setLimits(yMin=-0.06 * (_heights(panel).max() or 1.0))


def _draw_bars(plot: pg.PlotItem, panel: Bars, colours: Colours) -> None:
    legend = _legend(plot, colours) if len(panel.series) > 1 else None
    width = GROUP_WIDTH / len(panel.series)
    for row, one in enumerate(panel.series):
        colour = series_colour(colours, row)
        shown = [column for column, value in enumerate(one.values) if math.isfinite(value)]
        places = [bar_centre(panel, row, column) for column in shown]
        heights = [one.values[column] for column in shown]
        brush = pg.mkBrush(colour) if row % 2 == 0 else _hatched(colour)
        bars = pg.BarGraphItem(x=places, height=heights, width=width * 0.92, brush=brush, pen=pg.mkPen(colour, width=1))
        plot.addItem(bars)
        if one.low:
            low, high = ([part[column] for column in shown] for part in (one.low, one.high))
            plot.addItem(_intervals(places, heights, low, high, colours.text, width / 4))
        if legend is not None:
            legend.addItem(bars, one.name)
    stride = -(-sum(map(len, panel.groups)) // _TICK_LETTERS)
    plot.getAxis("bottom").setTicks([list(enumerate(panel.groups))[::stride]])
    plot.showGrid(y=True, alpha=0.2)
    tops = [value for one in panel.series for value in (*one.values, *one.high) if math.isfinite(value)]
    # Room for the legend above the bars.
    plot.getViewBox().setRange(
        xRange=(-0.6, len(panel.groups) - 0.4),
        yRange=(0, max(tops, default=1.0) * (1.25 if legend is not None else 1.05) or 1.0),
        padding=0,
    )


def _hatched(colour: str) -> object:
    brush = pg.mkBrush(colour)
    brush.setStyle(Qt.BrushStyle.Dense4Pattern)
    return brush


def _legend(plot: pg.PlotItem, colours: Colours) -> pg.LegendItem:
    ground = QColor(colours.base)
    ground.setAlpha(200)
    legend = plot.addLegend(
        offset=(-8, 8), labelTextColor=colours.text, brush=pg.mkBrush(ground), pen=pg.mkPen(colours.border)
    )
    # It shrinks with the rest; see app.plotting.scaled_view.
    legend.setFlag(legend.GraphicsItemFlag.ItemIgnoresTransformations, False)
    return legend


def _intervals(
    x: Sequence[float], y: Sequence[float], low: Sequence[float], high: Sequence[float], colour: str, beam: float
) -> pg.ErrorBarItem:
    places, centres = np.array(x, float), np.array(y, float)
    return pg.ErrorBarItem(
        x=places,
        y=centres,
        top=np.array(high, float) - centres,
        bottom=centres - np.array(low, float),
        beam=beam,
        pen=pg.mkPen(colour, width=1.5),
    )


def _emptiest_corner(panel: Lines) -> tuple[int, int]:
    """The offset of a legend in the corner that the curves leave free, the upper right one where several are."""
    heights = _heights(panel)
    least, high = heights.min(), heights.max() - heights.min() or 1.0
    left, wide = min(x for one in panel.curves for x in one.x), _span(panel)
    across, up = [], []
    for one in panel.curves:
        places = np.linspace(min(one.x), max(one.x), _LEGEND_POINTS)
        order = np.argsort(one.x)
        across.append((places - left) / wide)
        up.append((np.interp(places, np.array(one.x)[order], np.array(one.y)[order]) - least) / high)
    x, y = np.concatenate(across), np.concatenate(up)

    def taken(corner: tuple[int, int]) -> int:
        beside = x > 1 - _LEGEND_SHARE[0] if corner[0] < 0 else x < _LEGEND_SHARE[0]
        level = y > 1 - _LEGEND_SHARE[1] if corner[1] > 0 else y < _LEGEND_SHARE[1]
        return int((beside & level).sum())

    return min(((-8, 8), (8, 8), (-8, -8), (8, -8)), key=taken)


def _heights(panel: Lines) -> np.ndarray:
    """Everything that is drawn along y."""
    drawn = np.array([value for one in panel.curves for value in (*one.y, *one.low, *one.high)], float)
    return drawn[np.isfinite(drawn)] if np.isfinite(drawn).any() else np.zeros(1)


def _span(panel: Lines) -> float:
    places = [x for curve in panel.curves for x in curve.x]
    return (max(places) - min(places)) or 1.0


def _apart(ends: Ends) -> Ends:
    low, high = ends
    return (low, high) if high > low else (low - 0.5, high + 0.5)
