"""Colours and type of the application: an own light and dark palette over Qt's Fusion style.

``QStyleHints.setColorScheme`` does nothing on bare X11 and offscreen, and Fusion's disabled text has a contrast of only
1.6 : 1, so both palettes are our own. Where the platform says which scheme it uses, it is followed.
"""

from __future__ import annotations

from enum import Enum

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QWidget

from paretone_app.shell.colours import DARK, LIGHT, Colours
from paretone_app.shell.style import style_sheet


class Scheme(Enum):
    """Which colours to use; ``SYSTEM`` follows the platform where it says, and is light elsewhere."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


def palette(colours: Colours) -> QPalette:
    """The Qt palette for ``colours``."""
    made = QPalette()
    role = QPalette.ColorRole
    roles = {
        role.Window: colours.window,
        role.WindowText: colours.text,
        role.Base: colours.base,
        role.AlternateBase: colours.window,
        role.ToolTipBase: colours.raised,
        role.ToolTipText: colours.text,
        role.PlaceholderText: colours.muted,
        role.Text: colours.text,
        role.Button: colours.raised,
        role.ButtonText: colours.text,
        role.BrightText: colours.danger,
        role.Link: colours.accent,
        role.LinkVisited: colours.accent,
        role.Highlight: colours.accent,
        role.HighlightedText: colours.on_accent,
        role.Accent: colours.accent,
        role.Light: colours.base,
        role.Midlight: colours.raised,
        role.Mid: colours.border,
        role.Dark: colours.border,
        role.Shadow: colours.border,
    }
    for one, colour in roles.items():
        made.setColor(one, QColor(colour))
    for one in (role.WindowText, role.Text, role.ButtonText, role.PlaceholderText):
        made.setColor(QPalette.ColorGroup.Disabled, one, QColor(colours.disabled))
    made.setColor(QPalette.ColorGroup.Disabled, role.Highlight, QColor(colours.border))
    made.setColor(QPalette.ColorGroup.Disabled, role.HighlightedText, QColor(colours.text))
    return made


class Theme(QObject):
    """The scheme in use; ``changed`` is emitted after a scheme was applied."""

    changed = Signal()

    def __init__(self, application: QApplication) -> None:
        super().__init__(application)
        self._application = application
        self._scheme = Scheme.SYSTEM
        self._applied: Colours | None = None
        application.setStyle("Fusion")
        application.styleHints().colorSchemeChanged.connect(self._follow_system)

    @property
    def scheme(self) -> Scheme:
        """The user's choice."""
        return self._scheme

    @property
    def dark(self) -> bool:
        """Whether the dark colours are in use."""
        if self._scheme is Scheme.SYSTEM:
            return self._application.styleHints().colorScheme() is Qt.ColorScheme.Dark
        return self._scheme is Scheme.DARK

    @property
    def colours(self) -> Colours:
        """The colours in use."""
        return DARK if self.dark else LIGHT

    def apply(self, scheme: Scheme) -> None:
        """Use ``scheme`` from now on. Widgets are restyled only when colours change: that takes a tenth of a second."""
        self._scheme = scheme
        if self.colours is not self._applied:
            self._applied = self.colours
            self._application.setPalette(palette(self.colours))
            self._application.setStyleSheet(style_sheet(self.colours))
        self.changed.emit()

    def _follow_system(self) -> None:
        if self._scheme is Scheme.SYSTEM:
            self.apply(Scheme.SYSTEM)


def set_look(widget: QWidget, look: str) -> None:
    """Give ``widget`` one of the looks of :func:`paretone_app.shell.style.style_sheet`, also after it was shown."""
    if widget.property("look") != look:
        widget.setProperty("look", look)
        widget.style().unpolish(widget)
        widget.style().polish(widget)
