"""Every action of the window with its wording and its shortcut; what an action does is bound by the desk it belongs to.

Menus, the guide and panels share these objects, so an action is enabled, explained and reached in one place.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QKeySequence, QUndoStack
from PySide6.QtWidgets import QWidget

from engine.errors import PlainError


class Actions(QObject):
    """The window's actions, as attributes."""

    about_to_run = Signal()
    """An action is about to do something: whatever is still being typed has to be taken over first."""
    failed = Signal(str)
    """The sentence that says why an action could not be done."""

    def __init__(self, window: QWidget, undo_stack: QUndoStack) -> None:
        super().__init__(window)
        self._window = window
        make = self.make
        self.baseline = make("Synthesise &baseline", "Speak the text with every module computed", "Ctrl+B")
        self.calibrate = make("&Calibrate", "Find out what may be skipped under the threshold", "Ctrl+K")
        self.calibrate_on = make(
            "Calibrate on se&veral…", "Choose sentences and voices to calibrate on together", "Ctrl+Shift+B"
        )
        self.accelerated = make("Synthesise &accelerated", "Speak the text with the engaged techniques", "Ctrl+Return")
        self.cancel = make("Ca&ncel", "Cancel what runs", "Esc")
        self.export_profile = make("&Export profile…", "Write the setting with its evidence for elsewhere", "Ctrl+E")
        self.export_weights = make(
            "Export &student or draft…", "Write weights with fewer layers as others load them", "Ctrl+Shift+E"
        )
        self.compare = make("&Play and switch A/B", "Play; while playing, switch between A and B", "Ctrl+Space")
        self.play = make("Play or &pause", "Play or pause the sounding take", "Ctrl+P")
        self.set_a = make("Set selected take as &A", "Compare with this take as A", "Ctrl+1")
        self.set_b = make("Set selected take as &B", "Compare with this take as B", "Ctrl+2")
        self.swap = make("S&wap A and B", "Exchange A and B", "Ctrl+3")
        self.listening_test = make("Listening &test…", "Find out blindly whether a difference can be heard", "Ctrl+L")
        self.save_wav = make("Save A and B as &WAV…", "Write both takes into a folder", "Ctrl+Shift+S")
        self.import_table = make("&Import official table…", "Read the official code's JSON file", "Ctrl+O")
        self.export_table = make("E&xport official table…", "Write the official code's JSON file", "Ctrl+Shift+O")
        self.skip_nothing = make("Skip &nothing", "Start from a table that computes everything", "Ctrl+Shift+N")
        self.undo = undo_stack.createUndoAction(window, "&Undo")
        self.undo.setShortcut(QKeySequence.StandardKey.Undo)
        self.redo = undo_stack.createRedoAction(window, "&Redo")
        self.redo.setShortcut(QKeySequence("Ctrl+Shift+Z"))
        for action in (self.undo, self.redo):
            window.addAction(action)
        self.reload = make("&Reload", "Load the chosen model again", "Ctrl+R")
        self.default_layout = make("&Default layout", "Put all panels where they were at first", "Ctrl+0")
        self.unlock = make("&Move panels", "Show title bars to move, float and close panels", "Ctrl+M")
        self.unlock.setCheckable(True)
        self.message = make(
            "Go to &message", "Put the focus into the message above the panels, or on its answers", "F6"
        )
        self.keys = make("&Keyboard", "Every shortcut", "F1")
        self.first_steps = make("&First steps", "What Paretone does, in five steps", "Shift+F1")
        self.about = make("&About Paretone", "Version, machine and licences")
        self.data_folder = make("Open data &folder", "Where takes and calibrations are kept", "Ctrl+Shift+D")
        self.quit = make("&Quit", "Cancel what runs and close", "Ctrl+Q")
        self.quit.setMenuRole(QAction.MenuRole.QuitRole)

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
        """Have ``action`` do something that the user may have to be told cannot be done."""
        action.triggered.connect(lambda: self.attempt(do))

    def attempt(self, do: Callable[[], object]) -> None:
        """Do what the user asked for; a problem that the user can act on is told by :attr:`failed`."""
        self.about_to_run.emit()
        try:
            do()
        except PlainError as error:
            self.failed.emit(str(error))
