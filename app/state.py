"""What is selected and what is compared: the application's state, with signals and without widgets.

Panels show this state and change it by its methods; the engine's events reach it through :meth:`AppState.handle`.
Nothing here knows how anything looks, so the whole main job can be driven, and tested, through this class.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QUndoCommand, QUndoStack

from app.calibrations import CalibrationStore
from app.comparison import differences, measured_against, technique_text
from app.jobs import Job, Jobs, Kind, Outcome
from engine.errors import PlainError, SettingError
from engine.knobs import Knob, Values, checked, defaults
from engine.messages import (
    AttentionCaptured,
    Calibrate,
    CalibrationReady,
    CaptureAttention,
    DownloadModel,
    EngineReady,
    Event,
    LoadModel,
    MeasureTransfer,
    ModelLoaded,
    Synthesise,
    TakeReady,
    TrainingDone,
)
from engine.models import catalogue
from engine.models.base import ModelInfo, OperationCounts, Utterance, Voice
from engine.profile import Evidence, Profile
from engine.sampling.schedules import time_grid
from engine.setting import Difference, Engaged, Setting
from engine.take import Take
from engine.techniques import TECHNIQUES, conflict, guidance_free, reshaped, technique
from engine.techniques.base import Technique
from engine.techniques.ditreducio import COMBINATIONS
from engine.techniques.ditreducio.record import CalibrationRecord, Derivation
from engine.techniques.ditreducio.table import Belonging, StrategyTable
from engine.techniques.engagement import before_calibration, engage, problem

DITREDUCIO = "ditreducio"
SEED_LIMIT = 2**31 - 1
_THRESHOLD_EDIT = 1


class _TableEdit(QUndoCommand):
    """One change of the strategy table; successive changes by the threshold merge into one."""

    def __init__(self, state: AppState, table: StrategyTable, text: str, threshold: float | None = None) -> None:
        super().__init__(text)
        self._state = state
        self._before = (state.table, state.threshold)
        self._after = (table, state.threshold if threshold is None else threshold)
        self._by_threshold = threshold is not None

    def id(self) -> int:
        return _THRESHOLD_EDIT if self._by_threshold else -1

    def mergeWith(self, other: QUndoCommand) -> bool:
        if not isinstance(other, _TableEdit) or not other._by_threshold:
            return False
        self._after = other._after
        return True

    def redo(self) -> None:
        self._state._show_table(*self._after)

    def undo(self) -> None:
        self._state._show_table(*self._before)


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


class AppState(QObject):
    """The one place that knows what is selected. See the signals for what can change."""

    engine_changed = Signal()
    """The engine became ready; ``device`` and ``machine`` are known."""
    model_changed = Signal()
    """Another model was chosen, or it finished loading."""
    selection_changed = Signal()
    """Voice, text, sampler options, techniques, knobs or seed changed."""
    table_changed = Signal()
    """The strategy table, its record or its operation counts changed."""
    comparison_changed = Signal()
    """Other takes are A and B."""
    take_added = Signal(object)
    """A finished :class:`Take`."""
    attention_captured = Signal(object)
    """An :class:`engine.models.base.AttentionCapture`."""
    problem = Signal(str)
    """A sentence about something that went wrong outside a job."""

    def __init__(self, jobs: Jobs, calibrations: CalibrationStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.jobs = jobs
        self.calibrations = calibrations
        self.undo_stack = QUndoStack(self)
        self.device = ""
        self.devices: tuple[str, ...] = ()
        self.machine = ""
        self.model_id = catalogue.MODELS[0].id
        self.model_folder = ""
        self.model_variant = ""
        self.device_wanted = "auto"
        self.info: ModelInfo | None = None
        self._kept: _Loaded | None = None
        self.operations: OperationCounts | None = None
        self.record: CalibrationRecord | None = None
        self.table: StrategyTable | None = None
        self.take_a: Take | None = None
        self.take_b: Take | None = None
        self.text = next(iter(catalogue.sentences()), "")
        self.own_voices: list[Voice] = []
        self.voice: Voice | None = next(iter(catalogue.voices()), None)
        self.options = self.entry.options_with()
        self.seed = 0
        self.seed_locked = True
        self._engaged = {one.name: index == 0 for index, one in enumerate(TECHNIQUES)}
        self._knobs = {one.name: defaults(one.knobs) for one in TECHNIQUES}
        jobs.ended.connect(self._load_ended)

    # --- Model ------------------------------------------------------------------------------------------------------
    @property
    def entry(self) -> catalogue.CatalogueEntry:
        """The chosen model's entry in the catalogue."""
        return catalogue.entry(self.model_id)

    @property
    def ready(self) -> bool:
        """Whether the chosen model is loaded."""
        return self.info is not None and self.info.id == self.model_id

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

    def _options_like(self, options: Mapping[str, object]) -> Values:
        """The chosen model's options, with those of ``options`` that it knows and permits."""
        known = {knob.name: options[knob.name] for knob in self.sampler_knobs if knob.name in options}
        try:
            return checked(self.sampler_knobs, {**self.sampler_defaults, **known}, self.entry.title)
        except SettingError:
            return self.sampler_defaults

    def download_model(self, model: str, folder: str) -> None:
        """Fetch ``model``; the user has seen and accepted its licence."""
        licence = catalogue.entry(model).licence
        self.jobs.start(Kind.DOWNLOAD, lambda job: DownloadModel(job, model, folder, licence))

    @property
    def sampler_knobs(self) -> tuple[Knob, ...]:
        """The chosen model's own knobs."""
        return self.entry.options

    @property
    def sampler_defaults(self) -> Values:
        """The chosen model's own defaults, which may differ from those of its knobs."""
        return self.entry.options_with()

    @property
    def techniques(self) -> tuple[Technique, ...]:
        """The techniques that apply to the chosen model."""
        names = {knob.name for knob in self.sampler_knobs}
        return tuple(one for one in TECHNIQUES if self.entry.family in one.families and names.issuperset(one.options))

    # --- Selection --------------------------------------------------------------------------------------------------
    @property
    def voices(self) -> tuple[Voice, ...]:
        """The chosen model's voices and the user's own."""
        return (*catalogue.voices(self.model_id, self.model_folder), *self.own_voices)

    def choose_voice(self, voice: str) -> None:
        """Speak in the voice with this id."""
        for one in self.voices:
            if one.id == voice:
                self.voice = one
                self.selection_changed.emit()
                return
        raise SettingError(f"There is no voice {voice!r}; choose one of {', '.join(one.id for one in self.voices)}.")

    def add_voice(self, voice: Voice) -> None:
        """Add one of the user's own recordings, in place of an earlier one with the same id, and choose it."""
        self.own_voices = [one for one in self.own_voices if one.id != voice.id] + [voice]
        self.choose_voice(voice.id)

    def set_text(self, text: str) -> None:
        """Speak ``text``."""
        if text != self.text:
            self.text = text
            self.selection_changed.emit()

    def set_seed(self, seed: int) -> None:
        """Use ``seed`` for the noise of the next syntheses."""
        if seed != self.seed:
            self.seed = seed
            self.selection_changed.emit()

    def set_seed_locked(self, locked: bool) -> None:
        """Keep the seed (locked), or draw a new one before each baseline."""
        self.seed_locked = locked

    def set_option(self, name: str, value: object) -> None:
        """Change one of the model's own knobs. A calibration for the new step grid is taken up where one exists."""
        if self.options.get(name) == value:
            return
        self.options = checked(self.sampler_knobs, self.options.replace(**{name: value}), self.entry.title)
        self._find_table()
        self.selection_changed.emit()

    def is_engaged(self, name: str) -> bool:
        """Whether the technique takes part in accelerated takes."""
        return self._engaged[name] and any(one.name == name for one in self.techniques)

    def engage(self, name: str, on: bool) -> None:
        """Switch a technique on or off for accelerated takes."""
        if self._engaged[name] != on:
            self._engaged[name] = on
            self._find_table()
            self.selection_changed.emit()

    def knobs(self, name: str) -> Values:
        """The knob values of a technique."""
        return self._knobs[name]

    def set_knob(self, name: str, knob: str, value: object) -> None:
        """Change one knob of a technique. A changed threshold is applied to the calibration at hand, live."""
        if self._knobs[name][knob] == value:
            return
        if name == DITREDUCIO and knob == "threshold":
            self.set_threshold(float(value))
            return
        self._knobs[name] = checked(technique(name).knobs, self._knobs[name].replace(**{knob: value}), name)
        self._find_table()
        self.selection_changed.emit()

    @property
    def baseline_setting(self) -> Setting:
        """The setting without any technique."""
        return Setting(self.model_id, self.options, (), self.seed)

    @property
    def setting(self) -> Setting:
        """The setting with the engaged techniques, with the same seed as the baseline."""
        setting = self.baseline_setting
        for one in self.techniques:
            if self.is_engaged(one.name):
                artefact = self.table.fingerprint if one.name == DITREDUCIO and self.table is not None else ""
                setting = setting.with_technique(Engaged(one.name, self._knobs[one.name], artefact))
        return setting

    def use_setting(self, take: Take) -> None:
        """Load everything that made ``take`` into the selection, so that it can be run again with a change."""
        setting = take.setting
        if setting.model != self.model_id:
            raise SettingError(
                f"This take was made with {setting.model}; load that model first (it is in the Model list)."
            )
        self.options = self._options_like(setting.options)
        self.seed = setting.seed
        self.text = take.text
        self.voice = next((one for one in self.voices if one.id == take.voice), self.voice)
        for one in self.techniques:
            entry = setting.engaged(one.name)
            self._engaged[one.name] = entry is not None
            if entry is not None:
                self._knobs[one.name] = checked(one.knobs, entry.knobs, one.name)
        self._find_table()
        self.selection_changed.emit()

    @property
    def options_in_force(self) -> Values:
        """The sampler options of accelerated takes: those selected, as the engaged techniques change them."""
        return reshaped(self.setting, self.options)

    @property
    def step_times(self) -> tuple[float, ...]:
        """The flow time at which each step of an accelerated take begins; empty where the options make no grid."""
        return grid_times(self.options_in_force)[:-1]

    # --- What can be done, and why not ------------------------------------------------------------------------------
    def why_not_synthesise(self) -> str:
        """Why no baseline can be synthesised now, as a sentence, or ``""``."""
        if not self.ready:
            return "The model is not loaded yet."
        if self.voice is None:
            return self.why_no_voice()
        if not self.text.strip():
            return "Type a sentence to speak first."
        return ""

    def why_no_voice(self) -> str:
        """What to do where there is no voice to choose from, as a sentence."""
        try:
            catalogue.voice("", self.model_id, self.model_folder)
        except SettingError as error:
            return str(error)
        return "Choose a voice first."

    def why_not_calibrate(self) -> str:
        """Why nothing can be calibrated now, as a sentence, or ``""``."""
        if not any(one.prepared_by == "calibration" and self.is_engaged(one.name) for one in self.techniques):
            return "Engage DiTReducio first: nothing else needs a calibration."
        return self.why_not_synthesise() or conflict(self.setting) or ""

    def why_not_accelerate(self) -> str:
        """Why no accelerated take can be synthesised now, as a sentence, or ``""``."""
        if not self.setting.techniques:
            return "Engage at least one technique first."
        return self.why_not_synthesise() or conflict(self.setting) or self.table_problem() or self._problem() or ""

    def technique_problem(self, name: str) -> str:
        """Why the technique cannot be used as things are selected, whatever others do, as a sentence, or ``""``."""
        if not self.is_engaged(name):
            return ""
        setting = self.setting
        reason = technique(name).conflict(replace(setting, options=self.options_in_force))
        if reason or name == DITREDUCIO:
            return reason or self.table_problem()
        entry = setting.engaged(name)
        # Beside nothing else, so that each technique is blamed for what it cannot do only.
        return (problem(self.info, self.baseline_setting.with_technique(entry)) or "") if self.info is not None else ""

    def technique_remarks(self, name: str) -> tuple[str, ...]:
        """What the technique's knobs bring about that may surprise, in sentences."""
        return technique(name).remarks(self.options_in_force, self._knobs[name]) if self.is_engaged(name) else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a take would carry as notes, beyond what its techniques remark."""
        if self.info is None or self.info.id != self.model_id:
            return ()
        remarks = {one for name in self._engaged for one in self.technique_remarks(name)}
        for setting, artefacts in ((self.setting, self._artefacts), (self.baseline_setting, ())):
            try:
                return tuple(one for one in engage(self.info, setting, artefacts).notes if one not in remarks)
            except PlainError:
                continue
        return ()

    @property
    def missing_weight(self) -> float | None:
        """The guidance weight w that CFG-free is to run with and that no weights of the loaded model have."""
        info, name = self.info, guidance_free.NAME
        if info is None or not self.is_engaged(name) or not self.may_train:
            return None
        return float(self._knobs[name]["weight"]) if self.technique_problem(name) else None

    @property
    def may_train(self) -> bool:
        """Whether CFG-free weights of the chosen model can be trained here."""
        return "guidance" in self.options and (self.info is None or self.info.cfg_free_weight is None)

    def why_no_guidance(self) -> str:
        """Why the strength of guidance has no effect on accelerated takes, as a sentence, or ``""``."""
        if "guidance" not in self.options:
            return ""
        if self.info is not None and self.info.cfg_free_weight is not None:
            return (
                f"{self.info.title} is CFG-free (w = {self.info.cfg_free_weight:.2f}): its guidance is in its weights, "
                "and one branch runs."
            )
        if self.is_engaged(guidance_free.NAME):
            return (
                "CFG-free has its guidance in its weights. Only the baseline is guided, by "
                f"{self.options['guidance']:g}; disengage CFG-free to change that."
            )
        return ""

    def _problem(self) -> str | None:
        """Why the loaded model cannot be used with the engaged techniques, as a sentence, or ``None``."""
        return problem(self.info, self.setting, self._artefacts) if self.info is not None else None

    @property
    def _artefacts(self) -> tuple[StrategyTable, ...]:
        return (self.table,) if self.table is not None and self.is_engaged(DITREDUCIO) else ()

    def table_problem(self) -> str:
        """Why the strategy table cannot be used as things are selected, as a sentence, or ``""``."""
        if not self.is_engaged(DITREDUCIO):
            return ""
        if self.table is None:
            return "DiTReducio needs a strategy table: calibrate first."
        wanted = self.belonging()
        mismatch = self.table.belonging.mismatch(wanted) if wanted is not None else None
        return f"The strategy table does not fit: {mismatch}. Calibrate again." if mismatch else ""

    def belonging(self) -> Belonging | None:
        """What a strategy table for the present selection would belong to; ``None`` without a loaded model."""
        if self.info is None or self.info.id != self.model_id:
            return None
        try:
            return before_calibration(self.info, self.setting).belonging
        except SettingError:
            return None

    @property
    def predicted_ops_ratio(self) -> float | None:
        """Share of the baseline's operations that the accelerated setting needs; ``None`` while it is unknown."""
        if self.operations is None or self.info is None or self.table_problem():
            return None
        try:
            return engage(self.info, self.setting, self._artefacts).ops_ratio(self.operations)
        except PlainError:
            return None

    # --- Strategy table ---------------------------------------------------------------------------------------------
    @property
    def threshold(self) -> float:
        """The selected threshold δ."""
        return float(self._knobs[DITREDUCIO]["threshold"])

    @property
    def other_table(self) -> StrategyTable | None:
        """What the strategy table is compared with: the one that the threshold gives where cells were edited by hand,
        else the one that was calibrated."""
        if self.record is None:
            return None
        derived = self.record.derive(self.threshold).table
        edited = self.table is not None and derived.fingerprint != self.table.fingerprint
        return derived if edited else self.record.table

    @property
    def derivation(self) -> Derivation | None:
        """The table that the calibration at hand gives at the selected threshold."""
        return self.record.derive(self.threshold) if self.record is not None else None

    def set_threshold(self, threshold: float) -> None:
        """Move δ; with a calibration at hand the table follows at once."""
        threshold = float(technique(DITREDUCIO).knobs[0].check(threshold))
        if threshold == self.threshold:
            return
        if self.record is None:
            self._keep_threshold(threshold)
            self.selection_changed.emit()
            return
        table = self.record.derive(threshold).table
        self.undo_stack.push(_TableEdit(self, table, "move the threshold", threshold))

    def adopt_table(self, table: StrategyTable) -> None:
        """Use a table that was edited, or whose edit was taken back, by someone who shares :attr:`undo_stack`."""
        self._show_table(table, self.threshold)

    def replace_table(self, table: StrategyTable, why: str) -> None:
        """Use another table, an imported one for example; can be undone."""
        self.undo_stack.push(_TableEdit(self, table, why))

    def import_table(self, text: str, where: str) -> None:
        """Use an official strategy table, given its text. Raises :class:`PlainError` where it does not fit."""
        belonging = self.belonging()
        if belonging is None or self.info is None:
            raise SettingError("Load a model first: a strategy table belongs to one.")
        try:
            data = json.loads(text)
        except ValueError as error:
            raise SettingError(f"{where} is not JSON ({error}); choose an official strategy table.") from error
        branch_skip = str(self._knobs[DITREDUCIO]["branch_skip"])
        table = StrategyTable.from_official(data, belonging, branch_skip, where)
        if table.layers != self.info.layers:
            raise SettingError(f"{where} has {table.layers} layers, but {self.info.title} has {self.info.layers}.")
        self.replace_table(table, f"import {where}")

    def _show_table(self, table: StrategyTable | None, threshold: float) -> None:
        self.table = table
        self._keep_threshold(threshold)
        self.table_changed.emit()
        self.selection_changed.emit()

    def _keep_threshold(self, threshold: float) -> None:
        self._knobs[DITREDUCIO] = self._knobs[DITREDUCIO].replace(threshold=threshold)

    def _take_up(self, record: CalibrationRecord) -> None:
        self.record = record
        self.undo_stack.clear()
        self.table = record.derive(self.threshold).table
        self.table_changed.emit()

    def _find_table(self) -> None:
        """Take up the newest calibration that fits, unless the table at hand does."""
        wanted = self.belonging()
        if wanted is None:
            self.table_changed.emit()
            return
        knobs = self._knobs[DITREDUCIO]
        record = self.calibrations.newest(wanted, knobs)
        fits = self.table is not None and self.table.belonging == wanted
        if record is not None and (not fits or record is not self.record):
            self._take_up(record)
        elif not fits:
            self.table_changed.emit()

    # --- Jobs -------------------------------------------------------------------------------------------------------
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

    @property
    def calibrated_on(self) -> tuple[Utterance, ...]:
        """What the strategy table was calibrated on, as far as that is known and its voices are there."""
        record, table = self.record, self.table
        if record is None or table is None or table.belonging != record.table.belonging:
            return ()
        if table.origin.startswith("imported"):
            return ()
        voices = {one.id: one for one in self.voices}
        return tuple(Utterance(one.text, voices[one.voice]) for one in record.sentences if one.voice in voices)

    def why_not_transfer(self) -> str:
        """Why it cannot be measured how well the strategy table transfers, as a sentence, or ``""``."""
        if not self.is_engaged(DITREDUCIO):
            return "Engage DiTReducio first: it is its strategy table that is measured."
        return self.why_not_accelerate()

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

    # --- Takes ------------------------------------------------------------------------------------------------------
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

    def write_profile(self, path: Path) -> None:
        """Export the selected setting with its table and its evidence. Raises :class:`PlainError` when it cannot be."""
        self._require(self.why_not_accelerate())
        assert self.info is not None
        take = self.evidence
        evidence = None
        if take is not None:
            baseline = self.take_a if self.take_a is not None and take.fidelity_to == self.take_a.id else None
            evidence = Evidence.of(take, baseline)
        table = self.table if self.setting.engaged(DITREDUCIO) else None
        Profile.of(self.setting, self.info, table, evidence).save(path)

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

    # --- Events -----------------------------------------------------------------------------------------------------
    def handle(self, event: Event) -> None:
        """Take over what an event brought. Events that end jobs go to :class:`app.jobs.Jobs`."""
        if isinstance(event, EngineReady):
            self.device, self.devices, self.machine = event.device, event.devices, event.machine
            self.engine_changed.emit()
        elif isinstance(event, ModelLoaded):
            self._model_loaded(event)
        elif isinstance(event, TakeReady):
            self._take_ready(event)
        elif isinstance(event, CalibrationReady):
            self._calibrated(event)
        elif isinstance(event, AttentionCaptured):
            self.attention_captured.emit(event.capture)
        elif isinstance(event, TrainingDone) and event.info is not None:
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

    # --- Between sessions -------------------------------------------------------------------------------------------
    def remembered(self) -> str:
        """The selection as JSON, for :meth:`recall`."""
        return json.dumps(
            {
                "text": self.text,
                "voice": self.voice.id if self.voice else "",
                "own_voices": [[one.id, one.title, one.audio, one.transcript] for one in self.own_voices],
                "seed": self.seed,
                "seed_locked": self.seed_locked,
                "options": dict(self.options),
                "knobs": {name: dict(values) for name, values in self._knobs.items()},
                "engaged": self._engaged,
            }
        )

    def recall(self, data: str) -> None:
        """Select what was selected when :meth:`remembered` was called; what no longer exists is passed over."""
        try:
            saved = json.loads(data)
        except ValueError:
            return
        if not isinstance(saved, dict):
            return
        self.text = str(saved.get("text") or self.text)
        self.own_voices = [Voice(*map(str, one)) for one in _lists(saved.get("own_voices"), 4)]
        self.voice = next((one for one in self.voices if one.id == saved.get("voice")), self.voice)
        seed = saved.get("seed")
        self.seed = seed if isinstance(seed, int) and 0 <= seed <= SEED_LIMIT else self.seed
        self.seed_locked = bool(saved.get("seed_locked", True))
        if isinstance(saved.get("options"), dict):
            self.options = self._options_like(saved["options"])
        for one in TECHNIQUES:
            try:
                self._knobs[one.name] = checked(one.knobs, saved["knobs"][one.name], one.name)
                self._engaged[one.name] = bool(saved["engaged"][one.name])
            except (KeyError, TypeError, SettingError):
                continue
        self.selection_changed.emit()


def grid_times(options: Mapping[str, object]) -> tuple[float, ...]:
    """The flow times from noise to speech that ``options`` make; none where they make no grid."""
    try:
        times = time_grid(int(options["steps"]), str(options["spacing"]), float(options["sway"]))
    except (KeyError, SettingError):
        return ()
    return tuple(float(time) for time in times)


def _lists(data: object, length: int) -> Iterable[list]:
    return [one for one in data if isinstance(one, list) and len(one) == length] if isinstance(data, list) else []
