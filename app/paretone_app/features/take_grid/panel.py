"""The take grid: takes that differ from a reference in two dimensions, coloured by a figure, played by pointing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSignalBlocker, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QEnterEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QCheckBox, QLineEdit, QScrollArea, QSizePolicy

from paretone.measure.metrics import Metric
from paretone_app.features.take_grid.grid import Dimension, TakeGrid
from paretone_app.features.tradeoff.axes import ARROWS
from paretone_app.numbers import displayed, localised
from paretone_app.plotting.cell_grid import MOVES
from paretone_app.plotting.cursor_canvas import ACTIVATING, CursorCanvas
from paretone_app.plotting.frame import pen
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import GAP
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.boxes import ComboBox
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import VBoxLayout
from paretone_app.widgets.panel_parts import ShownPanel

Cell = tuple[int, int]
_REFERENCE, _MAKE = Qt.Key.Key_R, Qt.Key.Key_M
_SIDES = {Qt.Key.Key_A: "A", Qt.Key.Key_B: "B"}
_LEAST, _MOST = (3.6, 2.0), (16.0, 8.0)  # Least and greatest width and height of a cell, in font heights.
_LABEL = (2.0, 12.0)  # Least and greatest width of row labels, in font heights.
WAITING, FAILED = "waiting", "failed"


class TakeCells(CursorCanvas):
    moved = Signal(int, int)
    pointed = Signal(int, int)
    """The mouse rests on (row, column)."""
    left = Signal()
    activated = Signal(int, int)
    """Play or stop (row, column)."""
    reference_chosen = Signal(int, int)
    """Use (row, column) as the reference."""
    take_asked = Signal(int, int)
    """Make the take of (row, column)."""
    side_chosen = Signal(str, int, int)
    """Use the take of (row, column) as ``"A"`` or ``"B"``."""

    own_keys = (*MOVES, *ACTIVATING, _REFERENCE, _MAKE, *_SIDES)

    def __init__(self, colours: Colours) -> None:
        super().__init__(colours)
        self.setAccessibleName("Take grid")
        self.setMouseTracking(True)
        self.grid: TakeGrid | None = None
        self._states: Mapping[Cell, tuple[str, str]] = {}
        self.playing = ""
        self.cursor_cell: Cell = 0, 0
        self._hovered: Cell | None = None
        # The mouse has to stay on a cell, so that crossing cells does not play them.
        self._resting = QTimer(self, singleShot=True, interval=120)
        self._resting.timeout.connect(self._rest)

    def show_grid(self, grid: TakeGrid | None, states: Mapping[Cell, tuple[str, str]]) -> None:
        """Show these cells; ``states``: ``WAITING`` or ``FAILED``, and a sentence, of empty cells."""
        self.grid, self._states, self._hovered = grid, states, None
        rows, columns = (0, 0) if grid is None else grid.shape
        self.cursor_cell = min(self.cursor_cell[0], max(rows - 1, 0)), min(self.cursor_cell[1], max(columns - 1, 0))
        self.updateGeometry()
        self.refresh()

    def show_playing(self, take: str) -> None:
        """Mark the take being heard, by id; ``""`` for none."""
        if take != self.playing:
            self.playing = take
            self.update()

    def set_cursor(self, row: int, column: int) -> None:
        if self.grid is None:
            return
        rows, columns = self.grid.shape
        cell = max(0, min(row, rows - 1)), max(0, min(column, columns - 1))
        if cell != self.cursor_cell:
            self.cursor_cell = cell
            self.refresh()
            self.moved.emit(*cell)

    def describe(self, row: int, column: int) -> str:
        if self.grid is None:
            return ""
        state = self._states.get((row, column))
        content = self.grid.cell_in_words(row, column) if state is None else state[1]
        return f"{self.grid.place_in_words(row, column)}. {content}"

    def cursor_text(self) -> str:
        return self.describe(*self.cursor_cell)

    def tip_at(self, place: QPointF) -> tuple[str, QRectF] | None:
        cell = self.cell_at(place)
        return None if cell is None else (self.describe(*cell), self.cell_rectangle(*cell))

    def as_text(self) -> str:
        grid = self.grid
        if grid is None:
            return ""
        lines = [
            [
                grid.figure.label.removesuffix(" (%)"),  # Shares of 1, for programs.
                *(grid.columns.in_words(one, whole=True) for one in grid.column_values),
            ]
        ]
        for value, line in zip(grid.row_values, grid.values.tolist(), strict=True):
            lines.append(
                [grid.rows.in_words(value, whole=True), *("" if np.isnan(one) else f"{one:.6g}" for one in line)]
            )
        return "\n".join("\t".join(line) for line in lines)

    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        rows, columns = (1, 1) if self.grid is None else self.grid.shape
        wide, high = (round(least * em) for least in _LEAST)
        return QSize(round(self._label_width) + columns * wide, round(self._top) + rows * high)

    sizeHint = minimumSizeHint

    @property
    def _label_width(self) -> float:
        em, metrics, grid = self.fontMetrics().height(), self.fontMetrics(), self.grid
        labels = [] if grid is None else [*map(grid.rows.in_words, grid.row_values), f"{grid.rows.title} ↓"]
        longest = max((metrics.horizontalAdvance(one) for one in labels), default=0)
        return min(max(longest + em, _LABEL[0] * em), _LABEL[1] * em)

    @property
    def _top(self) -> float:
        return 2.5 * self.fontMetrics().height()

    def _cell(self, grid: TakeGrid) -> tuple[float, float]:
        (rows, columns), em = grid.shape, self.fontMetrics().height()
        wide, high = (self.width() - self._label_width - 2) / columns, (self.height() - self._top - 2) / rows
        return min(wide, _MOST[0] * em), min(high, _MOST[1] * em)

    def cell_rectangle(self, row: int, column: int) -> QRectF:
        assert self.grid is not None
        wide, high = self._cell(self.grid)
        return QRectF(self._label_width + column * wide, self._top + row * high, wide, high)

    def cell_at(self, place: QPointF) -> Cell | None:
        if self.grid is None or not all(self.grid.shape):
            return None
        (rows, columns), (wide, high) = self.grid.shape, self._cell(self.grid)
        row, column = int((place.y() - self._top) // high), int((place.x() - self._label_width) // wide)
        return (row, column) if 0 <= row < rows and 0 <= column < columns else None

    def paintEvent(self, event: QPaintEvent) -> None:
        grid = self.grid
        if grid is None or not all(grid.shape):
            return
        with QPainter(self) as painter:
            self._paint_labels(painter, grid)
            for row in range(grid.shape[0]):
                for column in range(grid.shape[1]):
                    self._paint_cell(painter, grid, row, column)
            self.paint_cursor(painter, self.cell_rectangle(*self.cursor_cell))

    def _paint_labels(self, painter: QPainter, grid: TakeGrid) -> None:
        metrics, em, centre = painter.fontMetrics(), self.fontMetrics().height(), Qt.AlignmentFlag.AlignCenter
        painter.setPen(QColor(self.colours.muted))
        across = QRectF(self._label_width, 0, grid.shape[1] * self._cell(grid)[0], em * 1.2)
        shorten = Qt.TextElideMode.ElideRight
        painter.drawText(across, centre, metrics.elidedText(f"{grid.columns.title} →", shorten, round(across.width())))
        corner = QRectF(0, em * 1.2, self._label_width - em / 2, em * 1.2)
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(corner, right, metrics.elidedText(f"{grid.rows.title} ↓", shorten, round(corner.width())))
        painter.setPen(QColor(self.colours.text))
        for column, value in enumerate(grid.column_values):
            room = self.cell_rectangle(0, column)
            room = QRectF(room.x() + 2, em * 1.2, room.width() - 4, em * 1.2)
            text = metrics.elidedText(localised(grid.columns.in_words(value)), shorten, round(room.width()))
            painter.drawText(room, centre, text)
        for row, value in enumerate(grid.row_values):
            cell = self.cell_rectangle(row, 0)
            room = QRectF(0, cell.y(), self._label_width - em / 2, cell.height())
            text = metrics.elidedText(localised(grid.rows.in_words(value)), shorten, round(room.width()))
            painter.drawText(room, right, text)

    def _paint_cell(self, painter: QPainter, grid: TakeGrid, row: int, column: int) -> None:
        colours, room = self.colours, self.cell_rectangle(row, column).adjusted(1, 1, -1, -1)
        take, share = grid.takes[row][column], grid.share(row, column)
        fill = QColor(colours.base)
        painter.fillRect(room, fill)
        if share:
            fill = QColor(colours.accent if share > 0 else colours.accelerated)
            # Text stays readable on the largest difference.
            fill.setAlpha(round(120 * abs(share)))
            painter.fillRect(room, fill)
        if (row, column) == grid.reference:
            painter.setPen(pen(colours.text, 2))
            painter.drawRect(room.adjusted(2, 2, -2, -2))
        else:
            painter.setPen(pen(colours.border))
            painter.drawRect(room)
        painter.setPen(QColor(colours.text if take is not None else colours.muted))
        lines = self._lines(grid, row, column)
        height = painter.fontMetrics().height()
        if len(lines) * height > room.height():
            lines = lines[:1] if (row, column) == grid.reference else lines[-1:]
        top = room.center().y() - len(lines) * height / 2
        for place, text in enumerate(lines):
            line = QRectF(room.x() + 2, top + place * height, room.width() - 4, height)
            shortened = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, round(line.width()))
            painter.drawText(line, Qt.AlignmentFlag.AlignCenter, shortened)

    def _lines(self, grid: TakeGrid, row: int, column: int) -> list[str]:
        take, state = grid.takes[row][column], self._states.get((row, column))
        if take is None:
            return ["" if state is None else "…" if state[0] == WAITING else "!"]
        sound = "♪ " if take.id == self.playing else ""
        value, difference = grid.values[row, column], grid.differences[row, column]
        if np.isnan(value):
            return [f"{sound}?"]
        spelt = displayed(grid.figure.spelt(float(value)))
        if (row, column) == grid.reference:
            return [f"{sound}{spelt}", "reference"]
        if np.isnan(difference):
            return [f"{sound}{spelt}"]
        sign = "+" if difference > 0 else ""
        return [f"{sound}{spelt}", f"{sign}{displayed(grid.figure.spelt(float(difference)))}"]

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        cell = self.cell_at(event.position())
        if cell != self._hovered:
            self._hovered = cell
            self._resting.start()

    def _rest(self) -> None:
        if self._hovered is not None:
            self.pointed.emit(*self._hovered)
        else:
            self.left.emit()

    def enterEvent(self, event: QEnterEvent) -> None:
        self._hovered = None
        super().enterEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._resting.stop()
        if self._hovered is not None:
            self._hovered = None
            self.left.emit()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        cell = self.cell_at(event.position())
        if cell is not None and event.button() is Qt.MouseButton.LeftButton:
            self.set_cursor(*cell)
        else:
            super().mousePressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        cell = self.cell_at(event.position())
        if cell is not None:
            self.activated.emit(*cell)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if self.grid is None or not all(self.grid.shape) or event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            super().keyPressEvent(event)
        elif key in MOVES:
            down, right = MOVES[key]
            self.set_cursor(self.cursor_cell[0] + down, self.cursor_cell[1] + right)
        elif key in ACTIVATING:
            self.activated.emit(*self.cursor_cell)
        elif key == _REFERENCE:
            self.reference_chosen.emit(*self.cursor_cell)
        elif key == _MAKE:
            self.take_asked.emit(*self.cursor_cell)
        elif key in _SIDES:
            self.side_chosen.emit(_SIDES[key], *self.cursor_cell)
        else:
            super().keyPressEvent(event)


_INVITATION = "No takes yet: those that differ in two knobs become a grid, whose cells play when you point at them."


_MEAN = "Mean of all sentences"


@dataclass(frozen=True)
class Chosen:
    rows: str
    columns: str
    """Names of dimensions."""
    figure: str
    more_rows: str = ""
    more_columns: str = ""
    """Further values, as typed."""
    mean: bool = False


class TakeGridPanel(ShownPanel):
    """Top: dimensions, further values, figure and sentence. Below: the cells."""

    chosen = Signal(object)
    sentence_chosen = Signal(str)

    def __init__(self, colours: Colours, from_point: Action, make: Action) -> None:
        """``from_point`` makes the take of the point in Trade-off the reference; ``make`` makes all empty cells."""
        super().__init__()
        self._remark = ""
        self._mean = False  # Whether means over sentences are chosen.
        self.rows, self.columns = (self._combo(name) for name in ("Rows", "Columns"))
        self.more_rows, self.more_columns = (self._more(name) for name in ("rows", "columns"))
        self.figure = self._combo("Figure")
        self.sentence = self._combo("Sentence of the grid", self._sentence_chosen)
        self.hover_box = build.named(QCheckBox("Play on pointing"), tip="Play the cell that the mouse rests on")
        self.hover_box.setChecked(True)
        self.point_button = ActionButton(from_point, "From Trade-off")
        self.make_button = ActionButton(make, "Make empty cells…")
        rows = build.title_of("Ro&ws", self.rows), (self.rows, 3), (self.more_rows, 2)
        columns = build.title_of("Co&lumns", self.columns), (self.columns, 3), (self.more_columns, 2)
        first = build.row(*rows, *columns)
        figure = build.title_of("Coloured by", self.figure), (self.figure, 3)
        second = build.row(*figure, (self.sentence, 4), self.hover_box)
        self.cells = TakeCells(colours)
        self._area = area = QScrollArea(widgetResizable=True)
        area.setWidget(self.cells)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.words = build.label(look="muted", name="The cell")
        self.words.setWordWrap(False)
        self.words.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        body = build.column(first, second, (area, 1), build.row((self.words, 1), self.point_button, self.make_button))
        self.pages = Invited(body, _INVITATION)
        build.fill(VBoxLayout(self), [self.pages], (GAP,) * 4)
        self.cells.moved.connect(self._cursor_moved)
        self._show_page()

    def _combo(self, name: str, slot: object = None) -> ComboBox:
        combo = build.narrow(build.named(ComboBox(), name), 6)
        combo.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        combo.activated.connect(self._choose if slot is None else slot)
        return combo

    def _more(self, name: str) -> QLineEdit:
        edit = build.named(
            build.clearable(QLineEdit(placeholderText="and…")),
            f"Further {name}",
            f"Further values for {name}, such as 4 8 off; sentences with | in between",
        )
        edit.editingFinished.connect(self._choose)
        return edit

    def show_choices(self, known: Sequence[Dimension], figures: Sequence[Metric], chosen: Chosen) -> None:
        for combo, name in ((self.rows, chosen.rows), (self.columns, chosen.columns)):
            build.offer(combo, [(one.title, one.name) for one in known], name)
        self._mean = chosen.mean
        offered = [(one.label + ARROWS.get(one.better, ""), one.name, one.definition) for one in figures]
        build.offer(self.figure, offered, chosen.figure)
        for edit, text in ((self.more_rows, chosen.more_rows), (self.more_columns, chosen.more_columns)):
            if edit.text() != text and not edit.hasFocus():
                with QSignalBlocker(edit):
                    edit.setText(text)

    def show_grid(self, grid: TakeGrid | None, states: Mapping[Cell, tuple[str, str]], remark: str = "") -> None:
        """Show the cells; ``states`` as for :meth:`TakeCells.show_grid`; ``remark`` precedes the cell's description."""
        self.cells.show_grid(grid, states)
        self._remark = remark
        sentences = () if grid is None else grid.sentences
        reference = None if grid is None or not grid.sentences else grid.asked[grid.reference[0]][grid.reference[1]]
        here = "" if reference is None else reference.text
        several = [(_MEAN, _MEAN)] if len(sentences) > 1 else []
        mean = grid is not None and bool(grid.others)
        build.offer(self.sentence, [*several, *((one, one) for one in sentences)], _MEAN if mean else here)
        self.sentence.setVisible(bool(sentences))
        self.sentence.setEnabled(len(sentences) > 1)
        self.sentence.setToolTip(here)
        self._show_words()
        self._show_page()

    def _choose(self) -> None:
        rows, columns, figure = (str(box.currentData() or "") for box in (self.rows, self.columns, self.figure))
        more = self.more_rows.text(), self.more_columns.text()
        self.chosen.emit(Chosen(rows, columns, figure, *more, self._mean))

    def _sentence_chosen(self) -> None:
        mean = self.sentence.currentData() == _MEAN
        if mean != self._mean:
            self._mean = mean
            self._choose()
        if not mean:
            self.sentence_chosen.emit(str(self.sentence.currentData()))

    def _cursor_moved(self, row: int, column: int) -> None:
        self._show_words()
        cell = self.cells.cell_rectangle(row, column).center().toPoint()
        self._area.ensureVisible(cell.x(), cell.y(), 60, 40)

    def _show_words(self) -> None:
        text = "  ".join(one for one in (self._remark, self.cells.cursor_text()) if one)
        self.words.setText(text)
        self.words.setToolTip(text)

    def _show_page(self) -> None:
        there = self.cells.grid is not None
        self.pages.show_content(there)
        self.setFocusProxy(self.cells if there else self.pages)
