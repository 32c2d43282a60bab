"""Drawing a panel of a figure in a frame: a heat map, curves, or groups of bars."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPicture
from PySide6.QtWidgets import QGraphicsObject, QStyleOptionGraphicsItem, QWidget

from paretone.figures.scatter import Dimension, Scale
from paretone.views.figure import Axis, Bars, BarSeries, Curve, HeatMap, Lines, Panel
from paretone_app.numbers import general
from paretone_app.plotting.curves import (
    DASHES,
    CurveLayers,
    Series,
    category_colours,
    magnitude_map,
    series_colour,
    shape_of,
)
from paretone_app.plotting.frame import Block, Blocks, Frame, pen
from paretone_app.plotting.points import Beams, IntervalMark, Rings
from paretone_app.plotting.words import Entry, Legend
from paretone_app.shell.colours import Colours

_OVERLAP = 0.01
"""Share of a cell by which neighbours overlap, to hide seams."""


class Cells(QGraphicsObject):
    """Equal cells centred on columns and rows; non-finite values are left empty."""

    def __init__(self) -> None:
        super().__init__()
        self._bounds = QRectF()
        self._picture = QPicture()

    def show_cells(
        self,
        columns: Sequence[float],
        rows: Sequence[float],
        values: Sequence[Sequence[float]],
        colour: Callable[[float], QColor],
    ) -> QRectF:
        self.prepareGeometryChange()
        across, down = _step(columns), _step(rows)
        self._bounds = QRectF(columns[0] - across / 2, rows[0] - down / 2, across * len(columns), down * len(rows))
        self._picture = QPicture()
        with QPainter(self._picture) as painter:
            for y, row in zip(rows, values, strict=True):
                for x, value in zip(columns, row, strict=True):
                    if math.isfinite(value):
                        cell = QRectF(x - across / 2, y - down / 2, across * (1 + _OVERLAP), down * (1 + _OVERLAP))
                        painter.fillRect(cell.intersected(self._bounds), colour(value))
        self.update()
        return self._bounds

    def boundingRect(self) -> QRectF:
        return self._bounds

    def paint(self, painter: QPainter, _option: QStyleOptionGraphicsItem, _widget: QWidget | None = None) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        self._picture.play(painter)


def _step(places: Sequence[float]) -> float:
    return (places[-1] - places[0]) / (len(places) - 1) if len(places) > 1 else 1.0


def shape(panel: Panel) -> tuple[int, int]:
    if isinstance(panel, HeatMap):
        return len(panel.rows), len(panel.columns)
    if isinstance(panel, Bars):
        return len(panel.series), len(panel.groups)
    return len(panel.curves), max((len(curve.x) for curve in panel.curves), default=0)


def within(panel: Panel, row: int, column: int) -> tuple[int, int]:
    rows, columns = shape(panel)
    row = min(max(row, 0), rows - 1)
    if isinstance(panel, Lines):
        columns = len(panel.curves[row].x)
    return row, min(max(column, 0), columns - 1)


def position(panel: Panel, row: int, column: int) -> tuple[float, float]:
    """Position of a point, in the panel's units; bars are grouped around integers."""
    if isinstance(panel, HeatMap):
        return panel.columns[column], panel.rows[row]
    if isinstance(panel, Bars):
        return bar_centre(panel, row, column), panel.series[row].values[column]
    curve = panel.curves[row]
    return curve.x[column], curve.y[column]


GROUP_WIDTH = 0.8
"""Width of a group of bars, as a share of the distance between groups."""


def bar_centre(panel: Bars, row: int, column: int) -> float:
    return column + GROUP_WIDTH * ((row + 0.5) / len(panel.series) - 0.5)


def words(panel: Panel, row: int, column: int) -> str:
    """A point with its value, interval and note."""
    if isinstance(panel, HeatMap):
        value = panel.values[row][column]
        place = f"{_at(panel.y, panel.rows[row])}, {_at(panel.x, panel.columns[column]).lower()}"
        if panel.categories:
            return f"{panel.title}. {place}: {panel.categories[int(value)]}"
        return f"{panel.title}. {place}: {_value(panel.colour, value)}"
    one: BarSeries | Curve
    if isinstance(panel, Bars):
        one, value = panel.series[row], panel.series[row].values[column]
        head = f"{one.name}, {panel.groups[column]}"
    else:
        one, value = panel.curves[row], panel.curves[row].y[column]
        head = f"{one.name}, {_value(panel.x, panel.curves[row].x[column])}"
    text = f"{head}: {_value(panel.y, value)}"
    if one.low and math.isfinite(one.low[column]):
        text += f" (95 % interval {general(one.low[column], 3)} to {general(one.high[column], 3)})"
    return f"{text}, {one.notes[column]}" if one.notes else text


def nearest(panel: Panel, x: float, y: float, width: float, height: float) -> tuple[int, int]:
    """The point nearest to a place. ``width`` and ``height`` are the visible ranges, to weight both axes equally.
    All in units linear on the axes: values or their logarithms."""
    rows, columns = shape(panel)
    points = (
        (row, column) for row in range(rows) for column in range(columns) if within(panel, row, column)[1] == column
    )

    def far(point: tuple[int, int]) -> float:
        places = zip((panel.x, panel.y), position(panel, *point), strict=True)
        across, up = (float(axis.even(np.array(figure))) for axis, figure in places)
        # Bars extend over their whole column.
        vertical = 0.0 if isinstance(panel, Bars) else (up - y) / height
        distance = ((across - x) / width) ** 2 + vertical**2
        return distance if math.isfinite(distance) else math.inf

    return min(points, key=far)


def _at(axis: Axis, value: float) -> str:
    return f"{axis.title} {general(value)}"


def _value(axis: Axis, value: float) -> str:
    if not math.isfinite(value):
        return "not measured"
    unit = f" {axis.unit}" if axis.unit and axis.unit != "natural-log units" else ""
    return f"{general(value, 3)}{unit}"


_SHADES = 256
_CORNERS = ((1, 1), (-1, 1), (1, -1), (-1, -1))
_WIDEST_BEAM = 5.0

Ends = tuple[float, float]


class PanelLayers:
    """Draws panels one after the other, reusing its graphics items."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self._cells = Cells()
        frame.view.addItem(self._cells, ignoreBounds=True)
        self._bars, self._beams = Blocks(frame, 1), Beams(frame, 2)
        self._curves = CurveLayers(frame, 3)
        self.legend = Legend(frame, 4)
        self.mark = Rings(frame, 5)
        self._lines: tuple[Lines, Scale, Scale] | None = None

    def show(self, panel: Panel, ends: Ends) -> None:
        """Draw ``panel``; the colours of a heat map span ``ends``."""
        frame = self.frame
        frame.set_title(panel.title)
        frame.bottom.set_title(Dimension(panel.x.label, panel.x.title))
        frame.left.set_title(Dimension(panel.y.label, panel.y.title))
        frame.bottom.set_names(None)
        for axis in (frame.bottom, frame.left):
            axis.choose = None
        self._cells.setVisible(isinstance(panel, HeatMap))
        self._bars.blocks, self._beams.intervals, self.legend.entries = [], [], []
        self.mark.show_rings([], pen(frame.colours.danger))
        self._curves.show([], frame.across, frame.up)
        self._lines = None
        match panel:
            case HeatMap():
                self._show_heat_map(panel, ends)
            case Lines():
                self._show_lines(panel)
            case Bars():
                self._show_bars(panel)

    def _show_heat_map(self, panel: HeatMap, ends: Ends) -> None:
        shades = _shades(panel, self.frame.colours, ends)
        bounds = self._cells.show_cells(panel.columns, panel.rows, panel.values, shades)
        across, up = Scale(bounds.left(), bounds.right()), Scale(bounds.bottom(), bounds.top())
        for axis, low, high in (
            (self.frame.bottom, panel.columns[0], panel.columns[-1]),
            (self.frame.left, panel.rows[0], panel.rows[-1]),
        ):
            axis.choose = lambda most, low=low, high=high: whole_numbers(low, high, most)
        self.frame.set_scales(across, up)

    def _show_lines(self, panel: Lines) -> None:
        colours, drawn, intervals = self.frame.colours, [], []
        for index, curve in enumerate(panel.curves):
            colour = colours.muted if curve.reference else series_colour(colours, index)
            style = Qt.PenStyle.DotLine if curve.reference else DASHES[index % len(DASHES)]
            mark = "" if curve.reference and not curve.notes else shape_of(index)
            drawn.append(Series(curve.name, np.array(curve.x), np.array(curve.y), colour, 2.0, style, mark))
            ends = zip(curve.x, curve.low, curve.high, strict=False)
            intervals += [IntervalMark(*one, colour) for one in ends if all(map(math.isfinite, one))]
        places = sorted({x for curve in panel.curves for x in curve.x})
        across = Scale.of(np.array(places), panel.x.logarithmic)
        if np.allclose(np.diff(across.share(np.array(places)), 2), 0.0):  # Evenly spaced.
            self.frame.bottom.choose = lambda most: places if len(places) <= most else across.ticks(most)
        up = Scale.of(_heights(panel), panel.y.logarithmic)
        if _heights(panel).min() >= 0 and not up.logarithmic:
            # Do not suggest negative values for quantities that cannot be negative; leave room for marks at zero.
            up = Scale(max(up.low, -0.06 * (_heights(panel).max() or 1.0)), up.high)
        self._beams.intervals, self._beams.beam = intervals, _WIDEST_BEAM
        self.legend.entries = [
            Entry(one.name, line=pen(one.colour, one.width, one.style), glyph=one.glyph if one.mark else None)
            for one in drawn
        ]
        self._lines = panel, across, up
        self._curves.show(drawn, across, up)
        self.frame.set_scales(across, up)

    def place_legend(self) -> None:
        """Move the legend of curves into a free corner; without one, lengthen the Y axis until there is."""
        area, box, em = self.frame.area, self.legend.box, self.frame.em
        if self._lines is None or area.isEmpty():
            return
        panel, across, up = self._lines
        points, references = (curve_points(panel, across, up, reference) for reference in (False, True))
        wide, high = (box.width() + em) / area.width(), (box.height() + em) / area.height()
        self.legend.corner, longer = free_corner(points, references, wide, min(high, 0.6))  # The curves keep some room.
        self.frame.set_scales(across, replace(up, high=up.at(1 + longer)))

    def _show_bars(self, panel: Bars) -> None:
        colours, width, blocks, intervals = self.frame.colours, GROUP_WIDTH / len(panel.series), [], []
        for row, one in enumerate(panel.series):
            fill = _bar_fill(colours, row)
            for column, value in enumerate(one.values):
                if math.isfinite(value):
                    place = bar_centre(panel, row, column)
                    ends = place - 0.46 * width, place + 0.46 * width
                    blocks.append(Block(ends, (0.0, value), fill, pen(series_colour(colours, row))))
                    intervals += [IntervalMark(place, one.low[column], one.high[column])] if one.low else []
        several = len(panel.series) > 1
        tops = [value for one in panel.series for value in (*one.values, *one.high) if math.isfinite(value)]
        self._bars.blocks, self._beams.intervals, self._beams.beam = blocks, intervals, _WIDEST_BEAM
        if several:
            self.legend.entries = [Entry(one.name, _bar_fill(colours, row)) for row, one in enumerate(panel.series)]
            self.legend.corner = (1, 1)
        stride = -(-sum(map(len, panel.groups)) // 26)  # Letters that fit in a row.
        self.frame.bottom.set_names([(float(at), name) for at, name in enumerate(panel.groups)][::stride])
        # Space for the legend above the bars.
        top = max(tops, default=1.0) * (1.25 if several else 1.05) or 1.0
        self.frame.set_scales(Scale(-0.6, len(panel.groups) - 0.4), Scale(0.0, top))


class ColourScale:
    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self._strip = pg.ImageItem(np.linspace(0.0, 1.0, _SHADES)[None, :])
        frame.view.addItem(self._strip, ignoreBounds=True)
        frame.bottom.hide()

    def show(self, name: str, ends: Ends) -> None:
        low, high = _apart(ends)
        self._strip.setColorMap(magnitude_map(self.frame.colours))
        self._strip.setRect(QRectF(0.0, low, 1.0, high - low))
        self.frame.left.set_title(Dimension(name))
        self.frame.set_scales(Scale(0.0, 1.0), Scale(low, high))


def ends_of(panels: Sequence[Panel]) -> dict[str, Ends]:
    """Least and greatest value of all heat maps with the same colour label, by label."""
    values: dict[str, list[float]] = {}
    for panel in panels:
        if isinstance(panel, HeatMap) and not panel.categories:
            found = [value for row in panel.values for value in row if math.isfinite(value)]
            values.setdefault(panel.colour.label, []).extend(found)
    return {name: (min(found), max(found)) for name, found in values.items() if found}


def legend_text(names: Sequence[str], colours: Colours) -> str:
    fills = category_colours(colours, len(names))
    return "&nbsp;&nbsp;&nbsp;".join(
        f'<span style="color:{fill}">■</span> <span style="color:{colours.text}">{name}</span>'
        for name, fill in zip(names, fills, strict=True)
    )


def whole_numbers(least: float, greatest: float, most: int) -> list[float]:
    """Evenly spaced whole numbers, at most this many, starting from 1 like steps and layers."""
    wanted = (greatest - least) / max(1, most)
    spacing = next((one for one in (1, 2, 3, 5, 10, 20, 50, 100, 200, 500) if one >= wanted), 1000)
    first = 1 + spacing * math.ceil((least - 1) / spacing)
    return [float(first + spacing * index) for index in range(int((greatest - first) // spacing) + 1)]


def curve_points(panel: Lines, across: Scale, up: Scale, reference: bool) -> np.ndarray:
    """Points along curves, references or others, and the ends of their intervals, (n, 2), as shares of both axes."""
    found = [np.empty((0, 2))]
    for one in (curve for curve in panel.curves if curve.reference is reference):
        order = np.argsort(one.x)
        x, *others = (np.array(part, float)[order] for part in (one.x, one.y, one.low, one.high) if part)
        x, heights = across.share(x), [up.share(part) for part in others]
        along = np.linspace(x[0], x[-1], 40)
        found += [np.c_[along, np.interp(along, x, heights[0])], *(np.c_[x, ends] for ends in heights[1:])]
    points = np.concatenate(found)
    return points[np.isfinite(points).all(axis=1)]


def free_corner(points: np.ndarray, references: np.ndarray, wide: float, high: float) -> tuple[tuple[int, int], float]:
    """Corner (as :attr:`Legend.corner`) for a legend that takes the shares ``wide`` and ``high`` of a plot, and the
    share by which the Y axis must grow so that it covers none of ``points``, and few of ``references``. It grows only
    upwards: many figures are never negative."""

    def heights(corner: tuple[int, int], of: np.ndarray) -> np.ndarray:
        near = of[of[:, 0] > 1 - wide] if corner[0] > 0 else of[of[:, 0] < wide]
        return near[:, 1] if corner[1] > 0 else 1 - near[:, 1]

    def growth(corner: tuple[int, int]) -> float:
        needed = max(0.0, float(heights(corner, points).max(initial=0.0)) / (1 - high) - 1)
        return math.inf if needed and corner[1] < 0 else needed

    corner = min(_CORNERS, key=lambda one: (growth(one), int((heights(one, references) > 1 - high).sum())))
    return corner, growth(corner)


def _shades(panel: HeatMap, colours: Colours, ends: Ends) -> Callable[[float], QColor]:
    if panel.categories:
        fills = [QColor(one) for one in category_colours(colours, len(panel.categories))]
        return lambda value: fills[int(value)]
    table = magnitude_map(colours).getLookupTable(nPts=_SHADES, alpha=False)
    low, high = _apart(ends)
    return lambda value: QColor(*map(int, table[round((value - low) / (high - low) * (_SHADES - 1))]))


def _bar_fill(colours: Colours, row: int) -> QBrush | QColor:
    colour = QColor(series_colour(colours, row))
    return colour if row % 2 == 0 else QBrush(colour, Qt.BrushStyle.Dense4Pattern)


def _heights(panel: Lines) -> np.ndarray:
    """All finite y values, interval ends included."""
    drawn = np.array([value for one in panel.curves for value in (*one.y, *one.low, *one.high)], float)
    return drawn[np.isfinite(drawn)] if np.isfinite(drawn).any() else np.zeros(1)


def _apart(ends: Ends) -> Ends:
    low, high = ends
    return (low, high) if high > low else (low - 0.5, high + 0.5)
