"""Every action of the window with its wording and its shortcut; what an action does is bound by the presenter it
belongs to. Actions that one feature alone has are declared there, see :mod:`app.shell.entries`.

Menus, the guide and panels share these objects, so an action is enabled, explained and reached in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QKeySequence, QUndoStack
from PySide6.QtWidgets import QWidget

from app.shell.entries import FeatureAction
from app.shell.places import WORKSPACES
from app.state.undo import redo_action, undo_action
from engine.errors import PlainError


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

    def __init__(self, window: QWidget, undo_stack: QUndoStack, declared: Iterable[FeatureAction] = ()) -> None:
        super().__init__(window)
        self._window = window
        make = self.make
        self.baseline = make("Synthesise &baseline", "Speak the text without any technique", "Ctrl+B")
        self.accelerated = make("Synthesise &accelerated", "Speak the text with the engaged techniques", "Ctrl+Return")
        self.cancel = make("Cance&l", "Cancel the running job", "Esc")
        self.export_profile = make("&Export profile…", "Save the setting with its measurements", "Ctrl+E")
        self.export_weights = make(
            "Export &student or draft…", "Save weights with fewer layers for other software", "Ctrl+Shift+E"
        )
        self.compare = make("&Play and switch A/B", "Play; while playing, switch between A and B", "Ctrl+Space")
        self.play = make("Play or pa&use", "Play or pause the current take", "Ctrl+P")
        self.set_a = make("Set selected take as &A", "Compare with this take as A", "F7")
        self.set_b = make("Set selected take as &B", "Compare with this take as B", "F8")
        self.swap = make("S&wap A and B", "Swap A and B", "F9")
        self.listening_test = make("Listening &test…", "Test blindly whether a difference is audible", "Ctrl+L")
        self.save_wav = make("Save A and B as &WAV…", "Save both takes in a folder", "Ctrl+Shift+S")
        self.new_study = make("&New study…", "Choose settings, sentences, voices and judges", "Ctrl+N")
        self.open_study = make("&Open study…", "Open a study file", "Ctrl+Shift+U")
        self.open_study_folder = make("Open study &folder…", "Open a folder with results", "Ctrl+Alt+U")
        self.run_study = make("&Run or resume study", "Run the remaining takes of this study", "F5")
        self.pause_study = make("&Pause study", "Finish the current takes, then stop", "Shift+F5")
        self.use_study_setting = make("&Use setting", "Load the selected setting into Setup", "Ctrl+J")
        self.report_study = make("&Write report", "Write a page and tables, and open the page", "Ctrl+F5")
        self.close_study = make("&Close study", "Close this study; its files stay", "Ctrl+W")
        self.point_hear = make("&Hear point", "Play the point selected in Trade-off", "Ctrl+H")
        self.point_a = make("Set point as &A", "Compare the point selected in Trade-off as A", "Shift+F7")
        self.point_b = make("Set point as &B", "Compare the point selected in Trade-off as B", "Shift+F8")
        self.point_keep = make("Add point to &Takes", "Copy the study's take into Takes", "Ctrl+6")
        self.point_use = make("&Use point in Setup", "Load the point's setting, with its strategy table", "Ctrl+7")
        self.front_back = make("Bac&k along the front", "Select the next point to the left on the front", "Ctrl+[")
        self.front_on = make("&On along the front", "Select the next point to the right on the front", "Ctrl+]")
        self.point_looks = tuple(
            make(title, tip)
            for title, tip in (
                ("Show &dominated points", "Also show points beaten on both axes"),
                ("Show &intervals", "95 % bootstrap intervals over sentences"),
                ("Show &ratios", "Divide figures by those of each point's baseline"),
                ("Show &published results", "Results of five papers, as ratios to their baselines"),
                ("&Logarithmic X axis", "Logarithmic X axis, for figures above 0"),
                ("Lo&garithmic Y axis", "Logarithmic Y axis, for figures above 0"),
            )
        )
        for one in self.point_looks:
            one.setCheckable(True)
        self.point_nearer = make("&Zoom in", "Zoom Trade-off in around the selected point")
        self.point_farther = make("Zoo&m out", "Zoom Trade-off out")
        self.point_everything = make("Show &everything", "Show all points of Trade-off")
        self.point_files = tuple(
            make(f"Export as {ending}…", f"Save the Trade-off view as {ending}") for ending in ("SVG", "PNG", "CSV")
        )
        self.undo = undo_action(undo_stack, "&Undo", window)
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
        self.message = make("Go to messa&ge", "Focus the message above the panels")
        self.maximise = make("Ma&ximise panel", "Show the panel with the focus alone, or all again", "F11")
        self.keys = make("&Keyboard", "All shortcuts", "F1")
        self.first_steps = make("&First steps", "What Paretone does, in five steps", "Shift+F1")
        self.about = make("&About Paretone", "Version, machine and licences")
        self.data_folder = make("Open data &folder", "Open the folder of takes and calibrations", "Ctrl+Shift+D")
        self.choose_data_folder = make("&Choose data folder…", "Keep takes and calibrations in another folder")
        self.quit = make("&Quit", "Cancel all jobs and quit", "Ctrl+Q")
        self.quit.setMenuRole(QAction.MenuRole.QuitRole)
        self._declared = {one.name: make(one.text, one.tip, one.shortcut) for one in declared}

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
                title = action.text().replace("&", "").rstrip("…")
                explained = action.toolTip() if action.toolTip() != action.statusTip() else "not possible now."
                return f"{title}: {explained}"
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
