"""Layers drawn over a frame, in data coordinates: base class, lines, surfaces and blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPen, QPixmap, QPolygonF
from PySide6.QtWidgets import QGraphicsItem, QGraphicsObject, QWidget

from paretone_app.plotting.frame import Frame


class Layer(QGraphicsObject):
    """Drawn again whenever its frame changes."""

    clipped = True
    """Whether nothing of it is seen beyond the view."""

    def __init__(self, frame: Frame, z: float, still: StaticLayers | None = None, overhang: float = 0.0) -> None:
        """``still`` draws the layer with others at once, if given. ``overhang``: how far it may reach beyond the view
        if it is clipped, in heights of the font."""
        super().__init__(frame)
        self.frame, self._still, self._overhang = frame, still, overhang
        self._bounds = frame.rect()
        self.setZValue(z)
        if still is not None:
            still.layers.append(self)
            self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemHasNoContents)
        frame.changed.connect(self._frame_changed)

    def _frame_changed(self) -> None:
        # A scene must hear of other bounds before they are so.
        self.prepareGeometryChange()
        self._bounds = self.frame.rect()
        self.redraw()

    def redraw(self) -> None:
        """Something else is to be drawn."""
        if self._still is not None:
            self._still.redraw()
        else:
            self.update()

    def boundingRect(self) -> QRectF:
        return self._bounds

    def paint(self, painter: QPainter, _option: object, _widget: QWidget | None = None) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self.frame.font())
        if self.clipped:
            room = self._overhang * self.frame.em
            painter.setClipRect(self.frame.area.adjusted(-room, -room, room, room), Qt.ClipOperation.IntersectClip)
        self.draw(painter)

    def draw(self, painter: QPainter) -> None:
        """Draw it, in pixels of the frame."""
        raise NotImplementedError


class StaticLayers(Layer):
    """Layers cached as one picture, so that redrawing what moves above them is cheap; the lowest first. On paper they
    stay shapes."""

    clipped = False

    def __init__(self, frame: Frame, z: float) -> None:
        self.layers: list[Layer] = []
        self._picture: QPixmap | None = None
        super().__init__(frame, z)

    def redraw(self) -> None:
        self._picture = None
        super().redraw()

    def draw(self, painter: QPainter) -> None:
        if self.frame.on_paper:
            self._draw_layers(painter)
            return
        ratio = painter.device().devicePixelRatioF()
        if self._picture is None or self._picture.devicePixelRatio() != ratio:
            self._picture = QPixmap((self.frame.rect().size() * ratio).toSize())
            self._picture.setDevicePixelRatio(ratio)
            self._picture.fill(Qt.GlobalColor.transparent)
            with QPainter(self._picture) as drawing:
                self._draw_layers(drawing)
        painter.drawPixmap(0, 0, self._picture)

    def _draw_layers(self, painter: QPainter) -> None:
        for layer in self.layers:
            if layer.isVisible():
                painter.save()
                layer.paint(painter, None)
                painter.restore()


# --- Shapes -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Shape:
    """A line through corners in figures, or the surface that they enclose."""

    x: ArrayLike
    y: ArrayLike
    pen: QPen | None = None
    fill: QBrush | None = None

    @classmethod
    def through(
        cls, corners: Sequence[tuple[float, float]], pen: QPen | None = None, fill: QBrush | None = None
    ) -> Shape:
        """A layer from corners instead of coordinates."""
        return cls([x for x, _ in corners], [y for _, y in corners], pen, fill)


class Shapes(Layer):
    """Lines and surfaces."""

    shapes: Sequence[Shape] = ()

    def draw(self, painter: QPainter) -> None:
        for one in self.shapes:
            corners = np.c_[self.frame.to_x(one.x), self.frame.to_y(one.y)]
            polygon = QPolygonF([QPointF(x, y) for x, y in corners.tolist()])
            painter.setPen(one.pen or Qt.PenStyle.NoPen)
            if one.fill is not None:
                painter.setBrush(one.fill)
                painter.drawPolygon(polygon)
            else:
                painter.drawPolyline(polygon)


@dataclass(frozen=True)
class Block:
    """An upright rectangle between figures."""

    x: tuple[float, float]
    y: tuple[float, float]
    fill: QBrush | QColor
    outline: QPen | None = None


class Blocks(Layer):
    """Bars, in pixels, so that hatches stay even; each at least ``least`` pixels wide."""

    blocks: Sequence[Block] = ()
    least = 1.0

    def rectangle(self, one: Block) -> QRectF:
        """Rectangle of a block, in pixels."""
        found = QRectF(self.frame.place(one.x[0], one.y[0]), self.frame.place(one.x[1], one.y[1])).normalized()
        found.setWidth(max(self.least, found.width()))
        return found

    def draw(self, painter: QPainter) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for one in self.blocks:
            where = self.rectangle(one)
            if one.outline is None:
                painter.fillRect(where, one.fill)
                continue
            # In whole pixels, so that fill and outline meet.
            whole = where.toAlignedRect()
            painter.fillRect(whole, one.fill)
            painter.setPen(one.outline)
            painter.drawRect(whole.adjusted(0, 0, -1, -1))
