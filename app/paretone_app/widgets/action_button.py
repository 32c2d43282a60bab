"""Buttons that do what an action of the window, or another button, does: enabled when that is, with its reason when it
is not."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Slot
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QPushButton, QWidget

from paretone_app.widgets import build


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
    """Looks like other buttons, which those of Qt that follow actions do not."""

    def __init__(self, action: QAction, text: str = "", look: str = "", parent: QWidget | None = None) -> None:
        """``text``: if that of the action says too little or too much here."""
        super().__init__(parent)
        self.action = action
        self._text = text
        self._reason = ""
        if look:
            self.setProperty("look", look)
        self.clicked.connect(action.trigger)
        action.changed.connect(self._follow)
        self._follow()

    def set_reason(self, reason: str) -> None:
        """Why it is disabled even if the action is enabled; ``""``: only the action decides."""
        self._reason = reason
        self._follow()

    @Slot()
    def _follow(self) -> None:
        action = self.action
        self.setText(self._text or action.text().replace("&", "").rstrip("…"))
        self.setAccessibleName(self.text().replace("&", ""))
        keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        tip = f"{action.statusTip()} ({keys})" if keys else action.statusTip()
        build.allow(self, self._reason or ("" if action.isEnabled() else action.toolTip()), tip)


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
