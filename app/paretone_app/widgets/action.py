"""What the user can do, and the buttons that do it. An action owns its words, its shortcut, and whether it can be done
now and why not; menus, buttons and *Find* only show it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QCheckBox, QMenu, QPushButton, QToolButton, QWidget

from paretone_app.numbers import localised


class Action(QAction):
    """Enabled unless there is a reason against it, which its tooltip says then."""

    def __init__(
        self,
        text: str,
        tip: str = "",
        shortcut: str = "",
        parent: QObject | None = None,
        *,
        checkable: bool = False,
        in_menu: bool = False,
    ) -> None:
        """``in_menu``: its mnemonic is that of a menu's entry, and its buttons have none."""
        super().__init__(text, parent, checkable=checkable)
        self.in_menu = in_menu
        self._reasons: list[Callable[[], str]] = []
        self.setStatusTip(tip)
        self.setToolTip(tip)
        if shortcut:
            self.setShortcut(QKeySequence(shortcut))

    @property
    def tip(self) -> str:
        """What it does, in a sentence without its stop."""
        return self.statusTip()

    @property
    def title(self) -> str:
        """Its text in a sentence or a list."""
        return self.text().replace("&", "").rstrip("…")

    @property
    def reason(self) -> str:
        """Why it cannot be done now, as a sentence; ``""`` if it can."""
        return "" if self.isEnabled() else self.toolTip()

    def explained(self) -> str:
        """What it does, with the keys, or why it cannot be done now: for the tooltip of a button."""
        if not self.isEnabled():
            return self.toolTip()
        keys = self.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        # Without a tip, Qt's would repeat the text.
        return f"{self.toolTip()} ({keys})" if keys else self.toolTip() if self.tip else ""

    def explain(self, why_not: Callable[[], str]) -> None:
        """``why_not`` gives a reason against it, or ``""``; it comes after the reasons of earlier calls.
        :meth:`refresh` asks for it."""
        self._reasons.append(why_not)

    @Slot()
    def refresh(self) -> None:
        """Ask for the reasons again."""
        if self._reasons:
            self.set_reason(next(filter(None, (why_not() for why_not in self._reasons)), ""))

    def set_reason(self, reason: str) -> None:
        """Enable it, or disable it for ``reason``."""
        if self.isEnabled() is bool(reason):
            self.setEnabled(not reason)
        tip = localised(reason) or self.tip
        if self.toolTip() != tip:
            self.setToolTip(tip)

    def set_tip(self, tip: str) -> None:
        """Say what it does in other words."""
        if tip != self.tip:
            reason = self.reason
            self.setStatusTip(tip)
            self.setToolTip(reason or tip)


class ActionButton(QPushButton):
    """Shows an action. Looks like other buttons, which those of Qt that follow actions do not."""

    instead: QWidget | None = None
    """Where the focus goes when the button that has it is disabled, rather than to whatever comes next."""

    def __init__(
        self,
        action: Action,
        text: str | None = None,
        look: str = "",
        name: str = "",
        parent: QWidget | None = None,
        *,
        letter: bool = True,
    ) -> None:
        """``text``, and ``name`` for screen readers: if those of the action say too little or too much here; ``""`` for
        a button with an icon alone. Without ``letter``, the action's reaches another button."""
        super().__init__(parent)
        self._letter = letter and not action.in_menu
        self.action = action
        self._text, self._name, self._reason = text, name, ""
        if look:
            self.setProperty("look", look)
        self.setCheckable(action.isCheckable())
        self.clicked.connect(action.trigger)
        action.changed.connect(self._follow)
        self._follow()

    def set_text(self, text: str) -> None:
        """Another text, while the action does something else."""
        self._text = text
        self._follow()

    def set_reason(self, reason: str) -> None:
        """Why it is disabled in this place even if the action is enabled; ``""``: only the action decides."""
        self._reason = localised(reason)
        self._follow()

    def focusNextPrevChild(self, forward: bool) -> bool:
        if self.isEnabled() or self.instead is None or not self.instead.isVisible():
            return super().focusNextPrevChild(forward)
        self.instead.setFocus(Qt.FocusReason.OtherFocusReason)
        return True

    @Slot()
    def _follow(self) -> None:
        action = self.action
        own = action.text() if self._letter else action.title
        self.setText(own if self._text is None else self._text)
        self.setAccessibleName(self._name or self.text().replace("&", "") or action.title)
        self.setEnabled(action.isEnabled() and not self._reason)
        self.setToolTip(self._reason or action.explained())
        self.setChecked(action.isChecked())


class ActionBox(QCheckBox):
    """Shows a checkable action."""

    def __init__(self, action: Action, text: str, parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.action = action
        self.setAccessibleName(action.title)
        self.toggled.connect(action.setChecked)
        action.changed.connect(self._follow)
        self._follow()

    @Slot()
    def _follow(self) -> None:
        self.setChecked(self.action.isChecked())
        self.setToolTip(self.action.explained())


class MenuButton(QPushButton):
    """Offers actions in a menu; disabled while none can be done, for the reason of the first."""

    def __init__(self, text: str, tip: str, actions: Sequence[Action], parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self._tip, self._offered = tip, tuple(actions)
        menu = QMenu(self)
        menu.addActions(self._offered)
        self.setMenu(menu)
        for action in self._offered:
            action.changed.connect(self._follow)
        self._follow()

    @Slot()
    def _follow(self) -> None:
        possible = any(action.isEnabled() for action in self._offered)
        self.setEnabled(possible)
        self.setToolTip(self._tip if possible else self._offered[0].reason)


class IconButton(QToolButton):
    def __init__(self, action: Action, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.action = action
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.clicked.connect(action.trigger)
        action.changed.connect(self._follow)
        self._follow()

    @Slot()
    def _follow(self) -> None:
        self.setAccessibleName(self.action.title)
        self.setEnabled(self.action.isEnabled())
        self.setToolTip(self.action.explained())
