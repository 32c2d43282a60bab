"""Hooks of DiTReducio in studies: see :mod:`paretone.studies.hooks`."""

from __future__ import annotations

from collections.abc import Sequence

from paretone.models.base import FlowModel, SpeechModel, Utterance, flow_model
from paretone.observer import Observer
from paretone.setting.setting import Setting
from paretone.techniques import compatibility_of
from paretone.techniques.ditreducio import TECHNIQUE
from paretone.techniques.ditreducio.record import CalibrationRecord
from paretone.techniques.ditreducio.table import StrategyTable


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
