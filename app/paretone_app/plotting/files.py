"""Render drawings as SVG or PNG, and write files in the format of their suffix."""

from collections.abc import Callable, Mapping
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QRect, QSize
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgGenerator

from paretone import files, wording
from paretone.errors import PlainError

PIXELS_PER_UNIT = 2
_NO_XML = bytes(code for code in range(0x20) if code not in b"\t\n\r")
Paint = Callable[[QPainter], object]


def svg(size: QSize, paint: Paint, title: str, description: str) -> bytes:
    """SVG of ``paint`` on a page of ``size``, in user units."""
    content, buffer = QByteArray(), QBuffer()
    buffer.setBuffer(content)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(size)
    generator.setViewBox(QRect(0, 0, size.width(), size.height()))
    generator.setTitle(title)
    generator.setDescription(description)
    with QPainter(generator) as painter:
        paint(painter)
    # Qt writes control characters in labels unchanged, but XML forbids them; in UTF-8 no other character contains these
    # bytes.
    return bytes(content.data()).translate(None, _NO_XML)


def png(size: QSize, paint: Paint) -> bytes:
    """PNG of ``paint``, with two pixels per unit."""
    image = QImage(size * PIXELS_PER_UNIT, QImage.Format.Format_RGB32)
    with QPainter(image) as painter:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.scale(PIXELS_PER_UNIT, PIXELS_PER_UNIT)
        paint(painter)
    content, buffer = QByteArray(), QBuffer()
    buffer.setBuffer(content)
    # The stub wants bytes; PySide refuses them.
    image.save(buffer, "PNG")  # type: ignore[call-overload]
    return bytes(content.data())


def comma_separated(table: str) -> bytes:
    """Tab-separated text as CSV."""
    rows = (line.split("\t") for line in table.splitlines())
    return wording.comma_separated(rows, end="\r\n").encode(errors="replace")


def write(path: Path, kinds: Mapping[str, Callable[[], bytes]]) -> None:
    """Write the format of ``path``'s suffix, such as ``.svg``, from ``kinds``. Raises :class:`PlainError`."""
    kind = kinds.get(path.suffix.lower())
    if kind is None:
        raise PlainError(f"{path.name} ends in none of {', '.join(kinds)}; choose one of these endings.")
    files.write(path, kind())
