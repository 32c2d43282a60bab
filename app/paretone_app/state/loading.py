"""Loading models, with a fallback to the present one if a load fails."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QObject

from paretone.models import catalogue
from paretone.models.base import ModelInfo
from paretone.sampling.operations import OperationCounts
from paretone.session.commands import DownloadModel, LoadModel
from paretone.session.events import Event, ModelLoaded, Prepared
from paretone_app.state.cost import Cost
from paretone_app.state.jobs import Job, Jobs, Kind, Outcome
from paretone_app.state.machine import Machine
from paretone_app.state.selection import Selection


@dataclass(frozen=True)
class _Loaded:
    """The engine's present model and its counted operations, to restore after a failed load."""

    model: str
    folder: str
    variant: str
    device_wanted: str
    info: ModelInfo
    operations: OperationCounts | None


class Loading(QObject):
    """Loads and downloads models, and keeps the selection in step with the engine."""

    def __init__(
        self, selection: Selection, cost: Cost, machine: Machine, jobs: Jobs, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._selection = selection
        self._cost = cost
        self._machine = machine
        self._jobs = jobs
        self._kept: _Loaded | None = None
        jobs.ended.connect(self._load_ended)

    @property
    def device_title(self) -> str:
        """Name of the device that runs, or will run, the model."""
        info = self._selection.info
        return info.device if info is not None else self._machine.device.upper() or "starting"

    def load_model(
        self, model: str, folder: str = "", variant: str = "", device: str = "", vocoder: str | None = None
    ) -> None:
        """Choose ``model`` and load it; cancel running jobs first. The present model stays if that fails. A given
        ``device`` is kept for later loads; without ``vocoder`` (a folder) the model's last one is used."""
        self._jobs.cancel_all()
        chosen = self._selection
        if chosen.info is not None:
            self._kept = _Loaded(
                chosen.model_id,
                chosen.model_folder,
                chosen.model_variant,
                chosen.device_wanted,
                chosen.info,
                self._cost.operations,
            )
        chosen.loading = True  # choose_model() announces it.
        self._choose(model, folder, variant, device or chosen.device_wanted)
        command = (model, folder, variant, chosen.device_wanted, chosen.vocoder(model) if vocoder is None else vocoder)
        self._jobs.start(Kind.LOAD, lambda job: LoadModel(job, *command))

    def reload(self, device: str = "") -> None:
        chosen = self._selection
        self.load_model(chosen.model_id, chosen.model_folder, chosen.model_variant, device)

    def move(self, model: str) -> None:
        """Load ``model`` on another engine, which has none yet."""
        self._kept = None
        self._choose(model, "", "", "auto")
        self.load_model(model, device="auto")

    def download_model(self, model: str, folder: str) -> None:
        """Download ``model``; the user has accepted its licence."""
        licence = catalogue.entry(model).licence
        self._jobs.start(Kind.DOWNLOAD, lambda job: DownloadModel(job, model, folder, licence))

    def follow(self, event: Event) -> None:
        """Select a loaded model; register new weights of it for immediate use."""
        if isinstance(event, ModelLoaded):
            self._model_loaded(event)
        elif isinstance(event, Prepared) and event.info is not None:
            loaded = self._selection.info
            if loaded is not None and event.info.id == loaded.id:
                self._selection.set_info(event.info)

    def _choose(self, model: str, folder: str, variant: str, device: str, kept: _Loaded | None = None) -> None:
        self._cost.set_operations(kept.operations if kept else None)
        self._selection.choose_model(model, folder, variant, device, kept.info if kept else None)

    def _load_ended(self, job: Job, outcome: Outcome) -> None:
        """After a failed load, select the model that the engine still has."""
        another = any(one.kind is Kind.LOAD for one in self._jobs.running)
        if job.kind is Kind.LOAD and not another:
            self._selection.loading_ended()
        if job.kind is not Kind.LOAD or outcome is Outcome.FINISHED or another or self._kept is None:
            return
        kept = self._kept
        self._choose(kept.model, kept.folder, kept.variant, kept.device_wanted, kept)

    def _model_loaded(self, event: ModelLoaded) -> None:
        chosen, job = self._selection, self._jobs.find(event.job)
        later = any(one.kind is Kind.LOAD and one.number > event.job for one in self._jobs.running)
        if later or event.info.id != chosen.model_id:
            # Another model was chosen before this load could be cancelled; the engine has this one for now.
            if job is not None and isinstance(job.command, LoadModel):
                one = job.command
                self._kept = _Loaded(one.model, one.folder, one.variant, one.device, event.info, None)
            return
        self._kept = None
        if job is not None and isinstance(job.command, LoadModel):
            chosen.vocoders[chosen.model_id] = job.command.vocoder
        chosen.set_info(event.info)
