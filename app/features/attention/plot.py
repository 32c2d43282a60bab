"""An attention map that can be moved and zoomed by keys."""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QRectF, Qt
from PySide6.QtGui import QColor, QKeyEvent
from PySide6.QtWidgets import QWidget

from app.shell.theme import DARK, Colours, style_plot

_PAN = 0.1
_ZOOM = 0.8


def attention_map(colours: Colours) -> pg.ColorMap:
    """Perceptually uniform, with no attention in the colour of the ground."""
    return pg.colormap.get("magma" if colours == DARK else "CET-L17")


class AttentionPlot(pg.PlotWidget):
    """The attention map of one branch: queries down, keys to the right."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMenuEnabled(False)
        self.hideButtons()
        view = self.getViewBox()
        view.invertY(True)
        for side in ("left", "bottom"):
            self.getAxis(side).enableAutoSIPrefix(False)
        self.image = pg.ImageItem(axisOrder="row-major")
        self.addItem(self.image)
        self.boundaries = [pg.InfiniteLine(angle=angle, movable=False) for angle in (0, 90)]
        for line in self.boundaries:
            self.addItem(line, ignoreBounds=True)
            line.hide()
        self.extent = 1.0

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self.setBackground(QColor(colours.base))
        style_plot(self.getPlotItem(), colours)
        self.image.setColorMap(attention_map(colours))
        for line in self.boundaries:
            line.setPen(pg.mkPen(colours.accent, width=1, style=Qt.PenStyle.DashLine))

    def show_all(self) -> None:
        """Zoom out to the whole map."""
        self.getViewBox().setRange(QRectF(0, 0, self.extent, self.extent), padding=0.01)

    def event(self, event: QEvent) -> bool:
        own = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_0)
        if not isinstance(event, QKeyEvent) or event.type() is not QEvent.Type.ShortcutOverride:
            return super().event(event)
        if event.key() in own and not event.modifiers():
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        view = self.getViewBox()
        (left, right), (top, bottom) = view.viewRange()
        moves = {
            Qt.Key.Key_Left: (-1, 0),
            Qt.Key.Key_Right: (1, 0),
            Qt.Key.Key_Up: (0, -1),
            Qt.Key.Key_Down: (0, 1),
        }
        key = Qt.Key(event.key())
        if key in moves:
            across, down = moves[key]
            view.translateBy(x=across * _PAN * (right - left), y=down * _PAN * (bottom - top))
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            view.scaleBy((_ZOOM, _ZOOM))
        elif key == Qt.Key.Key_Minus:
            view.scaleBy((1 / _ZOOM, 1 / _ZOOM))
        elif key == Qt.Key.Key_0:
            self.show_all()
        else:
            super().keyPressEvent(event)
