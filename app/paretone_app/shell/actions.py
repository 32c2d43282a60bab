"""Every action of the window with its wording and its shortcut; what an action does is bound by the presenter it
belongs to. Actions that one feature alone has are declared there, see :mod:`paretone_app.shell.entries`.

Menus, the guide and panels share these objects, so an action is enabled, explained and reached in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QKeySequence, QUndoStack
from PySide6.QtWidgets import QWidget

from paretone.errors import PlainError
from paretone_app.shell.entries import FeatureAction
from paretone_app.shell.places import WORKSPACES
from paretone_app.state.undo import redo_action, undo_action


class Actions(QObject):
    """The window's actions, as attributes; those that features declare are found by their names."""

    about_to_run = Signal()
    """An action is about to run: text that is still being typed must be committed first."""
    failed = Signal(str)
    """The sentence that says why an action could not be done."""
    model_wanted = Signal(str)
    """The id of the model that was chosen in the menu."""
    device_wanted = Signal(str)
    """The device that was chosen in the menu, ``auto`` for the best one."""

    def __init__(self, window: QWidget, undo_stack: QUndoStack, declared: Sequence[FeatureAction] = ()) -> None:
        super().__init__(window)
        self._window = window
        make = self.make
        self.baseline = make("Synthesise &baseline", "Speak the text without any technique", "Ctrl+B")
        self.accelerated = make("Synthesise &accelerated", "Speak the text with the techniques in use", "Ctrl+Return")
        self.cancel = make("Cance&l", "Cancel the running job", "Esc")
        self.export_profile = make("&Export profile…", "Save the setting with its measurements", "Ctrl+E")
        self.export_weights = make(
            "Export &student or draft…", "Save weights with fewer layers for other software", "Ctrl+Shift+E"
        )
        self.compare = make("&Play and switch A/B", "Play; while playing, switch between A and B", "Ctrl+Space")
        self.play = make("Play or pa&use", "Play or pause the current take", "Ctrl+P")
        self.undo = undo_action(undo_stack, "&Undo", window, self.about_to_run.emit)
        self.undo.setShortcut(QKeySequence.StandardKey.Undo)
        self.redo = redo_action(undo_stack, "&Redo", window)
        self.redo.setShortcut(QKeySequence("Ctrl+Shift+Z"))
        for action in (self.undo, self.redo):
            window.addAction(action)
        self.reload = make("&Reload", "Load the selected model again", "Ctrl+R")
        self.default_layout = make("&Default layout", "Restore the default layout", "Ctrl+0")
        self.unlock = make("&Move panels", "Show title bars, to move, float and close panels", "Ctrl+M")
        self.unlock.setCheckable(True)
        self.workspace = {
            one: make(one.title, one.tip, f"Ctrl+{index}") for index, one in enumerate(WORKSPACES, start=1)
        }
        """By workspace, what shows it."""
        self.next_region = make("Next &region", "Focus the message, or the next part of the window", "F6")
        self.previous_region = make("Pre&vious region", "Focus the part of the window before this one", "Shift+F6")
        self.message = make("Go to messa&ge", "Focus the newest message")
        self.maximise = make("Ma&ximise panel", "Show the panel with the focus alone, or all again", "F11")
        self.keys = make("&Keyboard", "All shortcuts", "Ctrl+Shift+F1")
        self.first_steps = make("&First steps", "What Paretone does, in five steps", "Shift+F1")
        self.about = make("&About Paretone", "Version, machine and licences")
        self.quit = make("&Quit", "Cancel all jobs and quit", "Ctrl+Q")
        self.quit.setMenuRole(QAction.MenuRole.QuitRole)
        self._declared = {one.name: make(one.text, one.tip, one.shortcut) for one in declared}
        for one in declared:
            self._declared[one.name].setCheckable(one.checkable)

    def __getitem__(self, name: str) -> QAction:
        """The action called ``name``, of a feature or of the window. Raises :class:`LookupError` if there is none."""
        found = self._declared[name] if name in self._declared else getattr(self, name, None)
        if not isinstance(found, QAction):
            raise LookupError(f"There is no action named {name!r}; declare it in its feature.")
        return found

    def why_not(self, keys: QKeySequence) -> str:
        """Why the action with the shortcut ``keys`` cannot be done now, as a sentence; ``""`` if it can, or if there is
        none."""
        for action in self._window.actions():
            if keys in action.shortcuts() and not action.isEnabled() and not keys.isEmpty():
                if action.toolTip() != action.statusTip():
                    return action.toolTip()
                return f"{action.text().replace('&', '').rstrip('…')} is not possible now."
        return ""

    def make(self, text: str, tip: str, shortcut: str = "") -> QAction:
        """An action of the window, which is reached by ``shortcut`` from every panel."""
        action = QAction(text, self._window)
        action.setToolTip(tip)
        action.setStatusTip(tip)
        if shortcut:
            action.setShortcut(QKeySequence(shortcut))
        self._window.addAction(action)
        return action

    def bind(self, action: QAction, do: Callable[[], object]) -> None:
        """Connect ``action`` to a function that may raise :class:`PlainError`, which is shown."""
        action.triggered.connect(lambda: self.attempt(do))

    def attempt(self, do: Callable[[], object]) -> None:
        """Do what the user asked for; a problem that the user can act on is reported by :attr:`failed`."""
        self.about_to_run.emit()
        try:
            do()
        except PlainError as error:
            self.failed.emit(str(error))
