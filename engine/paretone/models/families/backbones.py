"""A model's backbones: its own, and those with other weights or in other precisions, made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paretone.errors import CheckpointError
from paretone.last_used import LastUsed
from paretone.models.base import IntervalWeights, WeightSet
from paretone.models.families.evaluations import require_layers
from paretone.models.files.interval_weights import interval_backbone
from paretone.models.kernels.compiled import COMPILING, compiled_backbone, warmed
from paretone.models.kernels.precision import in_precision
from paretone.sampling.flow import Evaluated
from paretone.setting.plan import FlowPlan

MOST_KEPT = 3
"""Maximum number kept in addition to the model's own."""


class Backbones:
    """Hands out the backbone that a synthesis runs, ready and warm."""

    def __init__(
        self,
        own: Evaluated,
        read_weights: Callable[[WeightSet], Evaluated] | None,
        warm_up: Callable[[Evaluated], None],
    ) -> None:
        """``read_weights`` gives the backbone with other weights, ready for inference; ``None``: there are none."""
        self.own = own
        self._read_weights = read_weights
        self._warm_up = warm_up
        self._others: LastUsed[Evaluated] = LastUsed(MOST_KEPT)
        """By fingerprint of the weights, precision and mode of compiling."""

    def __len__(self) -> int:
        """Number of cached ones."""
        return 1 + len(self._others)

    def of(self, plan: FlowPlan, status: Callable[[str], None] = lambda text: None) -> Any:
        """The backbone, a module of the model's own kind, with the weights and in the precision of a plan."""
        weights, precision, mode = plan.weights, plan.precision, plan.launching.mode
        if weights is None and precision == "float32" and mode is None:
            return self.own

        def make() -> Evaluated:
            status("Preparing other weights …" if mode is None else COMPILING)
            narrowed = in_precision(self._in_full(weights), precision)
            made = narrowed if mode is None else compiled_backbone(narrowed, mode)
            self._warm_up(made)
            warmed(made)
            return made

        return self._others.of((weights and weights.fingerprint, precision, mode), make)

    def _in_full(self, weights: WeightSet | IntervalWeights | None) -> Any:
        """The backbone with these weights, ``None`` for its own, in float32: a module of one of two kinds, whichever
        the model has."""
        if weights is None:
            return self.own
        if isinstance(weights, IntervalWeights):
            return interval_backbone(require_layers(self.own, "The model"), weights)
        if self._read_weights is None:
            raise CheckpointError("The model takes no other weights.")
        return self._read_weights(weights)
