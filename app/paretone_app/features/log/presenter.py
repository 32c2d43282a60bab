"""The log's presenter: everything that is noted becomes an entry, and messages that were shown can be read again."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QToolButton

from paretone_app.features.log.messages import MessagesDialog
from paretone_app.features.log.panel import LogPanel
from paretone_app.features.presenter import Presenter, Services
from paretone_app.numbers import counted
from paretone_app.shell.theme import icon
from paretone_app.widgets import build


class LogPresenter(Presenter):
    """Owns Log, and the bell in the status bar."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.log = LogPanel(services.theme.colours)
        services.notices.noted.connect(self.log.add)
        services.workspaces.put("log", self.log)
        self.messages: MessagesDialog | None = None
        """The history of messages, while it is open."""
        self._actions.bind(self._actions["messages"], self.show_messages)
        self.bell = build.named(QToolButton(), "Messages")
        self.bell.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.bell.setProperty("look", "quiet")
        self.bell.clicked.connect(self._actions["messages"].trigger)
        services.status.add(self.bell)
        services.notices.history_changed.connect(self._show_bell)
        services.theme.changed.connect(self._show_bell)
        self._show_bell()

    def show_messages(self) -> None:
        """Open the history of messages."""
        dialog = MessagesDialog(self._theme.colours, self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.destroyed.connect(self._messages_gone)
        self.messages = dialog
        self._notices.look_back()
        dialog.open()

    @Slot()
    def _show_bell(self) -> None:
        missed = self._notices.missed
        self.bell.setIcon(icon("bell"))
        self.bell.setText(str(missed) if missed else "")
        gone = counted(missed, "message went", "messages went")
        self.bell.setAccessibleName(f"Messages: {gone} by itself" if missed == 1 else f"Messages: {gone} by themselves")
        if not missed:
            self.bell.setAccessibleName("Messages")
        self.bell.setToolTip(f"{self.bell.accessibleName()} (Ctrl+Shift+M)")
        if self.messages is not None:
            self.messages.show_history(self._notices.history)

    @Slot()
    def _messages_gone(self) -> None:
        self.messages = None
