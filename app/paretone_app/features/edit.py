"""The Edit menu: copy figures; find in a panel; preferences; undo keys of the focused field."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAction, QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDialog,
    QDockWidget,
    QLabel,
    QLineEdit,
    QMainWindow,
    QPlainTextEdit,
    QTableView,
    QTextEdit,
    QToolBar,
    QTreeView,
    QWidget,
)
from shiboken6 import isValid

from paretone.errors import PlainError
from paretone_app.features.presenter import Presenter, Services
from paretone_app.numbers import counted
from paretone_app.shell.entries import SEARCH
from paretone_app.shell.theme import Scheme
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.boxes import DoubleSpinBox, SpinBox
from paretone_app.widgets.layouts import FormLayout
from paretone_app.widgets.screen_readers import announce


@runtime_checkable
class Copyable(Protocol):
    def as_text(self) -> str:
        """All values, tab-separated, with the titles on the first line."""


_FIGURES = Copyable | QTableView | QTreeView


def _with_figures(focus: QWidget | None) -> QWidget | None:
    """The focused plot or table, else the largest in its panel."""
    around = focus
    while around is not None and not isinstance(around, _FIGURES):
        if around.isWindow():
            return None
        if isinstance(around.parentWidget(), QDockWidget | QToolBar):
            found = [one for one in around.findChildren(QWidget) if one.isVisible() and isinstance(one, _FIGURES)]
            return max(found, key=lambda one: one.width() * one.height(), default=None)
        around = around.parentWidget()
    return around


def _figures(view: QWidget) -> str:
    """Tab-separated values of a plot or table; of a table with selected rows, only these."""
    if isinstance(view, Copyable):
        return view.as_text()
    assert isinstance(view, QTableView | QTreeView)
    if (model := view.model()) is None or not model.rowCount():
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


class PreferencesDialog(QDialog):
    """Opened with ``open()``; every choice takes effect at once."""

    def __init__(self, actions: Sequence[tuple[str, Action]], parent: QWidget | None = None) -> None:
        """``actions``: further buttons, each with the title of its row."""
        super().__init__(parent)
        self.setWindowTitle("Preferences")
        self.scheme = build.combo("Theme", _SCHEMES)
        self.device = build.combo("Device", tip="Where models run. Another device loads the model again")
        self.folder = build.label(name="Data folder", selectable=True, wrapped=True)
        form = FormLayout()
        for title, field in (("&Theme", self.scheme), ("&Device", self.device), ("Data folder", self.folder)):
            form.addRow(build.title_of(title, field), field)
        rows: dict[str, list[QWidget]] = {}
        for line, action in actions:
            rows.setdefault(line, []).append(ActionButton(action, action.text()))
        for line, found in rows.items():
            form.addRow(QLabel(line), build.row(*found))
        build.above_close(self, form)
        self.setMinimumWidth(38 * self.fontMetrics().height())

    def show_choices(self, scheme: Scheme, devices: Sequence[str], device: str, folder: str) -> None:
        self.scheme.setCurrentIndex(self.scheme.findData(scheme))
        build.offer(self.device, [("Best available", "auto"), *((one.upper(), one) for one in devices)], device)
        self.folder.setText(folder)


_FIELDS = (QLineEdit, QPlainTextEdit, QTextEdit, QAbstractSpinBox, QComboBox)
_OURS = (QKeySequence("Ctrl+E"), QKeySequence("Ctrl+K"))  # On X11, fields go to a line's end and delete it with these.


class UndoKeys(QObject):
    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._field: QWidget | None = None
        if isinstance(application := QApplication.instance(), QApplication):
            application.focusChanged.connect(self._follow)

    def _follow(self, _before: QWidget | None, focus: QWidget | None) -> None:
        if self._field is not None and isValid(self._field):
            self._field.removeEventFilter(self)
        self._field = focus if isinstance(focus, _FIELDS) else None
        if self._field is not None:
            self._field.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not isinstance(event, QKeyEvent) or not isinstance(watched, QWidget):
            return False
        ours = QKeySequence(event.keyCombination()) in _OURS  # Pressed, too: their action may be disabled.
        undoes, redoes = (event.matches(one) for one in (QKeySequence.StandardKey.Undo, QKeySequence.StandardKey.Redo))
        asked = event.type() is QEvent.Type.ShortcutOverride and (undoes or redoes)
        if gives_up := ours or (asked and not keeps(watched, redoes)):
            event.ignore()
        return gives_up


def keeps(field: QWidget, redoes: bool = False) -> bool:
    """Whether ``field`` itself has typing to undo, or to redo."""
    if isinstance(field, SpinBox | DoubleSpinBox):
        edit, special = field.lineEdit(), field.specialValueText()
        shown = field.textFromValue(field.value())  # type: ignore[arg-type]  # Each takes its own kind of number.
        least = special and field.value() == field.minimum()
        return edit.text() != (special if least else f"{field.prefix()}{shown}{field.suffix()}") and keeps(edit, redoes)
    if isinstance(field, QComboBox):
        typed = field.lineEdit()
        return typed is not None and keeps(typed, redoes)
    if isinstance(field, QLineEdit | QPlainTextEdit | QTextEdit):
        typed = field if isinstance(field, QLineEdit) else field.document()
        return not field.isReadOnly() and (typed.isRedoAvailable() if redoes else typed.isUndoAvailable())
    return False


class EditPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._status = services.status
        actions = services.actions
        actions.bind(actions["copy_figures"], self.copy_figures)
        actions.bind(actions["find"], self.find)
        actions.bind(actions["preferences"], self.show_preferences)
        actions["preferences"].setMenuRole(QAction.MenuRole.PreferencesRole)
        self._keys = UndoKeys(self)

    def copy_figures(self) -> None:
        """Copy the figures at the focus. Raises :class:`PlainError` if there are none."""
        found = _with_figures(QApplication.focusWidget())
        text = "" if found is None else _figures(found)
        if found is None or not text.strip():
            raise PlainError("There are no figures to copy here; click a plot or a table first.")
        QGuiApplication.clipboard().setText(text)
        rows = counted(len(text.splitlines()) - 1, "row", "rows")
        said = f"Copied {found.accessibleName() or 'the table'}: {rows}."
        self._status.say(said)
        announce(self._window, said)

    def find(self) -> None:
        """Focus the search field of the current panel; if it has none, or is focused already, open the palette."""
        focus = around = QApplication.focusWidget()
        field: QLineEdit | None = None
        while field is None and around is not None and not around.isWindow() and not isinstance(around, QMainWindow):
            inside = around.findChildren(QLineEdit)
            field = next((one for one in inside if one.property(SEARCH) and one.isVisible()), None)
            around = around.parentWidget()
        if field is None or field is focus:
            self._actions["palette"].trigger()
        else:
            field.setFocus(Qt.FocusReason.ShortcutFocusReason)
            field.selectAll()

    def show_preferences(self) -> None:
        actions = self._actions
        lines = {"": ("data_folder", "choose_data_folder"), "Layout": ("unlock", "default_layout")}
        dialog = PreferencesDialog(
            [(line, actions[name]) for line, names in lines.items() for name in names], self._window
        )
        dialog.scheme.activated.connect(lambda _: self._theme.apply(dialog.scheme.currentData()))
        dialog.device.activated.connect(lambda _: actions.device_wanted.emit(dialog.device.currentData()))
        self.refresh()
        build.show(dialog)

    def refresh(self) -> None:
        preferences, folder = self._opened(PreferencesDialog), str(self._results.library.folder.parent)
        if preferences is not None:
            wanted = self._state.selection.device_wanted
            preferences.show_choices(self._theme.scheme, self._state.machine.devices, wanted, folder)
