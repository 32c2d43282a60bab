"""The profile desk: the setting with its evidence goes out in a form that runs elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QMainWindow, QWidget

from app.actions import Actions
from app.notices import Notices
from app.state import AppState
from engine.export.targets import F5_TTS, target
from engine.messages import Event, ProfileExported


class ProfileDesk(QObject):
    """Owns no panel: exporting is a dialog."""

    written = Signal(str)
    """A profile was exported to this file or folder."""

    def __init__(self, window: QMainWindow, state: AppState, actions: Actions, notices: Notices) -> None:
        super().__init__(window)
        self._window = window
        self._state = state
        self._actions = actions
        self._notices = notices
        self.exported = False
        """Whether a profile has been exported."""
        self.later: Mapping[str, Callable[[], QWidget]] = {}
        actions.bind(actions.export_profile, self._ask_where_to_write)

    def refresh(self) -> None:
        """As :class:`app.desks.desk.Desk` says."""
        action, reason = self._actions.export_profile, self._state.why_not_accelerate()
        action.setEnabled(self._state.ready and not reason)
        action.setToolTip(reason or action.statusTip())

    def follow(self, event: Event) -> None:
        """Tell of a profile that the engine exported."""
        if isinstance(event, ProfileExported):
            how = " README.md there says how to use it." if event.target == F5_TTS.name else ""
            self._done(event.folder, f"{event.folder} holds {target(event.target).summary}.{how}")

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
        self._done(path, f"The profile is in {path}. Run it: paretone speak --profile {path} --text “…” --out out.wav")

    def _done(self, path: str, sentence: str) -> None:
        self.exported = True
        self._notices.note(f"Wrote {path}")
        self._notices.say(sentence, "info")
        self.written.emit(path)
