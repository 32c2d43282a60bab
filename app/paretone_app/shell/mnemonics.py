"""Alt keys go to what is seen, and first to the panel that has the focus.

Qt takes a panel under other tabs for visible, so that its Alt keys would clash with those of the panel in front, and a
press would only move the focus from one to the other. While Alt is held, panels under other tabs hence have none, and
visible panels other than the one with the focus have none of its keys; of the others the first in the window has what
several want, and fixed bars have what panels leave. No panel has a letter of the menu bar, whose letters hence always
open menus.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractButton, QDockWidget, QLabel, QMainWindow, QToolBar, QWidget
from shiboken6 import isValid

_ENDS = (QEvent.Type.WindowDeactivate, QEvent.Type.Close)


class VisibleMnemonics(QObject):
    """Watches a window's Alt key."""

    def __init__(self, window: QMainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._buttons: list[QAbstractButton] = []
        self._labels: list[tuple[QLabel, QWidget]] = []
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind in _ENDS:
            self._give_back()
        elif isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Alt:
            if kind is QEvent.Type.KeyPress and not event.isAutoRepeat():
                self._take()
            elif kind is QEvent.Type.KeyRelease:
                self._give_back()
        return False

    def _take(self) -> None:
        """Take the Alt keys of all but one of those that share them."""
        self._give_back()
        focus = self._window.focusWidget()
        found: list[QWidget] = [*self._window.findChildren(QDockWidget), *self._window.findChildren(QToolBar)]
        docks = [one for one in found if one.isVisible()]
        seen = [one for one in docks if not one.visibleRegion().isEmpty()]
        seen.sort(key=lambda one: focus is None or not one.isAncestorOf(focus))
        reserved: set[QKeySequence] = set()
        for dock in (*seen, *(one for one in docks if one not in seen)):
            labelled = _labelled(dock)
            self._take_of([one for one in labelled if dock not in seen or _key(one) in reserved])
            reserved.update(_key(one) for one in labelled if one.isVisible())

    def _take_of(self, widgets: list[QAbstractButton | QLabel]) -> None:
        for one in widgets:
            if isinstance(one, QLabel):
                self._labels.append((one, one.buddy()))
                one.setBuddy(None)  # type: ignore[arg-type]  # As Qt documents it; PySide's declaration leaves it out.
            elif one.shortcut() == _key(one):
                self._buttons.append(one)
                one.setShortcut(QKeySequence())

    def _give_back(self) -> None:
        for button in filter(isValid, self._buttons):
            button.setShortcut(_key(button))
        for label, buddy in self._labels:
            if isValid(label) and isValid(buddy):
                label.setBuddy(buddy)
        self._buttons, self._labels = [], []


def _labelled(dock: QWidget) -> list[QAbstractButton | QLabel]:
    """Widgets of a dock or a bar with an Alt key."""
    labels = [one for one in dock.findChildren(QLabel) if one.buddy() is not None]
    labelled: list[QAbstractButton | QLabel] = [*dock.findChildren(QAbstractButton), *labels]
    return [one for one in labelled if not _key(one).isEmpty()]


def _key(one: QAbstractButton | QLabel) -> QKeySequence:
    return QKeySequence.mnemonic(one.text())
