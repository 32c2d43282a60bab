"""The Edit menu's presenter: copies figures, finds, opens the preferences; undo keys belong to what has the focus."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QApplication, QLineEdit, QMainWindow, QWidget

from paretone.errors import PlainError
from paretone.models import catalogue
from paretone_app.features.edit.copying import figures_at
from paretone_app.features.edit.finding import Entry, FindDialog
from paretone_app.features.edit.preferences import PreferencesDialog
from paretone_app.features.edit.undo_keys import UndoKeys
from paretone_app.features.glossary.presenter import GlossaryPresenter
from paretone_app.features.presenter import Presenter, Services
from paretone_app.features.takes.presenter import TakesPresenter
from paretone_app.features.takes.table import made_at
from paretone_app.shell.entries import SEARCH
from paretone_app.state.differences import label_of, setting_text
from paretone_app.widgets.screen_readers import announce


class EditPresenter(Presenter):
    """Owns the dialogs, which are there while they are open."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._status, self._features = services.status, services.features
        self.finder: FindDialog | None = None
        """The dialog, while it is open."""
        self.preferences: PreferencesDialog | None = None
        """The dialog, while it is open."""
        actions = services.actions
        actions.bind(actions["copy_figures"], self.copy_figures)
        actions.bind(actions["find"], self.find)
        actions.bind(actions["preferences"], self.show_preferences)
        actions["preferences"].setMenuRole(QAction.MenuRole.PreferencesRole)
        self._keys = UndoKeys(self)

    # --- Copying ----------------------------------------------------------------------------------------------------
    def copy_figures(self) -> None:
        """Copy the figures at the focus. Raises :class:`PlainError` if there are none."""
        found = figures_at(QApplication.focusWidget())
        if found is None:
            raise PlainError("There are no figures to copy here; click a plot or a table first.")
        QGuiApplication.clipboard().setText(found.text)
        self._status.say(found.words)
        announce(self._window, found.words)

    # --- Finding ----------------------------------------------------------------------------------------------------
    def find(self) -> None:
        """Put the focus into the search field of the panel with the focus; if it has none, or has the focus, open the
        list of everything."""
        focus = QApplication.focusWidget()
        field = _search_field(focus)
        if field is not None and field is not focus:
            field.setFocus(Qt.FocusReason.ShortcutFocusReason)
            field.selectAll()
            return
        self.finder = FindDialog(list(self.entries()), self._window)
        self.finder.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.finder.destroyed.connect(self._finder_gone)
        self.finder.open()

    def entries(self) -> Iterator[Entry]:
        """Everything that can be found now."""
        for action in self._window.actions():
            if action.text() and action is not self._actions["find"]:
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
            title = " ".join(filter(None, (term.title, term.symbol)))
            yield Entry(title, "Term", term.owner, term.text, partial(glossary.show, term))

    def _action(self, action: QAction) -> Entry:
        title = action.text().replace("&", "").rstrip("…")
        keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        meaning = action.statusTip() or title
        why_not = ""
        if not action.isEnabled():
            why_not = action.toolTip() if action.toolTip() != action.statusTip() else "Not possible now."
        return Entry(title, "Action", keys, meaning, action.trigger, why_not)

    def _go_to_take(self, take: str) -> None:
        takes = self._features.find(TakesPresenter).takes
        self._workspaces.go_to("takes")
        takes.go_to(take)

    @Slot()
    def _finder_gone(self) -> None:
        self.finder = None

    # --- Preferences ------------------------------------------------------------------------------------------------
    def show_preferences(self) -> None:
        """Open the preferences."""
        actions = self._actions
        lines = {"": ("data_folder", "choose_data_folder"), "Layout": ("unlock", "default_layout")}
        dialog = PreferencesDialog(
            [(line, actions[name]) for line, names in lines.items() for name in names], self._window
        )
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.scheme_chosen.connect(self._theme.apply)
        dialog.device_chosen.connect(actions.device_wanted)
        dialog.destroyed.connect(self._preferences_gone)
        self.preferences = dialog
        self.refresh()
        dialog.open()

    def refresh(self) -> None:
        if self.preferences is None:
            return
        selection, running = self._state.selection, self._state.jobs.running
        self.preferences.show_choices(
            self._theme.scheme,
            self._state.machine.devices,
            selection.device_wanted,
            f"{running[0].kind.value} is running; wait for its end or cancel it." if running else "",
            str(self._results.library.folder.parent),
        )

    @Slot()
    def _preferences_gone(self) -> None:
        self.preferences = None


def _search_field(focus: QWidget | None) -> QLineEdit | None:
    """The visible search field of the panel around ``focus``."""
    while focus is not None and not focus.isWindow() and not isinstance(focus, QMainWindow):
        for field in focus.findChildren(QLineEdit):
            if field.property(SEARCH) and field.isVisible():
                return field
        focus = focus.parentWidget()
    return None
