"""What studies and exports ask of DiTReducio: see :mod:`paretone.studies.hooks` and :mod:`paretone.export.targets`.
Torch-free."""

from __future__ import annotations

from collections.abc import Sequence

from paretone.export.accounts import TABLE, Carried, Line, whole_line
from paretone.export.targets import Target, lacking
from paretone.models.base import FlowModel, SpeechModel, Utterance, flow_model
from paretone.observer import Observer
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import compatibility_of
from paretone.techniques.ditreducio import TECHNIQUE
from paretone.techniques.ditreducio.record import CalibrationRecord
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.wording import percent


def preparer() -> Calibrations:
    """Maker of strategy tables on one worker."""
    return Calibrations()


class Calibrations:
    """Calibrates, unless an earlier calibration decides every trial of another threshold alike."""

    def __init__(self) -> None:
        self._records: list[CalibrationRecord] = []

    def __call__(
        self, model: SpeechModel, utterances: Sequence[Utterance], setting: Setting, observer: Observer
    ) -> StrategyTable:
        """The strategy table for ``setting``. Raises :class:`PlainError` if there is none."""
        # Imports torch.
        from paretone.techniques.ditreducio.preparation import calibrate_model

        flow = flow_model(model, "Calibrating")
        derived = self._derived(flow, setting)
        if derived is not None:
            return derived
        record = calibrate_model(flow, utterances, setting, observer)
        self._records.append(record)
        return record.table

    def _derived(self, model: FlowModel, setting: Setting) -> StrategyTable | None:
        compatibility, used = compatibility_of(model.info, setting), setting.technique(TECHNIQUE.name)
        assert used is not None
        threshold = used.knobs["threshold"]
        for record in self._records:
            alike = record.knobs.replace(threshold=threshold) == used.knobs and record.seed == setting.seed
            if not alike or record.table.compatibility.mismatch(compatibility):
                continue
            derived = record.derive(float(threshold))
            if derived.exact:
                return derived.table
        return None


REUSE = "reuse"
"""The only kind of temporal skip that the official way knows."""


def carried(target: Target, entry: UsedTechnique, artefact: StrategyTable | None) -> Carried:
    """The strategy table, unless it forecasts."""
    if TABLE not in target.takes or artefact is None:
        return lacking(target, entry)
    if artefact.temporal != REUSE:
        reason = (
            f"the strategy table was calibrated with forecasts, which {target.program} cannot run; calibrate without "
            "them"
        )
        return Carried(drops=(whole_line(entry, reason),))
    said = f"{percent(artefact.skipped_share)} of the layers' work units skipped"
    actions = [[action.name for action in row] for row in artefact.actions]
    return Carried(
        (Line("Strategy table", said, "carried out block by block, step by step"),),
        given={"table": {"branch_skip": artefact.branch_skip, "actions": actions}},
    )
