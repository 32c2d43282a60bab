"""What is selected and what is compared: the application's state, with signals and without widgets.

Panels show this state and change it by its methods; the engine's events reach it through :meth:`AppState.handle`.
Nothing here knows how anything looks, so the whole main job can be driven, and tested, through this class. What it is
built on: see :mod:`app.state.selection`.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.state.availability import Reasons
from app.state.calibration_store import CalibrationStore
from app.state.comparison import differences, measured_against, technique_text
from app.state.jobs import Job, Jobs, Kind, Outcome
from app.state.open_studies import OpenStudies
from app.state.selection import DITREDUCIO, SEED_LIMIT
from engine.errors import PlainError, SettingError
from engine.export.targets import Target, why_not
from engine.models import catalogue
from engine.models.base import ModelInfo, OperationCounts, Utterance, Voice
from engine.session.messages import (
    Calibrate,
    CalibrationReady,
    CaptureAttention,
    DownloadModel,
    EngineReady,
    Event,
    ExportProfile,
    LayersMeasured,
    LoadModel,
    MeasureTransfer,
    ModelLoaded,
    Prepared,
    Synthesise,
    TakeReady,
    TrainingDone,
)
from engine.setting.knobs import Values
from engine.setting.profile import Evidence, Profile
from engine.setting.setting import Difference, Engaged, Setting
from engine.setting.take import Take
from engine.techniques import problem
from engine.techniques.ditreducio import COMBINATIONS


@dataclass(frozen=True)
class _Loaded:
    """The model that the engine has, and what was selected with it: a load that fails leaves both as they were."""

    model: str
    folder: str
    variant: str
    device_wanted: str
    info: ModelInfo
    operations: OperationCounts | None
    options: Values
    voice: Voice | None


class AppState(Reasons):
    """The one place that knows what is selected. See the signals for what can change."""

    engine_changed = Signal()
    """The engine became ready; ``device`` and ``machine`` are known."""
    comparison_changed = Signal()
    """Other takes are A and B."""
    take_added = Signal(object)
    """A finished :class:`Take`."""
    problem = Signal(str)
    """A sentence about something that went wrong outside a job."""

    def __init__(self, jobs: Jobs, calibrations: CalibrationStore, parent: QObject | None = None) -> None:
        super().__init__(calibrations, parent)
        self.jobs = jobs
        self.device = ""
        self.devices: tuple[str, ...] = ()
        self.machine = ""
        self.take_a: Take | None = None
        self.take_b: Take | None = None
        self.open_studies = OpenStudies(self)
        self._kept: _Loaded | None = None
        jobs.ended.connect(self._load_ended)

    @property
    def device_title(self) -> str:
        """Where the model runs, or will run, for people."""
        return self.info.device if self.info is not None else self.device.upper() or "starting"

    # --- Model --------------------------------------------------------------------------------------------------------
    def load_model(self, model: str, folder: str = "", variant: str = "", device: str = "") -> None:
        """Choose ``model`` and load it; what runs is cancelled first. The present model stays if that fails.

        ``folder`` and ``variant`` override the catalogue's; ``device`` is wanted from now on, when given.
        """
        self.jobs.cancel_all()
        if self.info is not None:
            self._kept = _Loaded(
                self.model_id,
                self.model_folder,
                self.model_variant,
                self.device_wanted,
                self.info,
                self.operations,
                self.options,
                self.voice,
            )
        self._choose_model(model, folder, variant, device or self.device_wanted)
        command = (model, folder, variant, self.device_wanted)
        self.jobs.start(Kind.LOAD, lambda job: LoadModel(job, *command))

    def _choose_model(self, model: str, folder: str, variant: str, device: str, kept: _Loaded | None = None) -> None:
        self.model_id, self.model_folder, self.model_variant, self.device_wanted = model, folder, variant, device
        self.info = kept.info if kept else None
        self.operations = kept.operations if kept else None
        self.options = self._options_like(kept.options if kept else self.options)
        if kept and kept.voice in self.voices:
            self.voice = kept.voice
        if self.voice is None or self.voice not in self.voices:
            self.voice = next(iter(self.voices), None)
        self._find_table()
        self.model_changed.emit()
        self.selection_changed.emit()

    def _load_ended(self, job: Job, outcome: Outcome) -> None:
        """The engine keeps the model it has when another cannot be loaded, so that one is chosen again."""
        another = any(one.kind is Kind.LOAD for one in self.jobs.running)
        if job.kind is not Kind.LOAD or outcome is Outcome.FINISHED or another or self._kept is None:
            return
        kept = self._kept
        self._choose_model(kept.model, kept.folder, kept.variant, kept.device_wanted, kept)

    def download_model(self, model: str, folder: str) -> None:
        """Fetch ``model``; the user has seen and accepted its licence."""
        licence = catalogue.entry(model).licence
        self.jobs.start(Kind.DOWNLOAD, lambda job: DownloadModel(job, model, folder, licence))

    # --- Jobs ---------------------------------------------------------------------------------------------------------
    def synthesise_baseline(self) -> None:
        """Speak without techniques. Draws a new seed first unless it is locked. Raises when it cannot be done."""
        self._require(self.why_not_synthesise())
        if not self.seed_locked:
            self.set_seed(secrets.randbelow(SEED_LIMIT))
        self._synthesise(Kind.BASELINE, self.baseline_setting, "Baseline")

    def synthesise_accelerated(self) -> None:
        """Speak with the engaged techniques, with the baseline's seed. Raises when it cannot be done."""
        self._require(self.why_not_accelerate())
        self._synthesise(Kind.ACCELERATED, self.setting, technique_text(self.setting))

    def _synthesise(self, kind: Kind, setting: Setting, label: str) -> None:
        artefacts = (self.table,) if self.table is not None and setting.engaged(DITREDUCIO) else ()
        text, voice = self.text, self.voice
        self.jobs.start(kind, lambda job: Synthesise(job, text, voice, setting, artefacts, label))

    def calibrate(self) -> None:
        """Calibrate on the selected sentence. Raises when it cannot be done."""
        self.calibrate_on((Utterance(self.text, self.voice),) if self.voice is not None else ())

    def calibrate_on(self, utterances: tuple[Utterance, ...], combine: str = COMBINATIONS[0]) -> None:
        """Calibrate on all ``utterances`` together. Raises when it cannot be done."""
        self._require(self.why_not_calibrate())
        setting = self.setting.with_technique(Engaged(DITREDUCIO, self._knobs[DITREDUCIO]))
        self.jobs.start(Kind.CALIBRATE, lambda job: Calibrate(job, utterances, setting, combine))

    def measure_transfer(self, unseen: tuple[Utterance, ...]) -> None:
        """Measure how well the strategy table serves ``unseen`` utterances. Raises when it cannot be done."""
        self._require(self.why_not_transfer())
        table, calibrated, setting = self.table, self.calibrated_on, self.setting
        self.jobs.start(Kind.TRANSFER, lambda job: MeasureTransfer(job, table, calibrated, unseen, setting))

    def capture_attention(self, layer: int, step: int) -> None:
        """Look at the attention of one layer at one step. Raises when it cannot be done."""
        self._require(self.why_not_synthesise())
        # On the grid in force, so that its steps are those of the strategy table.
        text, voice, setting = self.text, self.voice, self.setting.without(DITREDUCIO)
        self._require(problem(self.info, setting) or "")
        self.jobs.start(Kind.ATTENTION, lambda job: CaptureAttention(job, text, voice, setting, layer, step))

    @staticmethod
    def _require(problem: str) -> None:
        if problem:
            raise SettingError(problem)

    # --- Takes --------------------------------------------------------------------------------------------------------
    def set_a(self, take: Take | None) -> None:
        """Compare with ``take`` as A."""
        self.take_a = take
        self.comparison_changed.emit()

    def set_b(self, take: Take | None) -> None:
        """Compare with ``take`` as B."""
        self.take_b = take
        self.comparison_changed.emit()

    @property
    def evidence(self) -> Take | None:
        """The take, A or B, that was made exactly as things are selected; a profile quotes its figures."""
        for take in (self.take_b, self.take_a):
            if take is not None and take.setting == self.setting:
                return take
        return None

    def profile(self) -> Profile:
        """The selected setting with its table and its evidence. Raises :class:`PlainError` when it makes none."""
        self._require(self.why_not_accelerate())
        assert self.info is not None
        take = self.evidence
        evidence = None
        if take is not None:
            baseline = self.take_a if self.take_a is not None and take.fidelity_to == self.take_a.id else None
            evidence = Evidence.of(take, baseline)
        table = self.table if self.setting.engaged(DITREDUCIO) else None
        return Profile.of(self.setting, self.info, () if table is None else (table,), evidence)

    def write_profile(self, path: Path) -> None:
        """Write the profile to a file. Raises :class:`PlainError` when that cannot be done."""
        self.profile().save(path)

    def why_not_export(self, target: Target) -> str:
        """Why the profile cannot be exported to ``target``, as a sentence, or ``""``."""
        try:
            profile = self.profile()
        except PlainError as error:
            return str(error)
        return why_not(target, profile, self.info is not None and self.info.cfg_free_weight is not None)

    def export(self, target: Target, folder: Path) -> None:
        """Have the engine export the profile to ``target``. Raises :class:`PlainError` when it cannot be done."""
        self._require(self.why_not_export(target))
        profile, checkpoint = self.profile(), self.model_folder
        self.jobs.start(Kind.EXPORT, lambda job: ExportProfile(job, profile, target.name, str(folder), checkpoint))

    def differences(self) -> tuple[Difference, ...]:
        """Everything in which A and B differ, text and voice included; empty unless both are set."""
        return differences(self.take_a, self.take_b) if self.take_a is not None and self.take_b is not None else ()

    def comparison_warning(self) -> str:
        """A sentence when A and B differ in more than the technique, or ``""``."""
        others = [one.what for one in self.differences() if not one.technique]
        if not others:
            return ""
        listed = ", ".join(others[:-1]) + (" and " if len(others) > 1 else "") + others[-1]
        return f"A and B also differ in {listed}: what you hear is not the technique alone."

    # --- Events -------------------------------------------------------------------------------------------------------
    def handle(self, event: Event) -> None:
        """Take over what an event brought. Events that end jobs go to :class:`app.state.jobs.Jobs`."""
        if isinstance(event, EngineReady):
            self.device, self.devices, self.machine = event.device, event.devices, event.machine
            self.engine_changed.emit()
        elif isinstance(event, ModelLoaded):
            self._model_loaded(event)
        elif isinstance(event, TakeReady):
            self._take_ready(event)
        elif isinstance(event, CalibrationReady):
            self._calibrated(event)
        elif isinstance(event, TrainingDone | LayersMeasured | Prepared) and event.info is not None:
            self._weights_came(event.info)

    def _model_loaded(self, event: ModelLoaded) -> None:
        job = self.jobs.find(event.job)
        later = any(one.kind is Kind.LOAD and one.number > event.job for one in self.jobs.running)
        if later or event.info.id != self.model_id:
            # Another was chosen before this one could be cancelled; the engine has this one until then.
            if job is not None and isinstance(job.command, LoadModel):
                one = job.command
                self._kept = _Loaded(
                    one.model, one.folder, one.variant, one.device, event.info, None, self.options, self.voice
                )
            return
        self.info = event.info
        self._kept = None
        self._find_table()
        self.model_changed.emit()
        self.selection_changed.emit()

    def _weights_came(self, info: ModelInfo) -> None:
        """Know the loaded model's new weights, so that they can be engaged at once."""
        if self.info is not None and info.id == self.info.id:
            self.info = info
            self._find_table()
            self.model_changed.emit()
            self.selection_changed.emit()

    def _take_ready(self, event: TakeReady) -> None:
        if event.operations is not None:
            self.operations = event.operations
            self.table_changed.emit()
        take = measured_against(event.take, self.take_a) if event.take.setting.techniques else event.take
        self.take_added.emit(take)
        if take.setting.techniques:
            self.set_b(take)
        else:
            self.set_a(take)
        self.selection_changed.emit()

    def _calibrated(self, event: CalibrationReady) -> None:
        if event.operations is not None:
            self.operations = event.operations
        try:
            self.calibrations.add(event.record)
        except PlainError as error:
            self.problem.emit(str(error))
        self._take_up(event.record)
        self.selection_changed.emit()
