"""Colours, type and gaps of the window, its style sheet and its icons. Only the text sizes, weights and gaps defined
here are used; sizes scale the desktop's own font. Icons are drawings, in ``resources/icons/``, because fonts lack half
of the transport symbols; they use ``currentColor`` only, so one set serves light and dark."""

from enum import Enum
from functools import lru_cache

from PySide6.QtCore import QByteArray, QObject, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QGuiApplication, QIcon, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication, QWidget

from paretone.paths import resource
from paretone_app.shell.colours import DARK, LIGHT, ON_GROUND, Colours, ground

SMALL, BODY, HEADING = 0.85, 1.0, 1.5
TYPE_SCALE = (SMALL, BODY, HEADING)
"""SMALL: scales and names in plots; BODY: text; HEADING: headings, large buttons and a panel's main figure."""
REGULAR, STRONG = 400, 600
WEIGHTS = (REGULAR, STRONG)

TIGHT, NEAR, GAP, WIDE, BROAD = 2, 4, 8, 12, 16
GRID = (0, TIGHT, NEAR, GAP, WIDE, BROAD)
"""Pixels: TIGHT in a group, NEAR between an item's lines, GAP controls, WIDE parts of a panel, BROAD columns."""


def text_font(base: QFont, size: float = BODY, strong: bool = False) -> QFont:
    """``base``, the desktop's font, in a size of :data:`TYPE_SCALE`."""
    made = QFont(base)
    if size != BODY:
        made.setPointSizeF(base.pointSizeF() * size)
    if strong:
        made.setWeight(QFont.Weight.DemiBold)
    return made


def bold_font(base: QFont) -> QFont:
    """``base`` in the bold of rich text, to measure such text."""
    made = QFont(base)
    made.setBold(True)
    return made


def style_sheet(colours: Colours) -> str:
    """Style beyond the palette: spacing, corners, and widgets with a property ``look``: ``primary`` and ``quiet``
    buttons, ``title``, ``muted``, ``figure``, ``warning``, ``banner``, ``heading`` and ``chip`` labels; ``reached``
    marks the focus of read-only text."""
    scheme = "dark" if colours is DARK else "light"
    size, filled = QApplication.font().pointSizeF(), ground(colours.accent)
    # The done part of a progress bar is halfway to the accent, so that figures stay readable.
    one, other = QColor(colours.accent), QColor(colours.base)
    sums = one.red() + other.red(), one.green() + other.green(), one.blue() + other.blue()
    done = QColor(*(each // 2 for each in sums)).name()
    drawings = ("tick", *(f"{name}-{scheme}" for name in ("up", "down", "up-off", "down-off")))
    urls = [f'url("{resource("style", f"{name}.svg").as_posix()}")' for name in drawings]
    tick, up, down, up_off, down_off = urls
    return f"""
    QToolTip {{ color: {colours.text}; background: {colours.raised}; border: 1px solid {colours.border};
        padding: 4px; }}
    QDialogButtonBox {{ dialogbuttonbox-buttons-have-icons: 0; }}
    QMainWindow::separator {{ background: {colours.window}; width: 5px; height: 5px; }}
    QMainWindow::separator:hover {{ background: {colours.accent}; }}
    QDockWidget {{ font-weight: {STRONG}; }}
    QDockWidget > QWidget {{ font-weight: {REGULAR}; }}
    QDockWidget::title {{ background: {colours.window}; padding: 4px 8px; text-align: left; }}
    QToolBar {{ background: {colours.window}; border: none; border-bottom: 1px solid {colours.border};
        padding: 4px; spacing: 4px; }}
    QToolBar#rail {{ padding: 2px 4px; border-bottom: none; border-right: 1px solid {colours.border}; }}
    QToolBar[look="gallery"] {{ padding: 2px; border-bottom: none; border-left: 1px solid {colours.border}; }}
    QStatusBar {{ background: {colours.window}; border-top: 1px solid {colours.border}; }}
    QStatusBar::item {{ border: none; }}
    QGroupBox {{ background: {colours.base}; border: 1px solid {colours.border}; border-radius: 6px;
        margin-top: 1.6em; padding: 2px; font-weight: {STRONG}; }}
    QGroupBox::title {{ subcontrol-origin: margin; subcontrol-position: top left; left: 0; padding: 2px 0;
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
        padding: 2px 4px; }}
    QPushButton[look="link"]:hover {{ color: {colours.text}; }}
    QPushButton[look="link"]:focus {{ border: 1px solid {colours.accent}; padding: 2px 4px; }}
    QPushButton[look="fold"] {{ background: transparent; border: 1px solid transparent; color: {colours.text};
        text-align: left; padding: 2px 4px; font-weight: {STRONG}; }}
    QPushButton[look="fold"]:hover {{ border-color: {colours.border}; }}
    QPushButton[look="fold"]:focus {{ border: 1px solid {colours.accent}; padding: 2px 4px; }}
    QGroupBox:focus::title {{ color: {colours.accent}; }}
    QGroupBox > QWidget {{ font-weight: {REGULAR}; }}
    QPushButton, QToolButton[look="step"] {{ background: {colours.raised}; color: {colours.text};
        border: 1px solid {colours.border}; border-radius: 5px; padding: 4px 8px; outline: none; }}
    QPushButton:hover, QToolButton[look="step"]:hover {{ border-color: {colours.accent}; }}
    QPushButton:pressed, QToolButton[look="step"]:pressed {{ background: {colours.border}; }}
    QPushButton:focus, QToolButton:focus {{ border: 2px solid {colours.accent}; }}
    /* The wider border takes its pixel from the padding: the focus moves nothing. */
    QPushButton:focus, QToolButton[look="step"]:focus {{ padding: 3px 7px; }}
    QPushButton:disabled, QToolButton[look="step"]:disabled {{ color: {colours.disabled};
        background: {colours.window}; }}
    QPushButton:checked {{ background: {filled}; color: {ON_GROUND}; border-color: {filled}; }}
    QPushButton[look="primary"], QToolButton[look="step"][next="true"] {{ background: {filled};
        color: {ON_GROUND}; border-color: {filled}; }}
    QPushButton:checked:focus, QPushButton[look="primary"]:focus, QToolButton[look="step"][next="true"]:focus {{
        border: 2px solid {colours.text}; }}
    QPushButton[look="primary"]:disabled, QToolButton[look="step"][next="true"]:disabled {{
        background: {colours.window}; color: {colours.disabled}; border-color: {colours.border}; }}
    QToolButton[look="workspace"] {{ border: 2px solid transparent; border-radius: 6px; padding: 4px 2px;
        color: {colours.muted}; background: transparent; }}
    QToolButton[look="workspace"]:hover {{ color: {colours.text}; background: {colours.raised}; }}
    QToolButton[look="workspace"]:checked {{ color: {ON_GROUND}; background: {filled};
        font-weight: {STRONG}; }}
    QToolButton[look="workspace"]:focus {{ border-color: {colours.text}; }}
    QToolButton[look="card"] {{ border: 2px solid {colours.border}; border-radius: 6px; padding: 2px;
        color: {colours.muted}; background: {colours.base}; }}
    QToolButton[look="card"]:hover {{ color: {colours.text}; border-color: {colours.muted}; }}
    QToolButton[look="card"]:checked {{ color: {colours.text}; border-color: {colours.accent}; font-weight: {STRONG}; }}
    QToolButton[look="card"]:focus {{ border-color: {colours.text}; }}
    QToolButton[look="icon"] {{ background: {colours.raised}; border: 1px solid {colours.border}; border-radius: 5px;
        padding: 2px; }}
    QToolButton[look="icon"]:hover {{ border-color: {colours.accent}; }}
    QToolButton[look="icon"]:focus {{ border: 2px solid {colours.accent}; padding: 1px; }}
    QToolButton[look="icon"]:disabled {{ background: {colours.window}; color: {colours.disabled}; }}
    QToolButton[look="quiet"] {{ border: 1px solid transparent; border-radius: 4px; padding: 2px 2px;
        color: {colours.muted}; background: transparent; }}
    QToolButton[look="alarm"] {{ border: 1px solid transparent; border-radius: 4px; padding: 2px 2px;
        color: {colours.warning}; background: transparent; font-weight: {STRONG}; }}
    QToolButton[look="alarm"]:hover {{ border-color: {colours.warning}; }}
    QToolButton[look="alarm"]:focus {{ border: 1px solid {colours.accent}; }}
    QToolButton[look="quiet"]:hover {{ border-color: {colours.border}; color: {colours.text}; }}
    QToolButton[look="quiet"]:focus {{ border: 1px solid {colours.accent}; }}
    QToolButton[look="quiet"]:disabled {{ color: transparent; }}
    QLabel[look="title"] {{ font-weight: {STRONG}; }}
    QLabel[look="heading"], QLabel[look="figure"] {{ font-size: {HEADING * size:g}pt; font-weight: {STRONG}; }}
    QLabel[look="plain"] {{ color: {colours.text}; }}
    QLabel[look="muted"], QLabel[look="reached"] {{ color: {colours.muted}; }}
    QLabel[look="reached"] {{ padding: 4px 8px; }}
    QLabel[look="warning"] {{ color: {colours.warning}; }}
    QLabel[look="good"] {{ color: {colours.good}; }}
    QLabel[look="chip"] {{ color: {colours.muted}; padding: 2px 8px; }}
    QFrame[look="banner"] {{ background: {colours.base}; border: 1px solid {colours.border};
        border-left: 5px solid {colours.accent}; border-radius: 4px; }}
    QFrame[look="banner"][level="warning"] {{ border-left-color: {colours.warning}; }}
    QFrame[look="banner"][level="error"] {{ border-left-color: {colours.danger}; }}
    QProgressBar {{ border: 1px solid {colours.border}; border-radius: 4px; background: {colours.base};
        color: {colours.text}; text-align: center; }}
    QProgressBar::chunk {{ background: {done}; border-radius: 3px; }}
    QTabBar {{ qproperty-drawBase: 0; }}
    QTabBar::tab {{ background: {colours.window}; color: {colours.muted}; padding: 4px 8px;
        border: none; border-bottom: 3px solid transparent; }}
    QTabBar::tab:hover {{ color: {colours.text}; }}
    QTabBar::tab:selected {{ color: {colours.text}; border-bottom-color: {colours.accent}; }}
    QTabBar::tab:focus {{ border-bottom-color: {colours.text}; }}
    QMainWindow[tabs="no"] > QTabBar::tab {{ height: 0; padding: 0; margin: 0; border: none; }}
    QTableView {{ background: {colours.base}; alternate-background-color: {colours.window};
        border: 1px solid transparent; gridline-color: {colours.border}; outline: none; }}
    QTableView:focus {{ border-color: {colours.accent}; }}
    QHeaderView::section {{ background: {colours.window}; color: {colours.muted}; border: none;
        border-bottom: 1px solid {colours.border}; padding: 4px; }}
    QPlainTextEdit, QLineEdit {{ background: {colours.base}; border: 1px solid {colours.border}; border-radius: 4px;
        padding: 2px; selection-background-color: {colours.accent}; selection-color: {colours.on_accent};
        placeholder-text-color: {colours.muted}; }}
    QPlainTextEdit:focus, QLineEdit:focus, QTextBrowser:focus {{ border-color: {colours.accent}; }}
    QComboBox, QAbstractSpinBox {{ background: {colours.base}; color: {colours.text};
        border: 1px solid {colours.border}; border-radius: 4px; padding: 2px 4px;
        selection-background-color: {colours.accent}; selection-color: {colours.on_accent}; }}
    QComboBox {{ padding-left: 8px; }}
    QComboBox:hover, QAbstractSpinBox:hover, QComboBox:on {{ border-color: {colours.muted}; }}
    QComboBox:focus, QAbstractSpinBox:focus {{ border-color: {colours.accent}; }}
    QComboBox:disabled, QAbstractSpinBox:disabled, QLineEdit:disabled, QPlainTextEdit:disabled {{
        background: {colours.window}; color: {colours.disabled}; placeholder-text-color: {colours.disabled}; }}
    QComboBox::drop-down {{ subcontrol-origin: border; subcontrol-position: center right; width: 24px; border: none; }}
    QComboBox::down-arrow {{ width: 12px; height: 12px; image: {down}; }}
    QComboBox::down-arrow:disabled {{ image: {down_off}; }}
    QComboBox QAbstractItemView {{ background: {colours.base}; color: {colours.text}; outline: none;
        border: 1px solid {colours.border}; selection-background-color: {colours.accent};
        selection-color: {colours.on_accent}; }}
    QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{ subcontrol-origin: border; width: 20px;
        border: none; background: transparent; }}
    QAbstractSpinBox::up-button {{ subcontrol-position: top right; border-top-right-radius: 3px; margin: 1px 1px 0 0; }}
    QAbstractSpinBox::down-button {{ subcontrol-position: bottom right; border-bottom-right-radius: 3px;
        margin: 0 1px 1px 0; }}
    QAbstractSpinBox::up-button:hover, QAbstractSpinBox::down-button:hover {{ background: {colours.raised}; }}
    QAbstractSpinBox::up-button:pressed, QAbstractSpinBox::down-button:pressed {{ background: {colours.border}; }}
    QAbstractSpinBox::up-arrow, QAbstractSpinBox::down-arrow {{ width: 10px; height: 10px; }}
    QAbstractSpinBox::up-arrow {{ image: {up}; }}
    QAbstractSpinBox::down-arrow {{ image: {down}; }}
    QAbstractSpinBox::up-arrow:disabled, QAbstractSpinBox::up-arrow:off {{ image: {up_off}; }}
    QAbstractSpinBox::down-arrow:disabled, QAbstractSpinBox::down-arrow:off {{ image: {down_off}; }}
    QMenu {{ background: {colours.base}; border: 1px solid {colours.border}; padding: 4px; }}
    QMenu::item {{ padding: 4px 16px 4px 8px; color: {colours.text}; }}
    QMenu::item:selected, QMenuBar::item:selected {{ background: {colours.accent}; color: {colours.on_accent}; }}
    QMenu::item:disabled, QMenuBar::item:disabled {{ color: {colours.disabled}; }}
    QMenu::item:disabled:selected {{ background: {colours.raised}; color: {colours.disabled}; }}
    QMenu::separator {{ height: 1px; background: {colours.border}; margin: 4px 8px; }}
    QTextBrowser {{ background: {colours.base}; border: 1px solid {colours.border}; border-radius: 4px; padding: 8px; }}
    QListWidget {{ background: {colours.base}; border: 1px solid {colours.border}; border-radius: 4px; outline: none;
        padding: 0 4px; }}
    QListWidget::item {{ padding: 2px 0; color: {colours.text}; }}
    QListWidget::item:selected {{ background: {colours.accent}; color: {colours.on_accent}; }}
    QAbstractScrollArea::corner {{ background: transparent; border: none; }}
    QListWidget:focus {{ border-color: {colours.accent}; }}
    QCheckBox::indicator, QRadioButton::indicator, QGroupBox::indicator, QListWidget::indicator, QMenu::indicator {{
        width: 0.95em; height: 0.95em; border: 1px solid {colours.muted};
        border-radius: 3px; background: {colours.base}; }}
    QRadioButton::indicator, QMenu::indicator:exclusive {{ border-radius: 0.5em; }}
    QCheckBox::indicator:hover, QRadioButton::indicator:hover, QGroupBox::indicator:hover {{
        border-color: {colours.accent}; }}
    QCheckBox::indicator:checked, QRadioButton::indicator:checked, QGroupBox::indicator:checked,
    QListWidget::indicator:checked, QMenu::indicator:checked {{
        background: {filled}; border-color: {filled}; image: {tick}; }}
    QCheckBox::indicator:disabled, QRadioButton::indicator:disabled, QGroupBox::indicator:disabled,
    QMenu::indicator:disabled {{ border-color: {colours.disabled}; }}
    QCheckBox::indicator:checked:disabled, QRadioButton::indicator:checked:disabled,
    QGroupBox::indicator:checked:disabled, QMenu::indicator:checked:disabled {{ background: {colours.disabled}; }}
    QCheckBox::indicator:focus, QRadioButton::indicator:focus {{ border: 2px solid {colours.text}; }}
    QMenu::indicator {{ margin-left: 6px; }}
    QMenu::indicator:selected {{ border-color: {colours.on_accent}; }}
    QSlider::groove {{ border-radius: 2px; background: {colours.border}; }}
    QSlider::groove:horizontal {{ height: 4px; }}
    QSlider::groove:vertical {{ width: 4px; }}
    QSlider::sub-page:horizontal, QSlider::add-page:vertical {{ border-radius: 2px; background: {filled}; }}
    QSlider::handle {{ border: 2px solid {filled}; border-radius: 7px; background: {filled}; }}
    QSlider::handle:horizontal {{ width: 10px; margin: -5px 0; }}
    QSlider::handle:vertical {{ height: 10px; margin: 0 -5px; }}
    QSlider::handle:hover, QSlider::handle:focus {{ border-color: {colours.text}; }}
    QSlider::sub-page:horizontal:disabled, QSlider::add-page:vertical:disabled, QSlider::handle:disabled {{
        background: {colours.disabled}; border-color: {colours.disabled}; }}
    QScrollArea {{ border: none; }}
    QScrollArea[look="reached"], QLabel[look="reached"], QFrame[look="lane"], QFrame[look="banner"] > QLabel {{
        border: 1px solid transparent; }}
    QScrollArea[look="reached"]:focus, QLabel[look="reached"]:focus, QFrame[look="lane"]:focus,
    QFrame[look="banner"] > QLabel:focus {{
        border: 1px solid {colours.accent}; }}
    QScrollBar {{ background: transparent; }}
    QScrollBar:vertical {{ width: 0.75em; }}
    QScrollBar:horizontal {{ height: 0.75em; }}
    QScrollBar::handle {{ background: {colours.border}; border-radius: 0.3em; margin: 1px; }}
    QScrollBar::handle:disabled {{ background: transparent; }}
    QScrollBar::handle:hover {{ background: {colours.disabled}; }}
    QScrollBar::handle:vertical {{ min-height: 2em; }}
    QScrollBar::handle:horizontal {{ min-width: 2em; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
    QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
    """


EMBLEM = "paretone"
_SIZES = (16, 20, 24, 32, 48, 64)
_GROUP = QPalette.ColorGroup


def icon(name: str, palette: QPalette | None = None) -> QIcon:
    """The icon ``name`` (a file of ``resources/icons/``, no suffix), coloured for ``palette``: button text, white if
    checked or selected. Call again after changes of the palette. Raises ``FileNotFoundError`` for an unknown name."""
    colours, role = palette or QGuiApplication.palette(), QPalette.ColorRole.ButtonText
    active, disabled = (colours.color(one, role).name() for one in (_GROUP.Active, _GROUP.Disabled))
    return _coloured(name, active, disabled, ON_GROUND)


def pixmap(name: str, colour: QColor | str, size: int, ratio: float = 1.0) -> QPixmap:
    """The drawing ``name`` in one colour, ``size`` logical pixels square, for a screen with this pixel ratio."""
    svg = _drawing(name).replace("currentColor", QColor(colour).name())
    drawn = QPixmap(round(size * ratio), round(size * ratio))
    drawn.fill(Qt.GlobalColor.transparent)
    with QPainter(drawn) as painter:
        QSvgRenderer(QByteArray(svg.encode())).render(painter, QRectF(drawn.rect()))
    drawn.setDevicePixelRatio(ratio)
    return drawn


@lru_cache(maxsize=256)
def _coloured(name: str, normal: str, disabled: str, checked: str) -> QIcon:
    made = QIcon()
    for size in _SIZES:
        made.addPixmap(pixmap(name, normal, size), QIcon.Mode.Normal, QIcon.State.Off)
        white = pixmap(name, checked, size)
        made.addPixmap(white, QIcon.Mode.Normal, QIcon.State.On)
        made.addPixmap(white, QIcon.Mode.Selected)
        dimmed = pixmap(name, disabled, size)
        for state in (QIcon.State.Off, QIcon.State.On):
            made.addPixmap(dimmed, QIcon.Mode.Disabled, state)
    return made


@lru_cache(maxsize=64)
def _drawing(name: str) -> str:
    return resource("icons", f"{name}.svg").read_text(encoding="utf-8")


class Scheme(Enum):
    """Choice of colours; ``SYSTEM`` follows the platform if it declares a scheme, else light."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


def palette(colours: Colours) -> QPalette:
    made, role = QPalette(), QPalette.ColorRole
    for colour, roles in (
        (colours.window, (role.Window, role.AlternateBase)),
        (colours.base, (role.Base, role.Light)),
        (colours.raised, (role.ToolTipBase, role.Button, role.Midlight)),
        (colours.border, (role.Mid, role.Dark, role.Shadow)),
        (colours.text, (role.WindowText, role.Text, role.ButtonText, role.ToolTipText)),
        (colours.muted, (role.PlaceholderText,)),
        (colours.danger, (role.BrightText,)),
        (colours.accent, (role.Accent, role.Link, role.LinkVisited, role.Highlight)),
        (colours.on_accent, (role.HighlightedText,)),
    ):
        for one in roles:
            made.setColor(one, QColor(colour))
    for one in (role.WindowText, role.Text, role.ButtonText, role.PlaceholderText):
        made.setColor(_GROUP.Disabled, one, QColor(colours.disabled))
    made.setColor(_GROUP.Disabled, role.Highlight, QColor(colours.border))
    made.setColor(_GROUP.Disabled, role.HighlightedText, QColor(colours.text))
    return made


class Theme(QObject):
    """The scheme in use; ``changed`` follows every :meth:`apply`."""

    changed = Signal()

    def __init__(self, application: QApplication) -> None:
        super().__init__(application)
        self._application = application
        self.scheme = Scheme.SYSTEM
        self._applied: Colours | None = None
        application.setStyle("Fusion")
        for effect in (Qt.UIEffect.UI_AnimateMenu, Qt.UIEffect.UI_AnimateCombo, Qt.UIEffect.UI_AnimateTooltip):
            application.setEffectEnabled(effect, False)  # Nothing in the window moves by itself.
        application.styleHints().colorSchemeChanged.connect(self._follow_system)

    @property
    def dark(self) -> bool:
        if self.scheme is Scheme.SYSTEM:
            return self._application.styleHints().colorScheme() is Qt.ColorScheme.Dark
        return self.scheme is Scheme.DARK

    @property
    def colours(self) -> Colours:
        return DARK if self.dark else LIGHT

    def apply(self, scheme: Scheme) -> None:
        """Use ``scheme``. Restyle only if the colours change: that takes a tenth of a second."""
        self.scheme = scheme
        if self.colours is not self._applied:
            self._applied = self.colours
            self._application.setPalette(palette(self.colours))
            self._application.setStyleSheet(style_sheet(self.colours))
        self.changed.emit()

    def _follow_system(self) -> None:
        if self.scheme is Scheme.SYSTEM:
            self.apply(Scheme.SYSTEM)


def set_look(widget: QWidget, look: str) -> None:
    """Give ``widget`` a look of :func:`paretone_app.shell.theme.style_sheet`, even after it was shown."""
    if widget.property("look") != look:
        widget.setProperty("look", look)
        widget.style().unpolish(widget)
        widget.style().polish(widget)
