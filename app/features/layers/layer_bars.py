"""What each layer is worth, as bars with their intervals, and which layers stay: a lane for every measure.

Layers go by the numbers that they have in the checkpoint, from 0. Mouse: a click on a layer keeps or removes it. Keys:
left and right, Home and End choose a layer, Space or Enter keeps or removes it, up and down keep one layer more or
less, Ctrl+C copies all as text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.plotting.cursor_canvas import ACTIVATING, CursorCanvas
from app.shell.theme import Colours
from engine.techniques.spade.record import COSINE, DIVERGENCE, WORD_ERROR, ImportanceRecord, LayerImportance

LANES = {
    WORD_ERROR: "WLI: word error rate without the layer",
    DIVERGENCE: "KL proxy: divergence of the next token without the layer (nats)",
    COSINE: "Cosine importance: 1 − cosine between the layer's input and output",
}
_DEPTH_KEYS = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1}
_MOVES = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Home, Qt.Key.Key_End)
_BAR = 0.62
"""Of the room for a layer, how much its bar takes."""
_LEFT, _SWITCHES, _TITLE = 4.2, 2.9, 1.35
"""In heights of the font: room for the numbers of the axis, for the row of switches below, and for a lane's title."""


class LayerBars(CursorCanvas):
    """The bars of one record, and the row of switches beneath them."""

    toggled = Signal(int)
    """The user wants to keep the layer of this number, or to remove it where it stays."""
    depth_wanted = Signal(int)
    """The user wants so many layers more (1) or less (−1)."""

    own_keys = (*_MOVES, *_DEPTH_KEYS, *ACTIVATING)

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(colours, parent)
        self._record: ImportanceRecord | None = None
        self._layers = 0
        self._retained: frozenset[int] = frozenset()
        self._by_hand = False
        self._logarithmic = False
        self._cursor = 0
        self._pressed: int | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Importance of the layers")

    # --- Methods in --------------------------------------------------------------------------------------------------
    def show_layers(
        self, layers: int, record: ImportanceRecord | None, retained: Sequence[int], by_hand: bool = False
    ) -> None:
        """Show ``layers`` layers with what was measured of them, if anything, and which of them stay."""
        self._layers, self._record, self._retained, self._by_hand = layers, record, frozenset(retained), by_hand
        self._cursor = max(0, min(self._cursor, layers - 1))
        self.refresh()

    def set_logarithmic(self, on: bool) -> None:
        """Draw values on logarithmic axes: the first layer is often worth a hundred times the others."""
        self._logarithmic = on
        self.update()

    @property
    def cursor(self) -> int:
        """The layer under the cursor."""
        return self._cursor

    @property
    def measures(self) -> tuple[LayerImportance, ...]:
        """What is drawn, from top to bottom."""
        if self._record is None:
            return ()
        return tuple(one for one in map(self._record.measure, LANES) if one is not None)

    @property
    def cut(self) -> tuple[str, float] | None:
        """The measure that parts the layers that stay from the others, and its value between the two; ``None`` where
        layers were chosen by hand, or none goes."""
        if self._record is None or self._by_hand:
            return None
        return self._record.cut(len(self._retained))

    def move_cursor(self, layer: int) -> None:
        """Put the cursor on a layer, or on the nearest one that there is."""
        self._cursor = max(0, min(layer, self._layers - 1))
        self.refresh()

    def describe(self, layer: int) -> str:
        """A layer in words."""
        parts = [f"Layer {layer}: {'kept' if layer in self._retained else 'removed'}"]
        for one in self.measures:
            text = f"{_short(one)} {_value(one, one.values[layer])}"
            if one.low:
                text += f" (95 % interval {_value(one, one.low[layer])} to {_value(one, one.high[layer])})"
            if one.ranks:
                first, last = (rank + 1 for rank in one.ranks[layer])
                text += f", rank {first}" + (f" to {last}" if last != first else "")
            if one.run_away and one.run_away[layer]:
                text += f", {one.run_away[layer]} of {one.utterances} utterances did not end"
            parts.append(text)
        return "; ".join(parts) + "."

    def cursor_text(self) -> str:
        return self.describe(self._cursor) if self._layers else ""

    def tip_at(self, place: QPointF) -> tuple[str, QRectF] | None:
        layer = self.layer_at(place)
        return None if layer is None else (self.describe(layer), self._column(layer))

    def as_text(self) -> str:
        measures = self.measures
        head = ["layer", "stays"]
        for one in measures:
            head += [one.measure, f"{one.measure} low", f"{one.measure} high"] if one.low else [one.measure]
        lines = ["\t".join(head)]
        for layer in range(self._layers):
            row = [str(layer), "yes" if layer in self._retained else "no"]
            for one in measures:
                values = (one.values, one.low, one.high) if one.low else (one.values,)
                row += [f"{value[layer]:.6g}" for value in values]
            lines.append("\t".join(row))
        return "\n".join(lines)

    # --- Geometry ----------------------------------------------------------------------------------------------------
    def sizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(40 * em, 24 * em)

    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(16 * em, 12 * em)

    def _column(self, layer: int) -> QRectF:
        """Everything above and below each other that belongs to a layer."""
        em = self.fontMetrics().height()
        width = (self.width() - (_LEFT + 0.5) * em) / max(1, self._layers)
        return QRectF(_LEFT * em + layer * width, 0, width, self.height())

    def layer_at(self, place: QPointF) -> int | None:
        """The layer at a place in widget coordinates, or ``None`` beside them."""
        for layer in range(self._layers):
            column = self._column(layer)
            if column.left() <= place.x() < column.right():
                return layer
        return None

    def _lane(self, row: int) -> QRectF:
        """Where the bars of a measure stand, its title above them left out."""
        em = self.fontMetrics().height()
        height = (self.height() - _SWITCHES * em) / max(1, len(self.measures))
        top = row * height + _TITLE * em
        return QRectF(_LEFT * em, top, self.width() - (_LEFT + 0.5) * em, height - (_TITLE + 0.35) * em)

    # --- Painting ----------------------------------------------------------------------------------------------------
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if not self._layers:
            return
        column = self._column(self._cursor)
        painter.fillRect(column, QColor(self.colours.raised))
        for row, one in enumerate(self.measures):
            self._paint_lane(painter, self._lane(row), one)
        if not self.measures:
            painter.setPen(QColor(self.colours.muted))
            room = QRectF(self.rect()).adjusted(0, 0, 0, -_SWITCHES * self.fontMetrics().height())
            text = "No measurement of this checkpoint yet."
            painter.drawText(room, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, text)
        self._paint_switches(painter)
        painter.setPen(QPen(QColor(self.colours.text), 2 if self.hasFocus() else 1))
        painter.drawRect(column.adjusted(1, 1, -1, -2))
        for row, one in enumerate(self.measures):
            self._paint_title(painter, self._lane(row), one)

    def _paint_title(self, painter: QPainter, lane: QRectF, one: LayerImportance) -> None:
        """On a ground of its own, so that the cursor's frame does not run through the words."""
        em = self.fontMetrics().height()
        room = QRectF(lane.left(), lane.top() - _TITLE * em, lane.width(), _TITLE * em)
        text = LANES[one.measure] + (f" · {one.utterances} utterances" if one.utterances else "")
        elided = self.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, round(room.width()))
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        painter.fillRect(painter.boundingRect(room, flags, elided).adjusted(-3, 0, 3, 0), self.palette().window())
        painter.setPen(QColor(self.colours.text))
        painter.drawText(room, flags, elided)

    def _paint_lane(self, painter: QPainter, lane: QRectF, one: LayerImportance) -> None:
        colours, em = self.colours, self.fontMetrics().height()
        scale = _Scale.of(one, lane, self._logarithmic)
        for value in scale.ticks(most=lane.height() / (1.3 * em)):
            y = scale.place(value)
            painter.setPen(QPen(QColor(colours.border), 1))
            painter.drawLine(QPointF(lane.left(), y), QPointF(lane.right(), y))
            painter.setPen(QColor(colours.muted))
            box = QRectF(0, y - em / 2, (_LEFT - 0.4) * em, em)
            painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, _number(one, value))
        for layer in range(self._layers):
            self._paint_bar(painter, layer, one, scale)
        self._paint_levels(painter, lane, one, scale)

    def _paint_bar(self, painter: QPainter, layer: int, one: LayerImportance, scale: _Scale) -> None:
        colours, column, value = self.colours, self._column(layer), one.values[layer]
        width = column.width() * _BAR
        left, base = column.center().x() - width / 2, scale.base
        bar = QRectF(left, scale.place(value), width, base - scale.place(value))
        if layer in self._retained:
            painter.fillRect(bar, QColor(colours.accent))
        else:
            painter.fillRect(bar, QBrush(QColor(colours.disabled), Qt.BrushStyle.BDiagPattern))
            painter.setPen(QPen(QColor(colours.disabled), 1))
            painter.drawRect(bar.adjusted(0, 0, -1, 0))
        if one.low:
            middle, beam = column.center().x(), min(width / 4, 5.0)
            # Two strokes, so that whiskers stand out from bar and ground.
            for ink, thickness in ((colours.base, 3.6), (colours.text, 1.6)):
                painter.setPen(QPen(QColor(ink), thickness))
                ends = scale.place(one.low[layer]), scale.place(one.high[layer])
                painter.drawLine(QPointF(middle, ends[0]), QPointF(middle, ends[1]))
                for end in ends:
                    painter.drawLine(QPointF(middle - beam, end), QPointF(middle + beam, end))
        if one.run_away and one.run_away[layer]:
            painter.setPen(QColor(colours.danger))
            em = self.fontMetrics().height()
            box = QRectF(
                column.left(), scale.place(one.high[layer] if one.high else value) - 1.1 * em, column.width(), em
            )
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, "↻")

    def _paint_levels(self, painter: QPainter, lane: QRectF, one: LayerImportance, scale: _Scale) -> None:
        colours, em = self.colours, self.fontMetrics().height()
        if one.baseline:
            painter.setPen(QPen(QColor(colours.good), 1.4, Qt.PenStyle.DotLine))
            y = scale.place(one.baseline)
            painter.drawLine(QPointF(lane.left(), y), QPointF(lane.right(), y))
        measure, value = self.cut or ("", 0.0)
        if one.measure == measure:
            y = scale.place(value)
            painter.setPen(QPen(QColor(colours.danger), 2, Qt.PenStyle.DashLine))
            painter.drawLine(QPointF(lane.left(), y), QPointF(lane.right(), y))
            text = f"cut: {len(self._retained)} of {self._layers} kept"
            width = self.fontMetrics().horizontalAdvance(text) + em
            left = max(lane.left(), min(self._bare_middle() - width / 2, lane.right() - width))
            box = QRectF(left, y - 1.2 * em, width, 1.1 * em)
            ground = QColor(colours.base)
            ground.setAlpha(210)
            painter.fillRect(box, ground)
            painter.setPen(QColor(colours.danger))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)

    def _bare_middle(self) -> float:
        """Where words above the cut hide least: in the middle of the longest run of layers that go, whose bars end
        below it."""
        runs: list[list[int]] = [[]]
        for layer in range(self._layers):
            if layer in self._retained:
                runs.append([])
            else:
                runs[-1].append(layer)
        longest = max(runs, key=len)
        return (self._column(longest[0]).left() + self._column(longest[-1]).right()) / 2

    def _paint_switches(self, painter: QPainter) -> None:
        colours, em = self.colours, self.fontMetrics().height()
        top = self.height() - (_SWITCHES - 0.2) * em
        painter.setPen(QColor(colours.muted))
        flags = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(QRectF(0, top, (_LEFT - 0.4) * em, 1.2 * em), flags, "Kept")
        painter.drawText(QRectF(0, top + 1.35 * em, (_LEFT - 0.4) * em, 1.2 * em), flags, "Layer")
        widest = self.fontMetrics().horizontalAdvance(str(self._layers)) + 0.4 * em
        stride = max(1, math.ceil(widest / max(1.0, self._column(0).width())))
        for layer in range(self._layers):
            column = self._column(layer)
            side = min(1.15 * em, column.width() * 0.8)
            box = QRectF(column.center().x() - side / 2, top + (1.2 * em - side) / 2, side, side)
            kept = layer in self._retained
            painter.fillRect(box, QColor(colours.accent if kept else colours.base))
            painter.setPen(QPen(QColor(colours.accent if kept else colours.muted), 1))
            painter.drawRect(box)
            painter.setPen(QColor(colours.on_accent if kept else colours.muted))
            if side > 0.6 * em:
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, "✓" if kept else "–")
            if layer % stride == 0:
                painter.setPen(QColor(colours.text))
                place = QRectF(column.center().x() - 2 * em, top + 1.35 * em, 4 * em, 1.2 * em)
                painter.drawText(place, Qt.AlignmentFlag.AlignCenter, str(layer))

    # --- Mouse and keys ----------------------------------------------------------------------------------------------
    def mousePressEvent(self, event: QMouseEvent) -> None:
        layer = self.layer_at(event.position())
        if layer is None or event.button() is not Qt.MouseButton.LeftButton:
            super().mousePressEvent(event)
            return
        self._pressed = layer
        self.move_cursor(layer)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        layer, pressed = self.layer_at(event.position()), self._pressed
        self._pressed = None
        if layer is not None and layer == pressed:
            self.toggled.emit(layer)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if not self._layers:
            event.ignore()
        elif key in _MOVES:
            ends = {Qt.Key.Key_Home: 0, Qt.Key.Key_End: self._layers - 1}
            beside = self._cursor + (1 if key == Qt.Key.Key_Right else -1)
            self.move_cursor(ends.get(key, beside))
        elif key in _DEPTH_KEYS:
            self.depth_wanted.emit(_DEPTH_KEYS[key])
        elif key in ACTIVATING:
            self.toggled.emit(self._cursor)
        else:
            super().keyPressEvent(event)


def _short(one: LayerImportance) -> str:
    return {WORD_ERROR: "WLI", DIVERGENCE: "KL", COSINE: "1 − cosine"}[one.measure]


def _number(one: LayerImportance, value: float) -> str:
    """As it stands at an axis, whose title names the unit; word error rates in per cent."""
    return f"{100 * value:.4g} %" if one.measure == WORD_ERROR else f"{value:.3g}"


def _value(one: LayerImportance, value: float) -> str:
    """With its unit."""
    return f"{_number(one, value)} nats" if one.measure == DIVERGENCE else _number(one, value)


@dataclass(frozen=True)
class _Scale:
    """Where values are along a lane."""

    lane: QRectF
    least: float
    """0, or the positive end of a logarithmic axis."""
    most: float

    @classmethod
    def of(cls, one: LayerImportance, lane: QRectF, logarithmic: bool) -> _Scale:
        """A scale that everything measured fits on."""
        values = [value for value in (*one.values, *one.low, *one.high, one.baseline) if math.isfinite(value)]
        most = max(values, default=0.0)
        positive = [value for value in one.values if value > 0]
        if not logarithmic or not positive:
            return cls(lane, 0.0, _round_up(most) or 1.0)
        ends = math.floor(math.log10(min(positive) * 0.999)), math.ceil(math.log10(most))
        return cls(lane, 10.0 ** max(ends[0], ends[1] - 4), 10.0 ** ends[1])

    @property
    def base(self) -> float:
        """Where bars begin."""
        return self.lane.bottom()

    def place(self, value: float) -> float:
        """The vertical place of ``value``; what is beyond an end is there."""
        if self.least:
            share = math.log10(max(value, self.least) / self.least) / math.log10(self.most / self.least)
        else:
            share = max(0.0, value / self.most)
        return self.lane.bottom() - min(share, 1.0) * self.lane.height()

    def ticks(self, most: float) -> list[float]:
        """Round values, at most so many of them, but both ends."""
        if not self.least:
            return [self.most * share for share in ((0.0, 0.5, 1.0) if most >= 3 else (0.0, 1.0))]
        decades = round(math.log10(self.most / self.least))
        stride = max(1, math.ceil(decades / max(1.0, most - 1)))
        return [self.least * 10.0**decade for decade in range(0, decades + 1, stride)]


def _round_up(value: float) -> float:
    """The least of 1, 2, 2.5, 4, 5, 8 and their tenths, hundreds and so on that is not below ``value``."""
    if value <= 0:
        return 0.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next(one * unit for one in (1, 2, 2.5, 4, 5, 8, 10) if one * unit >= value * (1 - 1e-9))
