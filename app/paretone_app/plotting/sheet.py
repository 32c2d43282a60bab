"""A sheet of paper: title, charts, legend, rows and text lines below each other, as SVG or PNG."""

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter
from PySide6.QtWidgets import QApplication

from paretone.figures.glyphs import Glyph
from paretone.views.figure import Figure
from paretone_app.plotting import files
from paretone_app.plotting.canvas import FigureCanvas
from paretone_app.plotting.chart import Chart
from paretone_app.plotting.files import Paint
from paretone_app.plotting.points import paint_glyph
from paretone_app.shell.colours import LIGHT, Colours

_TITLE, _PLAIN, _FINE = 17, 14, 12
"""Font sizes in pixels."""
_LINE = 1.5
_LEFT, _CENTRE = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, Qt.AlignmentFlag.AlignVCenter


class Sheet:
    """Filled from the top; its height follows its contents."""

    def __init__(self, width: int, colours: Colours, font: QFont, margin: int = 16) -> None:
        self.width, self.colours, self.margin = width, colours, margin
        self._font = font
        self._y = float(margin)
        self._parts: list[Paint] = []
        self._charts: list[Chart] = []

    def letters(self, pixels: int, bold: bool = False) -> QFont:
        found = QFont(self._font)
        found.setPixelSize(pixels)
        found.setWeight(QFont.Weight.DemiBold if bold else QFont.Weight.Normal)
        return found

    @property
    def _room(self) -> float:
        return self.width - 2 * self.margin

    def title(self, text: str) -> None:
        self._text(text, self.letters(_TITLE, bold=True), self.colours.text)
        self._y += 0.3 * _TITLE

    def charts(self, charts: Sequence[Chart], height: int) -> None:
        """Charts in a row; laid out at once and deleted with the sheet."""
        width = (self._room - (len(charts) - 1) * self.margin) / len(charts)
        for number, chart in enumerate(charts):
            where = QRectF(self.margin + number * (width + self.margin), self._y, width, height)
            chart.lay_out(QSize(round(width), height), self.letters(_PLAIN))
            self._charts.append(chart)
            self._parts.append(partial(chart.paint, whole=where))
        self._y += height + self.margin / 2

    def legend(self, entries: Sequence[tuple[Glyph, str]]) -> None:
        font, height, x = self.letters(_FINE), 1.6 * _FINE, float(self.margin)
        metrics = QFontMetricsF(font)
        for glyph, text in entries:
            width = metrics.horizontalAdvance(text) + 3.2 * _FINE
            if x + width > self.width - self.margin:
                x, self._y = float(self.margin), self._y + height
            place = QPointF(x + 0.6 * _FINE, self._y + height / 2)
            paint = partial(paint_glyph, place=place, radius=0.42 * _FINE, glyph=glyph, colours=self.colours)
            self._parts.append(paint)
            self._put(QRectF(x + 1.5 * _FINE, self._y, width, height), text, font, self.colours.text)
            x += width
        self._y += height

    def heading(self, text: str, colour: str) -> None:
        self._text(text, self.letters(_FINE, bold=True), colour)

    def row(self, cells: Sequence[str], shares: Sequence[float], colour: str, bold: bool = False) -> None:
        """A table row: first and last column left-aligned, the others right-aligned."""
        x, font, height = float(self.margin), self.letters(_FINE, bold), _LINE * _FINE
        for number, (text, share) in enumerate(zip(cells, shares, strict=True)):
            outer = number in (0, len(cells) - 1)
            side = _LEFT if outer else Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            indent = _FINE if outer else 0
            self._put(QRectF(x + indent, self._y, share * self.width - indent, height), text, font, colour, side)
            x += share * self.width
        self._y += height

    def line(self, text: str) -> None:
        """A small line, elided at the edge."""
        font = self.letters(_FINE)
        shown = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, self._room)
        self._text(shown, font, self.colours.muted)

    def paragraph(self, text: str) -> None:
        """Small text, wrapped."""
        text = " ".join(text.split())
        font, flags = self.letters(_FINE), _LEFT | Qt.TextFlag.TextWordWrap
        room = QRectF(self.margin, self._y, self._room, 10000)
        height = QFontMetricsF(font).boundingRect(room, flags, text).height()
        self._put(QRectF(self.margin, self._y, self._room, height), text, font, self.colours.muted, flags)
        self._y += height

    def _text(self, text: str, font: QFont, colour: str) -> None:
        height = _LINE * font.pixelSize()
        self._put(QRectF(self.margin, self._y, self._room, height), text, font, colour, _CENTRE)
        self._y += height

    def _put(self, where: QRectF, text: str, font: QFont, colour: str, flags: int = _LEFT) -> None:
        def paint(painter: QPainter) -> None:
            painter.setFont(font)
            painter.setPen(QColor(colour))
            painter.drawText(where, flags, text)

        self._parts.append(paint)

    @property
    def size(self) -> QSize:
        return QSize(self.width, math.ceil(self._y + self.margin))

    def paint(self, painter: QPainter) -> None:
        painter.fillRect(QRectF(QPointF(), self.size), QColor(self.colours.base))
        for part in self._parts:
            painter.save()
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            part(painter)
            painter.restore()

    def svg(self, title: str, description: str) -> bytes:
        return self._finished(files.svg(self.size, self.paint, title, description))

    def png(self) -> bytes:
        return self._finished(files.png(self.size, self.paint))

    def _finished(self, content: bytes) -> bytes:
        # At once: Python's collector might delete them on another thread.
        for chart in self._charts:
            chart.hide()
            chart.deleteLater()
        self._charts.clear()
        return content


def write_figure(figure: Figure, path: Path) -> None:
    """Write ``figure`` in the format of ``path``'s suffix: SVG, PNG or CSV. Raises :class:`PlainError`."""
    files.write(
        path,
        {
            ".svg": lambda: _sheet(figure).svg(figure.title, figure.caption),
            ".png": lambda: _sheet(figure).png(),
            ".csv": lambda: figure.to_csv().encode(),
        },
    )


def _sheet(figure: Figure) -> Sheet:
    across = min(figure.across, len(figure.panels))
    canvas = FigureCanvas(LIGHT, on_paper=True)
    canvas.show_figure(figure)
    made = Sheet(max(across, 2) * 460 + 60, LIGHT, QApplication.font())
    made.title(figure.title)
    made.paragraph(figure.question)
    made.charts([canvas], -(-len(figure.panels) // across) * 330)
    for text in (figure.caption, f"After {figure.source}. {figure.provenance.line}.", f"{figure.provenance.machine}."):
        made.paragraph(text)
    return made
