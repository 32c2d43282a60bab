"""The extras presenter: what failed for want of a package offers to install it, and a dialog lists all there is."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot

from paretone import extras
from paretone.extras import Extra
from paretone.session.events import Event, Progress
from paretone_app.features.extras.dialog import ExtrasDialog
from paretone_app.features.presenter import Presenter, Services
from paretone_app.state.jobs import Job, Kind, Outcome

INSTALL = "Install"


class ExtrasPresenter(Presenter):
    """Owns the list of optional packages."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.dialog: ExtrasDialog | None = None
        """The dialog, while it is open."""
        self._actions.bind(self._actions["extras"], self.show_all)
        self._state.jobs.ended.connect(self._job_ended)
        self._state.installing.installed.connect(self._installed)

    def follow(self, event: Event) -> None:
        self._state.installing.follow(event)

    def show_progress(self, event: Progress) -> None:
        self._state.installing.show_progress(event)

    def refresh(self) -> None:
        if self.dialog is not None:
            self.dialog.refresh()

    def show_all(self) -> None:
        """List the optional packages."""
        self.dialog = ExtrasDialog(self._state.installing, self._window)
        self.dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.dialog.destroyed.connect(self._dialog_gone)
        self.dialog.open()

    @Slot()
    def _dialog_gone(self) -> None:
        self.dialog = None

    @Slot(object, object, str)
    def _job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        missing = extras.named_in(sentence) if outcome is Outcome.FAILED and job.kind is not Kind.INSTALL else None
        if missing is not None and not self._state.installing.why_not():
            name = missing.name
            install = f"{INSTALL} {', '.join(missing.missing)}"
            self._notices.ask(
                sentence, (install,), lambda _: self._actions.attempt(lambda: self._state.installing.start(name))
            )

    @Slot(object, bool)
    def _installed(self, extra: Extra, ready: bool) -> None:
        after = "It can be used now." if ready else "Restart Paretone to use it."
        self._notices.say(f"Installed: {extra.title}. {after}", "info")
        self.changed.emit()
