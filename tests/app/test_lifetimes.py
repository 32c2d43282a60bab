"""Objects that end with the window, in any order: none is used after it is gone."""

import gc
import random

import pytest
from PySide6.QtGui import QAction, QUndoCommand
from PySide6.QtWidgets import QApplication, QDockWidget
from pytestqt.qtbot import QtBot
from shiboken6 import delete, isValid

from tests.app.conftest import SMALL, MakeWindow, ready
from tests.workload import workload


def test_a_reader_that_is_gone_hears_of_no_more_takes(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = ready(make_window(parts=SMALL), qtbot)
    results, takes = window.results, window.results.takes
    takes.setParent(window)
    with qtbot.waitSignal(window.closed):
        window.close()
    results.stale.clear()
    takes.changed.emit()
    assert results.stale == {"takes"}, "what is not seen is read later"
    results.stale.clear()
    delete(results)
    takes.changed.emit()
    assert results.stale == set(), "Qt has ended the connection with the reader"


@pytest.mark.parametrize("seed", range(workload(3, 1)))
def test_a_window_may_end_in_any_order(make_window: MakeWindow, qtbot: QtBot, seed: int) -> None:
    """Docks that are raised or lowered change places with their siblings, so which ends first is not settled: an undo
    stack, for one, says while it ends that it has nothing left to undo."""
    window = make_window()
    ready(window, qtbot)
    for name in ("one", "another"):
        window.state.undo_stack.push(QUndoCommand(name))
    window.action.undo.trigger()
    with qtbot.waitSignal(window.closed):
        window.close()
    # Bars and layouts are Qt's own, which ends them itself.
    ours, package = QAction | QDockWidget, "paretone_app."
    children = [one for one in window.children() if isinstance(one, ours) or type(one).__module__.startswith(package)]
    random.Random(seed).shuffle(children)
    assert len(children) > 50

    with qtbot.captureExceptions() as raised:
        while children:
            one = children.pop()
            if isValid(one):
                delete(one)
        delete(window)
        QApplication.processEvents()
        gc.collect()
        QApplication.processEvents()

    assert raised == []
