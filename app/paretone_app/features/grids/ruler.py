"""The times of several grids from noise to speech, one line each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from paretone_app.numbers import fixed
from paretone_app.shell.colours import Colours
from paretone_app.widgets.screen_readers import CHART

_LINE, _MARK = 2.4, 3.0
"""Height of a line in heights of the font, and pixels of a mark."""


@dataclass(frozen=True)
class Row:
    """One grid."""

    title: str
    times: tuple[float, ...]
    figure: str = ""
    """How good it is, in words."""
    chosen: bool = False
    """Whether it is the one in use."""


class Ruler(QWidget):
    """A line for each grid, noise at the left, speech at the right, and a mark at each time."""

    screen_role = CHART

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours = colours
        self.rows: tuple[Row, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def show_rows(self, rows: Sequence[Row]) -> None:
        """Show these grids, the first on top."""
        self.rows = tuple(rows)
        said = [f"{one.title}: {' '.join(fixed(time, 3) for time in one.times)}{_more(one)}" for one in rows]
        self.setAccessibleDescription("; ".join(said))
        self.setToolTip("\n".join(said))
        self.updateGeometry()
        self.update()

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self.update()

    def sizeHint(self) -> QSize:
        line = self.fontMetrics().height()
        return QSize(line * 20, round(line * _LINE * max(1, len(self.rows))))

    minimumSizeHint = sizeHint

    def paintEvent(self, event: QPaintEvent) -> None:
        metrics = self.fontMetrics()
        high = metrics.height() * _LINE
        left = max((metrics.horizontalAdvance(one.title) for one in self.rows), default=0) + metrics.height()
        right = max((metrics.horizontalAdvance(one.figure) for one in self.rows), default=0) + metrics.height()
        room = max(1.0, self.width() - left - right - _MARK)
        with QPainter(self) as painter:
            for index, one in enumerate(self.rows):
                top, middle = index * high, (index + 0.5) * high
                painter.setPen(QColor(self._colours.text))
                within = Qt.AlignmentFlag.AlignVCenter
                painter.drawText(QRectF(0, top, left, high), within | Qt.AlignmentFlag.AlignLeft, one.title)
                painter.drawText(
                    QRectF(self.width() - right, top, right, high), within | Qt.AlignmentFlag.AlignRight, one.figure
                )
                painter.fillRect(QRectF(left, middle, room + _MARK, 1), QColor(self._colours.border))
                colour = QColor(self._colours.accent if one.chosen else self._colours.muted)
                for time in one.times:
                    painter.fillRect(QRectF(left + time * room, middle - 0.3 * high, _MARK, 0.6 * high), colour)


def _more(row: Row) -> str:
    return f" ({row.figure})" if row.figure else ""
