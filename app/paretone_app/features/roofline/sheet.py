"""Rooflines for export: both plots with their table as SVG or PNG, and all figures as CSV."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtGui import QFont

from paretone.measure.roofline.report import RooflineReport
from paretone.models.own_voices import shown_name
from paretone_app.features.roofline.bars import Waterfall, milliseconds
from paretone_app.features.roofline.plot import RooflinePlot, RooflinePoint
from paretone_app.features.roofline.table import COLUMNS, cells, head_of
from paretone_app.plotting import files
from paretone_app.plotting.sheet import Sheet
from paretone_app.shell.colours import LIGHT, Colours
from paretone_app.widgets.side_panel import SIDES

WIDTH, PLOT = 1200, 470
_SHARES = (0.25, 0.075, 0.085, 0.085, 0.075, 0.1, 0.1, 0.08, 0.08)
"""Share of the sheet's width for each column of the table."""

Reports = dict[str, RooflineReport | None]


def write(
    reports: Reports, at: RooflinePoint | None, description: str, path: Path, font: QFont, colours: Colours = LIGHT
) -> None:
    """Write what was measured, and which component is chosen, as the ending of ``path`` says: ``.svg``, ``.png`` or
    ``.csv``; ``description`` is an SVG's. Raises :class:`PlainError` for another ending, or when the file cannot be
    written."""
    files.write(
        path,
        {
            ".svg": lambda: _sheet(reports, at, font, colours).svg("Roofline", description),
            ".png": lambda: _sheet(reports, at, font, colours).png(),
            ".csv": lambda: table(reports).encode(),
        },
    )


def table(reports: Reports) -> str:
    """All figures, A's and then B's, each after lines that say what they are."""
    return "".join(f"# side: {side}\n{one.to_csv()}" for side, one in reports.items() if one is not None)


def _sheet(reports: Reports, at: RooflinePoint | None, font: QFont, colours: Colours) -> Sheet:
    plot, bars = RooflinePlot(colours, on_paper=True), Waterfall(colours, on_paper=True)
    for chart in (plot, bars):
        chart.show_reports(reports)
    if at is not None:
        plot.choose(at.side, at.row)
    made = Sheet(WIDTH, colours, font)
    made.charts([plot, bars], PLOT)
    for side in SIDES:
        report = reports[side]
        if report is None:
            continue
        words = f"{side}: {report.title}, {milliseconds(report.measured)}; floor {milliseconds(report.floor)}"
        made.heading(words, colours.baseline if side == "A" else colours.accelerated)
        made.row(tuple(title for title, _ in COLUMNS), _SHARES, colours.muted, bold=True)
        for phase in report.phases:
            made.heading(head_of(phase), colours.text)
            for one in phase.rows():
                made.row(cells(report, phase, one), _SHARES, colours.text)
    report = next(one for one in reports.values() if one is not None)
    spoken = f"“{report.text}” by {shown_name(report.voice)}"
    made.paragraph(f"{spoken}. {report.ceilings.clock}. {report.machine}. {report.created[:10]}.")
    return made
