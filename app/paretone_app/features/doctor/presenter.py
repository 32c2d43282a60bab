"""The doctor's presenter: looks at the installation in the background, and shows what it found."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt, Slot

from paretone.computing import Computing
from paretone.doctor import Check, examine
from paretone.session.events import EngineReady, Event
from paretone_app.features.doctor.computing_button import ComputingButton
from paretone_app.features.doctor.dialog import DoctorDialog
from paretone_app.features.presenter import Presenter, Services
from paretone_app.shell.background import Background


class DoctorPresenter(Presenter):
    """Owns the page of findings, and what the status bar says of the device."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.dialog: DoctorDialog | None = None
        """The page, while it is open."""
        self._background: Background | None = None
        self._actions.bind(self._actions["doctor"], self.look)
        self._shown: Computing | None = None
        self.button = ComputingButton()
        self.button.clicked.connect(self._actions["doctor"].trigger)
        services.status.add(self.button)

    def follow(self, event: Event) -> None:
        """Say what the engine computes with; aloud if a graphics card could do it and does not."""
        if isinstance(event, EngineReady) and event.computing is not None:
            found = event.computing
            if found.idle:
                question = f"Models run on the processor, not on {found.idle}: {found.lacking}."
                self._notices.ask(question, ("What to do…",), lambda _: self.look())

    def refresh(self) -> None:
        """Show what computes, which the user may have chosen otherwise than the engine would."""
        found, info = self._state.machine.computing, self._state.selection.info
        if found is not None and not found.lacking and info is not None and info.device_type == "cpu":
            found = replace(found, device=info.device, lacking=f"the processor is chosen, not {found.device}")
        if found != self._shown:
            self._shown = found
            self.button.show_computing(found)

    def look(self) -> None:
        """Look at everything, and show it."""
        folder = self._results.library.folder.parent
        dialog = DoctorDialog(self._theme.colours, folder, self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.destroyed.connect(self._dialog_gone)
        self.dialog = dialog
        dialog.open()
        self.shut_down()
        devices, self._background = self._state.machine.devices, Background("doctor", self)
        self._background.run(lambda: examine(devices, folder), lambda found: self._show(dialog, found))

    def _show(self, dialog: DoctorDialog, found: tuple[Check, ...] | BaseException) -> None:
        self.shut_down()  # A thread for one look.
        if isinstance(found, BaseException):
            raise found
        if self.dialog is dialog:
            dialog.show_findings(found)

    @Slot()
    def _dialog_gone(self) -> None:
        self.dialog = None

    def shut_down(self) -> None:
        """End the thread."""
        background, self._background = self._background, None
        if background is not None:
            background.shut_down(wait=False)
            background.deleteLater()
