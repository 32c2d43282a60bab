"""Commands that ask for the preparations of techniques."""

from __future__ import annotations

from paretone.models.base import Utterance
from paretone.session.commands import Prepare
from paretone.setting.setting import Setting
from paretone.techniques import ditreducio
from paretone.techniques.ditreducio.record import CalibrationRequest, TransferRequest
from paretone.techniques.ditreducio.table import StrategyTable


def calibrate(job: int, utterances: tuple[Utterance, ...], setting: Setting, combine: str = "worst") -> Prepare:
    """Calibrate DiTReducio under ``setting``."""
    return Prepare(job, ditreducio.NAME, CalibrationRequest(utterances, setting, combine))


def measure_transfer(
    job: int, table: StrategyTable, calibrated: tuple[Utterance, ...], unseen: tuple[Utterance, ...], setting: Setting
) -> Prepare:
    """Measure how well ``table`` serves ``unseen`` utterances."""
    return Prepare(job, ditreducio.NAME, TransferRequest(table, calibrated, unseen, setting))
