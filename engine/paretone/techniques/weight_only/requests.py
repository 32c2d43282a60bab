"""Requests and results of measuring packed weights. Torch-free and picklable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from paretone.setting.setting import Setting
from paretone.techniques.weight_only.record import Measured


@dataclass(frozen=True)
class MeasureWeights:
    """Measure 8 bits, and 4 bits in each group of ``groups``, of the weights that ``setting`` runs. The result is
    :class:`WeightsMeasured`."""

    activity: ClassVar[str] = "measuring packed weights"

    setting: Setting
    groups: tuple[int, ...] = (32,)


@dataclass(frozen=True)
class WeightsMeasured:
    """What was measured on this device."""

    measured: tuple[Measured, ...]
    path: str
    """File that keeps it."""
