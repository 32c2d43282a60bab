"""The window's actions: text, function, and the reason why each is disabled. Those in menus and palette are declared
here or by features; presenters bind their functions. :meth:`Actions.add` makes a panel's. Menus, guide, tour, *Find*
and buttons refer to the same objects."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QKeySequence, QUndoStack
from PySide6.QtWidgets import QWidget

from paretone.errors import told
from paretone_app.shell.entries import WORKSPACES, FeatureAction
from paretone_app.widgets.action import Action


class Actions(QObject):
    """The window's actions as attributes; actions of features by name, ``actions[name]``."""

    about_to_run = Signal()
    """About to run an action: commit text that is still being typed."""
    failed = Signal(str)
    model_wanted = Signal(str)
    device_wanted = Signal(str)

    def __init__(self, window: QWidget, undo_stack: QUndoStack, declared: Sequence[FeatureAction] = ()) -> None:
        super().__init__(window)
        self._window = window
        self._made: list[Action] = []
        make = self.make
        self.baseline = make("Synthesise &baseline", "Speak the text without any technique", "Ctrl+B")
        self.accelerated = make("Synthesise &accelerated", "Speak the text with the techniques in use", "Ctrl+Return")
        self.cancel = make("Cance&l", "Cancel the running job", "Esc")
        self.queue = make("&Queue", "What runs and what waits", "Ctrl+Shift+J")
        self.export_profile = make("&Export profile…", "Save the setting with its measurements", "Ctrl+E")
        self.export_weights = make(
            "Export &student or draft…", "Save weights with fewer layers for other software", "Ctrl+Shift+E"
        )
        self.compare = make("&Play and switch A/B", "Play; while playing, switch between A and B", "Ctrl+Space")
        self.play = make("Play or pa&use", "Play or pause the current take", "Ctrl+P")
        self.undo = StackAction(undo_stack, "undo", "&Undo", window, self.about_to_run.emit)
        self.undo.setShortcut(QKeySequence.StandardKey.Undo)
        self.redo = StackAction(undo_stack, "redo", "&Redo", window)
        self.redo.setShortcut(QKeySequence("Ctrl+Shift+Z"))
        for action in (self.undo, self.redo):
            window.addAction(action)
        self.reload = make("&Reload", "Load the selected model again", "Ctrl+R")
        self.default_layout = make("&Default layout", "Restore the default layout", "Ctrl+0")
        self.unlock = make("&Move panels", "Show title bars, to move, float and close panels", "Ctrl+M", checkable=True)
        self.workspace = {
            one: make(one.title, one.tip, f"Ctrl+{index}") for index, one in enumerate(WORKSPACES, start=1)
        }
        self.next_region = make("Next &region", "Focus the message, or the next part of the window", "F6")
        self.previous_region = make("Pre&vious region", "Focus the part of the window before this one", "Shift+F6")
        self.message = make("Go to messa&ge", "Focus the newest message")
        self.maximise = make("Ma&ximise panel", "Show the panel with the focus alone, or all again", "F11")
        self.keys = make("&Keyboard", "All shortcuts", "Ctrl+Shift+F1")
        self.first_steps = make("&First steps", "What Paretone does, in five steps", "Shift+F1")
        self.about = make("&About Paretone", "Version, machine and licences")
        self.quit = make("&Quit", "Quit; what runs or waits is kept in the queue", "Ctrl+Q")
        self.quit.setMenuRole(QAction.MenuRole.QuitRole)
        self._declared = {one.name: make(one.text, one.tip, one.shortcut, one.checkable) for one in declared}

    def __getitem__(self, name: str) -> Action:
        """The action called ``name``, of a feature or of the window. Raises :class:`LookupError` if there is none."""
        found = self._declared[name] if name in self._declared else getattr(self, name, None)
        if not isinstance(found, Action):
            raise LookupError(f"There is no action named {name!r}; declare it in its feature.")
        return found

    def why_not(self, keys: QKeySequence) -> str:
        """Why the action with the shortcut ``keys`` is disabled, as a sentence, or ``""`` if it is not."""
        for action in self._window.actions():
            if isinstance(action, Action) and action.reason and keys in action.shortcuts() and not keys.isEmpty():
                return action.reason
        return ""

    def make(self, text: str, tip: str, shortcut: str = "", checkable: bool = False) -> Action:
        """An action of the window; ``shortcut`` works in every panel."""
        action = Action(text, tip, shortcut, self._window, checkable=checkable, in_menu=True)
        self._window.addAction(action)
        self._made.append(action)
        return action

    def add(
        self,
        text: str,
        do: Callable[[], object],
        tip: str = "",
        why_not: Callable[[], str] | None = None,
        *,
        checkable: bool = False,
    ) -> Action:
        action = Action(text, tip, parent=self, checkable=checkable)
        self._made.append(action)
        self.bind(action, do, why_not)
        return action

    def bind(self, action: Action, do: Callable[[], object], why_not: Callable[[], str] | None = None) -> None:
        """Connect ``action`` to ``do``, whose :class:`PlainError` is shown; ``why_not``: the reason to disable it."""
        action.triggered.connect(lambda: self.attempt(do))
        if why_not is not None:
            action.explain(why_not)

    def refresh(self) -> None:
        for action in self._made:
            action.refresh()

    def attempt(self, do: Callable[[], object]) -> None:
        self.about_to_run.emit()
        with told(self.failed.emit):
            do()


class StackAction(Action):
    """Undoes or redoes (``verb``) the last command of ``stack``, which it names. ``first`` runs before: it commits text
    that is still being typed, which is then the last command. Connected to its own methods only: Qt drops such
    connections with the action, even if the stack outlives the window. ``QUndoStack.createUndoAction`` is not used: in
    long sessions Python's wrappers of actions made by Qt ended before the actions, and every use raised."""

    def __init__(
        self, stack: QUndoStack, verb: str, title: str, owner: QObject, first: Callable[[], object] = lambda: None
    ) -> None:
        tip = f"{verb.capitalize()} the last change of the setting, the takes or the view"
        super().__init__(title, tip, parent=owner, in_menu=True)
        self._title, self._verb, self._first = title, verb, first
        undoes = verb == "undo"
        self._do = stack.undo if undoes else stack.redo
        self.setEnabled(stack.canUndo() if undoes else stack.canRedo())
        self.name(stack.undoText() if undoes else stack.redoText())
        (stack.canUndoChanged if undoes else stack.canRedoChanged).connect(self.setEnabled)
        (stack.undoTextChanged if undoes else stack.redoTextChanged).connect(self.name)
        self.triggered.connect(self._run)

    def name(self, command: str) -> None:
        """Show the name of the command; ``""`` if the stack is empty."""
        self.setText(f"{self._title}: {command}" if command else self._title)
        self.setToolTip(f"{self._verb.capitalize()}: {command}" if command else f"Nothing to {self._verb}.")

    def _run(self) -> None:
        self._first()
        self._do()
