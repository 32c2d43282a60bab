"""Optimisers of the bundled models: Muon for the matrices of their layers, AdamW for everything else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.optim import AdamW, Optimizer

from paretone.errors import TrainingError
from paretone.training.muon import Muon

MATRICES, OTHERS = "matrices", "others"
"""The two optimisers by name, as checkpoints keep them, in the order in which they step."""


@dataclass(frozen=True)
class Rates:
    """Learning rates."""

    matrices: float | None
    """Muon's learning rate; ``None``: AdamW moves everything."""
    others: float
    """AdamW's learning rate."""

    def unless_asked(self, others: float | None, matrices: float | None) -> Rates:
        """These, unless others are asked for; who asks for AdamW's alone asks for AdamW on everything."""
        if others is None and matrices is None:
            return self
        return Rates(matrices, self.others if others is None else others)


@dataclass(frozen=True)
class LayerMatrices:
    """Which parameters Muon moves, by their names: the matrices whose name contains ``inside``, unless it contains
    ``apart_from`` (AdaLN's, which are zero at the start)."""

    inside: str
    apart_from: str | None = None

    def split(self, model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        """These, and all other parameters; of both, those that are trained."""
        matrices: list[nn.Parameter] = []
        others: list[nn.Parameter] = []
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                chosen = self.inside in name and not (self.apart_from and self.apart_from in name)
                (matrices if chosen and parameter.ndim == 2 else others).append(parameter)
        return matrices, others


class MuonAndAdamW:
    """The two as one. ``parts`` are the optimisers by name, :data:`MATRICES` only where Muon has a rate."""

    def __init__(
        self,
        model: nn.Module,
        layers: LayerMatrices,
        rates: Rates,
        matrix_decay: float = 0.01,
        half_precision: bool = False,
    ) -> None:
        """``matrix_decay``: weight decay of the matrices, nothing else has any. ``half_precision``: Muon's iteration in
        bfloat16; weights and their updates stay as they are."""
        matrices, others = layers.split(model)
        self.parts: dict[str, Optimizer] = {}
        self._rates = {OTHERS: rates.others}
        if rates.matrices is None:
            others = [one for one in model.parameters() if one.requires_grad]
        else:
            self._rates[MATRICES] = rates.matrices
            self.parts[MATRICES] = Muon(
                matrices,
                lr=rates.matrices,
                weight_decay=matrix_decay,
                iteration_type=torch.bfloat16 if half_precision else torch.float32,
            )
        self.parts[OTHERS] = AdamW(others, lr=rates.others, betas=(0.9, 0.98), weight_decay=0.0, fused=True)

    def start(self, scale: float) -> None:
        """Before the pass backwards: drop the last step's gradients, and learn at ``scale`` times the full rates."""
        for name, optimiser in self.parts.items():
            optimiser.param_groups[0]["lr"] = self._rates[name] * scale
            optimiser.zero_grad(set_to_none=True)

    def step(self) -> None:
        """One update by the gradients that there are."""
        for optimiser in self.parts.values():
            optimiser.step()

    def state(self) -> dict[str, Any]:
        """For a checkpoint: the optimisers' own states by name."""
        return {name: optimiser.state_dict() for name, optimiser in self.parts.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state`. Raises :class:`TrainingError` when it is of other optimisers."""
        if set(state) != set(self.parts):
            raise TrainingError("The run to resume was trained with other optimisers; give the same rates.")
        for name, optimiser in self.parts.items():
            optimiser.load_state_dict(state[name])
