"""Importance of each layer as bars with intervals, one lane per measure, and the kept layers. Layers are numbered as in
the checkpoint, from 0. A click, Space or Enter keeps or removes a layer; up and down keep one layer more or less."""

import math
from collections.abc import Iterator, Sequence

from PySide6.QtCore import QMarginsF, QPointF, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QKeyEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import QGraphicsRectItem

from paretone.figures.scatter import Scale
from paretone.models.files.layer_importance import COSINE, DIVERGENCE, WORD_ERROR, ImportanceRecord, LayerImportance
from paretone_app.numbers import percent, significant
from paretone_app.plotting.chart import Chart
from paretone_app.plotting.cursor_canvas import ACTIVATING
from paretone_app.plotting.frame import Block, Blocks, Frame, Layer, Shape, Shapes, pen
from paretone_app.plotting.points import Beams, IntervalMark
from paretone_app.plotting.words import Label, Labels
from paretone_app.shell.colours import Colours

LANES = {
    WORD_ERROR: "WLI: word error rate without the layer",
    DIVERGENCE: "KL proxy: divergence of the next token without the layer (nats)",
    COSINE: "Cosine importance: 1 − cosine between the layer's input and output",
}
_SHORT = {WORD_ERROR: "WLI", DIVERGENCE: "KL", COSINE: "1 − cosine"}
_DEPTH_KEYS = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1}
_MOVES = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Home, Qt.Key.Key_End)
_BAR = 0.62
_LEFT, _RIGHT, _SWITCHES, _TITLE = 4.2, 0.5, 2.9, 1.35
"""In font heights: margins for axis labels and on the right, heights of the row of switches and of a lane's title."""


class LayerBars(Chart):
    toggled = Signal(int)
    """Keep the layer with this number, or remove it if it is kept."""
    more_wanted = Signal(int)
    """Keep one layer more (1) or fewer (−1)."""

    own_keys = (*_MOVES, *_DEPTH_KEYS, *ACTIVATING)

    ideal, least = (40.0, 24.0), (16.0, 12.0)
    framed = False

    def __init__(self, colours: Colours) -> None:
        super().__init__("Importance of the layers", colours)
        self._record: ImportanceRecord | None = None
        self._layers = 0
        self._retained: frozenset[int] = frozenset()
        self._by_hand = False
        self._logarithmic = False
        self._cursor = 0
        self._pressed: int | None = None
        self.lanes = [_Lane(self.add_frame()) for _ in LANES]
        foot = self.frame
        foot.margins = QMarginsF(_LEFT, 0.0, _RIGHT, 0.0)
        foot.set_bordered(False)
        foot.left.set_names([(1.0, "Kept"), (0.0, "Layer")])
        foot.bottom.hide()
        self._switches = _Switches(foot)
        self._ground, self._edge = QGraphicsRectItem(), QGraphicsRectItem()
        for item, z in ((self._ground, -20), (self._edge, -10)):
            item.setZValue(z)
            self.view.addItem(item)
        self.set_colours(colours)

    def show_layers(
        self, layers: int, record: ImportanceRecord | None, retained: Sequence[int], by_hand: bool = False
    ) -> None:
        """Show ``layers`` layers, their measured importance if any, and the kept ones."""
        self._layers, self._record, self._retained, self._by_hand = layers, record, frozenset(retained), by_hand
        self._cursor = max(0, min(self._cursor, layers - 1))
        self.show_again()

    def set_logarithmic(self, on: bool) -> None:
        """Draw values on logarithmic axes: the first layer is often worth a hundred times the others."""
        self._logarithmic = on
        self.show_again()

    @property
    def measures(self) -> tuple[LayerImportance, ...]:
        found = () if self._record is None else map(self._record.measure, LANES)
        return tuple(one for one in found if one is not None)

    @property
    def cut(self) -> tuple[str, float] | None:
        """The measure that separates kept from removed layers, and its threshold; ``None`` if there is none."""
        return None if self._record is None or self._by_hand else self._record.cut(len(self._retained))

    def move_cursor(self, layer: int) -> None:
        self._cursor = max(0, min(layer, self._layers - 1))
        self.refresh()

    def describe(self, layer: int) -> str:
        parts = [f"Layer {layer}: {'kept' if layer in self._retained else 'removed'}"]
        for one in self.measures:
            text = f"{_SHORT[one.measure]} {_value(one, one.values[layer])}"
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
        return None if layer is None else (self.describe(layer), self.column(layer))

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

    def arrange(self, whole: QRectF) -> None:
        foot = _SWITCHES * self.em
        height = (whole.height() - foot) / max(1, len(self.measures))
        for row, lane in enumerate(self.lanes):
            lane.frame.setGeometry(QRectF(0, row * height, whole.width(), height))
        self.frame.setGeometry(QRectF(0, whole.height() - foot, whole.width(), foot))
        self._place_cursor()

    def column(self, layer: int) -> QRectF:
        left, right = (self.frame.place(layer + side, 0.0).x() for side in (-0.5, 0.5))
        return QRectF(left, 0, right - left, self.height())

    def layer_at(self, place: QPointF) -> int | None:
        """The layer at a place in widget coordinates, or ``None`` outside them."""
        columns = enumerate(map(self.column, range(self._layers)))
        return next((layer for layer, one in columns if one.left() <= place.x() < one.right()), None)

    def show_again(self) -> None:
        measures, some = self.measures, self._layers > 0
        across = Scale(-0.5, max(1, self._layers) - 0.5)
        self.frame.setVisible(some)
        self.frame.set_scales(across, Scale(-0.6, 1.6))
        self._switches.kept, self._switches.count = self._retained, self._layers
        for row, lane in enumerate(self.lanes):
            lane.frame.setVisible(some and row < len(measures))
            if some and row < len(measures):
                cut = self.cut if self.cut is not None and self.cut[0] == measures[row].measure else None
                words = f"cut: {len(self._retained)} of {self._layers} kept"
                lane.show(measures[row], across, self._logarithmic, self._retained, cut and (cut[1], words))
        self.set_note("No measurement of this checkpoint yet." if some and not measures else "")
        self.arrange(QRectF(self.rect()))
        runs: list[list[int]] = [[]]  # Of removed layers.
        for layer in range(self._layers):
            if layer in self._retained:
                runs.append([])
            else:
                runs[-1].append(layer)
        longest = max(runs, key=len) or [0]
        for lane in self.lanes:
            lane.middle = (longest[0] + longest[-1]) / 2
        self.refresh()

    def refresh(self) -> None:
        super().refresh()
        self._place_cursor()
        self._switches.redraw()

    def _place_cursor(self) -> None:
        column, colours = self.column(self._cursor), self.colours
        for item in (self._ground, self._edge):
            item.setVisible(self._layers > 0)
        self._ground.setRect(column)
        self._ground.setPen(pen("transparent", 0.0))
        self._ground.setBrush(QColor(colours.raised))
        self._edge.setRect(column.adjusted(1, 1, -1, -2))
        self._edge.setPen(pen(colours.text, 2 if self.hasFocus() else 1))

    def _place_focus(self) -> None:
        super()._place_focus()
        self._place_cursor()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if (layer := self.layer_at(event.position())) is None or event.button() is not Qt.MouseButton.LeftButton:
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
            self.move_cursor(ends.get(key, self._cursor + (1 if key == Qt.Key.Key_Right else -1)))
        elif key in _DEPTH_KEYS:
            self.more_wanted.emit(_DEPTH_KEYS[key])
        elif key in ACTIVATING:
            self.toggled.emit(self._cursor)
        else:
            super().keyPressEvent(event)


class _Lane:
    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        frame.margins = QMarginsF(_LEFT, _TITLE, _RIGHT, 0.35)
        frame.set_bordered(False)
        frame.title_top = 0.07
        frame.bottom.hide()
        frame.left.between = 2.6
        self._bars, self._beams = Blocks(frame, 1), Beams(frame, 2)
        self._lines, self._words = Shapes(frame, 3), Labels(frame, 4)
        self._words.labels = self._labels
        self._shown: LayerImportance | None = None
        self._cut: tuple[float, str] | None = None
        self.middle = 0.0
        """Layer at which the cut's label hides least: the middle of the longest run of removed layers."""
        frame.changed.connect(self._measure_beams)

    def show(
        self,
        one: LayerImportance,
        across: Scale,
        logarithmic: bool,
        retained: frozenset[int],
        cut: tuple[float, str] | None,
    ) -> None:
        """Draw a measure; ``cut``: threshold between kept and removed layers, and its label."""
        frame, colours, up = self.frame, self.frame.colours, _scale(one, logarithmic)
        self._shown, self._cut = one, cut
        frame.set_title(LANES[one.measure] + (f" · {one.utterances} utterances" if one.utterances else ""))
        frame.left.spell = lambda value: _number(one, value)
        kept = QColor(colours.accent)
        hatch, outline = QBrush(QColor(colours.disabled), Qt.BrushStyle.BDiagPattern), pen(colours.disabled)
        self._bars.blocks = [
            Block(
                (layer - _BAR / 2, layer + _BAR / 2),
                (up.low, max(value, up.low)),
                kept if layer in retained else hatch,
                None if layer in retained else outline,
            )
            for layer, value in enumerate(one.values)
        ]
        ends = enumerate(zip(one.low, one.high, strict=True))
        self._beams.intervals = [
            IntervalMark(layer, max(low, up.low), max(high, up.low)) for layer, (low, high) in ends
        ]
        levels = [(one.baseline, pen(colours.good, 1.4, Qt.PenStyle.DotLine))] if one.baseline else []
        levels += [(cut[0], pen(colours.danger, 2, Qt.PenStyle.DashLine))] if cut is not None else []
        self._lines.shapes = [Shape((across.low, across.high), (max(value, up.low),) * 2, ink) for value, ink in levels]
        frame.set_scales(across, up)

    def _measure_beams(self) -> None:
        self._beams.beam = min(_BAR * self.frame.area.width() / max(1, len(self._bars.blocks)) / 4, 5.0)

    def _labels(self) -> Iterator[Label]:
        one, frame = self._shown, self.frame
        if one is None:
            return
        for layer, count in enumerate(one.run_away):
            if count:
                yield self._above(frame.place(layer, (one.high or one.values)[layer]), "↻")
        if self._cut is not None:
            place = frame.place(self.middle, max(self._cut[0], frame.up.low))
            yield self._above(place, self._cut[1], ground=True)

    def _above(self, place: QPointF, text: str, ground: bool = False) -> Label:
        area = self.frame.area

        def spots(size: QSizeF) -> Iterator[QRectF]:
            left = max(area.left(), min(place.x() - size.width() / 2, area.right() - size.width()))
            yield QRectF(left, place.y() - 1.15 * size.height(), size.width(), size.height())

        return Label(text, self.frame.colours.danger, spots, always=True, ground=ground)


class _Switches(Layer):
    """One box per layer, ticked if kept, with the layer's number."""

    clipped = False

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame, 1)
        self.kept: frozenset[int] = frozenset()
        self.count = 0

    def draw(self, painter: QPainter) -> None:
        frame, colours, em = self.frame, self.frame.colours, self.frame.em
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        width = frame.area.width() / max(1, self.count)
        widest = painter.fontMetrics().horizontalAdvance(str(self.count)) + 0.4 * em
        stride, side = max(1, math.ceil(widest / max(1.0, width))), min(1.15 * em, width * 0.8)
        for layer in range(self.count):
            middle, kept = frame.place(layer, 1.0), layer in self.kept
            box = QRectF(middle.x() - side / 2, middle.y() - side / 2, side, side)
            painter.fillRect(box, QColor(colours.accent if kept else colours.base))
            painter.setPen(pen(colours.accent if kept else colours.muted))
            painter.drawRect(box)
            painter.setPen(QColor(colours.on_accent if kept else colours.muted))
            if side > 0.6 * em:
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, "✓" if kept else "–")
            if layer % stride == 0:
                painter.setPen(QColor(colours.text))
                number = frame.place(layer, 0.0)
                room = QRectF(number.x() - 2 * em, number.y() - em, 4 * em, 2 * em)
                painter.drawText(room, Qt.AlignmentFlag.AlignCenter, str(layer))


def _scale(one: LayerImportance, logarithmic: bool) -> Scale:
    """Axis for all measured values. A logarithmic one begins below the smallest positive value."""
    values = [value for value in (*one.values, *one.low, *one.high, one.baseline) if math.isfinite(value)]
    most, positive = max(values, default=0.0), [value for value in values if value > 0]
    if not positive:
        return Scale(0.0, 1.0)
    if not logarithmic:
        # Round up to 1, 2, 2.5, 4, 5 or 8 times a power of ten.
        unit = 10.0 ** math.floor(math.log10(most))
        return Scale(0.0, next(one * unit for one in (1, 2, 2.5, 4, 5, 8, 10) if one * unit >= most * (1 - 1e-9)))
    first, last = math.floor(math.log10(min(positive) * 0.999)), math.ceil(math.log10(most))
    return Scale(10.0**first, 10.0**last, logarithmic=True)


def _number(one: LayerImportance, value: float) -> str:
    return percent(value, 1) if one.measure == WORD_ERROR else significant(value)


def _value(one: LayerImportance, value: float) -> str:
    return f"{_number(one, value)} nats" if one.measure == DIVERGENCE else _number(one, value)
