"""Icons: the SVG drawings of ``resources/icons/`` in the colours of the palette.

The drawings use ``currentColor`` only, so one set serves light and dark. They are drawings because fonts lack half of
the transport symbols.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer

from paretone.paths import resource
from paretone_app.shell.colours import ON_GROUND

EMBLEM = "paretone"
"""The application's own icon, shown by the desktop."""
_SIZES = (16, 20, 24, 32, 48, 64)


def icon(name: str, palette: QPalette | None = None) -> QIcon:
    """The icon ``name`` (a file of ``resources/icons/`` without its suffix), coloured for ``palette``.

    Normal and disabled icons take the button text's colours, checked ones that of text on their ground. Icons do not
    follow a later change of the palette: ask again. Raises ``FileNotFoundError`` for a name that does not exist.
    """
    colours = QGuiApplication.palette() if palette is None else palette
    group, role = QPalette.ColorGroup, QPalette.ColorRole
    return _coloured(
        name,
        colours.color(group.Active, role.ButtonText).name(),
        colours.color(group.Disabled, role.ButtonText).name(),
        ON_GROUND,
    )


def pixmap(name: str, colour: QColor | str, size: int, ratio: float = 1.0) -> QPixmap:
    """The drawing ``name`` in one colour, ``size`` logical pixels square, for a screen with this pixel ratio."""
    svg = _drawing(name).replace("currentColor", QColor(colour).name())
    drawn = QPixmap(round(size * ratio), round(size * ratio))
    drawn.fill(Qt.GlobalColor.transparent)
    with QPainter(drawn) as painter:
        QSvgRenderer(QByteArray(svg.encode())).render(painter, QRectF(drawn.rect()))
    drawn.setDevicePixelRatio(ratio)
    return drawn


def names() -> tuple[str, ...]:
    """All icons there are; the application's emblem, which has its own colours, is none of them."""
    return tuple(sorted(path.stem for path in Path(resource("icons")).glob("*.svg") if path.stem != EMBLEM))


@lru_cache(maxsize=256)
def _coloured(name: str, normal: str, disabled: str, checked: str) -> QIcon:
    made = QIcon()
    for size in _SIZES:
        made.addPixmap(pixmap(name, normal, size), QIcon.Mode.Normal, QIcon.State.Off)
        made.addPixmap(pixmap(name, checked, size), QIcon.Mode.Normal, QIcon.State.On)
        for state in (QIcon.State.Off, QIcon.State.On):
            made.addPixmap(pixmap(name, disabled, size), QIcon.Mode.Disabled, state)
    return made


@lru_cache(maxsize=64)
def _drawing(name: str) -> str:
    return resource("icons", f"{name}.svg").read_text(encoding="utf-8")
