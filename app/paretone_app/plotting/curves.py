"""Curves over one axis as a widget, with a cursor moved by mouse and arrow keys."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QGraphicsLineItem, QWidget

from paretone.figures.glyphs import CELLS_DARK, CELLS_LIGHT, SERIES_DARK, SERIES_LIGHT, SHAPES, Glyph
from paretone.figures.scatter import Dimension, Scale
from paretone_app.numbers import significant
from paretone_app.plotting.chart import Chart
from paretone_app.plotting.frame import Frame, Shape, Shapes, pen
from paretone_app.plotting.points import Points
from paretone_app.shell.colours import DARK, Colours

DASHES = (Qt.PenStyle.SolidLine, Qt.PenStyle.DashLine, Qt.PenStyle.DashDotLine, Qt.PenStyle.DotLine)


def series_colour(colours: Colours, index: int) -> str:
    palette = SERIES_DARK if colours == DARK else SERIES_LIGHT
    return palette[index % len(palette)]


def magnitude_map(colours: Colours) -> pg.ColorMap:
    """Perceptually uniform, starting at the background colour."""
    return pg.colormap.get("magma" if colours == DARK else "CET-L17")


def category_colours(colours: Colours, count: int) -> tuple[str, ...]:
    """Fill colours of categories; the first is for the ordinary one."""
    fills = CELLS_DARK if colours == DARK else CELLS_LIGHT
    return tuple((*fills, *(series_colour(colours, index) for index in range(2, count)))[:count])


_MOVES = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_PageDown: -10, Qt.Key.Key_PageUp: 10}
"""Positions to move by; for the page keys percent of all positions, at least one."""
_ENDS = (Qt.Key.Key_Home, Qt.Key.Key_End)
_MARK = 0.22


@dataclass(frozen=True)
class Series:
    """A curve; gaps where ``y`` is not finite."""

    name: str
    x: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    colour: str
    width: float = 2.0
    style: Qt.PenStyle = Qt.PenStyle.SolidLine
    mark: str = ""

    @property
    def glyph(self) -> Glyph:
        return Glyph((self.colour,), self.mark)


class CurveLayers:
    def __init__(self, frame: Frame, z: float) -> None:
        self.frame = frame
        self.curves: list[pg.PlotCurveItem] = []
        """Drawn curve per series, in units linear on the scales."""
        self._marks = Points(frame, z)

    def show(self, series: Sequence[Series], across: Scale, up: Scale) -> None:
        while len(self.curves) < len(series):
            self.curves.append(pg.PlotCurveItem(connect="finite"))
            self.frame.view.addItem(self.curves[-1], ignoreBounds=True)
        for number, item in enumerate(self.curves):
            item.setVisible(number < len(series))
        for one, item in zip(series, self.curves, strict=False):
            x, y = (_drawn(scale, values) for scale, values in ((across, one.x), (up, one.y)))
            # Width in pixels, although the curve is in data coordinates.
            item.setPen(pg.mkPen(one.colour, width=one.width, style=one.style))
            item.setData(x, y, antialias=len(x) < 2000, connect="finite")  # It slows thick lines.
        marked = [one for one in series if one.mark]
        self._marks.across = np.concatenate([np.empty(0), *(one.x for one in marked)])
        self._marks.up = np.concatenate([np.empty(0), *(one.y for one in marked)])
        self._marks.glyphs = [glyph for one in marked for glyph in [one.glyph] * len(one.x)]
        self._marks.order, self._marks.radius = np.arange(len(self._marks.across)), _MARK * self.frame.em
        self._marks.redraw()


class CurveChart(Chart):
    """Left and right move by one position, Page Up and Page Down by a tenth, Home and End to the ends."""

    own_keys = (*_MOVES, *_ENDS)

    def __init__(self, name: str, x: Dimension, y: Dimension, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(name, colours, parent)
        self._x, self._y = x, y
        self.frame.bottom.set_title(x)
        self.frame.left.set_title(y)
        self.series: tuple[Series, ...] = ()
        self._level, self._drawn = Shapes(self.frame, 1), CurveLayers(self.frame, 2)
        self._line = QGraphicsLineItem(self.frame)
        self._line.setZValue(3)
        self._line.hide()
        self._places = np.empty(0)
        self._at: float | None = None
        self.summary = ""
        """Text without a cursor."""
        self.frame.changed.connect(self._place_line)

    def show_series(
        self, series: Sequence[Series], across: Scale, up: Scale, level: Shape | None = None, summary: str = ""
    ) -> None:
        self.series, self.summary = tuple(series), summary
        self._drawn.show(series, across, up)
        self._level.shapes = [] if level is None else [level]
        self._places = np.unique(np.concatenate([np.empty(0), *(one.x for one in series)]))
        if not len(self._places):
            self._at = None
        self.frame.set_scales(across, up)
        self.refresh()

    @property
    def curves(self) -> list[pg.PlotCurveItem]:
        return self._drawn.curves

    def cursor_text(self) -> str:
        return self.summary if self._at is None else self._words(self._at)

    def _words(self, place: float) -> str:
        found = []
        for one in self.series:
            index = np.flatnonzero(one.x == place)
            if len(index) and np.isfinite(one.y[index[0]]):
                found.append(f"{one.name} {significant(one.y[index[0]])}")
        return f"{self._x.short or self._x.title} {place:.6g}: {', '.join(found) or 'nothing'}"

    def tip_at(self, place: QPointF) -> tuple[str, QRectF] | None:
        nearest = self._nearest(place)
        return None if nearest is None else (self._words(nearest), QRectF(self.rect()))

    def _nearest(self, place: QPointF) -> float | None:
        if not len(self._places) or not self.frame.area.contains(place):
            return None
        return float(self._places[np.argmin(np.abs(self.frame.to_x(self._places) - place.x()))])

    def as_text(self) -> str:
        lines = ["\t".join([self._x.title, *(one.name for one in self.series)])]
        columns = [dict(zip(one.x.tolist(), one.y.tolist(), strict=True)) for one in self.series]
        for place in self._places.tolist():
            cells = [f"{one[place]:.6g}" if np.isfinite(one.get(place, np.nan)) else "" for one in columns]
            lines.append("\t".join([f"{place:.6g}", *cells]))
        return "\n".join(lines)

    def refresh(self) -> None:
        super().refresh()
        self._place_line()

    def _place_line(self) -> None:
        self._line.setVisible(self._at is not None)
        if self._at is not None:
            x, area = float(self.frame.to_x(self._at)), self.frame.area
            self._line.setPen(pen(self.colours.danger, 2 if self.hasFocus() else 1))
            self._line.setLine(x, area.top(), x, area.bottom())

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._place_line()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._at = self._nearest(event.position())
        self.refresh()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if key not in self.own_keys or event.modifiers() & ~self.own_modifiers or not len(self._places):
            super().keyPressEvent(event)
            return
        last = len(self._places) - 1
        if key in _ENDS:
            at = last if key == Qt.Key.Key_End else 0
        elif self._at is None:
            at = last
        else:
            by = _MOVES[key]
            far = by * len(self._places) // 100 if abs(by) > 1 else by
            at = int(np.searchsorted(self._places, self._at)) + (far or (1 if by > 0 else -1))
        self._at = float(self._places[min(max(at, 0), last)])
        self.refresh()


def _drawn(scale: Scale, values: np.ndarray) -> np.ndarray:
    """Values in units linear on the scale; gaps for non-positive values on a logarithmic one."""
    values = np.asarray(values, float)
    return np.where(values > 0, scale.even(values), np.nan) if scale.logarithmic else values


def shape_of(index: int) -> str:
    return SHAPES[index % len(SHAPES)]
