"""Loading models, with a fallback to the present one if a load fails."""

from dataclasses import replace

from PySide6.QtCore import QObject, QTimer

from paretone.models import catalogue
from paretone.models.base import ModelInfo
from paretone.sampling.operations import OperationCounts
from paretone.session.commands import DownloadModel, LoadModel
from paretone.session.events import Event, ModelLoaded, Prepared
from paretone_app.state.cost import Cost
from paretone_app.state.jobs import Job, Jobs, Kind, Outcome
from paretone_app.state.machine import Machine
from paretone_app.state.selection import Selection


class Loading(QObject):
    """Loads and downloads models, and keeps the selection in step with the engine."""

    def __init__(
        self, selection: Selection, cost: Cost, machine: Machine, jobs: Jobs, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._selection, self._cost, self._machine, self._jobs = selection, cost, machine, jobs
        self._known: dict[LoadModel, tuple[ModelInfo, OperationCounts | None]] = {}
        """Models loaded in this session, and their counted operations."""
        self.wanted = LoadModel(0, selection.model_id)
        """What loads the selected model."""
        jobs.loader = lambda model: self.wanted if model == self.wanted.model else None
        jobs.ended.connect(self._load_ended)

    @property
    def device_title(self) -> str:
        """Name of the device that runs, or will run, the model."""
        info = self._selection.info
        return info.device if info is not None else self._machine.device.upper() or "starting"

    def load_model(
        self, model: str, folder: str = "", variant: str = "", device: str = "", vocoder: str | None = None
    ) -> None:
        """Choose ``model`` and load it after the waiting jobs of the present one, which stays if that fails. A given
        ``device`` is kept for later loads; without ``vocoder`` (a folder) the model's last one is used."""
        chosen, before = self._selection, self.wanted
        for one in reversed(self._jobs.all):
            if one.kind is Kind.LOAD and not one.serves:
                self._jobs.cancel(one)
        if chosen.info is not None:
            self._known[self.wanted] = chosen.info, self._cost.operations
        vocoder = chosen.vocoder(model) if vocoder is None else vocoder
        self.wanted = LoadModel(0, model, folder, variant, device or chosen.device_wanted, vocoder)
        # While others run, a model loaded before is chosen at once: the queue loads it when a job needs it.
        others = any(one.kind is not Kind.LOAD for one in self._jobs.all)
        known = others and self.wanted != before and self.wanted in self._known
        chosen.loading = not known  # choose_model() announces it.
        self._choose(known)
        if not known:
            self._jobs.start(Kind.LOAD, lambda job: replace(self.wanted, job=job))

    def reload(self, device: str = "") -> None:
        chosen = self._selection
        self.load_model(chosen.model_id, chosen.model_folder, chosen.model_variant, device)

    def move(self) -> None:
        """Load the selected model on another engine, which has none yet."""
        self._jobs.loaded = None
        self._known.clear()
        self.wanted = LoadModel(0, self._selection.model_id)
        self._selection.loading = True
        self._choose(known=False)
        self._jobs.start(Kind.LOAD, lambda job: replace(self.wanted, job=job))

    def download_model(self, model: str, folder: str) -> None:
        """Download ``model``; the user has accepted its licence."""
        licence = catalogue.entry(model).licence
        self._jobs.start(Kind.DOWNLOAD, lambda job: DownloadModel(job, model, folder, licence))

    def follow(self, event: Event) -> None:
        """Select a loaded model; register new weights of it for immediate use."""
        chosen = self._selection
        if isinstance(event, ModelLoaded):
            job = self._jobs.find(event.job)
            if job is not None and job.group is not None:
                self._jobs.loaded = job.group
                info, operations = self._known.get(job.group, (None, None))
                self._known[job.group] = event.info, operations
                if job.group != self.wanted:
                    return  # Another model was chosen meanwhile, or jobs of another one wait.
                chosen.vocoders[chosen.model_id] = self.wanted.vocoder
                if self._cost.operations is None and info == event.info:
                    self._cost.set_operations(operations)
            if event.info.id == chosen.model_id:
                chosen.set_info(event.info)
        elif isinstance(event, Prepared):
            info, loaded = event.info, chosen.info
            if info is not None and loaded is not None and info.id == loaded.id:
                chosen.set_info(info)

    def _choose(self, known: bool) -> None:
        one = self.wanted
        info, operations = self._known[one] if known else (None, None)
        self._cost.set_operations(operations)
        self._selection.choose_model(one.model, one.folder, one.variant, one.device, info)

    def _load_ended(self, job: Job, outcome: Outcome) -> None:
        """After a failed load, select the model that the engine still has. After the last job, load the selected
        model again if jobs of another one replaced it."""
        jobs, chosen = self._jobs, self._selection
        if job.kind is Kind.LOAD and not any(one.kind is Kind.LOAD for one in jobs.all):
            if chosen.loading:
                chosen.loading = False
                chosen.changed.emit()
            failed = outcome is not Outcome.FINISHED and job.group == self.wanted
            if failed and jobs.loaded is not None and jobs.loaded in self._known:
                self.wanted = jobs.loaded
                self._choose(known=True)
        QTimer.singleShot(0, self, self._load_selected)

    def _load_selected(self) -> None:
        if not self._jobs.busy and self._selection.ready and self._jobs.loaded not in (None, self.wanted):
            self._jobs.start(Kind.LOAD, lambda job: replace(self.wanted, job=job))
