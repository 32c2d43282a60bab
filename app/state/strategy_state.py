"""The strategy table of what is selected: calibrated, derived live at another threshold, edited, imported, undone."""

from __future__ import annotations

import json
from collections.abc import Mapping

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QUndoCommand, QUndoStack

from app.state.calibration_store import CalibrationStore
from app.state.selection import DITREDUCIO, Selection
from engine.errors import SettingError
from engine.models.base import Utterance
from engine.sampling.schedules import time_grid
from engine.setting.compatibility import Compatibility
from engine.setting.knobs import Values
from engine.setting.setting import Engaged, Setting
from engine.techniques import options_in_force, resolve, technique
from engine.techniques.ditreducio.record import CalibrationRecord, Derivation
from engine.techniques.ditreducio.table import StrategyTable

_THRESHOLD_EDIT = 1


class _TableEdit(QUndoCommand):
    """One change of the strategy table; successive changes by the threshold merge into one."""

    def __init__(self, state: Tables, table: StrategyTable, text: str, threshold: float | None = None) -> None:
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


class Tables(Selection):
    """A selection and the strategy table that belongs to it."""

    table_changed = Signal()
    """The strategy table, its record or its operation counts changed."""

    def __init__(self, calibrations: CalibrationStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.calibrations = calibrations
        self.undo_stack = QUndoStack(self)
        self.record: CalibrationRecord | None = None
        self.table: StrategyTable | None = None

    @property
    def setting(self) -> Setting:
        """The setting with the engaged techniques, with the same seed as the baseline."""
        setting = self.baseline_setting
        for one in self.techniques:
            if self.is_engaged(one.name):
                artefact = self.chosen_weights(one.name)
                if one.name == DITREDUCIO and self.table is not None:
                    artefact = self.table.fingerprint
                setting = setting.with_technique(Engaged(one.name, self._knobs[one.name], artefact))
        return setting

    @property
    def options_in_force(self) -> Values:
        """The sampler options of accelerated takes: those selected, as the engaged techniques change them."""
        try:
            return options_in_force(self.setting)
        except SettingError:
            return self.options  # What stands in the way is told where the technique is.

    @property
    def step_times(self) -> tuple[float, ...]:
        """The flow time at which each step of an accelerated take begins; empty where the options make no grid."""
        return grid_times(self.options_in_force)[:-1]

    def compatibility(self) -> Compatibility | None:
        """What a strategy table for the present selection would belong to; ``None`` without a loaded model."""
        if self.info is None or self.info.id != self.model_id:
            return None
        try:
            return resolve(self.info, self.setting, prepared=False).compatibility
        except SettingError:
            return None

    def table_problem(self) -> str:
        """Why the strategy table cannot be used as things are selected, as a sentence, or ``""``."""
        if not self.is_engaged(DITREDUCIO):
            return ""
        if self.table is None:
            return "DiTReducio needs a strategy table: calibrate first."
        wanted = self.compatibility()
        mismatch = self.table.compatibility.mismatch(wanted) if wanted is not None else None
        return f"The strategy table does not fit: {mismatch}. Calibrate again." if mismatch else ""

    @property
    def calibrated_on(self) -> tuple[Utterance, ...]:
        """What the strategy table was calibrated on, as far as that is known and its voices are there."""
        record, table = self.record, self.table
        if record is None or table is None or table.compatibility != record.table.compatibility:
            return ()
        if table.origin.startswith("imported"):
            return ()
        voices = {one.id: one for one in self.voices}
        return tuple(Utterance(one.text, voices[one.voice]) for one in record.sentences if one.voice in voices)

    # --- Threshold ----------------------------------------------------------------------------------------------------
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

    def set_knob(self, name: str, knob: str, value: object) -> None:
        """As :meth:`Selection.set_knob`; a changed threshold is applied to the calibration at hand, live."""
        if name == DITREDUCIO and knob == "threshold":
            self.set_threshold(float(value))
        else:
            super().set_knob(name, knob, value)

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

    def _keep_threshold(self, threshold: float) -> None:
        self._knobs[DITREDUCIO] = self._knobs[DITREDUCIO].replace(threshold=threshold)

    # --- Table --------------------------------------------------------------------------------------------------------
    def adopt_table(self, table: StrategyTable) -> None:
        """Use a table that was edited, or whose edit was taken back, by someone who shares :attr:`undo_stack`."""
        self._show_table(table, self.threshold)

    def replace_table(self, table: StrategyTable, why: str) -> None:
        """Use another table, an imported one for example; can be undone."""
        self.undo_stack.push(_TableEdit(self, table, why))

    def import_table(self, text: str, where: str) -> None:
        """Use an official strategy table, given its text. Raises :class:`PlainError` where it does not fit."""
        compatibility = self.compatibility()
        if compatibility is None or self.info is None:
            raise SettingError("Load a model first: a strategy table belongs to a model.")
        try:
            data = json.loads(text)
        except ValueError as error:
            raise SettingError(f"{where} is not JSON ({error}); choose an official strategy table.") from error
        branch_skip = str(self._knobs[DITREDUCIO]["branch_skip"])
        table = StrategyTable.from_official(data, compatibility, branch_skip, where)
        if table.layers != self.info.layers:
            raise SettingError(f"{where} has {table.layers} layers, but {self.info.title} has {self.info.layers}.")
        self.replace_table(table, f"import {where}")

    def _show_table(self, table: StrategyTable | None, threshold: float) -> None:
        self.table = table
        self._keep_threshold(threshold)
        self.table_changed.emit()
        self.selection_changed.emit()

    def _take_up(self, record: CalibrationRecord) -> None:
        self.record = record
        self.undo_stack.clear()
        self.table = record.derive(self.threshold).table
        self.table_changed.emit()

    def _find_table(self) -> None:
        """Take up the newest calibration that fits, unless the table at hand does."""
        wanted = self.compatibility()
        if wanted is None:
            self.table_changed.emit()
            return
        knobs = self._knobs[DITREDUCIO]
        record = self.calibrations.newest(wanted, knobs)
        fits = self.table is not None and self.table.compatibility == wanted
        if record is not None and (not fits or record is not self.record):
            self._take_up(record)
        elif not fits:
            self.table_changed.emit()


def grid_times(options: Mapping[str, object]) -> tuple[float, ...]:
    """The flow times from noise to speech that ``options`` make; none where they make no grid."""
    try:
        times = time_grid(int(options["steps"]), str(options["spacing"]), float(options["sway"]))
    except (KeyError, SettingError):
        return ()
    return tuple(float(time) for time in times)
