"""The strategy table in use, its calibration and δ: derived anew for every threshold, edited, undone."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from PySide6.QtCore import QObject

from paretone.errors import ProfileError, SettingError
from paretone.models.base import Utterance
from paretone.paths import resource
from paretone.reading import read_json, readable
from paretone.sampling.actions import SkipAction
from paretone.session.commands import Prepare
from paretone.session.events import Event, PreparationReport, Prepared
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values
from paretone.setting.setting import Artefact, UsedTechnique
from paretone.techniques import conflict
from paretone.techniques.ditreducio import COMBINATIONS, TECHNIQUE, THRESHOLD, calibrates_alike, ops_ratio_of
from paretone.techniques.ditreducio.record import (
    Calibrated,
    CalibrationRecord,
    CalibrationRequest,
    Derivation,
    Sentence,
    TransferRequest,
    Trial,
)
from paretone.techniques.ditreducio.table import StrategyTable
from paretone_app.numbers import localised, percent
from paretone_app.state.app_state import AppState
from paretone_app.state.artefact_store import ArtefactStore
from paretone_app.state.availability import require
from paretone_app.state.editing import ALONE, Edit
from paretone_app.state.jobs import Jobs, Kind

SCHEMA_VERSION = 2
SHIPPED = resource("calibrations")
"""Folder of the example's calibration, made by ``python -m tests.tools.example_table``."""


def record_json(record: CalibrationRecord) -> dict[str, object]:
    """As JSON values, for :func:`read_record`."""
    return {
        "schema": SCHEMA_VERSION,
        "table": record.table.to_json(),
        "knobs": dict(record.knobs),
        "cut": record.cut,
        "trials": [
            [one.phase, one.step, one.layer, one.action.name, one.error, one.accepted, one.errors]
            for one in record.trials
        ],
        "similarities": [[None if np.isnan(one) else float(one) for one in row] for row in record.similarities],
        "sentences": [asdict(one) for one in record.sentences],
        **{name: getattr(record, name) for name in ("combine", "seed", "created", "machine")},
    }


def read_record(path: Path) -> CalibrationRecord:
    """Read a file of :func:`record_json`. Raises :class:`ProfileError` that names the file."""
    with readable(ProfileError, f"The calibration {path} cannot be read", "delete the file or calibrate again"):
        data = read_json(path)
        if data["schema"] != SCHEMA_VERSION:
            raise ProfileError(f"{path} has schema {data['schema']}; this version reads schema {SCHEMA_VERSION}.")
        table = StrategyTable.from_json(data["table"], f"{path}: table")
        trials = tuple(
            Trial(phase, int(step), int(layer), SkipAction[action], float(error), bool(kept), tuple(map(float, errors)))
            for phase, step, layer, action, error, kept, errors in data["trials"]
        )
        return CalibrationRecord(
            table=table,
            knobs=Values(data["knobs"]),
            cut=float(data["cut"]),
            trials=trials,
            similarities=np.array(data["similarities"], dtype=float),
            sentences=tuple(Sentence(**one) for one in data["sentences"]),
            combine=str(data["combine"]),
            seed=int(data["seed"]),
            created=str(data["created"]),
            machine=str(data["machine"]),
        )


NAME = TECHNIQUE.name
_SWITCH_ON = f"switch {TECHNIQUE.title} on in Setup"
_THRESHOLD_EDIT = 1


class StrategyState(ArtefactStore):
    """Calibrations are kept; the tables in use are derived from them."""

    technique, kind, request = TECHNIQUE, StrategyTable, CalibrationRequest
    unwritten = "The calibration could not be written to {path} ({reason}). It can be used until the window closes."
    artefact: StrategyTable | None
    kept: list[CalibrationRecord]

    def __init__(
        self, state: AppState, folder: Path, parent: QObject | None = None, shipped: Path | None = None
    ) -> None:
        """``shipped``: folder with further calibrations, which count as older than those in ``folder``."""
        super().__init__(state, folder, parent)
        self.kept.sort(key=lambda one: one.created)
        if shipped is not None:
            self.kept = [*self._stored(shipped), *self.kept]
        self.record: CalibrationRecord | None = None
        self.compared: StrategyTable | None = None
        """Table of a point chosen elsewhere, to compare with."""
        self._derived: tuple[str, float, Derivation] | None = None

    # --- As a store of artefacts --------------------------------------------------------------------------------------
    def read(self, path: Path) -> CalibrationRecord:
        return read_record(path)

    def content(self, artefact: CalibrationRecord) -> dict[str, object]:
        return record_json(artefact)

    def file_name(self, artefact: CalibrationRecord) -> str:
        return f"{artefact.fingerprint}.json"

    def chosen(self, wanted: Compatibility | None) -> CalibrationRecord | None:
        """The latest calibration for ``wanted`` with the selected knobs, whatever its threshold."""
        knobs = self._selection.knobs(NAME)
        fitting = (one for one in reversed(self.kept) if one.table.compatibility == wanted)
        return next((one for one in fitting if calibrates_alike(one.knobs, knobs)), None)

    @property
    def table(self) -> StrategyTable | None:
        return self.artefact

    @property
    def origin(self) -> tuple[str, str] | None:
        table = self.table
        if table is None:
            return None
        origin = localised(table.origin)
        return "Strategy table", f"{table.layers} × {table.steps}, {percent(table.skipped_share)} skip; {origin}"

    @property
    def records(self) -> tuple[CalibrationRecord, ...]:
        return () if self.record is None else (self.record,)

    def problem(self) -> str:
        """Why the strategy table cannot be used with the selection, as a sentence, or ``""``."""
        if not self._selection.is_used(NAME):
            return ""
        if self.table is None:
            return f"{TECHNIQUE.title} needs a strategy table: calibrate first."
        wanted = self.compatibility()
        mismatch = self.table.compatibility.mismatch(wanted) if wanted is not None else None
        return f"The strategy table does not fit: {mismatch}. Calibrate again." if mismatch else ""

    def find(self, entry: UsedTechnique) -> StrategyTable | None:
        """The entry's table: the one in use, a calibrated one, or one derived at the entry's threshold."""
        threshold = entry.knobs.get("threshold")
        tables = [self.table]
        for record in self.kept:
            tables.append(record.table)
            if threshold is not None:
                tables.append(record.derive(float(threshold)).table)
        return next((one for one in tables if one is not None and one.fingerprint == entry.artefact), None)

    def alike(self, known: Values, knobs: Values) -> bool:
        return calibrates_alike(known, knobs)

    def made_by(self, job: int, entry: UsedTechnique) -> StrategyTable | None:
        record = self.made.get(job)
        return None if record is None else self._derivation(record, float(entry.knobs[THRESHOLD.name])).table

    def adopt(self, artefact: Artefact, why: str) -> None:
        if isinstance(artefact, StrategyTable) and artefact != self.table:
            self.replace_table(artefact, why)

    def use(self, artefact: StrategyTable | None) -> None:
        self._show_table(artefact, self.threshold)

    def compare_with(self, artefact: Artefact | None) -> None:
        """Compare with the table of a point chosen elsewhere; ``None``: with the usual one."""
        if artefact is not self.compared:
            self.compared = artefact if isinstance(artefact, StrategyTable) else None
            self.changed.emit()

    def set_knob(self, knob: str, value: object) -> bool:
        """Apply a changed threshold to the current calibration at once; return whether ``knob`` is the threshold."""
        if knob != THRESHOLD.name:
            return False
        self.set_threshold(THRESHOLD.check(value))
        return True

    # --- Availability -------------------------------------------------------------------------------------------------
    def why_no_table(self) -> str:
        """Why the chosen model has no strategy tables, as a sentence, or ``""``."""
        if any(one.name == NAME for one in self._selection.techniques):
            return ""
        title = self._selection.entry.title
        return f"{title} has no strategy table: {TECHNIQUE.title} is for flow models, such as F5 mini."

    @property
    def operations_title(self) -> str:
        return "Flow operations" if ops_ratio_of(self._selection.entry) == "flow" else "Operations"

    def how_to_calibrate(self) -> str:
        """How to get a strategy table, as the end of a sentence."""
        return "calibrate first (Ctrl+K)" if self._selection.is_used(NAME) else f"{_SWITCH_ON}, then calibrate (Ctrl+K)"

    def why_not_prepare(self) -> str:
        if self.why_no_table():
            return self.why_no_table()
        if not self._selection.is_used(NAME):
            return f"{_SWITCH_ON[0].upper()}{_SWITCH_ON[1:]} first: only it needs a calibration."
        return self._state.availability.why_not_synthesise() or conflict(self._selection.setting) or ""

    def why_not_replace(self) -> str:
        if reason := self.why_no_table() or self._selection.why_not_ready():
            return reason
        fits = self.compatibility() is not None
        return "" if fits else conflict(self._selection.setting) or "No table fits the selected options."

    def why_not_transfer(self) -> str:
        if self.why_no_table():
            return self.why_no_table()
        if not self._selection.is_used(NAME):
            return f"{_SWITCH_ON[0].upper()}{_SWITCH_ON[1:]} first: its strategy table is measured."
        return self._state.availability.why_not_accelerate()

    @property
    def calibrated_on(self) -> tuple[Utterance, ...]:
        """Utterances that the strategy table was calibrated on, if known; those with missing voices are left out."""
        record, table = self.record, self.table
        if record is None or table is None or table.compatibility != record.table.compatibility:
            return ()
        if table.origin.startswith("imported"):
            return ()
        voices = {one.id: one for one in self._selection.voices}
        return tuple(Utterance(one.text, voices[one.voice]) for one in record.sentences if one.voice in voices)

    # --- Jobs ---------------------------------------------------------------------------------------------------------
    def calibrate(self) -> None:
        require(self.why_not_prepare())
        self.calibrate_on((self._selection.utterance,))

    def calibrate_on(self, utterances: tuple[Utterance, ...], combine: str = COMBINATIONS[0]) -> None:
        require(self.why_not_prepare())
        setting = self._selection.setting.with_technique(UsedTechnique(NAME, self._selection.knobs(NAME)))
        request = CalibrationRequest(utterances, setting, combine)
        self._state.jobs.start(Kind.CALIBRATE, lambda job: Prepare(job, NAME, request))

    def measure_transfer(self, unseen: tuple[Utterance, ...]) -> None:
        """Measure the table's transfer to ``unseen`` utterances. Raises :class:`SettingError` if impossible."""
        require(self.why_not_transfer())
        if self.table is None:
            raise SettingError(f"{TECHNIQUE.title} needs a strategy table: calibrate first.")
        request = TransferRequest(self.table, self.calibrated_on, unseen, self._selection.setting)
        self._state.jobs.start(Kind.TRANSFER, lambda job: Prepare(job, NAME, request))

    def follow(self, event: Event) -> None:
        if isinstance(event, Prepared) and isinstance(event.result, Calibrated):
            calibrated = event.result
            self.made[event.job] = calibrated.record
            self.keep(calibrated.record)
            if calibrated.record.table.compatibility == self.compatibility():
                self._state.cost.set_operations(calibrated.operations)
                self._take_up(calibrated.record)

    # --- Threshold ----------------------------------------------------------------------------------------------------
    @property
    def threshold(self) -> float:
        return float(self._selection.knobs(NAME)[THRESHOLD.name])

    def derive(self, threshold: float) -> Derivation | None:
        """Table of the current calibration at ``threshold``; ``None`` without one. The last result is cached."""
        return self._derivation(self.record, threshold) if self.record is not None else None

    def _derivation(self, record: CalibrationRecord, threshold: float) -> Derivation:
        if self._derived is None or self._derived[:2] != (record.fingerprint, threshold):
            self._derived = record.fingerprint, threshold, record.derive(threshold)
        return self._derived[2]

    @property
    def reference(self) -> StrategyTable | None:
        """Table to compare with: for an edited table, the one derived at the threshold; else the calibrated one."""
        if self.record is None:
            return None
        derivation = self.derive(self.threshold)
        return derivation.table if derivation is not None and self.is_edited else self.record.table

    @property
    def is_edited(self) -> bool:
        """Whether the table differs from the one derived at the threshold, as after editing cells by hand."""
        derived = self.derive(self.threshold)
        return self.table is not None and derived is not None and derived.table.fingerprint != self.table.fingerprint

    def set_threshold(self, threshold: float) -> None:
        """Move δ; with a calibration, the table follows at once."""
        threshold = float(THRESHOLD.check(threshold))
        if threshold == self.threshold:
            return
        derivation = self.derive(threshold)
        if derivation is None:
            self._show_table(self.table, threshold)
        else:
            self._edit("move threshold", derivation.table, threshold, _THRESHOLD_EDIT)

    def replace_table(self, table: StrategyTable, why: str) -> None:
        """Use another table, such as an imported one; can be undone."""
        self._edit(why, table, self.threshold)

    def skip_nothing(self) -> None:
        """Use a table that computes everything; no-op without a loaded model that has tables."""
        compatibility, info = self.compatibility(), self._selection.info
        if compatibility is not None and info is not None:
            table = StrategyTable.computing(compatibility, info.of_flow.layers, self._branch_skip)
            self.replace_table(table, "skip nothing")

    def import_table(self, text: str, where: str) -> None:
        """Use an official strategy table, given its text. Raises :class:`PlainError` if it does not fit."""
        compatibility, info = self.compatibility(), self._selection.info
        if compatibility is None or info is None:
            raise SettingError("Load a model first: a strategy table belongs to a model.")
        with readable(SettingError, f"{where} is not JSON", "choose an official strategy table"):
            data = json.loads(text)
        table = StrategyTable.from_official(data, compatibility, self._branch_skip, where)
        flow = info.of_flow
        if table.layers != flow.layers:
            raise SettingError(f"{where} has {table.layers} layers, but {flow.title} has {flow.layers}.")
        self.replace_table(table, f"import {where}")

    @property
    def _branch_skip(self) -> str:
        return str(self._selection.knobs(NAME)["branch_skip"])

    def _edit(self, text: str, table: StrategyTable, threshold: float, merging: int = ALONE) -> None:
        before, after = (self.table, self.threshold), (table, threshold)
        self._state.undo_stack.push(Edit(text, before, after, lambda shown: self._show_table(*shown), merging))

    def _show_table(self, table: StrategyTable | None, threshold: float) -> None:
        derivation = self.derive(threshold)
        if table is not None and table.by_hand and derivation is not None:
            # An edited table that equals the derived one counts as derived.
            table = derivation.table if derivation.table.fingerprint == table.fingerprint else table
        self.artefact = table
        self._selection.put_knobs(NAME, **{THRESHOLD.name: threshold})
        self.changed.emit()

    def _take_up(self, record: CalibrationRecord) -> None:
        self.record = record
        self._state.editing.forget()
        self.artefact = self._derivation(record, self.threshold).table
        self.changed.emit()

    def _find(self) -> None:
        """Use the newest calibration that fits, unless it is in use; without one, drop a table of another model."""
        wanted = self.compatibility()
        if wanted is None:
            self.changed.emit()
            return
        record = self.chosen(wanted)
        fits = self.table is not None and self.table.compatibility == wanted
        if record is not None and (not fits or record is not self.record):
            self._take_up(record)
        elif not fits:
            if self.table is not None and self.table.compatibility.model != wanted.model:
                # It comes back with its model.
                self.artefact = self.record = None
            self.changed.emit()


def running_reports(events: Sequence[Event], jobs: Jobs) -> list[object]:
    """Reports of running preparations of the technique; those of ended ones are ignored."""
    return [
        one.report
        for one in events
        if isinstance(one, PreparationReport) and one.technique == NAME and jobs.find(one.job) is not None
    ]
