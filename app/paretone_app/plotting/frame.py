"""A frame for plots: a pyqtgraph view between two axes with round numbers and titles. No menus or buttons, so that
frames for paper are cheap. Layers are drawn over it in data coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyqtgraph as pg
from numpy.typing import ArrayLike
from PySide6.QtCore import QMarginsF, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QFont, QFontMetricsF, QPainter, QPen, QPixmap, QPolygonF
from PySide6.QtWidgets import QGraphicsItem, QGraphicsObject, QGraphicsSimpleTextItem, QStyleOptionGraphicsItem, QWidget

from paretone.figures.scatter import Dimension, Scale, tick_texts
from paretone_app.numbers import localised
from paretone_app.shell.colours import Colours

_TITLE_ROOM, _BARE_ROOM = 2.2, 0.6
"""Space next to the widest number of the Y axis, with and without a title, in font heights like all space here."""
_BETWEEN = {"bottom": 4.0, "left": 2.2}


def pen(colour: str | QColor, width: float = 1.0, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
    """A pen that widens with the paper, unlike pyqtgraph's."""
    return QPen(QColor(colour), width, style)


class TickAxis(pg.AxisItem):
    """Round numbers of a scale, grid lines through the plot, a title, and a hint at the better end. The title is its
    own: pyqtgraph would lay out one a dozen times per new axis, and at each change of range, even without a title."""

    def __init__(self, side: str, parent: pg.GraphicsWidget) -> None:
        super().__init__(side, parent=parent)
        self.ruler = Scale()
        self.spell: Callable[[float], str] | None = None
        """Text of a number, if not as it is."""
        self.between = _BETWEEN[side]
        """Least distance of numbers, in font heights."""
        self._names: list[tuple[float, str]] | None = None
        self.steady = False
        """Whether a vertical axis keeps its width while the section changes."""
        self.choose: Callable[[int], Sequence[float]] | None = None
        self.dimension = Dimension("")
        self._title, self._hint = QGraphicsSimpleTextItem(self), QGraphicsSimpleTextItem(self)
        self.enableAutoSIPrefix(False)
        # So that grid lines lie within its bounds.
        self.setGrid(255)
        # Below the view, although pyqtgraph draws grid lines above it.
        self.setZValue(-200.0)

    def set_look(self, colours: Colours, font: QFont) -> None:
        self.setPen(pen(colours.border))
        self.setTickPen(pen(colours.raised))
        self.setTextPen(pen(colours.muted))
        self.setStyle(tickFont=font)
        for item, colour in ((self._title, colours.text), (self._hint, colours.good)):
            item.setFont(font)
            item.setBrush(QColor(colour))
        self.picture = None

    def _updateLabel(self) -> None:
        self._adjustSize()
        self.picture = None
        self.update()

    def set_title(self, along: Dimension) -> None:
        self.dimension = along
        self._place_title()

    def set_names(self, names: Sequence[tuple[float, str]] | None) -> None:
        """Write names at these positions instead of numbers, without grid lines; ``None`` for numbers."""
        self._names = None if names is None else list(names)
        self.picture = None

    def needed(self, length: float) -> float:
        """Width of a vertical axis of this length, in pixels."""
        shown = self.spelled(length) if self._names is None else [text for _, text in self._names]
        shown += ["0.000"] if self.steady else []
        widest = max(map(QFontMetricsF(self.style["tickFont"]).horizontalAdvance, shown), default=0.0)
        return widest + self._em * (_TITLE_ROOM if self.dimension.title else _BARE_ROOM)

    @property
    def _em(self) -> float:
        return QFontMetricsF(self.style["tickFont"]).height()

    @property
    def _length(self) -> float:
        return self.size().height() if self.orientation == "left" else self.size().width()

    def _figures(self, length: float) -> Sequence[float]:
        return (self.choose or self.ruler.ticks)(max(2, int(length / (self.between * self._em))))

    def spelled(self, length: float) -> list[str]:
        """Numbers of an axis of this length in pixels, as texts."""
        figures = self._figures(length)
        texts = tick_texts(figures, self.dimension.unit) if self.spell is None else map(self.spell, figures)
        return [localised(one) for one in texts]

    def generateDrawSpecs(self, painter: QPainter) -> tuple:
        """Axis line, grid lines and numbers: ends and pen, or rectangle, alignment and text of each. pyqtgraph's
        version omits numbers at the very ends."""
        upright, length, metrics = self.orientation == "left", self._length, QFontMetricsF(self.style["tickFont"])
        if self._names is None:
            figures = self._figures(length)
            places, texts = self.ruler.share(np.array(figures, float)).tolist(), self.spelled(length)
        else:
            first, last = self.ruler.ends
            places = [(place - first) / ((last - first) or 1.0) for place, _ in self._names]
            texts = [text for _, text in self._names]
        view, lines, words = self.linkedView().geometry(), [], []
        for share, text in zip(places, texts, strict=True):
            if upright:
                # The axis lies left of the view, at the same height.
                edge, at = self.size().width(), (1 - share) * length
                lines.append((QPointF(edge, at), QPointF(edge + view.width(), at)))
                room = QRectF(0, at - metrics.height(), edge - 0.4 * self._em, 2 * metrics.height())
                words.append((room, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text))
            else:
                at = share * length
                lines.append((QPointF(at, 0), QPointF(at, -view.height())))
                room = QRectF(at - 5 * self._em, 0.2 * self._em, 10 * self._em, metrics.height())
                words.append((room, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop, text))
        pens = [(self.tickPen(), *ends) for ends in lines] if self._names is None else []
        start = QPointF(self.size().width(), 0) if upright else QPointF()
        return (self.pen(), start, start + (QPointF(0, length) if upright else QPointF(length, 0))), pens, words

    def boundingRect(self) -> QRectF:
        room = 4.0 * self._em  # The first and last number may exceed the ends of the axis.
        return super().boundingRect().adjusted(-room, -room, room, room)

    def resizeEvent(self, event: object = None) -> None:
        super().resizeEvent(event)
        # pyqtgraph calls this during construction.
        if hasattr(self, "_title"):
            self._place_title()

    def _place_title(self) -> None:
        metrics, length, along = QFontMetricsF(self._title.font()), self._length, self.dimension
        em, upright = metrics.height(), self.orientation == "left"
        room, text = length - 2.4 * em, along.title
        if metrics.horizontalAdvance(text) > room and along.short:
            text = along.short
        text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, max(room, 0.0))
        self._title.setText(text)
        towards = along.towards
        # Short axes show the arrow only.
        if metrics.horizontalAdvance(text) + 2 * metrics.horizontalAdvance("better → ") >= length:
            towards = towards.replace("better", "").strip()
        self._hint.setText(towards)
        for item, share in ((self._title, 0.5), (self._hint, 1.0 if towards.endswith("→") else 0.0)):
            along_axis = share * (length - metrics.horizontalAdvance(item.text()))
            if upright:
                item.setRotation(-90)
                item.setPos(0.2 * em, length - along_axis)
            else:
                item.setPos(along_axis, 1.35 * em)


class _Title(QGraphicsSimpleTextItem):
    """Title with an opaque background, so that lines do not cross the text."""

    ground: QColor | None = None

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        if self.ground is not None and self.text():
            painter.fillRect(self.boundingRect().adjusted(-3, 0, 3, 0), self.ground)
        # Off screen the widget is None.
        super().paint(painter, option, cast(QWidget, widget))


class Frame(pg.GraphicsWidget):
    """View, axes and title of a plot; positions are pixels of the frame. Curves go into :attr:`view`, in units
    linear on the scales, see :meth:`Scale.even`; everything else is a :class:`paretone_app.plotting.frame.Layer`."""

    changed = Signal()

    def __init__(self, colours: Colours, font: QFont, on_paper: bool = False) -> None:
        super().__init__()
        self.colours, self.on_paper = colours, on_paper
        self.margins = QMarginsF(0.0, 0.8, 1.2, 2.7)
        """Margins around the view, in font heights; at the left a minimum, if the axis needs more."""
        self._bordered = True
        self.title_left, self.title_top = 0.0, 0.35
        """Left edge of its title in pixels, and its distance from the top in font heights."""
        self.across, self.up = Scale(), Scale()
        self.view = pg.ViewBox(parent=self, enableMenu=False, enableMouse=False, defaultPadding=0)
        self.view.disableAutoRange()
        self.bottom, self.left = TickAxis("bottom", self), TickAxis("left", self)
        for axis in (self.bottom, self.left):
            axis.linkToView(self.view)
        self._title = _Title(self)
        self.titles: tuple[str, ...] = ("",)
        self.set_look(colours, font)

    @property
    def em(self) -> float:
        return QFontMetricsF(self.font()).height()

    @property
    def area(self) -> QRectF:
        return self.view.geometry()

    def set_look(self, colours: Colours, font: QFont) -> None:
        self.colours = colours
        self.setFont(font)
        for axis in (self.bottom, self.left):
            axis.set_look(colours, font)
        self.set_bordered(self._bordered)
        self._title.setFont(font)
        self._title.setBrush(QColor(colours.text))
        self._title.ground = QColor(colours.base)
        self.arrange()

    def set_bordered(self, bordered: bool) -> None:
        self._bordered = bordered
        self.view.setBorder(pen(self.colours.border) if bordered else None)

    def set_title(self, *texts: str) -> None:
        """Write the first of ``texts`` that fits above the view, or the last one elided."""
        self.titles = tuple(map(localised, texts))
        self.arrange()

    def set_scales(self, across: Scale, up: Scale) -> None:
        self.across, self.up = self.bottom.ruler, self.left.ruler = across, up
        # Heat maps run top-down.
        self.view.invertY(up.low > up.high)
        self.view.setRange(xRange=across.ends, yRange=sorted(up.ends), padding=0)
        for axis in (self.bottom, self.left):
            axis.picture = None
            axis.update()
        self.arrange()

    def arrange(self) -> None:
        whole, margins, em = self.rect(), self.margins, self.em
        area = whole.adjusted(0, margins.top() * em, -margins.right() * em, -margins.bottom() * em)
        left = max(margins.left() * em, self.left.needed(area.height()))
        area.setLeft(min(left, area.right() - 1))
        self.view.setGeometry(area)
        self.left.setWidth(left)
        self.left.setGeometry(QRectF(0, area.top(), left, area.height()))
        self.bottom.setHeight(whole.bottom() - area.bottom())
        self.bottom.setGeometry(QRectF(area.left(), area.bottom(), area.width(), whole.bottom() - area.bottom()))
        metrics = QFontMetricsF(self.font())
        # Start at the view or, if too long, at the frame's edge.
        widest = metrics.horizontalAdvance(self.titles[0])
        self.title_left = area.left() if area.left() + widest <= whole.width() else 0.5 * em
        room = max(whole.width() - self.title_left, 0.0)
        text = next((one for one in self.titles if metrics.horizontalAdvance(one) <= room), self.titles[-1])
        self._title.setText(metrics.elidedText(text, Qt.TextElideMode.ElideRight, room))
        self._title.setPos(self.title_left, self.title_top * em)
        self.changed.emit()

    def resizeEvent(self, event: object) -> None:
        super().resizeEvent(event)
        self.arrange()

    def to_x(self, figures: ArrayLike) -> np.ndarray:
        """Values on x to pixels."""
        return self.area.left() + _pixels(self.across, figures, self.area.width())

    def to_y(self, figures: ArrayLike) -> np.ndarray:
        """Values on y to pixels."""
        return self.area.bottom() - _pixels(self.up, figures, self.area.height())

    def place(self, x: float, y: float) -> QPointF:
        return QPointF(float(self.to_x(x)), float(self.to_y(y)))


def _pixels(scale: Scale, figures: ArrayLike, length: float) -> np.ndarray:
    """Distances of ``figures`` from the start of an axis of ``length`` pixels. Infinite values stay infinite, also
    for ``length`` 0, where the product would be NaN."""
    shares = scale.share(np.asarray(figures, float))
    return shares * np.where(np.isinf(shares), 1.0, length)


class Layer(QGraphicsObject):
    """Drawing over a frame, repeated whenever the frame changes."""

    clipped = True

    def __init__(self, frame: Frame, z: float, still: StaticLayers | None = None, overhang: float = 0.0) -> None:
        """``still`` caches it with others; ``overhang``: how far it may exceed the view if clipped, in font heights."""
        super().__init__(frame)
        self.frame, self._still, self._overhang = frame, still, overhang
        self._bounds = frame.rect()
        self.setZValue(z)
        if still is not None:
            still.layers.append(self)
            self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemHasNoContents)
        frame.changed.connect(self._frame_changed)

    def _frame_changed(self) -> None:
        # Before the bounds change.
        self.prepareGeometryChange()
        self._bounds = self.frame.rect()
        self.redraw()

    def redraw(self) -> None:
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
        raise NotImplementedError


class StaticLayers(Layer):
    """Layers cached as one picture, lowest first, so that redrawing those above is cheap; on paper vector shapes."""

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


@dataclass(frozen=True)
class Shape:
    """A line through data points, or the area they enclose."""

    x: ArrayLike
    y: ArrayLike
    pen: QPen | None = None
    fill: QBrush | None = None

    @classmethod
    def through(
        cls, corners: Sequence[tuple[float, float]], pen: QPen | None = None, fill: QBrush | None = None
    ) -> Shape:
        """As the constructor, from (x, y) pairs."""
        return cls([x for x, _ in corners], [y for _, y in corners], pen, fill)


class Shapes(Layer):
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
    x: tuple[float, float]
    y: tuple[float, float]
    fill: QBrush | QColor
    outline: QPen | None = None


class Blocks(Layer):
    """Bars, drawn in pixels so that hatching stays even; at least ``least`` pixels wide."""

    blocks: Sequence[Block] = ()
    least = 1.0

    def rectangle(self, one: Block) -> QRectF:
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
            # Whole pixels, so that fill and outline meet.
            whole = where.toAlignedRect()
            painter.fillRect(whole, one.fill)
            painter.setPen(one.outline)
            painter.drawRect(whole.adjusted(0, 0, -1, -1))
