"""CFG-free's training request. Torch-free and picklable."""

from __future__ import annotations

from dataclasses import dataclass

from paretone.training.requests import FineTuningRequest

METHODS = ("model-guidance", "distillation")
"""The papers' method, and copying the guided model."""


@dataclass(frozen=True, kw_only=True)
class GuidanceFreeRequest(FineTuningRequest):
    """Fine-tune ``model`` so that one branch speaks as under guidance. Without a ``matrix_rate``, AdamW moves
    everything. The result is :class:`paretone.training.requests.Trained`."""

    weight: float
    """w, between 0 and 1; equals guidance w / (1 − w)."""
    method: str = METHODS[0]
    weight_warm_up: float = 0.1
    """Share of the budget in which w rises."""
    latest: float = 1.0
    """Time after which the target is the plain one."""
    average_difference: bool = False
    """Whether the difference of the branches is the averaged model's."""
