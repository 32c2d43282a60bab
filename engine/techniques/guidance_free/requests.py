"""CFG-free's training request. Torch-free and picklable."""

from __future__ import annotations

from dataclasses import dataclass

from engine.training.requests import TrainingRequest

METHODS = ("model-guidance", "distillation")
"""The papers' method, and copying the guided model."""


@dataclass(frozen=True, kw_only=True)
class GuidanceFreeRequest(TrainingRequest):
    """Fine-tune ``model`` on ``manifest`` so that one branch speaks as under guidance; the bundled model, without one,
    on the kind of speech that it learnt from. ``folder`` and ``variant`` as in
    :class:`engine.session.commands.LoadModel`; the loaded model is not touched. The result is
    :class:`engine.training.requests.Trained`."""

    weight: float
    """w, between 0 and 1; equals guidance w / (1 − w)."""
    method: str = METHODS[0]
    variant: str = ""
    learning_rate: float | None = None
    """``None`` for the usual one of a model of this size."""
    matrix_rate: float | None = None
    """Muon's learning rate for the matrices of the blocks; ``None``: AdamW moves everything."""
    frames: int = 1_800
    """Mel frames of a step."""
    weight_warm_up: float = 0.1
    """Share of the budget in which w rises."""
    latest: float = 1.0
    """Time after which the target is the plain one."""
    average_difference: bool = False
    """Whether the difference of the branches is the averaged model's."""
    seed: int = 1
