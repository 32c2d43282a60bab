"""A plot over time with a playhead and a region, and the ruler under several of them."""

from __future__ import annotations

import pyqtgraph as pg
from pyqtgraph.GraphicsScene.mouseEvents import MouseClickEvent, MouseDragEvent
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QGraphicsGridLayout, QSizePolicy

from paretone_app.plotting.frame import BareAxis
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import TIGHT
from paretone_app.widgets.screen_readers import CHART


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
