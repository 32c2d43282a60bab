"""The canvas of a masked model after a step: codebooks by frames along time."""

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy

from paretone.setting.take import DemaskedPassage
from paretone_app.numbers import fixed, general
from paretone_app.plotting.cursor_canvas import ACTIVATING, LineCanvas
from paretone_app.shell.colours import Colours

_MOVES = {Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Up: (1, 0), Qt.Key.Key_Down: (-1, 0)}
_ENDS = (Qt.Key.Key_Home, Qt.Key.Key_End)
_STEPS = {Qt.Key.Key_PageUp: -1, Qt.Key.Key_PageDown: 1}
_TIME, _GAP = 1.25, 0.7
"""In font heights: room for a line's time labels, and between lines."""
_BETWEEN_TIMES = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Candidate spacings of time labels, in seconds."""
_ROW, _LEAST_CELL = 0.86, 0.3
"""Minimum height and width of a cell, in font heights."""
_FAINTEST = 0.28
"""Colour strength of a code committed with probability 0."""


class DemaskingGrid(LineCanvas):
    """One passage; the first codebook, the coarsest, is the bottom row."""

    cursor_moved = Signal(int, int)
    step_wanted = Signal(int)

    margin, end = 3.4, 0.8
    per_line: int = 1

    own_keys = (*_MOVES, *_ENDS, *_STEPS, *ACTIVATING)

    def __init__(self, colours: Colours) -> None:
        super().__init__(colours)
        self.fill = colours.accelerated
        self._passage: DemaskedPassage | None = None
        self._codebooks = self._frames = 0
        self._frame_seconds = 0.04
        self._step = 0
        self.cursor_cell = (0, 0)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.MinimumExpanding)
        self.setAccessibleName("Codes by codebook and time")

    def show_passage(self, passage: DemaskedPassage | None, frame_seconds: float, fill: str) -> None:
        """Show ``passage``, or nothing; committed codes have the colour ``fill``."""
        self._passage = passage if passage is not None and passage.codes.size else None
        self._codebooks, self._frames = (0, 0) if self._passage is None else self._passage.codes.shape
        self._frame_seconds, self.fill = frame_seconds, fill
        self.cursor_cell = (0, 0)
        self.set_position(None)
        self.break_lines()
        self.refresh()

    def show_step(self, step: int) -> None:
        """Show the canvas after ``step``, from 0; −1: before the first."""
        self._step = step
        self.refresh()

    def set_position(self, position: float | None) -> None:
        """Mark the frame being played; no mark for ``None`` or a frame outside this passage."""
        super().set_position(position if position is not None and 0 <= position < self._frames else None)

    @property
    def lines(self) -> int:
        return -(-self._frames // self.per_line)

    def move_cursor(self, codebook: int, frame: int) -> None:
        if self._passage is not None:
            codebook = max(0, min(codebook, self._codebooks - 1))
            frame = max(0, min(frame, self._frames - 1))
            moved, self.cursor_cell = (codebook, frame) != self.cursor_cell, (codebook, frame)
            self.refresh()
            if moved:
                self.cursor_moved.emit(codebook, frame)

    def describe(self, codebook: int, frame: int) -> str:
        if (passage := self._passage) is None:
            return ""
        order = int(passage.order[codebook, frame])
        seconds = passage.start + frame * self._frame_seconds
        head = f"Codebook {codebook + 1}, {fixed(seconds, 2)} s (frame {frame + 1})"
        if order < 0:
            return f"{head}: never filled in."
        code, probability = int(passage.codes[codebook, frame]), float(passage.probability[codebook, frame])
        when = f"with probability {fixed(probability, 2)} at step {order + 1} of {passage.steps}"
        if order > self._step:
            return f"{head}: still masked; code {code} comes {when}."
        now = ", just now" if order == self._step else ""
        return f"{head}: code {code}, committed {when}{now}."

    def cursor_text(self) -> str:
        return self.describe(*self.cursor_cell)

    def tip_at(self, place: QPointF) -> tuple[str, QRectF] | None:
        cell = self.cell_at(place)
        return None if cell is None else (self.describe(*cell), self.cell(*cell))

    def as_text(self) -> str:
        passage, lines = self._passage, ["codebook\tframe\tseconds\tcode\tstep\tprobability"]
        if passage is None:
            return lines[0]
        for (codebook, frame), code in np.ndenumerate(passage.codes):
            step, probability = passage.order[codebook, frame] + 1, passage.probability[codebook, frame]
            seconds = passage.start + frame * self._frame_seconds
            lines.append(f"{codebook + 1}\t{frame + 1}\t{seconds:.3f}\t{code}\t{step}\t{probability:.4f}")
        return "\n".join(lines)

    @property
    def _shown(self) -> DemaskedPassage:
        """The passage. Raises :class:`ValueError` if there is none."""
        if self._passage is None:
            raise ValueError("No passage is shown.")
        return self._passage

    def _row(self) -> float:
        """Cell height that fills the widget, within limits."""
        em = self.fontMetrics().height()
        room = (self.height() - 0.4 * em) / max(1, self.lines) - (_TIME + _GAP) * em
        return max(_ROW * em, min(room / self._codebooks, 2.2 * em))

    def line_height(self) -> float:
        return self._row() * self._codebooks + (_TIME + _GAP) * self.fontMetrics().height()

    def sizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        high = self.lines * (_ROW * self._codebooks + _TIME + _GAP) + 0.4 if self._passage is not None else 4
        return QSize(50 * em, round(high * em))

    def fit_lines(self) -> None:
        """Set the frames per line: as many as stay visible, in lines of nearly equal length."""
        if self._passage is not None:
            fitting = max(1, int(self.room() / (_LEAST_CELL * self.fontMetrics().height())))
            lines = -(-self._frames // fitting)
            self.per_line = -(-self._frames // lines)

    def playhead_room(self, line: int) -> QRectF:
        return self._cells_of(line).adjusted(0, -2, 0, 2)

    def _cells_of(self, line: int) -> QRectF:
        em, top = self.fontMetrics().height(), self.line_rectangle(line).top()
        return QRectF(self.margin * em, top + 0.2 * em, self.room(), self._row() * self._codebooks)

    def cell(self, codebook: int, frame: int) -> QRectF:
        line = frame // self.per_line
        around, height = self._cells_of(line), self._row()
        left, right = self.place(frame, line), self.place(frame + 1, line)
        return QRectF(left, around.bottom() - (codebook + 1) * height, right - left, height)

    def cell_at(self, place: QPointF) -> tuple[int, int] | None:
        """Codebook and frame at a place in widget coordinates; ``None`` outside all cells."""
        if self._passage is None:
            return None
        line = int(place.y() / self.line_height())
        around = self._cells_of(line)
        if not around.contains(place) or not 0 <= line < self.lines:
            return None
        frame = line * self.per_line + int((place.x() - around.left()) / around.width() * self.per_line)
        codebook = int((around.bottom() - place.y()) / self._row())
        return (codebook, frame) if frame < self._frames and codebook < self._codebooks else None

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._passage is None:
            return
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            picture = self._picture()
            for line in self.lines_in(event):
                self._paint_line(painter, line, self._cells_of(line), picture)
            self.paint_position(painter)
            self.paint_cursor(painter, self.cell(*self.cursor_cell))

    def _picture(self) -> np.ndarray:
        """Colours of the cells (codebooks, frames, 3), the first codebook last."""
        passage, colours = self._shown, self.colours
        ground, fill, lit, masked = (
            np.array((one.red(), one.green(), one.blue()), np.float32)
            for one in map(QColor, (colours.base, self.fill, colours.good, colours.raised))
        )
        strength = _FAINTEST + (1 - _FAINTEST) * np.clip(passage.probability, 0, 1)[..., None]
        known = (passage.order >= 0) & (passage.order <= self._step)
        shown = np.where(known[..., None], ground + strength * (fill - ground), masked)
        shown = np.where((known & (passage.order == self._step))[..., None], lit, shown)
        return np.ascontiguousarray(shown[::-1].round().astype(np.uint8))

    def _paint_line(self, painter: QPainter, line: int, around: QRectF, picture: np.ndarray) -> None:
        em = self.fontMetrics().height()
        first = line * self.per_line
        last = min(first + self.per_line, self._frames)
        part = np.ascontiguousarray(picture[:, first:last])
        image = QImage(part.data, last - first, self._codebooks, 3 * (last - first), QImage.Format.Format_RGB888)
        target = QRectF(around.left(), around.top(), self.place(last, line) - around.left(), around.height())
        painter.drawImage(target, image)
        self._paint_seams(painter, line, target, first, last)
        small = QFont(self.font())
        small.setPixelSize(max(7, int(0.62 * em)))
        painter.setFont(small)
        painter.setPen(QColor(self.colours.muted))
        for codebook in range(self._codebooks):
            spot = QRectF(0, self.cell(codebook, first).top(), (self.margin - 0.5) * em, self._row())
            painter.drawText(spot, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, str(codebook + 1))
        least = 4 * em / self._wide() * self._frame_seconds
        every = next((one for one in _BETWEEN_TIMES if one >= least), _BETWEEN_TIMES[-1])
        start = self._shown.start
        seconds = np.ceil((start + first * self._frame_seconds) / every) * every
        while (frame := (seconds - start) / self._frame_seconds) < last:
            x = self.place(frame, line)
            painter.drawLine(QPointF(x, target.bottom()), QPointF(x, target.bottom() + 0.25 * em))
            spot = QRectF(x - 3 * em, target.bottom() + 0.25 * em, 6 * em, 0.9 * em)
            painter.drawText(spot, Qt.AlignmentFlag.AlignHCenter, f"{general(seconds)} s")
            seconds = round(seconds + every, 6)

    def _wide(self) -> float:
        return max(0.5, self._cells_of(0).width() / self.per_line)

    def _paint_seams(self, painter: QPainter, line: int, target: QRectF, first: int, last: int) -> None:
        """Draw lines between codebooks, between frames if wide enough, and between blocks."""
        painter.setPen(QPen(QColor(self.colours.base), 1))
        height = target.height() / self._codebooks
        for codebook in range(1, self._codebooks):
            y = target.top() + codebook * height
            painter.drawLine(QPointF(target.left(), y), QPointF(target.right() - 1, y))
        if self._wide() >= 4:
            for frame in range(first + 1, last):
                x = self.place(frame, line)
                painter.drawLine(QPointF(x, target.top()), QPointF(x, target.bottom() - 1))
        painter.setPen(QPen(QColor(self.colours.text), 1, Qt.PenStyle.DashLine))
        for block in self._shown.blocks[1:]:
            if first <= block.start < last:
                x = self.place(block.start, line)
                painter.drawLine(QPointF(x, target.top() - 3), QPointF(x, target.bottom() + 3))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if (cell := self.cell_at(event.position())) is None or event.button() is not Qt.MouseButton.LeftButton:
            super().mousePressEvent(event)
        else:
            self.move_cursor(*cell)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if (cell := self.cell_at(event.position())) is not None:
            self.activated.emit(cell[1])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        codebook, frame = self.cursor_cell
        if self._passage is None:
            event.ignore()
        elif key in _MOVES:
            up, right = _MOVES[key]
            self.move_cursor(codebook + up, frame + right)
        elif key in _ENDS:
            self.move_cursor(codebook, 0 if key == Qt.Key.Key_Home else self._frames - 1)
        elif key in _STEPS:
            self.step_wanted.emit(_STEPS[key])
        elif key in ACTIVATING:
            self.activated.emit(frame)
        else:
            super().keyPressEvent(event)
