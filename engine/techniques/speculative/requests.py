"""Speculative decoding's training request. Torch-free and picklable."""

from __future__ import annotations

from dataclasses import dataclass

from engine.training.requests import CompanionRequest


@dataclass(frozen=True, kw_only=True)
class DraftRequest(CompanionRequest):
    """Train a draft: the model's lowest ``lower`` and topmost ``upper`` layers, of which the lowest and the head learn.
    The result is :class:`engine.training.requests.Trained`."""

    lower: int = 2
    upper: int = 0
    spoken_share: float = 0.2
    """Share of the cross-entropy in the loss; the rest is the divergence from the target. 1 is the published loss."""
    overlap_share: float = 0.5
    """Share of the rejection rate in that rest."""
    initial: str = ""
    """File of a draft of the same layers to start from."""
