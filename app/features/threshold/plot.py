"""A plot of the threshold panel: something over normalised error, with a line for δ."""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QWidget

from app.shell.theme import Colours, style_plot

_FAR_STEPS = 10
"""So many steps δ moves with Shift, or by Page Up and Page Down."""


class ErrorPlot(pg.PlotWidget):
    """A plot over normalised error with a δ line, which mouse and keys move."""

    moved_to = Signal(float)
    """δ was dragged or clicked to this place, in axis coordinates."""
    steps_wanted = Signal(int)
    """δ shall move by a number of steps."""
    home_wanted = Signal()
    copy_wanted = Signal()

    def __init__(self, name: str, vertical: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMenuEnabled(False)
        self.hideButtons()
        self.setMouseEnabled(x=True, y=False)
        self._vertical = vertical
        for side in ("left", "bottom"):
            self.getAxis(side).enableAutoSIPrefix(False)
        self.getAxis("left").setWidth(int(self.fontMetrics().height() * 3.6))
        self.interval = pg.LinearRegionItem(movable=False)
        self.interval.setZValue(-20)
        self.interval.hide()
        self.line = pg.InfiniteLine(angle=90, movable=True)
        self.line.setZValue(20)
        self.addItem(self.interval, ignoreBounds=True)
        self.addItem(self.line, ignoreBounds=True)
        self.line.sigDragged.connect(lambda line: self.moved_to.emit(line.value()))
        self.scene().sigMouseClicked.connect(self._click)

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self.setBackground(QColor(colours.base))
        style_plot(self.getPlotItem(), colours)
        self.setLabel("left", self._vertical, color=colours.muted)
        self.line.setPen(pg.mkPen(colours.danger, width=2))
        self.line.setHoverPen(pg.mkPen(colours.danger, width=4))
        exact = QColor(colours.good)
        for edge in self.interval.lines:
            # Intervals may be narrower than a pixel.
            edge.setPen(pg.mkPen(exact, width=1))
        exact.setAlphaF(0.28)
        self.interval.setBrush(exact)

    def _click(self, event) -> None:
        view = self.getViewBox()
        if event.button() is Qt.MouseButton.LeftButton and view.sceneBoundingRect().contains(event.scenePos()):
            self.setFocus(Qt.FocusReason.MouseFocusReason)
            self.moved_to.emit(view.mapSceneToView(event.scenePos()).x())

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ShortcutOverride and (
            event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right) or event.matches(QKeySequence.StandardKey.Copy)
        ):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        far = _FAR_STEPS if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1
        steps = {
            Qt.Key.Key_Left: -far,
            Qt.Key.Key_Right: far,
            Qt.Key.Key_PageDown: -_FAR_STEPS,
            Qt.Key.Key_PageUp: _FAR_STEPS,
        }.get(Qt.Key(event.key()))
        if steps is not None:
            self.steps_wanted.emit(steps)
        elif event.key() == Qt.Key.Key_Home:
            self.home_wanted.emit()
        elif event.matches(QKeySequence.StandardKey.Copy):
            self.copy_wanted.emit()
        else:
            super().keyPressEvent(event)
