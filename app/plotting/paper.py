"""A figure that stands by itself, as SVG or PNG: with its title, its caption and what it was made with."""

from __future__ import annotations

import html
import textwrap
from pathlib import Path

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QWidget

from app.plotting import files
from app.plotting.canvas import FigureCanvas
from app.shell.theme import LIGHT, Colours
from engine.views.figure import Figure

PANEL = QSize(460, 330)
"""Of one panel, in pixels or SVG's user units."""
LINE = 16
LETTERS = 78
"""Of a line of the caption, for each panel beside each other."""


def write(figure: Figure, path: Path, owner: QWidget | None = None, colours: Colours = LIGHT) -> None:
    """Write ``figure`` as the ending of ``path`` says: ``.svg``, ``.png`` or ``.csv``. What it is drawn on is kept
    until ``owner`` goes (see :class:`app.plotting.canvas.FigureCanvas`). Raises :class:`PlainError` for another ending,
    or when the file cannot be written."""
    files.write(
        path,
        {
            ".svg": lambda: _svg(sheet(figure, owner, colours)),
            ".png": lambda: _png(sheet(figure, owner, colours)),
            ".csv": lambda: figure.to_csv().encode(),
        },
    )


def sheet(figure: Figure, owner: QWidget | None, colours: Colours = LIGHT) -> FigureCanvas:
    """The figure with title and caption, laid out, on no screen."""
    across = min(figure.across, len(figure.panels))
    width = max(across, 2)
    made = figure.provenance
    lines = [
        line
        for text in (figure.caption, f"After {figure.source}. {made.line}.", f"{made.machine}.")
        for line in textwrap.wrap(text, LETTERS * width)
    ]
    title = f'<span style="font-size:13pt"><b>{html.escape(figure.title)}</b></span>'
    canvas = FigureCanvas(colours, owner)
    canvas.setWindowFlags(Qt.WindowType.Window)
    canvas.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
    canvas.show_figure(
        figure,
        f"{title}<br>{html.escape(figure.question)}",
        "<br>".join(map(html.escape, lines)),
    )
    rows = -(-len(figure.panels) // across)
    height = rows * PANEL.height() + (len(lines) + 5) * LINE
    canvas.resize(width * PANEL.width() + 60, height)
    canvas.show()
    return canvas


def _svg(canvas: FigureCanvas) -> bytes:
    content = files.svg(canvas.size(), canvas.paint, canvas.figure.title, canvas.figure.caption)
    canvas.hide()
    return content


def _png(canvas: FigureCanvas) -> bytes:
    content = files.png(canvas.size(), canvas.paint)
    canvas.hide()
    return content
