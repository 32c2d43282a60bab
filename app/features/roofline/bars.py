"""Where the time goes: a waterfall of components, A's above B's, each beginning where the one before it ended."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.shell.theme import Colours
from app.state.comparison import speed_of_b
from app.widgets.side_buttons import SIDES
from engine.measure.roofline.report import REST, TITLES, WITHIN_NOISE, RooflineReport

_TOP, _ROW, _BOTTOM, _GAP = 3.2, 1.9, 2.4, 0.5
"""In heights of the font: room for title and legend, for a component, for the axis, and beside the names."""
_NUMBERS = 6.8


class Waterfall(QWidget):
    """Measured seconds of every component, all phases together, with the least that each could take."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours = colours
        self._reports: dict[str, RooflineReport | None] = dict.fromkeys(SIDES)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName("Where the time goes")

    def show_reports(self, reports: dict[str, RooflineReport | None]) -> None:
        """Show what was measured of A and B."""
        self._reports = dict(reports)
        self.setAccessibleDescription(self.describe())
        self.setToolTip(self.describe())
        self.updateGeometry()
        self.update()

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self._colours = colours
        self.update()

    @property
    def names(self) -> tuple[str, ...]:
        """The components that are shown, from above."""
        there = {name for one in self._reports.values() if one is not None for name in one.by_component()}
        return tuple(name for name in TITLES if name in there)

    def describe(self) -> str:
        """The bars in words."""
        lines = []
        for side, report in self._reports.items():
            if report is not None:
                parts = (f"{TITLES[name]} {milliseconds(one)}" for name, one in report.by_component().items())
                noise = f" ({WITHIN_NOISE})" if report.rest_is_noise else ""
                lines.append(f"{side}: {milliseconds(report.measured)}; {', '.join(parts)}{noise}.")
        return "\n".join(lines)

    def sizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(30 * em, round((_TOP + _BOTTOM + _ROW * max(6, len(self.names))) * em))

    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(20 * em, 12 * em)

    # --- Painting ----------------------------------------------------------------------------------------------------
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self.paint(painter, QRectF(self.rect()), self._colours)
        if self.hasFocus():
            painter.setPen(QPen(QColor(self._colours.accent), 2))
            painter.drawRect(self.rect().adjusted(1, 1, -1, -1))

    def paint(self, painter: QPainter, whole: QRectF, colours: Colours) -> None:
        """Draw everything within ``whole``, on the screen or on paper."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self.font())
        painter.fillRect(whole, QColor(colours.base))
        em, names = self.fontMetrics().height(), self.names
        named = max((self.fontMetrics().horizontalAdvance(TITLES[name]) for name in names), default=0)
        area = whole.adjusted(named + 2 * _GAP * em, _TOP * em, -_NUMBERS * em, -_BOTTOM * em)
        self._paint_title(painter, whole, colours)
        if not names or area.width() <= 0:
            return
        low, high = self._ends()
        step = area.height() / len(names)
        self._paint_axis(painter, area, low, high, colours)
        shown = [side for side in SIDES if self._reports[side] is not None]
        for number, name in enumerate(names):
            lane = QRectF(area.left(), area.top() + number * step, area.width(), step)
            painter.setPen(QColor(colours.text))
            painter.setFont(self.font())
            head = QRectF(whole.left() + _GAP * em, lane.top(), named + 2, step)
            painter.drawText(head, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, TITLES[name])
            height = min(0.8 * step / len(shown), 1.1 * em)
            first = lane.center().y() - height * len(shown) / 2
            small = QFont(self.font())
            small.setPixelSize(max(7, min(round(1.15 * height), round(0.85 * em))))
            painter.setFont(small)
            for place, side in enumerate(shown):
                bar = QRectF(area.left(), first + place * height, area.width(), height - 1.5)
                self._paint_bar(painter, bar, side, name, (low, high), colours)

    def _ends(self) -> tuple[float, float]:
        """The least and the greatest second that a bar reaches."""
        found = [0.0]
        for report in self._reports.values():
            total = 0.0
            for seconds in (report.by_component() if report is not None else {}).values():
                total += seconds
                found.append(total)
        return min(found), max(found) or 1.0

    def _paint_title(self, painter: QPainter, whole: QRectF, colours: Colours) -> None:
        em = self.fontMetrics().height()
        painter.setPen(QColor(colours.text))
        line = QRectF(whole.left() + _GAP * em, whole.top() + 0.35 * em, whole.width() - 2 * _GAP * em, 1.2 * em)
        one, two = (self._reports[side] for side in SIDES)
        words, compared = "Where the time goes", ""
        if one is not None and two is not None and two.measured:
            compared = speed_of_b(one.measured / two.measured)
        whole_title = f"{words}: {compared}" if compared else words
        fits = self.fontMetrics().horizontalAdvance(whole_title) <= line.width()
        painter.drawText(line, Qt.AlignmentFlag.AlignLeft, whole_title if fits else compared or words)
        x = line.left()
        for side in SIDES:
            report = self._reports[side]
            if report is None:
                continue
            painter.fillRect(QRectF(x, line.bottom() + 0.35 * em, 0.7 * em, 0.7 * em), QColor(_fill(side, colours)))
            text = f"{side} {milliseconds(report.measured)}"
            painter.setPen(QColor(colours.text))
            spot = QRectF(x + em, line.bottom() + 0.1 * em, whole.width(), 1.2 * em)
            painter.drawText(spot, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)
            x += em * 2.2 + self.fontMetrics().horizontalAdvance(text)
        if any(self._reports.values()):
            floor = QRectF(x, line.bottom() + 0.35 * em, 0.7 * em, 0.7 * em)
            painter.fillRect(floor, QBrush(QColor(colours.text), Qt.BrushStyle.BDiagPattern))
            painter.drawRect(floor)
            spot = QRectF(x + em, line.bottom() + 0.1 * em, whole.width(), 1.2 * em)
            painter.drawText(spot, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, "the floor")

    def _paint_axis(self, painter: QPainter, area: QRectF, low: float, high: float, colours: Colours) -> None:
        em = self.fontMetrics().height()
        spacing = _spacing(high - low, area.width() / (5.5 * em))
        place = math.ceil(low / spacing) * spacing
        while place <= high + 1e-12:
            x = area.left() + (place - low) / (high - low) * area.width()
            painter.setPen(QPen(QColor(colours.border), 1))
            painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
            painter.setPen(QColor(colours.muted))
            tick = QRectF(x - 4 * em, area.bottom() + 0.2 * em, 8 * em, 1.2 * em)
            painter.drawText(tick, Qt.AlignmentFlag.AlignHCenter, f"{place * 1e3:g}")
            place += spacing
        report = next(one for one in self._reports.values() if one is not None)
        # A clock's name says seconds; along the axis there are thousandths of them.
        words = f"ms ({report.ceilings.clock.replace('seconds', 'time', 1)})"
        line = QRectF(area.left() - 6 * em, area.bottom() + 1.2 * em, area.width() + 12 * em, 1.2 * em)
        painter.drawText(line, Qt.AlignmentFlag.AlignHCenter, words)

    def _paint_bar(
        self, painter: QPainter, lane: QRectF, side: str, name: str, ends: tuple[float, float], colours: Colours
    ) -> None:
        report, em = self._reports[side], self.fontMetrics().height()
        seconds = report.by_component()
        if name not in seconds:
            return
        start = sum(value for other, value in seconds.items() if list(TITLES).index(other) < list(TITLES).index(name))
        scale = lane.width() / (ends[1] - ends[0])
        left, right = sorted((start, start + seconds[name]))
        bar = QRectF(
            lane.left() + (left - ends[0]) * scale, lane.top(), max(1.0, (right - left) * scale), lane.height()
        )
        fill = QColor(_fill(side, colours))
        painter.fillRect(bar, fill)
        floor = sum(one.floor(report.ceilings) for _, one in report.components() if one.name == name)
        least = QRectF(bar.left(), bar.top(), min(floor * scale, bar.width()), bar.height())
        painter.fillRect(least, QBrush(QColor(colours.base), Qt.BrushStyle.BDiagPattern))
        share = seconds[name] / report.measured if report.measured else 0.0
        painter.setPen(QColor(colours.muted))
        words = milliseconds(seconds[name]) + (f", {share:.0%}" if share >= 0.005 else "")
        if name == REST and report.rest_is_noise:
            words = f"{milliseconds(seconds[name])}, noise"
        width, gap = painter.fontMetrics().horizontalAdvance(words) + 2, 0.25 * em
        # Before the bar where there is no room behind it.
        behind = bar.right() + gap + width <= lane.right() + _NUMBERS * em
        left = bar.right() + gap if behind else bar.left() - gap - width
        text = QRectF(left, bar.top() - em, width, bar.height() + 2 * em)
        painter.drawText(text, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, words)


def milliseconds(seconds: float) -> str:
    """A time of some thousandths of a second in words."""
    size = abs(seconds)
    return ("−" if seconds < 0 else "") + (f"{size:.2f} s" if size >= 1 else f"{size * 1e3:.3g} ms")


def _fill(side: str, colours: Colours) -> str:
    return colours.baseline if side == "A" else colours.accelerated


def _spacing(span: float, most: float) -> float:
    """A round distance between ticks, of which ``most`` fit."""
    least = span / max(1.0, most)
    size = 10.0 ** math.floor(math.log10(least))
    return next(size * one for one in (1, 2, 5, 10) if size * one >= least)
