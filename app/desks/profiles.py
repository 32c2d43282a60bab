"""The profile desk: the setting with its evidence goes out as a file that runs elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QMainWindow, QWidget

from app.actions import Actions
from app.notices import Notices
from app.state import AppState


class ProfileDesk(QObject):
    """Owns no panel: exporting is a dialog."""

    written = Signal(str)
    """A profile was written to this path."""

    def __init__(self, window: QMainWindow, state: AppState, actions: Actions, notices: Notices) -> None:
        super().__init__(window)
        self._window = window
        self._state = state
        self._actions = actions
        self._notices = notices
        self.exported = False
        """Whether a profile has been written."""
        self.later: Mapping[str, Callable[[], QWidget]] = {}
        actions.bind(actions.export_profile, self._ask_where_to_write)

    def refresh(self) -> None:
        """As :class:`app.desks.desk.Desk` says."""
        action, reason = self._actions.export_profile, self._state.why_not_accelerate()
        action.setEnabled(self._state.ready and not reason)
        action.setToolTip(reason or action.statusTip())

    def write(self, path: Path) -> None:
        """Export the present setting to ``path`` without asking. Raises :class:`PlainError` when it cannot be done."""
        self._state.write_profile(path)
        self._tell(str(path))

    def _ask_where_to_write(self) -> None:
        from app.export.profile_dialog import ProfileDialog

        dialog = ProfileDialog(self._state, self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.written.connect(self._tell)
        dialog.open()

    @Slot(str)
    def _tell(self, path: str) -> None:
        self.exported = True
        self._notices.note(f"Wrote the profile {path}")
        self._notices.say(
            f"The profile is in {path}. Run it: paretone speak --profile {path} --text “…” --out out.wav", "info"
        )
        self.written.emit(path)
