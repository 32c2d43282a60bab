"""Rooflines that stand by themselves: both plots with their table as SVG or PNG, and all figures as CSV."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter

from app.features.roofline.bars import Waterfall, milliseconds
from app.features.roofline.plot import RooflinePlot
from app.features.roofline.table import COLUMNS, cells, head_of
from app.plotting import files
from app.shell.theme import LIGHT, Colours
from app.widgets.side_buttons import SIDES
from engine.measure.roofline.report import RooflineReport

ENDINGS = ("svg", "png", "csv")
WIDTH, PLOT = 1200, 470
LINE, MARGIN = 19, 14
_SHARES = (0.25, 0.075, 0.085, 0.085, 0.075, 0.1, 0.1, 0.08, 0.08)
"""Of the sheet's width, for each column of the table."""

Reports = dict[str, RooflineReport | None]


def write(reports: Reports, plot: RooflinePlot, bars: Waterfall, path: Path, colours: Colours = LIGHT) -> None:
    """Write what the panel shows as the ending of ``path`` says: ``.svg``, ``.png`` or ``.csv``. Raises
    :class:`PlainError` for another ending, or when the file cannot be written."""
    whole = QSize(WIDTH, _height(reports))

    def paint(painter: QPainter) -> None:
        _paint(painter, reports, plot, bars, colours)

    files.write(
        path,
        {
            ".svg": lambda: files.svg(whole, paint, "Roofline", bars.describe()),
            ".png": lambda: files.png(whole, paint),
            ".csv": lambda: table(reports).encode(),
        },
    )


def table(reports: Reports) -> str:
    """All figures, A's and then B's, each behind lines that say what they are."""
    return "".join(f"# side: {side}\n{one.to_csv()}" for side, one in reports.items() if one is not None)


def _height(reports: Reports) -> int:
    lines = sum(_lines(one) for one in reports.values() if one is not None)
    return PLOT + (lines + 3) * LINE + 3 * MARGIN


def _lines(report: RooflineReport) -> int:
    return 2 + len(report.phases) + sum(len(phase.rows()) for phase in report.phases)


def _paint(painter: QPainter, reports: Reports, plot: RooflinePlot, bars: Waterfall, colours: Colours) -> None:
    whole = QRectF(0, 0, WIDTH, _height(reports))
    painter.fillRect(whole, QColor(colours.base))
    half = (WIDTH - 3 * MARGIN) / 2
    plot.paint(painter, QRectF(MARGIN, MARGIN, half, PLOT), colours)
    bars.paint(painter, QRectF(2 * MARGIN + half, MARGIN, half, PLOT), colours)
    y = PLOT + 2.0 * MARGIN
    plain, bold = QFont(plot.font()), QFont(plot.font())
    plain.setPixelSize(12)
    bold.setPixelSize(12)
    bold.setBold(True)
    for side in SIDES:
        report = reports[side]
        if report is None:
            continue
        painter.setFont(bold)
        painter.setPen(QColor(colours.baseline if side == "A" else colours.accelerated))
        words = f"{side}: {report.title}, {milliseconds(report.measured)}; floor {milliseconds(report.floor)}"
        painter.drawText(QRectF(MARGIN, y, WIDTH, LINE), Qt.AlignmentFlag.AlignVCenter, words)
        y += LINE
        _row(painter, y, tuple(title for title, _ in COLUMNS), colours.muted)
        y += LINE
        for phase in report.phases:
            painter.setFont(bold)
            painter.setPen(QColor(colours.text))
            painter.drawText(QRectF(MARGIN, y, WIDTH, LINE), Qt.AlignmentFlag.AlignVCenter, head_of(phase))
            painter.setFont(plain)
            y += LINE
            for one in phase.rows():
                _row(painter, y, cells(report, phase, one), colours.text)
                y += LINE
    report = next(one for one in reports.values() if one is not None)
    painter.setFont(plain)
    painter.setPen(QColor(colours.muted))
    foot = f"“{report.text}” by {report.voice}. {report.ceilings.clock}. {report.machine}. {report.created[:10]}."
    painter.drawText(QRectF(MARGIN, y + MARGIN / 2, WIDTH - 2 * MARGIN, 3 * LINE), Qt.TextFlag.TextWordWrap, foot)


def _row(painter: QPainter, y: float, texts: tuple[str, ...], colour: str) -> None:
    painter.setPen(QColor(colour))
    x = float(MARGIN)
    for number, (text, share) in enumerate(zip(texts, _SHARES, strict=True)):
        side = Qt.AlignmentFlag.AlignLeft if number in (0, len(texts) - 1) else Qt.AlignmentFlag.AlignRight
        indent = 14 if number in (0, len(texts) - 1) else 0
        painter.drawText(
            QRectF(x + indent, y, share * WIDTH - indent, LINE), side | Qt.AlignmentFlag.AlignVCenter, text
        )
        x += share * WIDTH
