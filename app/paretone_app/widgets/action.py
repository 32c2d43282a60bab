"""What the user can do, and the buttons that do it. An action owns its words, its shortcut, and whether it can be done
now and why not; menus, buttons and *Find* only show it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt, Slot
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QPushButton, QToolButton, QWidget

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
        if self.isEnabled():
            return ""
        return self.toolTip() if self.toolTip() != self.tip else "Not possible now."

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


class _Following(QPushButton):
    """Is enabled and disabled by something else."""

    instead: QWidget | None = None
    """Where the focus goes when the button that has it is disabled, rather than to whatever comes next."""

    def focusNextPrevChild(self, forward: bool) -> bool:
        if self.isEnabled() or self.instead is None or not self.instead.isVisible():
            return super().focusNextPrevChild(forward)
        self.instead.setFocus(Qt.FocusReason.OtherFocusReason)
        return True


class ActionButton(_Following):
    """Shows an action. Looks like other buttons, which those of Qt that follow actions do not."""

    def __init__(
        self, action: QAction, text: str | None = None, look: str = "", name: str = "", parent: QWidget | None = None
    ) -> None:
        """``text``, and ``name`` for screen readers: if those of the action say too little or too much here; ``""`` for
        a button with an icon alone."""
        super().__init__(parent)
        self.action = action
        self._text, self._name, self._reason = text, name, ""
        if look:
            self.setProperty("look", look)
        self.setCheckable(action.isCheckable())
        self.clicked.connect(action.trigger)
        action.changed.connect(self._follow)
        self._follow()

    def set_reason(self, reason: str) -> None:
        """Why it is disabled in this place even if the action is enabled; ``""``: only the action decides."""
        self._reason = reason
        self._follow()

    @Slot()
    def _follow(self) -> None:
        action = self.action
        title = action.text().replace("&", "").rstrip("…")
        own = isinstance(action, Action) and not action.in_menu
        self.setText(self._text if self._text is not None else action.text() if own else title)
        self.setAccessibleName(self._name or self.text().replace("&", "") or title)
        keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        tip = f"{action.statusTip()} ({keys})" if keys else action.statusTip()
        reason = localised(self._reason) or ("" if action.isEnabled() else action.toolTip())
        self.setEnabled(not reason and action.isEnabled())
        self.setToolTip(reason or tip)
        self.setChecked(action.isChecked())


class IconButton(QToolButton):
    """Shows an action by an icon."""

    def __init__(self, action: Action, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.action = action
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.clicked.connect(action.trigger)
        action.changed.connect(self._follow)
        self._follow()

    @Slot()
    def _follow(self) -> None:
        action = self.action
        self.setAccessibleName(action.title)
        self.setEnabled(action.isEnabled())
        keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        self.setToolTip(action.reason or (f"{action.toolTip()} ({keys})" if keys else action.toolTip()))


class TwinButton(_Following):
    """Does what ``other`` does, in another place."""

    def __init__(self, other: QPushButton, text: str = "", look: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._other, self._text = other, text
        if look:
            self.setProperty("look", look)
        self.clicked.connect(other.click)
        other.installEventFilter(self)
        self._follow()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.EnabledChange, QEvent.Type.ToolTipChange):
            self._follow()
        return False

    def _follow(self) -> None:
        other = self._other
        self.setText(self._text or other.text().replace("&", ""))
        self.setAccessibleName(self.text())
        self.setEnabled(other.isEnabled())
        self.setToolTip(other.toolTip())
