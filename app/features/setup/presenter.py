"""The model presenter: which model on which device, voice, text and knobs; loading, downloading, and what to do when
that cannot be done without an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtWidgets import QMainWindow, QMessageBox, QWidget

from app.features.setup.panel import SetupPanel
from app.shell.actions import Actions
from app.shell.docks import Docks
from app.shell.notices import Notices
from app.shell.theme import Colours
from app.state.app_state import AppState
from app.state.jobs import Job, Kind, Outcome
from engine.models import catalogue
from engine.session.messages import Event, JobFailed, LoadModel


class ModelPresenter(QObject):
    """Owns Setup."""

    def __init__(
        self,
        window: QMainWindow,
        state: AppState,
        actions: Actions,
        docks: Docks,
        notices: Notices,
        colours: Colours,
    ) -> None:
        super().__init__(window)
        self._window = window
        self._state = state
        self._actions = actions
        self._notices = notices
        self.later: Mapping[str, Callable[[], QWidget]] = {}
        self.setup = SetupPanel(state, colours)
        self.setup.problem.connect(notices.warn)
        self.setup.download_wanted.connect(self._ask_to_download)
        docks.put("setup", self.setup)
        actions.about_to_run.connect(self.setup.commit)
        actions.bind(actions.reload, self._reload)
        state.jobs.ended.connect(self._job_ended)

    def choose_model(self, model: str) -> None:
        """Choose ``model`` as if it were chosen in Setup, where what it lacks is asked for."""
        box = self.setup.model
        box.setCurrentIndex(box.findData(model))
        box.activated.emit(box.currentIndex())

    def choose_device(self, device: str) -> None:
        """Load the present model on ``device``."""
        state = self._state
        state.load_model(state.model_id, state.model_folder, state.model_variant, device)

    def follow(self, event: Event, job: Job | None) -> None:
        """Ask for the architecture where nothing says which one a checkpoint has, and load again with the answer.

        ``job`` is the one that ``event`` may have ended.
        """
        if isinstance(event, JobFailed) and event.candidates and job is not None and job.kind is Kind.LOAD:
            command = job.command
            self._notices.ask(event.sentence, event.candidates, lambda variant: self._load_variant(command, variant))

    def refresh(self) -> None:
        """As :class:`app.features.presenter.Presenter` says."""
        self._actions.reload.setEnabled(not self._state.jobs.busy)

    def _reload(self) -> None:
        state = self._state
        state.load_model(state.model_id, state.model_folder, state.model_variant)

    def _load_variant(self, command: LoadModel, variant: str) -> None:
        self._state.load_model(command.model, command.folder, variant, command.device)

    @Slot(object, object, str)
    def _job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if job.kind is Kind.LOAD and outcome is Outcome.FAILED:
            kept = self._state.info
            self._notices.say(f"{sentence} {kept.title} stays loaded." if kept else sentence, "error")
        if job.kind is Kind.DOWNLOAD and outcome is Outcome.FINISHED:
            self._state.load_model(job.command.model)

    @Slot(str)
    def _ask_to_download(self, model: str) -> None:
        entry = catalogue.entry(model)
        box = QMessageBox(self._window)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.setWindowTitle(f"Download {entry.title}")
        box.setText(f"The weights of {entry.title} are published under <b>{entry.licence}</b>.")
        box.setInformativeText(f"Do you accept this licence and download them to {entry.folder}?")
        box.setStandardButtons(QMessageBox.StandardButton.Yes | QMessageBox.StandardButton.No)
        box.button(QMessageBox.StandardButton.Yes).setText("Accept and download")
        box.accepted.connect(lambda: self._state.download_model(model, str(entry.folder)))
        box.open()
