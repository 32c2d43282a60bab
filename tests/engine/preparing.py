"""Commands that ask for the preparations of techniques."""

from __future__ import annotations

from engine.models.base import Utterance
from engine.session.commands import Prepare
from engine.setting.setting import Setting
from engine.techniques import ditreducio
from engine.techniques.ditreducio.requests import CalibrationRequest, TransferRequest
from engine.techniques.ditreducio.table import StrategyTable


def calibrate(job: int, utterances: tuple[Utterance, ...], setting: Setting, combine: str = "worst") -> Prepare:
    """Calibrate DiTReducio under ``setting``."""
    return Prepare(job, ditreducio.NAME, CalibrationRequest(utterances, setting, combine))


def measure_transfer(
    job: int,
    table: StrategyTable,
    calibrated: tuple[Utterance, ...],
    unseen: tuple[Utterance, ...],
    setting: Setting,
) -> Prepare:
    """Measure how well ``table`` serves ``unseen`` utterances."""
    return Prepare(job, ditreducio.NAME, TransferRequest(table, calibrated, unseen, setting))
