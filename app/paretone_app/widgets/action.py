"""Commands and their buttons. An action has a text, a shortcut, and a reason while it is disabled."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QCheckBox, QMenu, QPushButton, QToolButton, QWidget

from paretone_app.numbers import localised


class Action(QAction):
    """Enabled unless there is a reason against it, shown in its tooltip."""

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
        """``in_menu``: its mnemonic belongs to a menu entry; its buttons have none."""
        super().__init__(text, parent, checkable=checkable)
        self.in_menu = in_menu
        self._reasons: list[Callable[[], str]] = []
        self.setStatusTip(tip)
        self.setToolTip(tip)
        if shortcut:
            self.setShortcut(QKeySequence(shortcut))

    @property
    def tip(self) -> str:
        """Its effect, as a sentence without a full stop."""
        return self.statusTip()

    @property
    def title(self) -> str:
        """Its text without mnemonic and ellipsis."""
        return self.text().replace("&", "").rstrip("…")

    @property
    def reason(self) -> str:
        """Why it is disabled, as a sentence; ``""`` if enabled."""
        return "" if self.isEnabled() else self.toolTip()

    def explained(self) -> str:
        """Tooltip of a button: effect and shortcut, or the reason why it is disabled."""
        if not self.isEnabled():
            return self.toolTip()
        keys = self.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        # Without a tip, Qt's tooltip would repeat the text.
        return f"{self.toolTip()} ({keys})" if keys else self.toolTip() if self.tip else ""

    def explain(self, why_not: Callable[[], str]) -> None:
        """Add ``why_not``, which returns a reason against it or ``""``; earlier ones take precedence."""
        self._reasons.append(why_not)

    def refresh(self) -> None:
        if self._reasons:
            self.set_reason(next(filter(None, (why_not() for why_not in self._reasons)), ""))

    def set_reason(self, reason: str) -> None:
        """Disable it for ``reason``; ``""`` enables it."""
        if self.isEnabled() is bool(reason):
            self.setEnabled(not reason)
        tip = localised(reason) or self.tip
        if self.toolTip() != tip:
            self.setToolTip(tip)

    def set_tip(self, tip: str) -> None:
        if tip != self.tip:
            reason = self.reason
            self.setStatusTip(tip)
            self.setToolTip(reason or tip)


class ActionButton(QPushButton):
    """Button of an action, styled like other buttons, unlike Qt's own for actions."""

    instead: QWidget | None = None
    """Widget to focus when the focused button is disabled, instead of the next one."""

    def __init__(
        self, action: Action, text: str | None = None, look: str = "", name: str = "", *, letter: bool = True
    ) -> None:
        """``text``, and ``name`` for screen readers, replace those of the action; ``text`` ``""`` for an icon only.
        ``letter``: whether it has the action's mnemonic, or another button does."""
        super().__init__()
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
        self._text = text
        self._follow()

    def set_reason(self, reason: str) -> None:
        """Disable this button for ``reason`` even if the action is enabled; ``""`` leaves it to the action."""
        self._reason = localised(reason)
        self._follow()

    def focusNextPrevChild(self, forward: bool) -> bool:
        if self.isEnabled() or self.instead is None or not self.instead.isVisible():
            return super().focusNextPrevChild(forward)
        self.instead.setFocus(Qt.FocusReason.OtherFocusReason)
        return True

    def _follow(self) -> None:
        action = self.action
        own = action.text() if self._letter else action.title
        self.setText(own if self._text is None else self._text)
        self.setAccessibleName(self._name or self.text().replace("&", "") or action.title)
        self.setEnabled(action.isEnabled() and not self._reason)
        self.setToolTip(self._reason or action.explained())
        self.setChecked(action.isChecked())


class ActionBox(QCheckBox):
    def __init__(self, action: Action, text: str) -> None:
        super().__init__(text)
        self.action = action
        self.setAccessibleName(action.title)
        self.toggled.connect(action.setChecked)
        action.changed.connect(self._follow)
        self._follow()

    def _follow(self) -> None:
        self.setChecked(self.action.isChecked())
        self.setToolTip(self.action.explained())


class MenuButton(QPushButton):
    """Menu of actions; disabled while all are, for the reason of the first."""

    def __init__(self, text: str, tip: str, actions: Sequence[Action]) -> None:
        super().__init__(text)
        self._tip, self._offered = tip, tuple(actions)
        menu = QMenu(self)
        menu.addActions(self._offered)
        self.setMenu(menu)
        for action in self._offered:
            action.changed.connect(self._follow)
        self._follow()

    def _follow(self) -> None:
        possible = any(action.isEnabled() for action in self._offered)
        self.setEnabled(possible)
        self.setToolTip(self._tip if possible else self._offered[0].reason)


class IconButton(QToolButton):
    def __init__(self, action: Action) -> None:
        super().__init__()
        self.action = action
        self.setProperty("look", "icon")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.clicked.connect(action.trigger)
        action.changed.connect(self._follow)
        self._follow()

    def _follow(self) -> None:
        self.setAccessibleName(self.action.title)
        self.setEnabled(self.action.isEnabled())
        self.setToolTip(self.action.explained())
