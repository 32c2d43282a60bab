"""A hint in the middle of a panel that has nothing to show yet."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QStackedWidget, QVBoxLayout, QWidget


class Invited(QStackedWidget):
    """An invitation, or the panel's content once there is some: one of the two is shown."""

    def __init__(self, content: QWidget, text: str = "", below: QWidget | None = None) -> None:
        """``below``: what stands below the text, such as a button."""
        super().__init__()
        self.invitation = QLabel(wordWrap=True)
        # Tab reaches it, so that it is read out to screen readers.
        self.invitation.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.invitation.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.invitation.setProperty("look", "muted")
        page: QWidget = self.invitation
        if below is not None:
            page = QWidget()
            middle = QVBoxLayout(page)
            middle.addStretch(1)
            middle.addWidget(self.invitation)
            middle.addWidget(below, 0, Qt.AlignmentFlag.AlignHCenter)
            middle.addStretch(1)
        for one in (page, content):
            self.addWidget(one)
        self.invite(text)

    def invite(self, text: str) -> None:
        """Invite with these words."""
        self.invitation.setText(text)
        self.invitation.setAccessibleName(text)

    def show_content(self, there: bool) -> None:
        """Show the content if it is ``there``, else the invitation."""
        self.setCurrentIndex(int(there))
