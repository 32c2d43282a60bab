"""A figure for export as SVG or PNG, with title, caption and provenance."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QApplication

from paretone.views.figure import Figure
from paretone_app.plotting import files
from paretone_app.plotting.canvas import FigureCanvas
from paretone_app.plotting.sheet import Sheet
from paretone_app.shell.colours import LIGHT, Colours

PANEL = QSize(460, 330)
"""Size of one panel, in pixels or SVG's user units."""


def write(figure: Figure, path: Path, colours: Colours = LIGHT) -> None:
    """Write ``figure`` as the ending of ``path`` says: ``.svg``, ``.png`` or ``.csv``. Raises :class:`PlainError` for
    another ending, or when the file cannot be written."""
    files.write(
        path,
        {
            ".svg": lambda: sheet(figure, colours).svg(figure.title, figure.caption),
            ".png": lambda: sheet(figure, colours).png(),
            ".csv": lambda: figure.to_csv().encode(),
        },
    )


def sheet(figure: Figure, colours: Colours = LIGHT) -> Sheet:
    """The figure with title and caption."""
    across = min(figure.across, len(figure.panels))
    canvas = FigureCanvas(colours, on_paper=True)
    canvas.show_figure(figure)
    made = Sheet(max(across, 2) * PANEL.width() + 60, colours, QApplication.font())
    made.title(figure.title)
    made.paragraph(figure.question)
    made.charts([canvas], -(-len(figure.panels) // across) * PANEL.height())
    for text in (figure.caption, f"After {figure.source}. {figure.provenance.line}.", f"{figure.provenance.machine}."):
        made.paragraph(text)
    return made
