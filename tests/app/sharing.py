"""One window for several tests that change it: after each it is put back as it was when it was new, and looked at."""

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

import pytest
from PySide6 import QtWidgets
from pytestqt.qtbot import QtBot

from paretone.setting.setting import Setting
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Jobs

RECENT = "Recen&t"
"""The button for what was opened lately: that is kept, as it is between sessions."""


@pytest.fixture(name="window")
def borrowed(borrowed_window: MainWindow) -> MainWindow:
    """For a module or a folder that imports it: whose tests all borrow the window."""
    return borrowed_window


def cancel_all(jobs: Jobs) -> None:
    for job in reversed((*jobs.all, *jobs.left)):
        jobs.cancel(job)


class Found(NamedTuple):
    setting: Setting
    text: str
    voice: str
    places: list[str]
    """The panels that are shown, or behind tabs of those that are."""
    widgets: Counter[tuple[str, str, str, bool]]
    """How often which widget can be seen: panel, class, what it shows, whether it is enabled."""


def found(window: MainWindow, panels: Collection[str]) -> Found:
    """The window as it is, with all that can be seen in ``panels``."""
    chosen = window.state.selection
    places = [place.name for place, dock in window.workspaces if not dock.isHidden()]
    return Found(chosen.setting, chosen.text, chosen.speaker.id, places, _widgets(window, panels))


def put_back(window: MainWindow, before: Found, panels: Collection[str], qtbot: QtBot) -> None:
    """Bring ``window`` into the state ``before``, and fail where it is another one."""
    state = window.state
    cancel_all(state.jobs)
    qtbot.waitUntil(lambda: not state.jobs.busy)
    assert not state.jobs.held, "the engine is held for a listening test"
    studies = window.features["studies"] if any(one.name == "studies" for one in window.declared) else None
    while studies is not None and studies.summary is not None:
        studies.close()
    for folder in tuple(window.results.studies):
        window.results.close(folder)
    for set_side in (state.comparison.set_a, state.comparison.set_b):
        set_side(None)
    while state.undo_stack.canUndo():
        state.undo_stack.undo()
    cancel_all(state.jobs)  # Cancelled ones came back.
    qtbot.waitUntil(lambda: not state.jobs.busy)
    state.undo_stack.clear()
    window.results.takes.read()
    window.results.takes.delete([one.id for one in window.results.takes.all])
    state.cost.measured.clear()
    state.selection.consider_model(state.selection.model_id)
    state.selection.adopt_setting(before.setting, before.text, before.voice)
    state.selection.model_changed.emit()  # Cards and rows that stayed in sight go.
    window.workspaces.default_layout()
    window.workspaces.switch(window.workspaces.there[0])
    window.notices.banner.clear()
    after = found(window, panels)
    assert after[:-1] == before[:-1]
    new, gone = after.widgets - before.widgets, before.widgets - after.widgets
    assert not new and not gone, f"new: {dict(new)}\ngone: {dict(gone)}"


def _widgets(window: MainWindow, panels: Collection[str]) -> Counter[tuple[str, str, str, bool]]:
    seen: Counter[tuple[str, str, str, bool]] = Counter()
    for name in panels:
        panel = window.panels[name]
        for one in panel.findChildren(QtWidgets.QWidget):
            is_recent = isinstance(one, QtWidgets.QAbstractButton) and one.text() == RECENT
            # Scroll bars come and go with the room that there is, and the button that clears a field fades away.
            passing = type(one) in (QtWidgets.QScrollBar, QtWidgets.QWidget) or isinstance(
                one.parent(), QtWidgets.QLineEdit
            )
            if one.isVisibleTo(panel) and not passing and not is_recent:
                seen[name, type(one).__name__, _shown(one), one.isEnabled()] += 1
    return seen


def _shown(widget: QtWidgets.QWidget) -> str:
    match widget:
        case QtWidgets.QAbstractButton():
            return f"{widget.text()} {widget.isChecked()}"
        case QtWidgets.QLabel() | QtWidgets.QAbstractSpinBox() | QtWidgets.QLineEdit():
            return widget.text()
        case QtWidgets.QComboBox():
            return widget.currentText()
        case QtWidgets.QPlainTextEdit():
            return widget.toPlainText()
        case QtWidgets.QAbstractItemView():
            return str(widget.model().rowCount() if widget.model() is not None else 0)
    return ""
