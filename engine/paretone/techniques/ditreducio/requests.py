"""DiTReducio's requests and results: calibration, transfer. Torch-free and picklable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from paretone.models.base import Utterance
from paretone.sampling.operations import OperationCounts
from paretone.setting.setting import Setting
from paretone.techniques.ditreducio.record import CalibrationRecord
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.techniques.ditreducio.transfer_report import TransferReport


@dataclass(frozen=True)
class CalibrationRequest:
    """Calibrate for ``setting``, whose DiTReducio knobs say how, on all ``utterances`` together. ``combine`` is one of
    :data:`paretone.techniques.ditreducio.COMBINATIONS`. Reports are
    :class:`paretone.techniques.ditreducio.record.Trial` and :class:`Similarities`; the result is
    :class:`Calibrated`."""

    activity: ClassVar[str] = "calibrating"

    utterances: tuple[Utterance, ...]
    setting: Setting
    combine: str = "worst"


@dataclass(frozen=True)
class Similarities:
    """The check phase's diagonal similarities so far: (layers, steps) float, NaN where not yet measured."""

    values: np.ndarray = field(repr=False)


@dataclass(frozen=True)
class Calibrated:
    """A finished calibration."""

    record: CalibrationRecord
    operations: OperationCounts
    """Operations of one backbone evaluation of the first sentence."""
    seconds: float


@dataclass(frozen=True)
class TransferRequest:
    """Measure how well ``table``, ``calibrated`` on these utterances as far as they are known, serves ``unseen`` ones.
    Errors are compared with the threshold of DiTReducio in ``setting``. The result is :class:`TransferMeasured`."""

    activity: ClassVar[str] = "measuring the transfer"

    table: StrategyTable
    calibrated: tuple[Utterance, ...]
    unseen: tuple[Utterance, ...]
    setting: Setting


@dataclass(frozen=True)
class TransferMeasured:
    """Transfer of a strategy table to sentences that it was not calibrated on."""

    report: TransferReport
    seconds: float
