"""Plots along time, and what draws a sound in them."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from pyqtgraph.GraphicsScene.mouseEvents import MouseClickEvent, MouseDragEvent
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor, QLinearGradient, QPainter, QPaintEvent
from PySide6.QtWidgets import QGraphicsGridLayout, QSizePolicy, QWidget

from paretone_app.plotting.frame import BareAxis
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import SMALL, TIGHT, text_font
from paretone_app.widgets.screen_readers import CHART, PICTURE


class ColourScale(QWidget):
    """A thin strip that says what the colours mean."""

    screen_role = PICTURE

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self._texts = ("", "", "")
        self._colours = _colours_of(pg.colormap.get("magma"))
        self._text = QColor()
        metrics = self.fontMetrics()
        self._strip = max(6, metrics.height() // 2)
        self.setFixedWidth(self._strip + 4 + metrics.horizontalAdvance("−70 "))
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Ignored)

    def set_map(self, colours: pg.ColorMap, theme: Colours) -> None:
        self._colours, self._text = _colours_of(colours), QColor(theme.muted)
        self.update()

    def set_ends(self, top: str, unit: str, bottom: str) -> None:
        self._texts = (top, unit, bottom)
        self.setAccessibleDescription(f"{bottom} to {top} {unit}")
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            gradient = QLinearGradient(0, self.height(), 0, 0)
            gradient.setStops(self._colours)
            painter.fillRect(0, 0, self._strip, self.height(), gradient)
            painter.setPen(self._text)
            painter.setFont(text_font(painter.font(), SMALL))
            area = self.rect().adjusted(self._strip + 3, 0, 0, 0)
            across = (Qt.AlignmentFlag.AlignTop, Qt.AlignmentFlag.AlignVCenter, Qt.AlignmentFlag.AlignBottom)
            for text, where in zip(self._texts, across, strict=True):
                if where is Qt.AlignmentFlag.AlignVCenter and self.height() < 3 * painter.fontMetrics().height():
                    continue
                painter.drawText(area, where | Qt.AlignmentFlag.AlignLeft, text)


def _colours_of(colours: pg.ColorMap) -> list[tuple[float, QColor]]:
    """Some of the map's colours, from its lower end (0) to its upper one (1)."""
    shares = np.linspace(0, 1, 24)
    return list(zip(shares.tolist(), colours.map(shares, mode="qcolor"), strict=True))


def outline(samples: np.ndarray, rate: int, start: float, end: float, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (seconds, amplitude) of a line that fills the waveform between ``start`` and ``end`` seconds.

    No sample is missed: where several fall on one of the ``columns``, the line visits their least and greatest value.
    With fewer samples than columns these are the samples themselves.
    """
    first = max(0, int(np.floor(start * rate)))
    last = min(len(samples), int(np.ceil(end * rate)) + 1)
    part = samples[first:last]
    if len(part) <= 2 * max(1, columns):
        return np.arange(first, first + len(part)) / rate, part
    per_column = -(-len(part) // columns)
    whole = len(part) // per_column
    head = part[: whole * per_column].reshape(whole, per_column)
    lowest, highest = head.min(axis=1), head.max(axis=1)
    rest = part[whole * per_column :]
    if len(rest):
        lowest, highest = np.append(lowest, rest.min()), np.append(highest, rest.max())
    times = np.repeat((first + per_column * (np.arange(len(lowest)) + 0.5)) / rate, 2)
    values = np.empty(2 * len(lowest), part.dtype)
    values[0::2], values[1::2] = lowest, highest
    return times, values


class _Plot(pg.GraphicsView):
    """A view with an axis on its left, and perhaps one under it. What a :class:`pyqtgraph.PlotWidget` has in addition,
    menus, buttons and further axes, takes longer to make than the rest of the panel."""

    screen_role = CHART

    def __init__(self, view: pg.ViewBox, bottom: BareAxis | None = None) -> None:
        super().__init__()
        self.view, self.left = view, BareAxis("left")
        """Where things are drawn, and the numbers up."""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.enableMouse(False)
        self.whole = pg.GraphicsWidget()
        layout = QGraphicsGridLayout(self.whole)
        layout.setContentsMargins(TIGHT, TIGHT, TIGHT, TIGHT)
        layout.setSpacing(0)
        layout.setRowStretchFactor(0, 100)
        layout.setColumnStretchFactor(1, 100)
        layout.addItem(view, 0, 1)
        for axis, row, column in ((self.left, 0, 0), (bottom, 1, 1)):
            if axis is None:
                continue
            axis.enableAutoSIPrefix(False)
            axis.linkToView(view)
            axis.setZValue(0.5)
            layout.addItem(axis, row, column)
        self.setCentralItem(self.whole)


class TimePlot(_Plot):
    """One plot over time: a curve or an image, a playhead and a region."""

    def __init__(self, name: str) -> None:
        super().__init__(TimeView())
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setMinimumHeight(24)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self.left.setWidth(self.fontMetrics().horizontalAdvance("500 Hz") + 8)
        self.image = pg.ImageItem(axisOrder="col-major", autoDownsample=True)
        self.curve = pg.PlotCurveItem()
        self.region = pg.LinearRegionItem(movable=True)
        self.region.setVisible(False)
        self.playhead = pg.InfiniteLine(0, angle=90)
        for item in (self.image, self.curve, self.region, self.playhead):
            self.view.addItem(item, ignoreBounds=True)

    def set_colours(self, colours: Colours, faint: bool) -> None:
        """Follow the theme. ``faint`` regions leave the colours of a picture under them readable."""
        self.setBackground(colours.base)
        self.left.setPen(colours.border)
        self.left.setTextPen(colours.muted)
        accent = QColor(colours.accent)
        accent.setAlpha(14 if faint else 45)
        self.region.setBrush(accent)
        accent.setAlpha(28 if faint else 75)
        self.region.setHoverBrush(accent)
        for line in self.region.lines:
            line.setPen(pg.mkPen(colours.accent, width=1.5))
            line.setHoverPen(pg.mkPen(colours.text, width=2))
        self.playhead.setPen(pg.mkPen(colours.danger, width=1.5))


class _SecondsAxis(BareAxis):
    """Tick labels with their unit, which saves a line for the axis title."""

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        return [f"{text} s" for text in super().tickStrings(values, scale, spacing)]


class Ruler(_Plot):
    """The time axis under the plots."""

    def __init__(self, plot: TimePlot) -> None:
        self.bottom = _SecondsAxis("bottom")
        super().__init__(pg.ViewBox(enableMenu=False), self.bottom)
        self.setAccessibleName("Time axis")
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.viewport().setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.view.setMouseEnabled(x=False, y=False)
        self.bottom.setStyle(tickLength=4)
        self.left.setWidth(plot.left.width())
        self.left.setStyle(showValues=False, tickLength=0)
        self.left.setPen(None)
        self.view.setXLink(plot.view)
        self.setFixedHeight(round(1.6 * self.fontMetrics().height()))

    def set_colours(self, colours: Colours) -> None:
        self.setBackground(None)
        self.bottom.setPen(colours.border)
        self.bottom.setTextPen(colours.muted)


class TimeView(pg.ViewBox):
    """Zooms and moves in time only; clicks and plain drags are passed on."""

    clicked = Signal(float)
    dragged = Signal(float, float, bool)
    all_wanted = Signal()

    def __init__(self) -> None:
        super().__init__(enableMenu=False, defaultPadding=0)
        self.setMouseEnabled(x=True, y=False)
        self.disableAutoRange()

    def mouseClickEvent(self, event: MouseClickEvent) -> None:
        if event.button() is not Qt.MouseButton.LeftButton:
            return
        event.accept()
        if event.double():
            self.all_wanted.emit()
        else:
            self.clicked.emit(self.mapSceneToView(event.scenePos()).x())

    def mouseDragEvent(self, event: MouseDragEvent, axis: int | None = None) -> None:
        if event.button() is Qt.MouseButton.LeftButton and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            event.accept()
            start = self.mapSceneToView(event.buttonDownScenePos()).x()
            self.dragged.emit(start, self.mapSceneToView(event.scenePos()).x(), event.isFinish())
        else:
            super().mouseDragEvent(event, axis)
