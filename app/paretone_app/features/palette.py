"""The palette: every action, model, voice, technique, setting, take, study and term by a few letters, also misspelt.

Presenters say what can be found in them (:meth:`paretone_app.features.presenter.Presenter.findable`); the window's
actions, each panel among them, are found by themselves. The sheet of keys is the palette of what has one.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from PySide6.QtCore import QSettings, QSize, Qt
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence
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

from paretone_app.features.presenter import Presenter, Services, listed_in
from paretone_app.numbers import counted, localised
from paretone_app.shell.entries import Findable
from paretone_app.shell.theme import GAP, text_font
from paretone_app.widgets import build
from paretone_app.widgets.action import Action
from paretone_app.widgets.layouts import VBoxLayout

MOST = 200
RECENT = 8
_CUT_OFF, _DETAIL = (2, 4), 11
"""Columns with long texts, and their greatest width in heights of a line."""
_IN_LIST = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)
NEARLY = 75
"""Least similarity, of 100, of a misspelt word; words of fewer than ``LETTERS`` letters have to be right."""
LETTERS = 4


def search(entries: Sequence[Findable], words: str, recent: Sequence[str] = ()) -> list[Findable]:
    """Entries with all ``words``: first titles that begin with them, except takes and terms, then titles in which words
    begin with them, then titles that contain them, then the rest; if there are none, those with titles nearly like
    them. Within each, ``recent`` keys come first."""
    wanted = words.casefold().split()
    last = {key: place for place, key in enumerate(recent)}

    def rank(one: Findable) -> tuple[int, int]:
        title = f" {one.title.casefold()}"
        first = title.startswith(" " + " ".join(wanted)) and one.kind not in ("Take", "Term")
        place = 0 if first else 1 if all(f" {word}" in title for word in wanted) else 2
        return place + (not all(word in title for word in wanted)), last.get(one.key, len(last))

    found = [one for one in entries if all(word in one.words for word in wanted)]
    if found or not wanted:
        return sorted(found, key=rank)
    likely = [(min(_similarity(word, one.title.casefold()) for word in wanted), one) for one in entries]
    return [one for score, one in sorted(likely, key=lambda pair: -pair[0]) if score >= NEARLY]


def _similarity(word: str, title: str) -> float:
    if len(word) < LETTERS:
        return 100.0 * (word in title)
    from rapidfuzz import fuzz  # On use: no start needs it.

    return max((fuzz.ratio(word, part[: len(word) + 1]) for part in title.split()), default=0.0)


class SearchField(QLineEdit):
    """A field to search ``found``, in which Up and Down move while the user types; Enter chooses, if it can."""

    def __init__(self, name: str, what: str, found: QWidget, choose: Callable[[], object] | None = None) -> None:
        super().__init__(placeholderText=f"Search {what}")
        build.clearable(build.named(self, name))
        self._found, self._choose = found, choose

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _IN_LIST:
            QApplication.sendEvent(self._found, event)
        elif self._choose is not None and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._choose()
        else:
            super().keyPressEvent(event)


class Palette(QDialog):
    """Up and Down move through the list while the user types; Enter chooses."""

    def __init__(
        self,
        title: str,
        what: str,
        entries: Callable[[], Iterable[Findable]],
        settings: QSettings,
        parent: QWidget,
        columns: Sequence[str] = (),
    ) -> None:
        """``what`` is searched, in ``entries``, which :meth:`renew` asks for again. ``columns``: headings of the
        entries' titles and ``cells``; by default their kinds and details are shown, without headings."""
        super().__init__(parent)
        self._read, self._settings, self._columns = entries, settings, tuple(columns)
        self._entries = tuple(entries())
        self._recent = listed_in(settings, _RECENT)
        self.found: list[Findable] = []
        self._shown: dict[int, Findable] = {}
        """By row; headings of groups are rows, too."""
        self.setWindowTitle(title)
        self.list = build.named(QTreeWidget(columnCount=len(columns) or 3), "Found")
        self.search = SearchField(title, what, self.list, self.choose)
        self.search.textChanged.connect(self._show_found)
        self.list.setRootIsDecorated(False)
        self.list.setHeaderHidden(not columns)
        self.list.setHeaderLabels(columns or [""] * 3)
        self.list.setAllColumnsShowFocus(True)
        self.list.setUniformRowHeights(True)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._row = QSize(0, int(1.5 * self.fontMetrics().height()))
        self.list.header().setStretchLastSection(False)
        header, modes = self.list.header(), QHeaderView.ResizeMode
        for column in range(self.list.columnCount()):
            header.setSectionResizeMode(column, modes.Interactive if column in _CUT_OFF else modes.ResizeToContents)
        self._wide = int(bool(columns))
        """The column that takes the room that is left."""
        header.setSectionResizeMode(self._wide, modes.Stretch)
        self.list.currentItemChanged.connect(self._show_meaning)
        self.list.itemActivated.connect(lambda _: self.choose())
        self.meaning = build.words("muted", name="Meaning")
        self._count = build.label("", "muted", name="Number found")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        parts: list[build.Placed] = [self.search, (self.list, 1), self.meaning, build.row((self._count, 1), buttons)]
        build.fill(VBoxLayout(self), parts, (GAP,) * 4)
        em = self.fontMetrics().height()
        wanted = QSize(74 * em, 40 * em) if columns else QSize(44 * em, 28 * em)
        self.resize(wanted.boundedTo(parent.size() - QSize(2 * em, 4 * em)))
        self._show_found()

    @property
    def chosen(self) -> Findable | None:
        item = self.list.currentItem()
        return self._shown.get(self.list.indexOfTopLevelItem(item)) if item is not None else None

    def renew(self) -> None:
        """Show the entries as they are now; the current one stays."""
        chosen, self._entries = self.chosen, tuple(self._read())
        self._show_found()
        for row, one in self._shown.items():
            if chosen is not None and one.key == chosen.key:
                self.list.setCurrentIndex(self.list.model().index(row, 0))

    def choose(self) -> None:
        """Close and go to the current entry, or show why it is unavailable."""
        if (chosen := self.chosen) is None:
            return
        if chosen.why_not:
            self._show_meaning()
            return
        kept = [chosen.key, *(key for key in self._recent if key != chosen.key)][:RECENT]
        self._settings.setValue(_RECENT, json.dumps(kept))
        self.accept()
        chosen.go()

    def _show_found(self) -> None:
        words = self.search.text()
        found = search(self._entries, words, self._recent)
        in_groups = self._entries if self._columns and not words.strip() else ()
        groups = list(dict.fromkeys(one.group for one in in_groups if one.group))
        self.found = sorted(found[:MOST], key=lambda one: groups.index(one.group)) if groups else found[:MOST]
        self.list.clear()
        self._shown.clear()
        for one in self.found:
            if groups and one.group == groups[0]:
                heading = QTreeWidgetItem(self.list, [groups.pop(0)])
                heading.setFirstColumnSpanned(True)
                heading.setSizeHint(self._wide, self._row)
                heading.setFlags(Qt.ItemFlag.NoItemFlags)
                heading.setFont(0, text_font(self.font(), strong=True))
            self._shown[self.list.topLevelItemCount()] = one
            texts = [localised(text) for text in one.cells] if self._columns else [one.kind, one.detail]
            item = QTreeWidgetItem(self.list, [one.title, *texts])
            item.setSizeHint(self._wide, self._row)
            item.setData(0, Qt.ItemDataRole.AccessibleDescriptionRole, one.why_not or one.meaning)
            for column in range(self.list.columnCount() if one.why_not else 0):
                item.setForeground(column, self.palette().placeholderText())
        for first in [*self._shown][:1]:
            self.list.setCurrentIndex(self.list.model().index(first, 0))
        for column in _CUT_OFF[: self.list.columnCount() // 2]:
            most = _DETAIL * self.fontMetrics().height()
            self.list.header().resizeSection(column, min(max(self.list.sizeHintForColumn(column), most // 2), most))
        cut = f"; the first {MOST} are listed" if len(found) > MOST else ""
        self._count.setText(f"{counted(len(found), 'entry', 'entries')}{cut}")
        if not found:
            self.meaning.setText(f"Nothing is called anything like “{words.strip()}”.")

    def _show_meaning(self) -> None:
        if (chosen := self.chosen) is not None:
            self.meaning.setText(localised(chosen.why_not or chosen.meaning))


_RECENT = "palette/recent"
"""Settings key: the last chosen entries, the latest first."""


_WHAT = "actions, models, voices, techniques, settings, takes, studies and terms"
_EVERYWHERE = (
    ("Plots: copy as table; show as table", "Ctrl+C; T"),
    ("Everywhere: next and previous control", "Tab, Shift+Tab"),
)


class PalettePresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._features, self._settings, self._keys = services.features, services.settings, services.keys
        actions = services.actions
        actions.bind(actions["palette"], lambda: self._open("Find", _WHAT, self.entries))
        actions.bind(actions.keys, lambda: self._open("Keyboard", "actions and keys", self.keys))

    def _open(self, title: str, what: str, entries: Callable[[], Iterable[Findable]]) -> None:
        build.show(Palette(title, what, entries, self._settings, self._window))

    def entries(self) -> Iterator[Findable]:
        yield from self._of_actions()
        for presenter in self._features.values():
            yield from presenter.findable()

    def keys(self) -> Iterator[Findable]:
        yield from (one for one in self._of_actions() if one.detail)
        for place, what, keys in self._keys:
            go = partial(self._workspaces.go_to, place.name)
            yield Findable(f"{place.title}: {what}", "In the panel", keys, f"Go to {place.title}.", go)
        for what, keys in _EVERYWHERE:
            yield Findable(what, "Key", keys, "", lambda: None)

    def _of_actions(self) -> Iterator[Findable]:
        # Choices in menus are no actions of the window itself.
        choices = (one for one in self._window.findChildren(QAction) if not one.shortcut().isEmpty())
        for action in dict.fromkeys((*self._window.actions(), *choices)):
            if action is self._actions["palette"] or action.shortcutContext() is not Qt.ShortcutContext.WindowShortcut:
                continue
            keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            title = action.title if isinstance(action, Action) else action.text().replace("&", "")
            tip, why_not = (action.tip, action.reason) if isinstance(action, Action) else ("", "")
            yield Findable(title, "Action", keys, tip or title, action.trigger, why_not)
