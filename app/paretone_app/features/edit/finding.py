"""Find: actions, models, takes and terms in one list, by words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QDialogButtonBox,
    QHeaderView,
    QLineEdit,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from paretone_app.numbers import counted
from paretone_app.widgets import build
from paretone_app.widgets.layouts import VBoxLayout

MOST = 200
"""Entries listed at a time."""
_IN_LIST = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


@dataclass(frozen=True)
class Entry:
    """Something that can be found."""

    title: str
    kind: str
    """Such as ``Action``."""
    detail: str
    """Its keys, or when it was made."""
    meaning: str
    """What it is or does, as a sentence."""
    go: Callable[[], object]
    """What choosing it does."""
    why_not: str = ""
    """Why it cannot be chosen now, as a sentence."""
    more: str = ""
    """Further words by which it is found."""


def search(entries: Sequence[Entry], words: str) -> list[Entry]:
    """Those that have all ``words``: first those whose titles begin with them, then those with them in their titles;
    otherwise in their order."""
    wanted = words.casefold().split()

    def rank(one: Entry) -> int:
        title = one.title.casefold()
        if title.startswith(" ".join(wanted)):
            return 0
        return 1 if all(word in title for word in wanted) else 2

    found = [one for one in entries if all(word in _haystack(one) for word in wanted)]
    return sorted(found, key=rank)


def _haystack(one: Entry) -> str:
    return " ".join((one.title, one.kind, one.detail, one.meaning, one.more)).casefold()


class FindDialog(QDialog):
    """Up and Down go through the list while one types; Enter chooses."""

    def __init__(self, entries: Sequence[Entry], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._entries = tuple(entries)
        self.found: list[Entry] = []
        """Those listed."""
        self.setWindowTitle("Find")
        self.search = build.named(QLineEdit(placeholderText="Search actions, models, takes and terms"), "Find")
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._show_found)
        self.search.installEventFilter(self)
        self.list = build.named(QTreeWidget(columnCount=3), "Found")
        self.list.setRootIsDecorated(False)
        self.list.setHeaderHidden(True)
        self.list.setAllColumnsShowFocus(True)
        self.list.header().setStretchLastSection(False)
        self.list.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for column in (1, 2):
            self.list.header().setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)
        self.list.currentItemChanged.connect(self._show_meaning)
        self.list.itemActivated.connect(lambda _: self.choose())
        self.meaning = build.words("muted", name="Meaning")
        self._count = build.label("", "muted", name="Number found")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        layout = VBoxLayout(self)
        for part, stretch in ((self.search, 0), (self.list, 1), (self.meaning, 0)):
            layout.addWidget(part, stretch)
        layout.addWidget(build.row((self._count, 1), buttons))
        em = self.fontMetrics().height()
        self.resize(44 * em, 28 * em)
        self._show_found()

    @property
    def chosen(self) -> Entry | None:
        """The entry at the cursor."""
        row = self.list.indexOfTopLevelItem(self.list.currentItem()) if self.list.currentItem() is not None else -1
        return self.found[row] if 0 <= row < len(self.found) else None

    def choose(self) -> None:
        """Close and go to the entry at the cursor; one that cannot be chosen says why."""
        chosen = self.chosen
        if chosen is None:
            return
        if chosen.why_not:
            self._show_meaning()
            return
        self.accept()
        chosen.go()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is not QEvent.Type.KeyPress or not isinstance(event, QKeyEvent):
            return False
        if event.key() in _IN_LIST:
            QApplication.sendEvent(self.list, event)
            return True
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.choose()
            return True
        return False

    def _show_found(self) -> None:
        words = self.search.text()
        found = search(self._entries, words)
        self.found = found[:MOST]
        self.list.clear()
        for one in self.found:
            item = QTreeWidgetItem(self.list, [one.title, one.kind, one.detail])
            item.setData(0, Qt.ItemDataRole.AccessibleDescriptionRole, one.why_not or one.meaning)
            for column in range(3 if one.why_not else 0):
                item.setForeground(column, self.palette().placeholderText())
        first = self.list.topLevelItem(0)
        if first is not None:
            self.list.setCurrentItem(first)
        cut = f"; the first {MOST} are listed" if len(found) > MOST else ""
        self._count.setText(f"{counted(len(found), 'entry', 'entries')}{cut}")
        if not found:
            self.meaning.setText(f"Nothing has all these words: “{words.strip()}”.")

    def _show_meaning(self) -> None:
        chosen = self.chosen
        if chosen is not None:
            self.meaning.setText(chosen.why_not or chosen.meaning)
