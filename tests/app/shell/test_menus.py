"""The menu bar: what is in it and in which order, with the entries that features declare."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtGui import QAction, QUndoStack
from PySide6.QtWidgets import QDialog, QMenu, QTextBrowser, QWidget
from pytestqt.qtbot import QtBot

from paretone.errors import PlainError
from paretone_app.features.feature import main_job
from paretone_app.features.palette import Palette
from paretone_app.features.registry import FEATURES
from paretone_app.shell.actions import Actions
from paretone_app.shell.window import MainWindow
from paretone_app.widgets.action import ActionButton, IconButton
from tests.app.conftest import MakeWindow

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


def entries(menu: QMenu) -> list[str]:
    return [entry(one) for one in menu.actions()]


def menus(window: MainWindow) -> Iterator[QMenu]:
    """In order. Not by QAction.menu(): such a wrapper of a menu is valid only as long as that of the action."""
    there = {one.title(): one for one in window.menuBar().findChildren(QMenu)}
    for action in window.menuBar().actions():
        yield there[action.text()]


def pages(window: MainWindow) -> Iterator[str]:
    for dialog in window.findChildren(QDialog):
        for page in dialog.findChildren(QTextBrowser):
            yield page.toPlainText()


def test_menus_have_their_entries_in_order_and_pages_of_help_name_them(make_window: MakeWindow) -> None:
    window = make_window()  # It is not shown, so that its engine does not start.
    found = {one.title(): entries(one) for one in menus(window)}
    titles = ["&File", "&Edit", "&Model", "&Run", "&Compare", "&Strategy", "St&udies", "&View", "&Help"]
    assert list(found) == titles
    for title, wanted in MENUS.items():
        assert found[title] == " ".join(wanted.split()).split(", "), title
    assert len(found["&View"]) <= 12
    window.action.first_steps.trigger()
    (first,) = pages(window)
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
    window = QWidget()
    qtbot.addWidget(window)
    return Actions(window, QUndoStack(window), [one for each in FEATURES for one in each.actions])


def test_what_is_being_typed_is_taken_over_before_an_action_runs_and_a_problem_is_told(
    actions: Actions, qtbot: QtBot
) -> None:
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
