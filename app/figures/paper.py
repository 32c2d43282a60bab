"""A figure that stands by itself, as SVG or PNG: with its title, its caption and what it was made with."""

from __future__ import annotations

import html
import textwrap
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QSize, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QWidget

from app.figures.canvas import FigureCanvas
from app.theme import LIGHT, Colours
from engine.errors import PlainError
from engine.explore.figure import Figure
from engine.files import reason, write_atomically

PANEL = QSize(460, 330)
"""Of one panel, in pixels or SVG's user units."""
PIXELS_PER_UNIT = 2
LINE = 16
LETTERS = 78
"""Of a line of the caption, for each panel beside each other."""


def write(figure: Figure, path: Path, owner: QWidget | None = None, colours: Colours = LIGHT) -> None:
    """Write ``figure`` as the ending of ``path`` says: ``.svg``, ``.png`` or ``.csv``. What it is drawn on is kept
    until ``owner`` goes (see :class:`app.figures.canvas.FigureCanvas`). Raises :class:`PlainError` for another ending,
    or when the file cannot be written."""
    kinds = {".svg": lambda: _svg(sheet(figure, owner, colours)), ".png": lambda: _png(sheet(figure, owner, colours))}
    kinds[".csv"] = lambda: figure.to_csv().encode()
    kind = kinds.get(path.suffix.lower())
    if kind is None:
        raise PlainError(f"{path.name} ends in none of {', '.join(kinds)}; choose one of these endings.")
    try:
        write_atomically(path, kind())
    except OSError as error:
        raise PlainError(f"{path} could not be written ({reason(error)}); choose another folder.") from error


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
    content, buffer = QByteArray(), QBuffer()
    buffer.setBuffer(content)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(canvas.size())
    generator.setViewBox(canvas.rect())
    generator.setTitle(canvas.figure.title)
    generator.setDescription(canvas.figure.caption)
    painter = QPainter(generator)
    canvas.paint(painter)
    painter.end()
    canvas.hide()
    return bytes(content.data())


def _png(canvas: FigureCanvas) -> bytes:
    image = QImage(canvas.size() * PIXELS_PER_UNIT, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.scale(PIXELS_PER_UNIT, PIXELS_PER_UNIT)
    canvas.paint(painter)
    painter.end()
    canvas.hide()
    content, buffer = QByteArray(), QBuffer()
    buffer.setBuffer(content)
    image.save(buffer, "PNG")
    return bytes(content.data())
