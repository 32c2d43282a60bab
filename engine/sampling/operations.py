"""Operations of a backbone evaluation. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OperationCounts:
    """Multiply-adds × 2 of one backbone evaluation, for one branch and one item, split by what a skip can save.

    Counted: every matrix product, convolution and attention product of the backbone (1 multiply-add = 2 operations).
    Not counted: norms, activations, rotary embedding, residual additions, AdaLN (tabulated once per schedule).
    """

    attention: float
    """Operations of one layer's attention module: q, k, v and output projections and both attention products."""
    feed_forward: float
    """Operations of one layer's feed-forward module."""
    fixed: float
    """Operations of the input and output layers, which no technique skips."""
    layers: int
    branches: int

    @property
    def evaluation(self) -> float:
        """Operations of one uncompressed evaluation, all branches."""
        return self.branches * (self.layers * (self.attention + self.feed_forward) + self.fixed)
