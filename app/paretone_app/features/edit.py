"""The Edit menu: copy figures; find actions, models, takes and terms; preferences; undo keys of the focused field."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QDockWidget,
    QFormLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QMainWindow,
    QPlainTextEdit,
    QTableView,
    QTextEdit,
    QToolBar,
    QTreeView,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)
from shiboken6 import isValid

from paretone.errors import PlainError
from paretone.models import catalogue
from paretone_app.features.glossary.presenter import GlossaryPresenter
from paretone_app.features.presenter import Presenter, Services
from paretone_app.features.takes.presenter import TakesPresenter
from paretone_app.features.takes.table import made_at
from paretone_app.numbers import counted, localised
from paretone_app.shell.entries import SEARCH
from paretone_app.shell.theme import GAP, Scheme
from paretone_app.state.differences import label_of, setting_text
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.boxes import DoubleSpinBox, SpinBox
from paretone_app.widgets.layouts import FormLayout, VBoxLayout
from paretone_app.widgets.screen_readers import announce

MOST = 200
_IN_LIST = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


@dataclass(frozen=True)
class Entry:
    title: str
    kind: str
    detail: str
    """Shortcut of an action, family of a model, time of a take, or owner of a term."""
    meaning: str
    go: Callable[[], object]
    why_not: str = ""
    """Why it cannot be chosen now, as a sentence."""
    more: str = ""


def search(entries: Sequence[Entry], words: str) -> list[Entry]:
    """Entries with all ``words``: first titles that begin with them, then titles that contain them, then the rest."""
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
    """Up and Down move through the list while the user types; Enter chooses."""

    def __init__(self, entries: Sequence[Entry], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._entries = tuple(entries)
        self.found: list[Entry] = []
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
        parts: list[build.Placed] = [self.search, (self.list, 1), self.meaning, build.row((self._count, 1), buttons)]
        build.fill(VBoxLayout(self), parts, (GAP,) * 4)
        em = self.fontMetrics().height()
        self.resize(44 * em, 28 * em)
        self._show_found()

    @property
    def chosen(self) -> Entry | None:
        row = self.list.indexOfTopLevelItem(self.list.currentItem()) if self.list.currentItem() is not None else -1
        return self.found[row] if 0 <= row < len(self.found) else None

    def choose(self) -> None:
        """Close and go to the current entry, or show why it is unavailable."""
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


@runtime_checkable
class Copyable(Protocol):
    def as_text(self) -> str:
        """All values, tab-separated, with the titles on the first line."""


@dataclass(frozen=True)
class Figures:
    title: str
    text: str

    @property
    def rows(self) -> int:
        return max(0, len(self.text.splitlines()) - 1)

    @property
    def words(self) -> str:
        return f"Copied {self.title or 'the table'}: {counted(self.rows, 'row', 'rows')}."


def figures_at(focus: QWidget | None) -> Figures | None:
    """Figures of the focused plot or table, else of the largest in its panel; ``None`` if there are none. A table with
    selected rows gives only these."""
    around = focus
    while around is not None:
        if _has_figures(around):
            return _figures(around)
        if around.isWindow() or isinstance(around.parentWidget(), QDockWidget | QToolBar):
            break
        around = around.parentWidget()
    if around is None or around.isWindow():
        return None
    found = [one for one in around.findChildren(QWidget) if one.isVisible() and _has_figures(one)]
    return _figures(max(found, key=lambda one: one.width() * one.height())) if found else None


def _has_figures(widget: QWidget) -> bool:
    return isinstance(widget, Copyable | QTableView | QTreeView)


def _figures(widget: QWidget) -> Figures | None:
    if isinstance(widget, Copyable):
        text = widget.as_text()
    else:
        assert isinstance(widget, QTableView | QTreeView)
        text = _table(widget)
    return Figures(widget.accessibleName(), text) if text.strip() else None


def _table(view: QTableView | QTreeView) -> str:
    model = view.model()
    if model is None or not model.rowCount():
        return ""
    head = view.horizontalHeader() if isinstance(view, QTableView) else view.header()
    shown = [number for number in range(model.columnCount()) if not head.isSectionHidden(number)]
    columns = sorted(shown, key=head.visualIndex)
    ranges = view.selectionModel().selection()
    chosen = {row for one in map(ranges.at, range(ranges.count())) for row in range(one.top(), one.bottom() + 1)}
    rows = sorted(chosen) or range(model.rowCount())
    titles = [str(model.headerData(one, Qt.Orientation.Horizontal) or "") for one in columns]
    lines = [titles, *([str(model.index(row, one).data() or "") for one in columns] for row in rows)]
    return "\n".join("\t".join(" ".join(cell.split()) for cell in line) for line in lines)


_SCHEMES = (("As the system", Scheme.SYSTEM), ("Light", Scheme.LIGHT), ("Dark", Scheme.DARK))
BEST = "auto"


class PreferencesDialog(QDialog):
    """Opened with ``open()``; every choice takes effect at once."""

    scheme_chosen = Signal(object)
    device_chosen = Signal(str)

    def __init__(self, actions: Sequence[tuple[str, Action]], parent: QWidget | None = None) -> None:
        """``actions``: further buttons, each with the title of its row."""
        super().__init__(parent)
        self.setWindowTitle("Preferences")
        self.scheme = build.combo("Theme", _SCHEMES)
        self.device = build.combo("Device", tip="Where models run. Another device loads the model again")
        self.folder = build.label(name="Data folder", selectable=True, wrapped=True)
        self.scheme.activated.connect(lambda _: self.scheme_chosen.emit(self.scheme.currentData()))
        self.device.activated.connect(lambda _: self.device_chosen.emit(self.device.currentData()))
        form = FormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for title, field in (("&Theme", self.scheme), ("&Device", self.device), ("Data folder", self.folder)):
            form.addRow(build.title_of(title, field), field)
        rows: dict[str, list[QWidget]] = {}
        for line, action in actions:
            rows.setdefault(line, []).append(ActionButton(action, action.text()))
        for line, found in rows.items():
            form.addRow(QLabel(line), build.row(*found))
        build.above_close(self, form)
        self.setMinimumWidth(38 * self.fontMetrics().height())

    def show_choices(
        self, scheme: Scheme, devices: Sequence[str], device: str, why_no_device: str, folder: str
    ) -> None:
        """Show the current choices; ``why_no_device``: why the device cannot be changed now, or ``""``."""
        self.scheme.setCurrentIndex(self.scheme.findData(scheme))
        offered = (BEST, *devices)
        if [self.device.itemData(one) for one in range(self.device.count())] != list(offered):
            self.device.clear()
            for one in offered:
                self.device.addItem("Best available" if one == BEST else one.upper(), one)
        self.device.setCurrentIndex(self.device.findData(device))
        self.device.setEnabled(not why_no_device)
        self.device.setToolTip(localised(why_no_device) or "Where models run. Another device loads the model again")
        self.folder.setText(folder)


_FIELDS = (QLineEdit, QPlainTextEdit, QTextEdit, QAbstractSpinBox, QComboBox)


class UndoKeys(QObject):
    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._field: QWidget | None = None
        application = QApplication.instance()
        if isinstance(application, QApplication):
            application.focusChanged.connect(self._follow)

    def _follow(self, _before: QWidget | None, focus: QWidget | None) -> None:
        if self._field is not None and isValid(self._field):
            self._field.removeEventFilter(self)
        self._field = focus if isinstance(focus, _FIELDS) else None
        if self._field is not None:
            self._field.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is not QEvent.Type.ShortcutOverride or not isinstance(event, QKeyEvent):
            return False
        undoes, redoes = (event.matches(one) for one in (QKeySequence.StandardKey.Undo, QKeySequence.StandardKey.Redo))
        if not (undoes or redoes) or not isinstance(watched, QWidget) or keeps(watched, redoes):
            return False
        event.ignore()
        return True


def keeps(field: QWidget, redoes: bool = False) -> bool:
    """Whether ``field`` itself has typing to undo, or to redo."""
    if isinstance(field, SpinBox | DoubleSpinBox):
        edit = field.lineEdit()
        return edit.text() != _taken_over(field) and keeps(edit, redoes)
    if isinstance(field, QComboBox):
        typed = field.lineEdit()
        return typed is not None and keeps(typed, redoes)
    if isinstance(field, QLineEdit):
        return not field.isReadOnly() and (field.isRedoAvailable() if redoes else field.isUndoAvailable())
    if isinstance(field, QPlainTextEdit | QTextEdit):
        document = field.document()
        return not field.isReadOnly() and (document.isRedoAvailable() if redoes else document.isUndoAvailable())
    return False


def _taken_over(box: SpinBox | DoubleSpinBox) -> str:
    """The box's text for its value while nothing is typed."""
    special = box.specialValueText()
    if special and box.value() == box.minimum():
        return special
    shown = box.textFromValue(box.value())  # type: ignore[arg-type]  # Each takes its own kind of number.
    return f"{box.prefix()}{shown}{box.suffix()}"


class EditPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._status, self._features = services.status, services.features
        actions = services.actions
        actions.bind(actions["copy_figures"], self.copy_figures)
        actions.bind(actions["find"], self.find)
        actions.bind(actions["preferences"], self.show_preferences)
        actions["preferences"].setMenuRole(QAction.MenuRole.PreferencesRole)
        self._keys = UndoKeys(self)

    def copy_figures(self) -> None:
        """Copy the figures at the focus. Raises :class:`PlainError` if there are none."""
        found = figures_at(QApplication.focusWidget())
        if found is None:
            raise PlainError("There are no figures to copy here; click a plot or a table first.")
        QGuiApplication.clipboard().setText(found.text)
        self._status.say(found.words)
        announce(self._window, found.words)

    def find(self) -> None:
        """Focus the search field of the current panel; if it has none, or is focused already, search everything."""
        focus = QApplication.focusWidget()
        field = _search_field(focus)
        if field is not None and field is not focus:
            field.setFocus(Qt.FocusReason.ShortcutFocusReason)
            field.selectAll()
            return
        build.show(FindDialog(list(self.entries()), self._window))

    def entries(self) -> Iterator[Entry]:
        for action in self._window.actions():
            if isinstance(action, Action) and action is not self._actions["find"]:
                yield self._action(action)
        load = self._actions.model_wanted.emit
        for model in catalogue.MODELS:
            yield Entry(model.title, "Model", model.family, model.summary, partial(load, model.id))
        for take in self._results.takes.all:
            said = f"“{take.text}”, {setting_text(take.setting)}"
            go = partial(self._go_to_take, take.id)
            yield Entry(label_of(take) or take.text, "Take", made_at(take), said, go, more=take.voice)
        glossary = self._features.find(GlossaryPresenter)
        for term in glossary.terms:
            yield Entry(term.label, "Term", term.owner, term.text, partial(glossary.show, term))

    def _action(self, action: Action) -> Entry:
        keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        return Entry(action.title, "Action", keys, action.tip or action.title, action.trigger, action.reason)

    def _go_to_take(self, take: str) -> None:
        takes = self._features.find(TakesPresenter).takes
        self._workspaces.go_to("takes")
        takes.go_to(take)

    def show_preferences(self) -> None:
        actions = self._actions
        lines = {"": ("data_folder", "choose_data_folder"), "Layout": ("unlock", "default_layout")}
        dialog = PreferencesDialog(
            [(line, actions[name]) for line, names in lines.items() for name in names], self._window
        )
        dialog.scheme_chosen.connect(self._theme.apply)
        dialog.device_chosen.connect(actions.device_wanted)
        self.refresh()
        build.show(dialog)

    def refresh(self) -> None:
        preferences = self._opened(PreferencesDialog)
        if preferences is None:
            return
        selection, running = self._state.selection, self._state.jobs.running
        preferences.show_choices(
            self._theme.scheme,
            self._state.machine.devices,
            selection.device_wanted,
            f"{running[0].kind.value} is running; wait for its end or cancel it." if running else "",
            str(self._results.library.folder.parent),
        )


def _search_field(focus: QWidget | None) -> QLineEdit | None:
    while focus is not None and not focus.isWindow() and not isinstance(focus, QMainWindow):
        for field in focus.findChildren(QLineEdit):
            if field.property(SEARCH) and field.isVisible():
                return field
        focus = focus.parentWidget()
    return None
