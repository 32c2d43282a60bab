"""Common part of trainings of speech language models: the frozen teacher, if there is one, and batches. See
:class:`paretone.training.recipe.Recipe`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from paretone.errors import TrainingError
from paretone.stopping import may_stop
from paretone.training.batch_queue import BatchQueue, held_out_pairs
from paretone.training.learner import Learner, LearningOptions
from paretone.training.learning_recipe import LearningRecipe
from paretone.training.optimisers import LayerMatrices
from paretone.training.spoken_tokens import Collate, SpokenTokens, TokenBatch
from paretone.training.token_network import TokenNetwork

LAYER_MATRICES = LayerMatrices("layers.")


@dataclass(frozen=True)
class TokenOptions(LearningOptions):
    """Options of a run."""

    positions: int = 1_600
    """Positions of one step: text, speech and padding."""
    matrix_rate: float | None = 0.01
    other_rate: float = 1e-3
    warm_up: int = 20
    joined_share: float = 0.6
    average_decay: float = 0.995
    validation_items: int = 12


@dataclass(frozen=True)
class TokenData:
    """Utterances to learn from and to validate on."""

    training: tuple[SpokenTokens, ...]
    held_out: tuple[SpokenTokens, ...]
    origin: str = ""
    """Origin of the examples, in words."""


class TokenRecipe(LearningRecipe[TokenOptions, TokenNetwork]):
    """Trains ``model``, some recipes on what ``teacher``, which stays as it is, makes of the same sequences."""

    name: ClassVar[str]

    def __init__(
        self,
        teacher: TokenNetwork | None,
        model: TokenNetwork,
        base: str,
        data: TokenData,
        collate: Collate,
        device: torch.device,
        options: TokenOptions,
    ) -> None:
        """``base`` is the fingerprint of the checkpoint that is started from, the teacher's; ``collate`` lays batches
        out as the model reads them."""
        super().__init__(Learner.by(model.to(device), LAYER_MATRICES, options), device, options)
        self.teacher = None if teacher is None else teacher.to(device).eval().requires_grad_(False)
        self.base, self.data, self.collate = base, data, collate
        self._queue = BatchQueue(data.training, options.positions // 2, options.joined_share, options.seed)

    # --- What a recipe adds -------------------------------------------------------------------------------------------
    def losses(self, batch: TokenBatch) -> tuple[Tensor, dict[str, float]]:
        """The loss to go down, and the terms of it to log."""
        raise NotImplementedError

    def figures(self, batch: TokenBatch) -> dict[str, Tensor]:
        """Validation figures of the averaged model, one value for every predicting position of ``batch``."""
        raise NotImplementedError

    def metadata_after(self, seconds: float) -> dict[str, str]:
        """Metadata of the result's file, after this number of seconds of the budget."""
        raise NotImplementedError

    def summary(self, validation: Mapping[str, float]) -> str:
        """Result, as a sentence."""
        raise NotImplementedError

    def save(self, path: Path, metadata: Mapping[str, str]) -> None:
        """Write the averaged weights with ``metadata``. Raises :class:`OSError`."""
        raise NotImplementedError

    # --- The recipe ---------------------------------------------------------------------------------------------------
    def describe(self) -> dict[str, Any]:
        return {
            "utterances": len(self.data.training),
            "tokens": sum(one.frames for one in self.data.training),
            "origin": self.data.origin,
            "parameters": sum(one.numel() for one in self.model.parameters()),
            "trained_parameters": sum(one.numel() for one in self.model.parameters() if one.requires_grad),
            "initial_weights": self.base,
            "options": asdict(self.options),
        }

    def next_loss(self, progress: float) -> tuple[Tensor, dict[str, Tensor | float]]:
        items = [[self.data.training[one] for one in item] for item in self._queue.next()]
        with self.options.autocast(self.device):
            loss, terms = self.losses(self.collate(items).to(self.device))
        return loss, {"loss": loss.detach(), **terms}

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """:meth:`figures` on held-out utterances, mean over positions."""
        found: dict[str, list[Tensor]] = {}
        for batch in self._validation_batches:
            may_stop()
            for name, values in self.figures(batch.to(self.device)).items():
                found.setdefault(name, []).append(values.float().cpu())
        return {name: float(torch.cat(values).mean()) for name, values in found.items()}

    @cached_property
    def _validation_batches(self) -> list[TokenBatch]:
        batches = held_out_pairs(self.data.held_out, self.options.validation_items, 6)
        return [self.collate(items) for items in batches]

    def state(self) -> dict[str, Any]:
        return {
            **super().state(),
            "queue": self._queue.state(),
            "base": self.base,
            "retained": list(self.retained),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Raises :class:`TrainingError` when the checkpoint was started from other weights or has other layers."""
        if state["base"] != self.base or tuple(state["retained"]) != self.retained:
            raise TrainingError(
                "The run to resume was started from another checkpoint or keeps other layers; choose another folder, "
                "or resume it as it was started."
            )
        super().restore(state)
        self._queue.restore(state["queue"])

    @property
    def retained(self) -> tuple[int, ...]:
        """The teacher's layers that the model has."""
        raise NotImplementedError

    def export(self, folder: Path) -> None:
        self.save(folder / self.file_name, self.metadata_after(0.0))

    @property
    def file_name(self) -> str:
        """File name of the result."""
        raise NotImplementedError


def listed(layers: Sequence[int]) -> str:
    """Layers as the metadata of a file has them: ``[0,1,11]``."""
    return "[" + ",".join(map(str, layers)) + "]"
