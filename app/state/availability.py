"""What can be done with what is selected, why the rest cannot, and what it would cost."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.state.calibration_store import CalibrationStore
from app.state.selection import DITREDUCIO
from app.state.strategy_state import Tables
from engine.errors import PlainError, SettingError
from engine.models import catalogue
from engine.models.base import OperationCounts
from engine.models.cosyvoice2.config import INSTRUCT, MODE
from engine.techniques import conflict, guidance_free, problem, remarks, resolve
from engine.techniques.ditreducio.table import StrategyTable


class Reasons(Tables):
    """A selection that can say what it allows. Nothing here changes it."""

    def __init__(self, calibrations: CalibrationStore, parent: QObject | None = None) -> None:
        super().__init__(calibrations, parent)
        self.operations: OperationCounts | None = None

    # --- What can be run ----------------------------------------------------------------------------------------------
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

    def why_no_table(self) -> str:
        """Why there are no strategy tables of the chosen model, as a sentence, or ``""``."""
        if any(one.name == DITREDUCIO for one in self.techniques):
            return ""
        return f"{self.entry.title} has no strategy table: DiTReducio is for flow models, such as F5 mini."

    def why_not_calibrate(self) -> str:
        """Why nothing can be calibrated now, as a sentence, or ``""``."""
        if self.why_no_table():
            return self.why_no_table()
        if not any(one.prepared_by == "calibration" and self.is_engaged(one.name) for one in self.techniques):
            return "Engage DiTReducio first: only it needs a calibration."
        return self.why_not_synthesise() or conflict(self.setting) or ""

    def why_not_accelerate(self) -> str:
        """Why no accelerated take can be synthesised now, as a sentence, or ``""``."""
        if not self.setting.techniques:
            return "Engage at least one technique first."
        return self.why_not_synthesise() or conflict(self.setting) or self.table_problem() or self._problem() or ""

    def why_not_transfer(self) -> str:
        """Why it cannot be measured how well the strategy table transfers, as a sentence, or ``""``."""
        if self.why_no_table():
            return self.why_no_table()
        if not self.is_engaged(DITREDUCIO):
            return "Engage DiTReducio first: its strategy table is measured."
        return self.why_not_accelerate()

    # --- Techniques ---------------------------------------------------------------------------------------------------
    def technique_problem(self, name: str) -> str:
        """Why the technique cannot be used as things are selected, whatever others do, as a sentence, or ``""``."""
        if not self.is_engaged(name):
            return ""
        setting = self.setting
        reason = conflict(setting, name)
        if reason or name == DITREDUCIO:
            return reason or self.table_problem()
        entry = setting.engaged(name)
        # Beside nothing else, so that each technique is blamed for what it cannot do only.
        return (problem(self.info, self.baseline_setting.with_technique(entry)) or "") if self.info is not None else ""

    def technique_remarks(self, name: str) -> tuple[str, ...]:
        """What the technique's knobs bring about that may surprise, in sentences."""
        return remarks(self.setting).get(name, ()) if self.is_engaged(name) else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a take would carry as notes, beyond what its techniques remark."""
        if self.info is None or self.info.id != self.model_id:
            return ()
        said = {one for name in self._engaged for one in self.technique_remarks(name)}
        for setting, artefacts in ((self.setting, self._artefacts), (self.baseline_setting, ())):
            try:
                return tuple(one for one in resolve(self.info, setting, artefacts).notes if one not in said)
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

    def why_no_instruction(self) -> str:
        """Why an instruction how to speak would not be followed, as a sentence, or ``""``."""
        if self.options.get(MODE.name, INSTRUCT) == INSTRUCT:
            return ""
        title = MODE.titles[MODE.values.index(INSTRUCT)]
        return f"Only for the mode “{title}”; choose that first."

    def _problem(self) -> str | None:
        """Why the loaded model cannot be used with the engaged techniques, as a sentence, or ``None``."""
        return problem(self.info, self.setting, self._artefacts) if self.info is not None else None

    @property
    def _artefacts(self) -> tuple[StrategyTable, ...]:
        return (self.table,) if self.table is not None and self.is_engaged(DITREDUCIO) else ()

    # --- Cost ---------------------------------------------------------------------------------------------------------
    @property
    def predicted_ops_ratio(self) -> float | None:
        """Share of the baseline's operations that the accelerated setting needs; ``None`` while it is unknown."""
        if self.operations is None or self.info is None or self.table_problem():
            return None
        try:
            return resolve(self.info, self.setting, self._artefacts).ops_ratio(self.operations)
        except PlainError:
            return None
