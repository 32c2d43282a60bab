"""The menu bar: entries that features declare, in order, and Alt keys, which go to visible panels only."""

from collections.abc import Iterable

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QAccessible, QAction, QKeyEvent, QKeySequence, QUndoStack
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QDialog,
    QDockWidget,
    QLabel,
    QLineEdit,
    QMainWindow,
    QMenu,
    QMenuBar,
    QPushButton,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from paretone.errors import PlainError
from paretone_app.features.feature import main_job
from paretone_app.features.palette import Palette
from paretone_app.features.registry import FEATURES
from paretone_app.shell.actions import Actions
from paretone_app.shell.menus import VisibleMnemonics
from paretone_app.shell.window import MainWindow
from paretone_app.widgets.action import ActionButton, IconButton
from tests.app.conftest import MakeWindow, activated, in_front, on_screen

MENUS = {
    "&File": """&Open profile…|Ctrl+Shift+P, &Export profile…|Ctrl+E, Export &student or draft…|Ctrl+Shift+E,
        Save A and B as &WAV…|Ctrl+Shift+S, Open data &folder|Ctrl+Shift+D, &Choose data folder…, -, &Quit|Ctrl+Q""",
    "&Edit": """&Undo|Ctrl+Z, &Redo|Ctrl+Shift+Z, -, &Copy figures|Ctrl+Shift+C, -, &Find…|Ctrl+F,
        &Everything…|Ctrl+Shift+Space, -, &Preferences…|Ctrl+,""",
    "&Run": """Synthesise &baseline|Ctrl+B, &Calibrate|Ctrl+K, Calibrate on se&veral…|Ctrl+Shift+B,
        Synthesise &accelerated|Ctrl+Return, &Repeat ×5|Ctrl+Shift+R, -,
        &Queue|Ctrl+Shift+J, Cance&l|Esc""",
    "&Compare": """&Play and switch A/B|Ctrl+Space, Play or pa&use|Ctrl+P, Listening &test…|Ctrl+L, -,
        Set selected take as &A|F7, Set selected take as &B|F8, Add selected takes as &lanes|Ctrl+F8,
        S&wap A and B|F9, -, Trade-&off, Take &grid, Measure a &server…""",
    "&Strategy": """&Import official table…|Ctrl+O, E&xport official table…|Ctrl+Shift+O, Skip &nothing|Ctrl+Shift+N""",
    "St&udies": """&New study…|Ctrl+N, &Open study…|Ctrl+Shift+U, Open study &folder…|Ctrl+Alt+U,
        Open e&xample|Ctrl+Alt+E, -, &Run or resume study|F5, &Pause study|Shift+F5, Cance&l|Esc, -,
        &Use setting|Ctrl+J, &Write report|Ctrl+F5, &Verify results|Ctrl+Alt+V, &Close study|Ctrl+W""",
    "&Help": """Take a &tour|Ctrl+F1, &First steps|Shift+F1, &Glossary|F1,
        &Keyboard|Ctrl+Shift+F1, &Optional packages…, Check &installation…, &Messages…|Ctrl+Shift+M, -,
        &About Paretone""",
}
"""Entries by menu, with their shortcuts; a dash is a separator."""


def entry(action: QAction) -> str:
    if action.isSeparator():
        return "-"
    shortcut = action.shortcut().toString()
    return f"{action.text()}|{shortcut}" if shortcut else action.text()


def test_menus_have_their_entries_in_order_and_pages_of_help_name_them(make_window: MakeWindow) -> None:
    window = make_window()  # It is not shown, so that its engine does not start.
    bar = window.menuBar()
    # Not by QAction.menu(): such a wrapper of a menu is valid only as long as that of the action.
    there = {one.title(): one for one in bar.findChildren(QMenu)}
    found = {one.text(): list(map(entry, there[one.text()].actions())) for one in bar.actions()}
    titles = ["&File", "&Edit", "&Model", "&Run", "&Compare", "&Strategy", "St&udies", "&View", "&Help"]
    assert list(found) == titles
    for title, wanted in MENUS.items():
        assert found[title] == " ".join(wanted.split()).split(", "), title
    assert len(found["&View"]) <= 12
    window.action.first_steps.trigger()
    (page,) = (one for dialog in window.findChildren(QDialog) for one in dialog.findChildren(QTextBrowser))
    first = page.toPlainText()
    words = ("Baseline: ", "Calibrate: each layer", "below δ", "Accelerated: ", "Compare: ", "Export: ", "Drag δ")
    places = [first.find(one) for one in words]
    assert -1 not in places and places == sorted(places), first


def test_the_sheet_of_keys_has_all_of_them_and_is_searched_and_used(make_window: MakeWindow) -> None:
    window = make_window()
    window.action.keys.trigger()
    sheet = window.findChild(Palette)
    assert sheet is not None and sheet.windowTitle() == "Keyboard"
    keys = {one.title: one.detail for one in sheet.found}
    assert keys["Export profile"] == "Ctrl+E" and keys["Dark"] == "Ctrl+Shift+K"
    declared = {action.shortcut().toString() for action in window.actions()} - {""}
    assert declared <= {*keys.values(), "Ctrl+Shift+Space"}, "the sheet itself"
    assert any(one.kind == "In the panel" and "Takes" in one.title for one in sheet.found)
    sheet.search.setText("ctrl+5")
    assert sheet.chosen is not None and sheet.chosen.title == "Train"
    sheet.choose()
    assert window.workspaces.current.title == "Train"


@pytest.fixture
def actions(qtbot: QtBot) -> Actions:
    window = on_screen(QWidget(), qtbot)
    return Actions(window, QUndoStack(window), [one for each in FEATURES for one in each.actions])


def test_what_is_typed_is_taken_over_before_actions_run_and_a_problem_is_told(actions: Actions, qtbot: QtBot) -> None:
    order: list[str] = []
    actions.about_to_run.connect(lambda: order.append("take over"))

    def fail() -> None:
        order.append("run")
        raise PlainError("Type a sentence first.")

    actions.bind(actions.baseline, fail)
    with qtbot.waitSignal(actions.failed) as blocker:
        actions.baseline.trigger()
    assert order == ["take over", "run"] and blocker.args == ["Type a sentence first."]


def test_actions_of_features_are_found_by_name_and_those_of_the_window_too(actions: Actions) -> None:
    declared = [one for feature in FEATURES for one in feature.actions]
    assert {actions[one.name].text() for one in declared} == {one.text for one in declared}
    assert actions["baseline"] is actions.baseline
    assert actions["point_ratios"].isCheckable() and not actions["point_hear"].isCheckable()
    for name in ("unheard", "bind"):
        with pytest.raises(LookupError, match="no action named"):
            actions[name]


def test_the_main_job_goes_from_a_sentence_to_a_profile() -> None:
    job = main_job(FEATURES)
    assert [one.action for one in job] == ["baseline", "calibrate", "accelerated", "compare", "export_profile"]
    without = main_job(one for one in FEATURES if not one.technique)
    assert [one.action for one in without] == ["baseline", "accelerated", "compare", "export_profile"]


def test_the_first_reason_against_an_action_is_its_own(actions: Actions) -> None:
    busy, done = ["Wait for the running job."], []
    action = actions.add("Com&pute", lambda: done.append(1), "Run the model", lambda: next(iter(busy), ""))
    action.explain(lambda: "Choose a view first." if not done else "")
    actions.refresh()
    assert (action.isEnabled(), action.reason) == (False, "Wait for the running job.")
    busy.clear()
    actions.refresh()
    assert action.reason == "Choose a view first."
    done.append(0)
    actions.refresh()
    assert action.isEnabled() and action.reason == "" and action.toolTip() == "Run the model"
    action.trigger()
    assert done == [0, 1]


def test_buttons_show_their_action(actions: Actions, qtbot: QtBot) -> None:
    local, declared = actions.add("Com&pute", lambda: None, "Run the model"), actions.baseline
    buttons = [ActionButton(local), ActionButton(declared), IconButton(declared), ActionButton(local, "")]
    for one in buttons:
        qtbot.addWidget(one)
    assert [one.text() for one in buttons] == ["Com&pute", "Synthesise baseline", "", ""]
    assert [one.accessibleName() for one in buttons] == ["Compute", *["Synthesise baseline"] * 2, "Compute"]
    assert buttons[1].toolTip() == "Speak the text without any technique (Ctrl+B)"
    for action in (local, declared):
        action.set_reason("The model is not loaded yet.")
    assert not any(one.isEnabled() for one in buttons)
    assert {one.toolTip() for one in buttons} == {"The model is not loaded yet."}
    local.set_tip("Run the loaded model")
    assert local.reason == "The model is not loaded yet."
    local.set_reason("")
    assert buttons[0].isEnabled() and buttons[0].toolTip() == "Run the loaded model"


KEY, ALT = Qt.Key, Qt.KeyboardModifier.AltModifier


class Host:
    """A window with two tabs, each of which has Alt+G and a field that Alt+N goes to."""

    def __init__(self) -> None:
        self.window = QMainWindow()
        self.clicked: list[str] = []
        self.fields: dict[str, QLineEdit] = {}
        self.docks = {name: self._dock(name) for name in ("one", "two")}
        self.window.tabifyDockWidget(*self.docks.values())
        self.window.setCentralWidget(QLineEdit())
        self.mnemonics = VisibleMnemonics(self.window)

    def _dock(self, name: str) -> QDockWidget:
        dock, panel, field = QDockWidget(name, self.window), QWidget(), QLineEdit()
        button, label = QPushButton(f"&Go {name}"), QLabel("&Name")
        button.clicked.connect(lambda: self.clicked.append(name))
        label.setBuddy(field)
        column = QVBoxLayout(panel)
        for one in (button, label, field):
            column.addWidget(one)
        dock.setWidget(panel)
        self.window.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, dock)
        self.fields[name] = field
        return dock

    def press(self, key: Qt.Key) -> None:
        """As people do: Alt, then the letter, then neither."""
        QTest.keyPress(self.window.focusWidget(), KEY.Key_Alt, ALT)
        QTest.keyClick(self.window.focusWidget(), key, ALT)
        QTest.keyRelease(self.window.focusWidget(), KEY.Key_Alt)


@pytest.fixture
def host(qtbot: QtBot) -> Host:
    made = Host()
    in_front(made.window, qtbot, 500, 300)
    made.window.centralWidget().setFocus()
    return made


@pytest.mark.parametrize("front", ["one", "two"])
def test_alt_keys_go_to_the_panel_in_front(host: Host, qtbot: QtBot, front: str) -> None:
    back = {"one": "two", "two": "one"}[front]
    host.docks[front].raise_()
    qtbot.waitUntil(lambda: host.docks[back].visibleRegion().isEmpty())
    for number in (1, 2):
        host.press(KEY.Key_G)
        qtbot.waitUntil(lambda number=number: host.clicked == [front] * number)
    host.press(KEY.Key_N)
    assert host.window.focusWidget() is host.fields[front]
    host.docks[back].raise_()
    qtbot.waitUntil(lambda: host.docks[front].visibleRegion().isEmpty())
    host.press(KEY.Key_G)
    qtbot.waitUntil(lambda: host.clicked == [front, front, back])


def test_the_panel_with_the_focus_comes_first_and_of_others_the_first(host: Host, qtbot: QtBot) -> None:
    host.window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, host.docks["two"])
    qtbot.waitUntil(lambda: not any(one.visibleRegion().isEmpty() for one in host.docks.values()))
    host.press(KEY.Key_G)
    qtbot.waitUntil(lambda: host.clicked == ["one"])
    clicked = ["one"]
    for name in ("two", "one"):
        host.fields[name].setFocus()
        host.press(KEY.Key_G)
        clicked.append(name)
        qtbot.waitUntil(lambda: host.clicked == clicked)


def test_alt_that_qt_sends_once_more_for_a_screen_reader_does_not_reach_the_menu_bar(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the key did what it does, and without a time: the menu bar would take it for Alt pressed alone."""
    for there, time in ((False, 0), (True, 0), (True, 5)):
        monkeypatch.setattr(QAccessible, "isActive", lambda there=there: there)
        again = QKeyEvent(QEvent.Type.ShortcutOverride, KEY.Key_Alt, ALT)
        again.setTimestamp(time)
        assert host.mnemonics.eventFilter(host.window, again) is (there and not time)


@pytest.mark.timeout(900)
def test_no_letter_is_reached_by_two_at_the_same_time(borrowed_window: MainWindow, qtbot: QtBot) -> None:
    """Of what the real window shows, whichever panels are in front and have the focus; its menus keep theirs."""
    window = borrowed_window
    window.resize(1500, 1000)
    activated(window, qtbot)
    assert clashes_of_menus(window.menuBar()) == {}
    bar = {letter(one.text()) for one in window.menuBar().actions()}
    strange = {one.text() for one in labelled(window) if letter(one.text()) in bar}
    assert strange == set(), "have a letter of the menu bar"
    within, between = {}, {}
    there = [(one, place) for one in window.workspaces.there for place in window.workspaces.of(one).places]
    for workspace, place in there:
        name, docks = place.name, window.workspaces.of(workspace)
        window.workspaces.switch(workspace)
        for other in docks.places:
            # Guests, too: whatever the user may have shown.
            if other.region is not place.region or other.home is not workspace:
                docks.show(other.name)
        docks.show(name)
        window.workspaces.go_to(name)
        qtbot.wait(20)
        others = docks.host.tabifiedDockWidgets(docks[name])
        qtbot.waitUntil(lambda others=others: all(one.visibleRegion().isEmpty() for one in others))
        panel = window.panels[name]
        within[name] = twice(one for one in labelled(window) if panel.isAncestorOf(one) and one.isVisible())
        QTest.keyPress(window.focusWidget(), KEY.Key_Alt, ALT)
        seen = [one for one in labelled(window) if one.isVisible()]
        reached = (one for one in seen if isinstance(one, QLabel) or (one.isEnabled() and not one.shortcut().isEmpty()))
        between[name] = twice(reached)
        QTest.keyRelease(window.focusWidget(), KEY.Key_Alt)
    assert {name: found for name, found in within.items() if found} == {}
    assert {name: found for name, found in between.items() if found} == {}


def labelled(window: MainWindow) -> list[QAbstractButton | QLabel]:
    """Buttons and labels with an Alt key in their text, visible or not."""
    labels = [one for one in window.findChildren(QLabel) if one.buddy() is not None]
    return [one for one in (*window.findChildren(QAbstractButton), *labels) if letter(one.text())]


def letter(text: str) -> str:
    """The Alt key in ``text``; ``""`` where it has none."""
    return QKeySequence.mnemonic(text).toString()


def twice(widgets: Iterable[QAbstractButton | QLabel | QAction]) -> dict[str, list[str]]:
    """The texts that share an Alt key, by that."""
    found: dict[str, list[str]] = {}
    for one in widgets:
        found.setdefault(letter(one.text()), []).append(one.text())
    return {key: texts for key, texts in found.items() if len(texts) > 1}


def clashes_of_menus(menu: QMenuBar | QMenu) -> dict[str, list[str]]:
    """The entries of one menu that share a letter, below ``menu``."""
    found = twice(one for one in menu.actions() if letter(one.text()))
    for action in menu.actions():
        if action.menu() is not None:
            found |= clashes_of_menus(action.menu())
    return found


def test_tab_goes_from_the_rail_through_the_workspace_to_the_player(shared_window: MainWindow) -> None:
    window = shared_window  # Empty meters are a sentence.
    parts = {"rail": window.rail, "steps": window.features["guide"].guide}
    parts |= {name: window.panels[name] for name in ("setup", "listen", "takes", "player")}
    passed: list[str] = []
    first = one = next(iter(window.rail.buttons.values()))
    while not passed or one is not first:
        if one.focusPolicy() & Qt.FocusPolicy.TabFocus and one.isVisible() and one.isEnabled():
            passed += [name for name, part in parts.items() if one is part or part.isAncestorOf(one)]
        one = one.nextInFocusChain()
    assert list(dict.fromkeys(passed)) == list(parts), "each part once, in the order of reading"
    assert passed == sorted(passed, key=list(parts).index), "none is left and entered again"
