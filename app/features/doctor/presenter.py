"""The doctor's presenter: looks at the installation in the background, and shows what it found."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot

from app.features.doctor.dialog import DoctorDialog
from app.features.presenter import Presenter, Services
from app.features.takes.presenter import TakesPresenter
from app.shell.background import Background
from engine.doctor import Check, examine


class DoctorPresenter(Presenter):
    """Owns the page of findings."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._features = services.features
        self.dialog: DoctorDialog | None = None
        """The page, while it is open."""
        self._background: Background | None = None
        self._actions.bind(self._actions["doctor"], self.look)

    def look(self) -> None:
        """Look at everything, and show it."""
        folder = self._features.find(TakesPresenter).library.folder.parent
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
