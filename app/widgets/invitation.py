"""A hint in the middle of a panel that has nothing to show yet."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QStackedWidget, QWidget


class Invited(QStackedWidget):
    """An invitation, or the panel's content once there is some: one of the two is shown."""

    def __init__(self, content: QWidget, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.invitation = QLabel(wordWrap=True)
        # Tab reaches it, so that it is read out to screen readers.
        self.invitation.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.invitation.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.invitation.setProperty("look", "muted")
        for one in (self.invitation, content):
            self.addWidget(one)
        self.invite(text)

    def invite(self, text: str) -> None:
        """Invite with these words."""
        self.invitation.setText(text)
        self.invitation.setAccessibleName(text)

    def show_content(self, there: bool) -> None:
        """Show the content if it is ``there``, else the invitation."""
        self.setCurrentIndex(int(there))
