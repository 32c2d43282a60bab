"""Every kind of control can be read in every state, in both schemes: judged by its pixels (WCAG 2.2 AA).

Text has a contrast of 4.5 : 1 to its ground, text of a disabled control and the mark of the focus have 3 : 1.
"""

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from PySide6 import QtWidgets
from PySide6.QtCore import QEvent, QPoint, QPointF, QSize, Qt
from PySide6.QtGui import QAction, QColor, QHoverEvent, QImage, QKeySequence
from pytestqt.qtbot import QtBot

import paretone_app
from paretone_app.shell.banner import INFO, Card, Message
from paretone_app.shell.colours import DARK, LIGHT
from paretone_app.shell.theme import Scheme, Theme, style_sheet
from paretone_app.widgets.boxes import ComboBox, DoubleSpinBox, Slider, SpinBox
from paretone_app.widgets.invitation import EmptyState
from paretone_app.widgets.layouts import Scrolled
from paretone_app.widgets.panel_parts import TickList
from paretone_app.widgets.side_panel import SideButtons
from tests.app.conftest import in_front
from tests.app.contrast import BLANK, INK, contrast, ring_contrast, text_contrast

TEXT, DISABLED, RING = 4.5, 3.0, 3.0
HOVERED = Qt.WidgetAttribute.WA_UnderMouse
BUTTON_LOOKS = ("", "primary", "link", "fold", "filter")
TOOL_LOOKS = ("", "workspace", "card", "quiet", "alarm", "icon", "step", "next step")
LABEL_LOOKS = ("reached", "", "title", "heading", "plain", "muted", "figure", "warning", "good", "chip")
FRAMES = ("banner", "lane", "card", "chosen-card", "tour", "gallery")
"""Looks of what contains controls."""


@pytest.fixture(params=[Scheme.LIGHT, Scheme.DARK], ids=["light", "dark"], scope="module")
def scheme(request: pytest.FixtureRequest, theme: Theme) -> Iterator[Theme]:
    flashing = QtWidgets.QApplication.cursorFlashTime()
    QtWidgets.QApplication.setCursorFlashTime(0)
    theme.apply(request.param)
    yield theme
    theme.apply(Scheme.LIGHT)
    QtWidgets.QApplication.setCursorFlashTime(flashing)


@dataclass
class Stage:
    """A window in front, with one control in it, and another one that has the focus meanwhile."""

    window: QtWidgets.QWidget
    other: QtWidgets.QPushButton

    def put(self, one: QtWidgets.QWidget, size: QSize) -> QtWidgets.QWidget:
        """Show ``one`` with room around it."""
        for old in self.window.findChildren(QtWidgets.QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly):
            if old is not self.other:
                old.hide()
                old.setParent(None)
        one.setParent(self.window)
        one.setFixedSize(size)
        one.move(20, 40)
        one.show()
        self.other.setFocus()
        QtWidgets.QApplication.processEvents()
        return one

    def picture(self, one: QtWidgets.QWidget) -> QImage:
        """What there is to see of ``one`` and around it."""
        QtWidgets.QApplication.processEvents()
        return self.window.grab(one.geometry().adjusted(-8, -8, 8, 8)).toImage()


@pytest.fixture
def stage(scheme: Theme, qtbot: QtBot) -> Stage:
    window = QtWidgets.QWidget()
    other = QtWidgets.QPushButton("other", window)
    other.move(300, 220)
    return Stage(in_front(window, qtbot, 420, 260), other)


Made = Callable[[str], QtWidgets.QWidget]


def judged(draw: Callable[[str], QImage]) -> float:
    """Contrast of the text in what ``draw`` gives a picture of."""
    return text_contrast(*map(draw, (INK, BLANK)))


def _looked(one: QtWidgets.QWidget, look: str) -> QtWidgets.QWidget:
    name = "step" if look == "next step" else look
    if name:
        one.setProperty("look", name)
    if look == "next step":
        one.setProperty("next", "true")
    return one


def _button(kind: type, look: str = "", checked: bool = False) -> Made:
    more = {"checkable": True, "checked": True} if checked else {}
    return lambda text: _looked(kind(text=text, focusPolicy=Qt.FocusPolicy.StrongFocus, **more), look)


def _side(side: str, checked: bool) -> Made:
    def make(text: str) -> QtWidgets.QWidget:
        buttons = SideButtons("take")
        buttons.set_colours(DARK if QtWidgets.QApplication.palette().window().color() == QColor(DARK.window) else LIGHT)
        buttons.show_side(side if checked else "", "AB")
        buttons.buttons[side].setText(text)
        buttons.buttons[side].setMaximumWidth(1000)
        buttons.setFocusProxy(buttons.buttons[side])
        return buttons

    return make


def _combo(text: str) -> QtWidgets.QWidget:
    one = ComboBox()
    one.addItem(text)
    return one


CONTROLS: dict[str, Made] = {
    **{f"push button {look}": _button(QtWidgets.QPushButton, look) for look in BUTTON_LOOKS},
    **{f"push button {look}, checked": _button(QtWidgets.QPushButton, look, checked=True) for look in ("", "filter")},
    **{f"tool button {look}": _button(QtWidgets.QToolButton, look) for look in TOOL_LOOKS},
    **{
        f"tool button {look}, checked": _button(QtWidgets.QToolButton, look, checked=True)
        for look in ("", "workspace", "card")
    },
    **{f"button of take {side}": _side(side, checked=False) for side in "AB"},
    **{f"button of take {side}, checked": _side(side, checked=True) for side in "AB"},
    "combo box": _combo,
    "spin box": lambda text: SpinBox(specialValueText=text),
    "spin box with decimals": lambda text: DoubleSpinBox(specialValueText=text),
    "line": QtWidgets.QLineEdit,
    "line, placeholder": lambda text: QtWidgets.QLineEdit(placeholderText=text),
    "text": QtWidgets.QPlainTextEdit,
    "text, placeholder": lambda text: QtWidgets.QPlainTextEdit(placeholderText=text),
    "check box": _button(QtWidgets.QCheckBox),
    "check box, checked": _button(QtWidgets.QCheckBox, checked=True),
    "radio button": _button(QtWidgets.QRadioButton),
    "radio button, checked": _button(QtWidgets.QRadioButton, checked=True),
    "group": QtWidgets.QGroupBox,
    "card": lambda text: _looked(QtWidgets.QGroupBox(text, checkable=True), "card"),
    "chosen card": lambda text: _looked(QtWidgets.QGroupBox(text, checkable=True), "chosen-card"),
    "progress, begun": lambda text: QtWidgets.QProgressBar(value=1, format=text),
    "progress, half": lambda text: QtWidgets.QProgressBar(value=50, format=text),
    "progress, done": lambda text: QtWidgets.QProgressBar(value=100, format=text),
}


def _size(name: str) -> QSize:
    return QSize(200, 80 if name.startswith(("text", "group", "card", "chosen")) else 34)


def _reached(one: QtWidgets.QWidget) -> QtWidgets.QWidget:
    return one.focusProxy() or one


@pytest.mark.parametrize("name", CONTROLS)
def test_text_of_controls(stage: Stage, name: str) -> None:
    for state in ("normal", "hover", "focus", "disabled"):

        def drawn(text: str, state: str = state) -> QImage:
            one = stage.put(CONTROLS[name](text), _size(name))
            _reached(one).setEnabled(state != "disabled")
            _reached(one).setAttribute(HOVERED, state == "hover")
            if state == "focus":
                one.setFocus(Qt.FocusReason.TabFocusReason)
            return stage.picture(one)

        found = judged(drawn)
        if (name, state) == ("tool button quiet", "disabled"):
            assert found == 1.0, "what resets a knob is not to be seen where there is nothing to reset"
        else:
            assert found >= (DISABLED if state == "disabled" else TEXT), state


def _scrolled() -> QtWidgets.QWidget:
    area = Scrolled(QtWidgets.QLabel())
    area.let_keys_scroll()
    return area


def _empty() -> QtWidgets.QWidget:
    state = EmptyState(text=BLANK)
    state.setFocusProxy(state.words)
    return state


def _tabs() -> QtWidgets.QWidget:
    tabs = QtWidgets.QTabWidget()
    tabs.addTab(QtWidgets.QWidget(), "")
    tabs.setFocusProxy(tabs.tabBar())
    return tabs


FOCUSABLE: dict[str, Callable[[], QtWidgets.QWidget]] = {
    **{name: partial(make, BLANK) for name, make in CONTROLS.items() if not name.startswith(("group", "progress"))},
    "slider": lambda: Slider(Qt.Orientation.Horizontal, value=40),
    "upright slider": lambda: Slider(Qt.Orientation.Vertical, value=40),
    "page": QtWidgets.QTextBrowser,
    "list": QtWidgets.QListWidget,
    "table": lambda: QtWidgets.QTableWidget(2, 2),
    "tabs": _tabs,
    "message": lambda: Card(Message(BLANK, INFO)),
    "what scrolls": _scrolled,
    "empty panel": _empty,
}


@pytest.mark.parametrize("name", FOCUSABLE)
def test_focus(stage: Stage, name: str) -> None:
    one = stage.put(FOCUSABLE[name](), _size(name) if name in CONTROLS else QSize(200, 90))
    stage.window.activateWindow()
    plain = stage.picture(one)
    one.setFocus(Qt.FocusReason.TabFocusReason)
    assert _reached(one).hasFocus()
    assert ring_contrast(stage.picture(one), plain) >= RING


# --- Texts that only are read --------------------------------------------------------------------------------------
READ: dict[str, Made] = {
    **{f"label {look}": lambda text, look=look: _looked(QtWidgets.QLabel(text), look) for look in LABEL_LOOKS},
    "link": lambda text: QtWidgets.QLabel(f'<a href="somewhere">{text}</a>'),
    "page": lambda text: QtWidgets.QTextBrowser(html=text),
    "link in a page": lambda text: QtWidgets.QTextBrowser(html=f'<a href="somewhere">{text}</a>'),
}


@pytest.mark.parametrize("name", READ)
def test_texts_on_every_ground(stage: Stage, name: str) -> None:
    for around, enabled in itertools.product(("", *FRAMES), (True, False)):

        def drawn(text: str, around: str = around, enabled: bool = enabled) -> QImage:
            frame = QtWidgets.QGroupBox() if around in ("card", "chosen-card", "tour") else QtWidgets.QFrame()
            _looked(frame, around)
            frame.setEnabled(enabled)
            QtWidgets.QVBoxLayout(frame).addWidget(READ[name](text))
            return stage.picture(stage.put(frame, QSize(300, 120)))

        assert judged(drawn) >= (TEXT if enabled else DISABLED), (around, enabled)


@pytest.mark.parametrize("level", ["info", "warning", "error"])
def test_messages(stage: Stage, level: str) -> None:
    assert judged(lambda text: stage.picture(stage.put(Card(Message(text, level)), QSize(300, 60)))) >= TEXT


def test_tool_tips(scheme: Theme, stage: Stage) -> None:
    pictures = []
    for text in (INK, BLANK):
        QtWidgets.QToolTip.showText(QPoint(50, 50), f"{text}\n{'m' * 12}", stage.window)
        (tip,) = (
            one for one in QtWidgets.QApplication.topLevelWidgets() if one.inherits("QTipLabel") and one.isVisible()
        )
        pictures.append(tip.grab().toImage())
        QtWidgets.QToolTip.hideText()
        tip.hide()
    assert text_contrast(*pictures) >= TEXT


def test_docks_and_the_status_bar(scheme: Theme, qtbot: QtBot) -> None:
    pictures: dict[str, list[QImage]] = {"dock": [], "status": []}
    for text in (INK, BLANK):
        window = QtWidgets.QMainWindow()
        qtbot.addWidget(window)
        window.resize(400, 300)
        docks = [QtWidgets.QDockWidget(title) for title in (text, "another panel", "a third panel")]
        for dock in docks:
            window.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, dock)
        window.statusBar().showMessage(text)
        window.show()
        QtWidgets.QApplication.processEvents()
        pictures["dock"].append(docks[0].grab().toImage())
        pictures["status"].append(window.statusBar().grab().toImage())
    for name, both in pictures.items():
        assert text_contrast(*both) >= TEXT, name


# --- Menus ---------------------------------------------------------------------------------------------------------
def _menu(text: str, checkable: bool, checked: bool, enabled: bool) -> tuple[QtWidgets.QMenu, QAction]:
    menu = QtWidgets.QMenu()
    menu.addAction("a longer entry than the one in question", QKeySequence("Ctrl+L"))
    action = menu.addAction(text)
    action.setCheckable(checkable)
    action.setChecked(checked)
    action.setEnabled(enabled)
    menu.addSeparator()
    menu.addMenu("more")
    return menu, action


@pytest.mark.parametrize("kind", ["plain", "unchecked", "checked"])
def test_entries_of_menus(scheme: Theme, qtbot: QtBot, kind: str) -> None:
    for enabled, selected in itertools.product((True, False), (True, False)):
        pictures = []
        for text in (INK, BLANK):
            menu, action = _menu(text, kind != "plain", kind == "checked", enabled)
            qtbot.addWidget(menu)
            menu.popup(QPoint(0, 0))
            menu.setActiveAction(action if selected else menu.actions()[0])
            pictures.append(menu.grab(menu.actionGeometry(action)).toImage())
            menu.close()
        assert text_contrast(*pictures) >= (TEXT if enabled else DISABLED), (enabled, selected)


@pytest.mark.parametrize("which", [0, 1, 3], ids=["plain", "with a box", "with a menu"])
def test_the_selected_entry_of_a_menu_stands_out(scheme: Theme, qtbot: QtBot, which: int) -> None:
    menu, _ = _menu(BLANK, checkable=True, checked=True, enabled=True)
    qtbot.addWidget(menu)
    menu.popup(QPoint(0, 0))
    action = menu.actions()[which]
    area = menu.actionGeometry(action)
    menu.setActiveAction(menu.actions()[1 if which == 0 else 0])
    plain = menu.grab(area).toImage()
    menu.setActiveAction(action)
    chosen = menu.grab(area).toImage()
    assert contrast(*(one.pixelColor(2, 2).name() for one in (plain, chosen))) >= RING
    menu.close()


@pytest.mark.parametrize("state", ["normal", "selected", "open", "disabled"])
def test_entries_of_the_menu_bar(stage: Stage, state: str) -> None:
    pictures = []
    for text in (INK, BLANK):
        bar = QtWidgets.QMenuBar()
        menu = bar.addMenu(text)
        menu.addAction("entry")
        menu.setEnabled(state != "disabled")
        stage.put(bar, QSize(300, 30))
        if state in ("selected", "open"):
            bar.setActiveAction(bar.actions()[0])
        if state == "open":
            menu.popup(QPoint(300, 200))
        pictures.append(stage.picture(bar))
        menu.close()
    assert text_contrast(*pictures) >= (DISABLED if state == "disabled" else TEXT)


# --- Lists, tables, tabs -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["list", "ticks", "table", "second row", "popup of a combo box"])
def test_entries_of_lists(stage: Stage, kind: str) -> None:
    for state in ("normal", "hover", "selected", "selected elsewhere", "disabled", "all disabled"):
        assert judged(partial(_entry, stage, kind, state=state)) >= (DISABLED if "disabled" in state else TEXT), state


def _entry(stage: Stage, kind: str, text: str, state: str) -> QImage:
    """A picture of the entry of a list that is called ``text``."""
    one, view = _filled(kind, text)
    row = 0 if kind == "list" else 1
    index = view.model().index(row, 0)
    stage.put(one, QSize(240, 120))
    if isinstance(one, ComboBox):
        one.showPopup()
    if state == "disabled":
        item = one.model().item(row) if isinstance(one, ComboBox) else view.itemFromIndex(index)
        item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsEnabled)
    if state.startswith("selected"):
        view.setCurrentIndex(index)
        view.selectionModel().select(index, view.selectionModel().SelectionFlag.ClearAndSelect)
        (view if state == "selected" else stage.other).setFocus()
    else:
        view.clearSelection()
        view.setCurrentIndex(view.model().index(-1, -1))
    one.setEnabled(state != "all disabled")
    QtWidgets.QApplication.processEvents()
    if state == "hover":
        place = QPointF(view.visualRect(index).center())
        QtWidgets.QApplication.sendEvent(view.viewport(), QHoverEvent(QEvent.Type.HoverMove, place, place, place))
    picture = view.viewport().grab(view.visualRect(index)).toImage()
    if isinstance(one, ComboBox):
        one.hidePopup()
    return picture


def _filled(kind: str, text: str) -> tuple[QtWidgets.QWidget, QtWidgets.QAbstractItemView]:
    if kind == "ticks":
        ticks = TickList("ticks")
        ticks.offer([("first", 0, False), (text, 1, True), ("third", 2, False)])
        return ticks, ticks
    if kind == "list":
        made = QtWidgets.QListWidget()
        made.addItems([text, "second"])
        return made, made
    if kind.startswith("popup"):
        combo = ComboBox()
        combo.addItems(["first", text, "third"])
        return combo, combo.view()
    table = QtWidgets.QTableWidget(3, 2, alternatingRowColors=kind == "second row")
    for row in range(3):
        table.setItem(row, 0, QtWidgets.QTableWidgetItem(text if row == 1 else "cell"))
    return table, table


@pytest.mark.parametrize("state", ["normal", "hover", "selected", "focus", "disabled"])
def test_tabs(stage: Stage, state: str) -> None:
    def drawn(text: str) -> QImage:
        bar = QtWidgets.QTabBar(expanding=True)
        for title in (text, "wide other"):
            bar.addTab(title)
        stage.put(bar, QSize(300, 32))
        bar.setCurrentIndex(0 if state in ("selected", "focus") else 1)
        bar.setTabEnabled(0, state != "disabled")
        bar.setAttribute(HOVERED, state == "hover")
        if state == "focus":
            bar.setFocus(Qt.FocusReason.TabFocusReason)
        return stage.picture(bar)

    assert judged(drawn) >= (DISABLED if state == "disabled" else TEXT)


@pytest.mark.parametrize("focused", [True, False])
def test_selected_text_and_heads_of_tables(stage: Stage, focused: bool) -> None:
    def selected(text: str) -> QImage:
        one = stage.put(QtWidgets.QLineEdit(text), QSize(200, 60))
        one.selectAll()
        (one if focused else stage.other).setFocus()
        return stage.picture(one)

    def headed(text: str) -> QImage:
        table = QtWidgets.QTableWidget(2, 2)
        table.setHorizontalHeaderLabels([text, "other"])
        stage.put(table, QSize(260, 90))
        table.horizontalHeader().setAttribute(HOVERED, focused)
        return stage.picture(table)

    assert judged(selected) >= TEXT and judged(headed) >= TEXT


# --- Completeness --------------------------------------------------------------------------------------------------
def test_every_look_is_judged(scheme: Theme) -> None:
    known = {*BUTTON_LOOKS, *TOOL_LOOKS, *LABEL_LOOKS, *FRAMES}
    assert set(re.findall(r'look="([\w-]+)"', style_sheet(DARK))) <= known
    sources = (path.read_text(encoding="utf-8") for path in Path(paretone_app.__path__[0]).rglob("*.py"))
    assert {look for text in sources for look in re.findall(r'"look", "([\w-]+)"', text)} <= known
