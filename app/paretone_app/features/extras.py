"""Optional packages: list, purpose and installation."""

from functools import partial

from PySide6.QtWidgets import QDialog, QLabel, QWidget

from paretone import extras
from paretone.extras import EXTRAS, Extra
from paretone.session.events import Event, Progress
from paretone_app.features.presenter import Presenter, Services
from paretone_app.state.jobs import Job, Kind, Outcome
from paretone_app.state.machine import Installing
from paretone_app.widgets import build
from paretone_app.widgets.layouts import GridLayout
from paretone_app.widgets.panel_parts import InstallOffer


class ExtrasDialog(QDialog):
    """Opened with ``open()``; closing it does not stop an installation."""

    def __init__(self, installing: Installing, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Optional packages")
        self.offers: dict[str, InstallOffer] = {}
        self._states: dict[str, QLabel] = {}
        grid = GridLayout()
        grid.setColumnStretch(1, 1)
        for row, one in enumerate(EXTRAS):
            offer = self.offers[one.name] = InstallOffer()
            offer.follow(installing)
            state = self._states[one.name] = build.label("Installed", "muted")
            grid.addWidget(QLabel(one.title), row, 0)
            grid.addWidget(state, row, 1)
            grid.addWidget(offer, row, 1)
        where = "They are installed into Paretone's own environment; what is there already stays."
        build.above_close(self, build.label(where, "muted"), grid)
        self.setMinimumWidth(42 * self.fontMetrics().height())
        installing.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        for one in EXTRAS:
            self.offers[one.name].offer_extra(one)
            self._states[one.name].setVisible(self.offers[one.name].isHidden())


class ExtrasPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._actions.bind(self._actions["extras"], self.show_all)
        self._state.installing.installed.connect(self._installed)

    @property
    def dialog(self) -> ExtrasDialog | None:
        return self._opened(ExtrasDialog)

    def follow(self, event: Event) -> None:
        self._state.installing.follow(event)

    def show_progress(self, event: Progress) -> None:
        self._state.installing.show_progress(event)

    def refresh(self) -> None:
        if self.dialog is not None:
            self.dialog.refresh()

    def show_all(self) -> None:
        build.show(ExtrasDialog(self._state.installing, self._window))

    def job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        missing = extras.named_in(sentence) if outcome is Outcome.FAILED and job.kind is not Kind.INSTALL else None
        if missing is not None and not self._state.installing.why_not():
            install = partial(self._state.installing.start, missing.name)
            answers = (f"Install {', '.join(missing.missing)}",)
            self._notices.ask(sentence, answers, lambda _: self._actions.attempt(install))

    def _installed(self, extra: Extra, ready: bool) -> None:
        after = "It can be used now." if ready else "Restart Paretone to use it."
        self._notices.say(f"Installed: {extra.title}. {after}", "info")
        self.changed.emit()
