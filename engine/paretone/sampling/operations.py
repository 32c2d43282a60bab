"""Operations of a backbone evaluation. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OperationCounts:
    """Operations (multiply-adds × 2) of one backbone evaluation, one branch and item, split by what a skip can save.

    Counted: every matrix product, convolution and attention product of the backbone (1 multiply-add = 2 operations).
    Not counted: norms, activations, rotary embedding, residual additions; and everything computed once before the first
    evaluation: text embedding, the prompt's share of the input, AdaLN (tabulated once per schedule). A counter over the
    whole sampling therefore finds more: with the bundled F5 mini in 16 steps 1 % of the baseline, so that a ratio of
    0.21 becomes 0.22.
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
