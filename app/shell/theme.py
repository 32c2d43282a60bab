"""Colours and type of the application: an own light and dark palette over Qt's Fusion style.

``QStyleHints.setColorScheme`` does nothing on bare X11 and offscreen, and Fusion's disabled text has a contrast of only
1.6 : 1, so both palettes are our own. Where the platform says which scheme it uses, it is followed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QWidget

from engine.paths import resource

if TYPE_CHECKING:
    pass


class Scheme(Enum):
    """Which colours to use; ``SYSTEM`` follows the platform where it says, and is light elsewhere."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True)
class Colours:
    """The colours of one scheme, as hexadecimal RGB."""

    window: str
    base: str
    raised: str
    border: str
    text: str
    muted: str
    disabled: str
    accent: str
    on_accent: str
    good: str
    warning: str
    danger: str
    baseline: str
    """Take A, in every plot."""
    accelerated: str
    """Take B, in every plot."""


LIGHT = Colours(
    window="#f3f5f8",
    base="#ffffff",
    raised="#e8ecf2",
    border="#cfd6e0",
    text="#18202c",
    muted="#505b6b",
    disabled="#6d7786",
    accent="#1f57c8",
    on_accent="#ffffff",
    good="#146c43",
    warning="#7d5200",
    danger="#ad1f17",
    baseline="#1f57c8",
    accelerated="#b4480b",
)

DARK = Colours(
    window="#14171c",
    base="#1b1f26",
    raised="#262c36",
    border="#38414e",
    text="#e8ebf1",
    muted="#a9b3c1",
    disabled="#8d97a6",
    accent="#82aaff",
    on_accent="#0b1630",
    good="#63d39a",
    warning="#f2bd56",
    danger="#ff948a",
    baseline="#82aaff",
    accelerated="#ffa366",
)


def done_ground(colours: Colours) -> str:
    """The ground of the done part of a progress bar: halfway to the accent, so that the figures that run over both
    parts can be read on either."""
    one, other = QColor(colours.accent), QColor(colours.base)
    return QColor(
        (one.red() + other.red()) // 2, (one.green() + other.green()) // 2, (one.blue() + other.blue()) // 2
    ).name()


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


def style_sheet(colours: Colours) -> str:
    """Style beyond the palette: spacing, corners, and the few widgets with their own meaning.

    Widgets choose a look by the property ``look``: ``primary`` and ``quiet`` buttons, ``title``, ``muted``, ``figure``,
    ``warning``, ``banner``, ``heading`` and ``chip`` labels.
    """
    tick = resource("style", "tick-dark.svg" if colours is DARK else "tick-light.svg").as_posix()
    return f"""
    QToolTip {{ color: {colours.text}; background: {colours.raised}; border: 1px solid {colours.border};
        padding: 0.3em; }}
    QMainWindow::separator {{ background: {colours.window}; width: 5px; height: 5px; }}
    QMainWindow::separator:hover {{ background: {colours.accent}; }}
    QDockWidget {{ font-weight: 600; }}
    QDockWidget > QWidget {{ font-weight: 400; }}
    QDockWidget::title {{ background: {colours.window}; padding: 0.35em 0.6em; text-align: left; }}
    QToolBar {{ background: {colours.window}; border: none; border-bottom: 1px solid {colours.border};
        padding: 0.35em 0.5em; spacing: 0.4em; }}
    QToolBar#header {{ padding: 0.15em 0.5em; }}
    QToolBar#rail {{ padding: 0.2em 0.25em; border-bottom: none; border-right: 1px solid {colours.border}; }}
    QToolBar[look="gallery"] {{ padding: 0.2em; border-bottom: none; border-left: 1px solid {colours.border}; }}
    QStatusBar {{ background: {colours.window}; border-top: 1px solid {colours.border}; }}
    QStatusBar::item {{ border: none; }}
    QGroupBox {{ background: {colours.base}; border: 1px solid {colours.border}; border-radius: 6px;
        margin-top: 1.6em; padding: 0.2em; font-weight: 600; }}
    QGroupBox::title {{ subcontrol-origin: margin; subcontrol-position: top left; left: 0.1em; padding: 0.2em 0.2em;
        color: {colours.text}; }}
    QGroupBox[look="card"], QGroupBox[look="chosen-card"] {{ margin-top: 0; padding-top: 1.75em;
        padding-bottom: 0; }}
    QGroupBox[look="card"]::title, QGroupBox[look="chosen-card"]::title {{ subcontrol-origin: border;
        left: 0.45em; top: 0.3em; }}
    QGroupBox[look="card"]:hover, QGroupBox[look="card"]:focus, QGroupBox[look="chosen-card"] {{
        border-color: {colours.accent}; }}
    QGroupBox[look="chosen-card"]:focus {{ border: 2px solid {colours.accent}; }}
    QGroupBox[look="tour"] {{ margin-top: 0; padding: 0; border: 1px solid {colours.accent}; border-radius: 8px; }}
    QPushButton[look="link"] {{ background: transparent; border: 1px solid transparent; color: {colours.muted};
        padding: 0.1em 0.4em; }}
    QPushButton[look="link"]:hover {{ color: {colours.text}; }}
    QPushButton[look="link"]:focus {{ border: 1px solid {colours.accent}; }}
    QPushButton[look="fold"] {{ background: transparent; border: 1px solid transparent; color: {colours.text};
        text-align: left; padding: 0.2em 0.3em; font-weight: 600; }}
    QPushButton[look="fold"]:hover {{ border-color: {colours.border}; }}
    QPushButton[look="fold"]:focus {{ border: 1px solid {colours.accent}; }}
    QGroupBox:focus::title {{ color: {colours.accent}; }}
    QGroupBox > QWidget {{ font-weight: 400; }}
    QPushButton, QToolButton[look="step"] {{ background: {colours.raised}; color: {colours.text};
        border: 1px solid {colours.border}; border-radius: 5px; padding: 0.32em 0.8em; }}
    QPushButton:hover, QToolButton[look="step"]:hover {{ border-color: {colours.accent}; }}
    QPushButton:pressed, QToolButton[look="step"]:pressed {{ background: {colours.border}; }}
    QPushButton:focus, QToolButton:focus {{ border: 2px solid {colours.accent}; }}
    QPushButton:disabled, QToolButton[look="step"]:disabled {{ color: {colours.disabled};
        background: {colours.window}; }}
    QPushButton:checked {{ background: {colours.accent}; color: {colours.on_accent}; border-color: {colours.accent}; }}
    QPushButton[look="primary"], QToolButton[look="step"][next="true"] {{ background: {colours.accent};
        color: {colours.on_accent}; border-color: {colours.accent}; font-weight: 600; }}
    QPushButton[look="primary"]:focus, QToolButton[look="step"][next="true"]:focus {{
        border: 2px solid {colours.text}; }}
    QPushButton[look="primary"]:disabled, QToolButton[look="step"][next="true"]:disabled {{
        background: {colours.window}; color: {colours.disabled}; border-color: {colours.border}; }}
    QToolButton[look="workspace"] {{ border: 2px solid transparent; border-radius: 6px; padding: 0.3em 0.2em;
        color: {colours.muted}; background: transparent; }}
    QToolButton[look="workspace"]:hover {{ color: {colours.text}; background: {colours.raised}; }}
    QToolButton[look="workspace"]:checked {{ color: {colours.on_accent}; background: {colours.accent};
        font-weight: 600; }}
    QToolButton[look="workspace"]:focus {{ border-color: {colours.text}; }}
    QToolButton[look="card"] {{ border: 2px solid {colours.border}; border-radius: 6px; padding: 0.2em;
        color: {colours.muted}; background: {colours.base}; }}
    QToolButton[look="card"]:hover {{ color: {colours.text}; border-color: {colours.muted}; }}
    QToolButton[look="card"]:checked {{ color: {colours.text}; border-color: {colours.accent}; font-weight: 600; }}
    QToolButton[look="card"]:focus {{ border-color: {colours.text}; }}
    QToolButton[look="quiet"] {{ border: 1px solid transparent; border-radius: 4px; padding: 0.1em 0.2em;
        color: {colours.muted}; background: transparent; }}
    QToolButton[look="quiet"]:hover {{ border-color: {colours.border}; color: {colours.text}; }}
    QToolButton[look="quiet"]:focus {{ border: 1px solid {colours.accent}; }}
    QToolButton[look="quiet"]:disabled {{ color: transparent; }}
    QLabel[look="title"] {{ font-weight: 600; }}
    QLabel[look="heading"] {{ font-size: 13pt; font-weight: 600; }}
    QLabel[look="plain"] {{ color: {colours.text}; }}
    QLabel[look="muted"] {{ color: {colours.muted}; }}
    QLabel[look="figure"] {{ font-size: 22pt; font-weight: 600; }}
    QLabel[look="warning"] {{ color: {colours.warning}; }}
    QLabel[look="good"] {{ color: {colours.good}; }}
    QLabel[look="chip"] {{ color: {colours.muted}; padding: 0.1em 0.6em; }}
    QFrame[look="banner"] {{ background: {colours.base}; border: 1px solid {colours.border};
        border-left: 5px solid {colours.accent}; border-radius: 4px; }}
    QFrame[look="banner"][level="warning"] {{ border-left-color: {colours.warning}; }}
    QFrame[look="banner"][level="error"] {{ border-left-color: {colours.danger}; }}
    QProgressBar {{ border: 1px solid {colours.border}; border-radius: 4px; background: {colours.base};
        color: {colours.text}; text-align: center; }}
    QProgressBar::chunk {{ background: {done_ground(colours)}; border-radius: 3px; }}
    QTabBar::tab {{ background: {colours.window}; color: {colours.muted}; padding: 0.4em 0.6em;
        border: none; border-bottom: 3px solid transparent; }}
    QTabBar::tab:hover {{ color: {colours.text}; }}
    QTabBar::tab:selected {{ color: {colours.text}; border-bottom-color: {colours.accent}; }}
    QTabBar::tab:focus {{ border-bottom-color: {colours.text}; }}
    QMainWindow[tabs="no"] > QTabBar::tab {{ height: 0; padding: 0; margin: 0; border: none; }}
    QTableView {{ background: {colours.base}; alternate-background-color: {colours.window}; border: none;
        gridline-color: {colours.border}; }}
    QHeaderView::section {{ background: {colours.window}; color: {colours.muted}; border: none;
        border-bottom: 1px solid {colours.border}; padding: 0.35em 0.5em; }}
    QPlainTextEdit, QLineEdit {{ background: {colours.base}; border: 1px solid {colours.border}; border-radius: 4px;
        padding: 0.2em; selection-background-color: {colours.accent}; selection-color: {colours.on_accent}; }}
    QPlainTextEdit:focus, QLineEdit:focus {{ border-color: {colours.accent}; }}
    QListWidget {{ background: {colours.base}; border: 1px solid {colours.border}; border-radius: 4px; }}
    QListWidget::item {{ padding: 0.2em 0; color: {colours.text}; }}
    QListWidget:focus {{ border-color: {colours.accent}; }}
    QCheckBox::indicator, QGroupBox::indicator, QListWidget::indicator {{
        width: 0.95em; height: 0.95em; border: 1px solid {colours.muted};
        border-radius: 3px; background: {colours.base}; }}
    QCheckBox::indicator:hover, QCheckBox::indicator:focus, QGroupBox::indicator:hover {{
        border-color: {colours.accent}; }}
    QCheckBox::indicator:checked, QGroupBox::indicator:checked, QListWidget::indicator:checked {{
        background: {colours.accent};
        border-color: {colours.accent}; image: url("{tick}"); }}
    QCheckBox::indicator:disabled, QGroupBox::indicator:disabled {{ border-color: {colours.disabled}; }}
    QScrollArea {{ border: none; }}
    QScrollArea:focus {{ border: 1px solid {colours.accent}; }}
    QScrollBar {{ background: transparent; }}
    QScrollBar:vertical {{ width: 0.75em; }}
    QScrollBar:horizontal {{ height: 0.75em; }}
    QScrollBar::handle {{ background: {colours.border}; border-radius: 0.3em; margin: 1px; }}
    QScrollBar::handle:hover {{ background: {colours.disabled}; }}
    QScrollBar::handle:vertical {{ min-height: 2em; }}
    QScrollBar::handle:horizontal {{ min-width: 2em; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
    QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
    """


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
    """Give ``widget`` one of the looks of :func:`style_sheet`, also after it was shown."""
    if widget.property("look") != look:
        widget.setProperty("look", look)
        widget.style().unpolish(widget)
        widget.style().polish(widget)
