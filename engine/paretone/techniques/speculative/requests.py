"""Speculative decoding's training request. Torch-free and picklable."""

from __future__ import annotations

from dataclasses import dataclass

from paretone.training.requests import CompanionRequest

MEASURED_LAYERS = 12


def fitting_upper(layers: int) -> int:
    """Topmost layers of a draft for a model of ``layers``: a quarter of them, as published; of a dozen or fewer none,
    where layers are what a draft costs."""
    return 0 if layers <= MEASURED_LAYERS else layers // 4


@dataclass(frozen=True, kw_only=True)
class DraftRequest(CompanionRequest):
    """Train a draft: the model's lowest ``lower`` and topmost ``upper`` layers, of which the lowest and the head learn.
    The result is :class:`paretone.training.requests.Trained`."""

    lower: int = 2
    upper: int | None = None
    """``None``: :func:`fitting_upper`."""
    spoken_share: float = 0.2
    """Share of the cross-entropy in the loss; the rest is the divergence from the target. 1 is the published loss."""
    overlap_share: float = 0.5
    """Share of the rejection rate in that rest."""
    initial: str = ""
    """File of a draft of the same layers to start from."""
