"""Tokens along time, in lines like text: each with its outcome and, below it, its discarded drafts."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy

from paretone.measure.decoding import SpokenToken
from paretone.setting.take import ACCEPTED, BONUS, DECODED, RESAMPLED
from paretone_app.numbers import fixed, general
from paretone_app.plotting.cursor_canvas import ACTIVATING, LineCanvas
from paretone_app.plotting.curves import series_colour
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import text_font

MEANINGS = {
    ACCEPTED: "drafted, and accepted by the target model",
    RESAMPLED: "sampled by the target model in place of the first rejected draft token",
    BONUS: "sampled by the target model after a fully accepted draft",
    DECODED: "sampled by the model without a draft",
}
REJECTED = "rejected"
REJECTED_MEANING = "drafted but not used: rejected, or after a rejected one"
_LETTERS = {ACCEPTED: "A", RESAMPLED: "R", BONUS: "B", DECODED: "D"}
_LINES_OF_SECONDS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0)
_LEAST_CELL, _CELL_HEIGHT, _DRAFT_HEIGHT, _LINE_GAP = 0.66, 1.15, 0.42, 1.25
"""In font heights: a token's minimum width and its height, a rejected draft's height, and the line gap."""
_ENDS = (Qt.Key.Key_Home, Qt.Key.Key_End)
_BY_TOKEN = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
_BY_LINE = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
_BY_CYCLE = {Qt.Key.Key_PageUp: -1, Qt.Key.Key_PageDown: 1}


def outcome_colours(colours: Colours) -> dict[str, str]:
    """Fill colours of outcomes; their letters use the colour of text on accents."""
    series = {outcome: series_colour(colours, number) for number, outcome in enumerate((BONUS, RESAMPLED, ACCEPTED))}
    return {**series, DECODED: colours.disabled, REJECTED: colours.danger}


class TokenStrip(LineCanvas):
    """The tokens of one take; as high as its lines need. A token may extend past the end of its line."""

    cursor_moved = Signal(int)
    height_wanted = Signal(int)
    """Height of the strip with all its lines, in pixels."""
    line_shown = Signal(QRectF)

    own_keys = (*_ENDS, *_BY_TOKEN, *_BY_LINE, *_BY_CYCLE, *ACTIVATING)

    def __init__(self, colours: Colours) -> None:
        super().__init__(colours)
        self.tokens: tuple[SpokenToken, ...] = ()
        self._rate = 25.0
        self.cursor_token = 0
        self._lines: list[tuple[int, int]] = []
        self._depth = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self.setAccessibleName("Tokens along time")

    def show_tokens(self, tokens: Sequence[SpokenToken], rate: float = 25.0) -> None:
        """Show tokens in time order, each 1 / ``rate`` s long. Cursor and playhead stay if tokens are only appended."""
        before, self.tokens, self._rate = self.tokens, tuple(tokens), rate
        self._depth = max((len(one.rejected) for one in self.tokens), default=0)
        if not before or self.tokens[: len(before)] != before:
            self.cursor_token = 0
            self.set_position(None)
        self.break_lines()
        self.refresh()

    @property
    def lines(self) -> int:
        return len(self._lines)

    def move_cursor(self, index: int) -> None:
        if self.tokens:
            index = max(0, min(index, len(self.tokens) - 1))
            moved, self.cursor_token = index != self.cursor_token, index
            self.refresh()
            self.line_shown.emit(self.line_rectangle(self._line_of(index)))
            if moved:
                self.cursor_moved.emit(index)

    def describe(self, index: int, briefly: bool = False) -> str:
        """A token in words; ``briefly``: without the meaning of its outcome."""
        one = self.tokens[index]
        place = f"Token {index + 1} of {len(self.tokens)}, {fixed(one.seconds, 2)} s, id {one.id}"
        meaning = "" if briefly else f" ({MEANINGS[one.outcome]})"
        drafts = "draft" if len(one.rejected) == 1 else "drafts"
        rejected = f" Rejected {drafts} here: {', '.join(map(str, one.rejected))}." if one.rejected else ""
        return f"{place}, cycle {one.cycle + 1}: {one.outcome}{meaning}.{rejected}"

    def cursor_text(self) -> str:
        return self.describe(self.cursor_token) if self.tokens else ""

    def tip_at(self, place: QPointF) -> tuple[str, QRectF] | None:
        index = self.token_at(place)
        return None if index is None else (self.describe(index), self.token_rectangle(index))

    def as_text(self) -> str:
        lines = ["token\tseconds\tid\toutcome\tcycle\trejected drafts"]
        lines += [
            f"{number}\t{one.seconds:.3f}\t{one.id}\t{one.outcome}\t{one.cycle + 1}\t{' '.join(map(str, one.rejected))}"
            for number, one in enumerate(self.tokens, 1)
        ]
        return "\n".join(lines)

    def sizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(50 * em, max(4 * em, round(len(self._lines) * self.line_height() + em * 0.4)))

    def fit_lines(self) -> None:
        """Set the seconds per line: the most at which a token's letter fits."""
        least = self._rate * _LEAST_CELL * self.fontMetrics().height()
        fitting = (one for one in _LINES_OF_SECONDS if one * least <= self.room())
        self.per_line = max(fitting, default=_LINES_OF_SECONDS[0])
        self._lines = []
        for index, one in enumerate(self.tokens):
            line = int(one.seconds / self.per_line + 1e-6)
            while len(self._lines) <= line:
                self._lines.append((index, index))
            self._lines[line] = (self._lines[line][0], index + 1)

    def break_lines(self) -> None:
        super().break_lines()
        self.height_wanted.emit(self.sizeHint().height())

    def line_height(self) -> float:
        return self.fontMetrics().height() * (_CELL_HEIGHT + _LINE_GAP * 0.5) + self._depth * self._draft_height()

    def _draft_height(self) -> float:
        # Many drafts are drawn flatter.
        return self.fontMetrics().height() * min(_DRAFT_HEIGHT, 2.0 / max(1, self._depth))

    def _line_of(self, index: int) -> int:
        return next((line for line, (_, end) in enumerate(self._lines) if index < end), 0)

    def token_rectangle(self, index: int) -> QRectF:
        em = self.fontMetrics().height()
        line, one = self._line_of(index), self.tokens[index]
        left = self.place(one.seconds, line)
        right = self.place(one.seconds + 1 / self._rate, line)
        return QRectF(left, line * self.line_height() + 0.3 * em, right - left, _CELL_HEIGHT * em)

    def token_at(self, place: QPointF) -> int | None:
        """The index of the token at a place in widget coordinates, drafts included; ``None`` outside them."""
        line = int(place.y() / self.line_height())
        for index in range(*self._lines[line]) if 0 <= line < len(self._lines) else ():
            cell = self.token_rectangle(index)
            if cell.left() <= place.x() < cell.right():
                return index
        return None

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            em = self.fontMetrics().height()
            letters = text_font(self.font(), strong=True)
            letters.setPixelSize(max(7, int(0.68 * em)))
            for line in self.lines_in(event):
                painter.setFont(self.font())
                painter.setPen(QColor(self.colours.muted))
                top, wide = self.line_rectangle(line).top() + 0.3 * em, (self.margin - 0.4) * em
                label, text = QRectF(0, top, wide, _CELL_HEIGHT * em), f"{general(line * self.per_line)} s"
                painter.drawText(label, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)
                painter.setFont(letters)
                for index in range(*self._lines[line]):
                    self._paint_token(painter, index)
            self.paint_position(painter)
            if self.tokens:
                self.paint_cursor(painter, self.token_rectangle(self.cursor_token))

    def _paint_token(self, painter: QPainter, index: int) -> None:
        one, cell, fills = self.tokens[index], self.token_rectangle(index), outcome_colours(self.colours)
        height = self._draft_height()
        # The gap is wider between cycles, so that tokens verified together are grouped.
        ends = one.outcome != DECODED and index + 1 < len(self.tokens) and self.tokens[index + 1].cycle != one.cycle
        drawn = cell.adjusted(0, 0, -3 if ends else -1, 0)
        painter.fillRect(drawn, QColor(fills[one.outcome]))
        painter.setPen(QColor(self.colours.on_accent))
        painter.drawText(drawn, Qt.AlignmentFlag.AlignCenter, _LETTERS[one.outcome])
        for depth in range(len(one.rejected)):
            top = round(cell.bottom() + 1 + depth * height)
            box = QRectF(drawn.left(), top, drawn.width() - 1, max(1, round(height - 2)))
            # The rejected draft is filled; those discarded after it are outlined, or filled if too flat.
            if depth == 0 or box.height() < 3:
                painter.fillRect(box, QColor(fills[REJECTED]))
            else:
                painter.setPen(QPen(QColor(fills[REJECTED]), 1))
                painter.drawRect(box.adjusted(0, 0, -1, -1))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if (index := self.token_at(event.position())) is None or event.button() is not Qt.MouseButton.LeftButton:
            super().mousePressEvent(event)
        else:
            self.move_cursor(index)
            self.activated.emit(index)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, at, tokens = Qt.Key(event.key()), self.cursor_token, self.tokens
        if not tokens:
            event.ignore()
        elif key in _BY_TOKEN:
            self.move_cursor(at + _BY_TOKEN[key])
        elif key in _ENDS:
            self.move_cursor(0 if key == Qt.Key.Key_Home else len(tokens) - 1)
        elif key in _BY_LINE:
            wanted = tokens[at].seconds + _BY_LINE[key] * self.per_line
            self.move_cursor(min(range(len(tokens)), key=lambda index: abs(tokens[index].seconds - wanted)))
        elif key in _BY_CYCLE:
            cycle = tokens[at].cycle + _BY_CYCLE[key]
            self.move_cursor(next((index for index, one in enumerate(tokens) if one.cycle == cycle), at))
        elif key in ACTIVATING:
            self.activated.emit(at)
        else:
            super().keyPressEvent(event)
