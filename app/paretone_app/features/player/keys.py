"""The player's keys, the same in every panel: those that what has the focus needs for itself are left to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QButtonGroup,
    QComboBox,
    QGroupBox,
    QLineEdit,
    QMenuBar,
    QPlainTextEdit,
    QScrollArea,
    QTabBar,
    QTextEdit,
    QWidget,
)
from shiboken6 import isValid

from paretone_app.audio.deck import Deck
from paretone_app.features.player.strip import WaveStrip

STEP_SECONDS = 0.25
SMALL_STEP_SECONDS = 0.02
_MOVES = frozenset({"Left", "Right", "Shift+Left", "Shift+Right", "Home"})
_SPACE = frozenset({"Space"})
_ALL = frozenset({"A", "B", "X", "S", "L", "M", "N", "[", "]"}) | _MOVES | _SPACE


class PlayerKeys(QObject):
    """Shortcuts of ``window``. Text fields, lists and whatever else uses a key keep it while they have the focus."""

    def __init__(
        self, window: QWidget, deck: Deck, others: Mapping[str, Callable[[], object]], parent: QObject | None = None
    ) -> None:
        """``others`` are keys, M and N, with what they do."""
        super().__init__(parent or window)
        self._deck = deck
        actions = {**_actions(deck), **others}
        self._shortcuts = {key: self._shortcut(window, key, do) for key, do in actions.items()}
        deck.lent_changed.connect(lambda _: self._leave_keys(None, QApplication.focusWidget()))
        application = QApplication.instance()
        if isinstance(application, QApplication):
            application.focusChanged.connect(self._leave_keys)

    @staticmethod
    def _shortcut(window: QWidget, key: str, do: Callable[[], object]) -> QShortcut:
        shortcut = QShortcut(QKeySequence(key), window)
        shortcut.activated.connect(do)
        return shortcut

    @Slot(QWidget, QWidget)
    def _leave_keys(self, _before: QWidget | None, focus: QWidget | None) -> None:
        """Leave to what has the focus the keys that it needs; during a listening test, all of them."""
        kept = _ALL if self._deck.lent else own_keys(focus)
        for key, shortcut in self._shortcuts.items():
            if isValid(shortcut):
                shortcut.setEnabled(key not in kept)


def _actions(deck: Deck) -> Mapping[str, Callable[[], object]]:
    return {
        "A": lambda: deck.choose("A"),
        "B": lambda: deck.choose("B"),
        "X": deck.switch,
        "Space": deck.toggle_play,
        "S": deck.stop,
        "L": deck.toggle_loop,
        "[": lambda: deck.set_loop_end(0),
        "]": lambda: deck.set_loop_end(1),
        "Left": lambda: deck.move(-STEP_SECONDS),
        "Right": lambda: deck.move(STEP_SECONDS),
        "Shift+Left": lambda: deck.move(-SMALL_STEP_SECONDS),
        "Shift+Right": lambda: deck.move(SMALL_STEP_SECONDS),
        "Home": deck.go_to_start,
    }


def own_keys(widget: QWidget | None) -> frozenset[str]:
    """The keys of the player that ``widget`` uses itself. Painted widgets keep theirs without being asked."""
    match widget:
        case None | WaveStrip():
            return frozenset()
        case QPlainTextEdit() | QTextEdit() if widget.isReadOnly():
            own = _MOVES
        case QLineEdit() | QPlainTextEdit() | QTextEdit() | QAbstractSpinBox() | QComboBox() | QMenuBar():
            own = _ALL
        case QAbstractItemView():
            # Letters search in it.
            own = _ALL - {"[", "]"}
        case QAbstractButton():
            own = _SPACE | (_MOVES if _is_one_of_several(widget) else frozenset())
        case QGroupBox() if widget.isCheckable():
            own = _SPACE
        case QAbstractSlider() | QTabBar() | QScrollArea():
            own = _MOVES
        case _:
            own = frozenset()
    return own | {key for action in widget.actions() for key in _ALL if QKeySequence(key) in action.shortcuts()}


def _is_one_of_several(button: QAbstractButton) -> bool:
    """Whether the arrow keys go from this button to others, of which one is chosen."""
    group: QButtonGroup | None = button.group()
    return button.autoExclusive() or (group is not None and group.exclusive())
