"""The main window on the real engine with a small real model."""

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyqtgraph as pg
import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction, QUndoCommand
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QGraphicsView,
    QLineEdit,
    QScrollBar,
    QTabBar,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot
from shiboken6 import createdByPython

from paretone.session.events import Progress
from paretone.setting.library import DATABASE
from paretone_app.__main__ import catch_exceptions
from paretone_app.numbers import significant
from paretone_app.plotting.cursor_canvas import Painted
from paretone_app.shell.colours import DARK
from paretone_app.shell.regions import tab_on
from paretone_app.shell.window import MainWindow
from paretone_app.shell.workspaces import recolour
from paretone_app.state.jobs import Kind, Outcome
from paretone_app.widgets import build
from paretone_app.widgets.boxes import ComboBox
from paretone_app.widgets.layouts import Scrolled
from tests.app.conftest import SMALL, MakeWindow, activated, close, in_front, ready, run
from tests.app.damage import spoil
from tests.app.holding import Posts
from tests.app.sharing import borrowed  # noqa: F401

LOOKED_AT = ("takes",)


def test_a_key_that_can_do_nothing_now_says_why(window: MainWindow, qtbot: QtBot) -> None:
    assert not window.action.accelerated.isEnabled()
    qtbot.keyClick(window, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert window.status.text == window.action.accelerated.toolTip()
    assert "needs a strategy table" in window.status.text


def test_a_panel_is_entered_where_its_work_is_done(window: MainWindow, qtbot: QtBot) -> None:
    activated(window, qtbot)
    window.workspaces.go_to("strategy")
    panel = window.panels["strategy"]
    assert panel.pages.is_empty and QApplication.focusWidget() is panel.pages.empty.buttons[0]
    panel.pages.show_content(True)
    window.workspaces.go_to("strategy")
    assert QApplication.focusWidget() is panel.grid


def test_the_factor_in_the_header_is_that_of_what_is_shown(window: MainWindow, qtbot: QtBot) -> None:
    chosen, factor = window.state.selection, window.header.factor
    assert chosen.setting.techniques, "what is chosen is not the baseline"
    run(window, window.action.baseline, qtbot)
    measured = window.state.comparison.take_a.measurements.real_time_factor
    assert factor.text() == f"RTF {significant(measured)} (baseline)"
    assert factor.accessibleName() == f"{factor.text()}, Baseline"
    chosen.consider_model("lm-mini")
    assert factor.text() == "RTF –", "it is another model's"
    chosen.consider_model(chosen.model_id)
    steps = chosen.options_in_force["steps"]
    chosen.set_option("steps", steps + 1)
    assert factor.text() == f"RTF {significant(measured)} (earlier setting)"
    chosen.set_option("steps", steps)
    for one in chosen.setting.techniques:
        chosen.switch(one.technique, on=False)
    assert factor.text() == f"RTF {significant(measured)}", "what is chosen is the baseline"


def test_escape_cancels(window: MainWindow, shared_posts: Posts, qtbot: QtBot) -> None:
    activated(window, qtbot)
    shared_posts.hold_at(Progress)
    window.action["calibrate"].trigger()
    assert window.jobs.running[0].kind is Kind.CALIBRATE
    assert window.action.baseline.isEnabled(), "it would wait"
    with qtbot.waitSignal(window.jobs.ended) as blocker:
        qtbot.keyClick(window, Qt.Key.Key_Escape)
        shared_posts.go_on()
    assert blocker.args[1] is Outcome.CANCELLED
    assert window.features["strategy"].state.table is None
    assert not window.jobs.busy


def test_an_exception_anywhere_is_told_and_logged(window: MainWindow, qtbot: QtBot, monkeypatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    catch_exceptions(window)

    def fail() -> None:
        raise ValueError("something odd")

    with qtbot.waitSignal(window.unexpected_happened):
        thread = threading.Thread(target=fail)
        thread.start()
    thread.join()
    qtbot.waitUntil(lambda: "ValueError: something odd" in window.notices.banner.text)
    assert "Traceback" in window.panels["log"].plain_text()


def test_the_first_window_fits_the_screen_with_its_frame(make_window: MakeWindow) -> None:
    window = make_window()
    screen, frame = window.screen().availableSize(), QSize(24, 48)
    assert screen.width() < 1440, "else nothing is asked of it here"
    least, room = window.minimumSizeHint(), screen - frame
    assert least.width() <= window.width() <= max(least.width(), room.width())
    assert least.height() <= window.height() <= max(least.height(), room.height())


def test_tab_goes_round_through_everything_and_comes_back(shared_window: MainWindow, qtbot: QtBot) -> None:
    shared_window.workspaces.go_to("tradeoff")
    first, passed = shared_window.rail.findChildren(QToolButton)[0], 0
    first.setFocus()
    while not passed or not first.hasFocus():
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        focus, shown = QApplication.focusWidget(), shared_window.workspaces.shown
        assert all(shown.is_seen(dock) for _, dock in shown if dock.isAncestorOf(focus)), "not behind another's tab"
        assert not isinstance(focus.parentWidget(), QTabBar)
        passed += 1
        assert passed < 80, "Tab goes round without the beginning"
    assert passed > 15
    for _ in range(passed):
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Backtab)
    assert first.hasFocus()
    order = [shared_window]  # Qt has let panels fall out of the order of Tab, with all that was in them.
    while (following := order[-1].nextInFocusChain()) is not shared_window:
        order.append(following)
    there = set(order)
    for place, dock in shared_window.workspaces:
        own = [one for one in dock.findChildren(QWidget) if one.focusPolicy() & Qt.FocusPolicy.TabFocus]
        lost = [one for one in own if one.window() is shared_window and one not in there]
        assert own and not lost, place.name


def test_tab_scrolls_to_what_it_reaches_from_outside(qtbot: QtBot) -> None:
    fields, outside = [QLineEdit() for _ in range(20)], QLineEdit()
    area = Scrolled(build.column(*fields))
    window = in_front(build.column(outside, area), qtbot, 300, 200)
    area.verticalScrollBar().setValue(1000)
    outside.setFocus()
    assert fields[0].visibleRegion().isEmpty() and tab_on(window, True)
    assert fields[0].hasFocus() and not fields[0].visibleRegion().isEmpty()


def test_every_widget_that_takes_the_focus_has_a_name_and_every_choice_is_ours(
    shared_window: MainWindow, qtbot: QtBot
) -> None:
    shared_window.panels["setup"].voice_choice.own.setChecked(True)
    nameless = []
    for widget in shared_window.findChildren(QWidget):
        if widget.window() is not shared_window:
            continue  # The list that a combo box opens.
        if not widget.focusPolicy() & Qt.FocusPolicy.TabFocus or isinstance(widget, QTabBar | QScrollBar):
            continue
        # The inner edit of a spin box and the viewport of a plot speak through the widget around them.
        inside = isinstance(widget.parentWidget(), QAbstractSpinBox | QGraphicsView)
        text = "" if isinstance(widget, QLineEdit) else getattr(widget, "text", lambda: "")()
        named = widget.accessibleName() or (isinstance(text, str) and text)
        if not inside and not named and not hasattr(widget, "title"):
            parents = f"{type(widget.parentWidget()).__name__}/{type(widget.parentWidget().parentWidget()).__name__}"
            nameless.append(f"{type(widget).__name__} in {parents}")
    assert not nameless, "\n".join(nameless)
    # The wheel does not change those, and they are labelled.
    foreign = [one.accessibleName() for one in shared_window.findChildren(QComboBox) if not isinstance(one, ComboBox)]
    assert not foreign


def test_every_shortcut_is_unique_and_listed(shared_window: MainWindow, qtbot: QtBot) -> None:
    keys = [action.shortcut().toString() for action in shared_window.actions() if not action.shortcut().isEmpty()]
    assert len(keys) == len(set(keys)) > 20
    assert {"Ctrl+B", "Ctrl+K", "Ctrl+Return", "Esc", "Ctrl+E", "F1"} <= set(keys)


def test_no_other_window_flashes_up(make_window: MakeWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    """A panel's part that is shown before it has a parent flashes up by itself, and takes the keyboard away."""
    shown: list[QWidget] = []
    for name in ("show", "setVisible"):
        plain = getattr(QWidget, name)

        def watched(one: QWidget, *visible: bool, plain: Callable = plain) -> None:
            if one.isWindow() and visible != (False,):
                shown.append(one)
            plain(one, *visible)

        monkeypatch.setattr(QWidget, name, watched)
    window = make_window()
    ready(window, qtbot)
    assert set(shown) == {window}


def test_everything_painted_follows_the_theme(shared_window: MainWindow) -> None:
    for colours in (DARK, shared_window.theme.colours):
        recolour(shared_window, colours)
        painted = [one.colours for one in shared_window.findChildren(Painted)]
        assert len(painted) > 20 and all(one is colours for one in painted)


def test_no_plot_makes_a_menu_that_no_widget_owns(shared_window: MainWindow) -> None:
    """Python's collector would find it once the window is gone, on the engine's thread as well, which crashes Qt."""
    drawn = [one for view in shared_window.findChildren(pg.GraphicsView) for one in view.scene().items()]
    assert any(isinstance(one, pg.ViewBox) for one in drawn)
    assert not any(isinstance(one, pg.PlotItem) or getattr(one, "menu", None) is not None for one in drawn)


def test_every_action_that_is_kept_was_made_by_python(window: MainWindow) -> None:
    """See :mod:`paretone_app.shell.actions`."""
    holders = (window, window.action, window.notices, *window.panels.values())
    kept = [(type(one).__name__, name, value) for one in holders for name, value in vars(one).items()]
    kept += [(owner, key, one) for owner, _, held in kept if isinstance(held, dict) for key, one in held.items()]
    actions = [one for one in kept if isinstance(one[2], QAction)]
    assert len(actions) > 40
    assert [one for one in actions if not createdByPython(one[2])] == []
    stack, undo = window.panels["strategy"].undo_stack, window.action.undo
    assert not undo.isEnabled()
    stack.push(QUndoCommand("the name"))
    assert undo.isEnabled() and undo.text() == "&Undo: the name"
    undo.trigger()
    assert not undo.isEnabled() and undo.text() == "&Undo" and window.action.redo.text() == "&Redo: the name"
    window.action.redo.trigger()
    assert undo.isEnabled()


def test_every_panel_can_be_reached_by_its_key(shared_window: MainWindow, qtbot: QtBot) -> None:
    activated(shared_window, qtbot)
    for place, dock in shared_window.workspaces:
        shared_window.workspaces.go_to(place.name)
        if place.name == "meters":
            continue  # Nothing in it can be changed.
        assert dock.isAncestorOf(QApplication.focusWidget()), place.name


def test_a_damaged_library_is_replaced_when_asked(make_window: MakeWindow, qtbot: QtBot, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "takes"
    spoil(folder, readable=False)
    window = ready(make_window(parts=SMALL), qtbot)
    assert "is damaged" in window.notices.banner.text
    assert run(window, window.action.baseline, qtbot) is Outcome.FINISHED
    assert window.results.library.folder != folder
    assert len(window.results.library) == 1
    window.features["takes"].engine_starts()
    (answer,) = window.notices.banner.answers
    qtbot.mouseClick(answer, Qt.MouseButton.LeftButton)
    assert "New takes are kept again" in window.notices.banner.text
    (backup,) = folder.glob("damaged-*")
    assert (backup / DATABASE).exists()
    assert (window.results.library.folder, window.results.library.damage) == (folder, "")
    assert len(window.results.library) == window.panels["takes"].table.model().rowCount() == 1


def test_a_full_disk_is_told_and_the_take_is_heard(make_window: MakeWindow, tiny_disk: Path, qtbot: QtBot) -> None:
    window = ready(make_window(data=tiny_disk, parts=SMALL), qtbot)
    room = os.statvfs(tiny_disk).f_bavail * os.statvfs(tiny_disk).f_frsize
    (tiny_disk / "ballast").write_bytes(bytes(room))
    assert run(window, window.action.baseline, qtbot) is Outcome.FINISHED
    assert "the disk is full" in window.notices.banner.text
    assert window.notices.banner.cards[-1].message.level == "error"
    assert len(window.results.library) == 0
    assert len(window.state.comparison.take_a.samples) > 0
    qtbot.waitUntil(lambda: len(window.features["player"].deck.loaded) == 1)
    (tiny_disk / "ballast").unlink()
    assert run(window, window.action.baseline, qtbot) is Outcome.FINISHED
    assert len(window.results.library) == 1
    close(window, qtbot)


def test_the_device_is_named_as_the_engine_names_it(shared_window: MainWindow) -> None:
    assert shared_window.header.device.text() == shared_window.state.selection.info.device
    assert shared_window.panels["meters"].figures["device"].value.text() == shared_window.state.selection.info.device
