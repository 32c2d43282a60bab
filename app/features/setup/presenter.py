"""The model presenter: which model on which device, voice, text and knobs; loading, downloading, and what to do when
that cannot be done without an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QInputDialog, QMessageBox
from shiboken6 import isValid

from app.features.presenter import Presenter, Services
from app.features.setup.panel import SetupPanel
from app.features.training.presenter import TrainingPresenter
from app.numbers import fixed
from app.shell.background import Background
from app.state.jobs import Job, Kind, Outcome
from engine.errors import PlainError
from engine.models import catalogue
from engine.session.commands import DownloadModel, LoadModel
from engine.session.events import Event, JobFailed
from engine.techniques import problems

if TYPE_CHECKING:
    from engine.models.files.downloads import Extent


class SetupPresenter(Presenter):
    """Owns Setup."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._features = services.features
        self._candidates: tuple[str, ...] = ()
        """The architectures that the checkpoint that failed to load may have."""
        self._files: tuple[str, ...] = ()
        """The files of weights in the folder that failed to load, the newest first."""
        self._next: Callable[[], None] | None = None
        """Loads what is to be loaded once the running jobs have ended."""
        self.setup = SetupPanel(services.state, services.theme.colours)
        self.setup.problem.connect(services.notices.warn)
        self.setup.load_wanted.connect(self._load)
        self.setup.download_wanted.connect(self._ask_to_download)
        self.setup.training_wanted.connect(self._train)
        services.workspaces.put("setup", self.setup)
        actions = services.actions
        actions.about_to_run.connect(self.setup.commit)
        actions.bind(actions.reload, self._reload)
        actions.model_wanted.connect(self.choose_model)
        actions.device_wanted.connect(self.choose_device)
        services.state.jobs.ended.connect(self._job_ended)

    def engine_starts(self) -> None:
        """Say which plug-ins were left out, and why."""
        for problem in problems():
            self._notices.warn(problem)

    def choose_model(self, model: str) -> None:
        """Load ``model``, or show in Setup what it lacks."""
        chosen = self._state.selection
        chosen.consider_model(model)
        if catalogue.entry(model).available and (chosen.candidate or not chosen.ready):
            self._load(model)

    def choose_device(self, device: str) -> None:
        """Load the present model on ``device``."""
        self._ask_first(self._state.selection.entry.title, lambda: self._state.loading.reload(device))

    @Slot(str, str)
    def _load(self, model: str, folder: str = "") -> None:
        title = catalogue.entry(model).title
        self._ask_first(title, lambda: self._state.loading.load_model(model, folder))

    def _ask_first(self, title: str, load: Callable[[], None]) -> None:
        """Do ``load``, which cancels what runs: the user is asked about that."""
        running = [job for job in self._state.jobs.running if job.kind is not Kind.LOAD]
        if not running:
            load()
            return
        cancel, wait = "Cancel it and load", "Load when it has ended"

        def answer(choice: str) -> None:
            self._next = load if choice == wait else None
            if choice == cancel or not self._state.jobs.busy:
                load()

        question = f"{running[0].kind.value} is not finished. Loading {title} now would cancel it."
        self._notices.ask(question, (cancel, wait), answer)

    def follow(self, event: Event) -> None:
        """Note the architectures to choose from where nothing says which one a checkpoint has."""
        if isinstance(event, JobFailed):
            self._candidates, self._files = event.candidates, event.files

    @Slot(str, object)
    def _train(self, technique: str, knobs: Mapping[str, object]) -> None:
        self._features.find(TrainingPresenter).propose(technique, **knobs)

    def refresh(self) -> None:
        self._actions.reload.setEnabled(not self._state.jobs.busy)

    def _reload(self) -> None:
        self._state.loading.reload()

    def _load_variant(self, command: LoadModel, variant: str) -> None:
        title = catalogue.entry(command.model).title
        load = self._state.loading.load_model
        self._ask_first(title, lambda: load(command.model, command.folder, variant, command.device))

    def _choose_file(self, command: LoadModel, files: tuple[str, ...]) -> None:
        """Let the user choose one of several files of weights in a folder."""
        names = {Path(file).name: file for file in files}
        dialog = QInputDialog(self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setWindowTitle("Choose a checkpoint")
        dialog.setLabelText("Checkpoints, the newest first:")
        dialog.setComboBoxItems(list(names))
        dialog.setOption(QInputDialog.InputDialogOption.UseListViewForComboBoxItems)
        dialog.setOkButtonText("Load")
        title, load = catalogue.entry(command.model).title, self._state.loading.load_model
        dialog.textValueSelected.connect(
            lambda name: self._ask_first(
                title, lambda: load(command.model, names[name], command.variant, command.device)
            )
        )
        dialog.open()

    @Slot(object, object, str)
    def _job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        command = job.command
        if job.kind is Kind.LOAD and isinstance(command, LoadModel) and outcome is Outcome.FAILED:
            if files := self._files:
                self._notices.ask(sentence, ("Choose a file…",), lambda _: self._choose_file(command, files))
                return
            if self._candidates:
                self._notices.ask(sentence, self._candidates, lambda variant: self._load_variant(command, variant))
                return
            kept = self._state.selection.info
            self._notices.say(f"{sentence} {kept.title} stays loaded." if kept else sentence, "error")
        if job.kind is Kind.DOWNLOAD and isinstance(command, DownloadModel) and outcome is Outcome.FINISHED:
            self._load(command.model)
        if self._next is not None and not self._state.jobs.busy:
            load, self._next = self._next, None
            load()

    @Slot(str)
    def _ask_to_download(self, model: str) -> None:
        entry = catalogue.entry(model)
        box = QMessageBox(self._window)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.setWindowTitle(f"Download {entry.title}")
        box.setText(f"The weights of {entry.title} are published under <b>{entry.licence}</b>.")
        question = f"Do you accept this licence and download them to {entry.folder}?"
        box.setInformativeText(f"{question} Asking the server for the size…")
        box.setStandardButtons(QMessageBox.StandardButton.Yes | QMessageBox.StandardButton.Cancel)
        box.button(QMessageBox.StandardButton.Yes).setText("Accept and download")
        box.setDefaultButton(QMessageBox.StandardButton.Cancel)
        box.accepted.connect(lambda: self._state.loading.download_model(model, str(entry.folder)))
        box.open()

        def tell(found: Extent | BaseException) -> None:
            if isValid(box):
                box.setInformativeText(f"{question} {size_text(found)}")

        sizes = Background("sizes", box)
        box.finished.connect(lambda: sizes.shut_down(wait=False))
        sizes.run(lambda: _extent(model, entry.folder), tell)


def _extent(model: str, folder: Path) -> Extent:
    from engine.models.files.downloads import extent

    return extent(model, folder, lambda: None)


def size_text(found: Extent | BaseException) -> str:
    """The size of a download, or why it is not known, as a sentence."""
    if isinstance(found, PlainError):
        return f"The size is not known: {found}"
    if isinstance(found, BaseException):
        raise found
    here = (
        "" if found.missing == found.total else f"; {fixed((found.total - found.missing) / 1e9, 2)} GB of them are here"
    )
    return f"They are {fixed(found.total / 1e9, 2)} GB{here}."
