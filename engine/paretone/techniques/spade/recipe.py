"""The student of SPADE: the layers that matter, which learn what the removed ones did.

Everything trains, by the composite loss of :mod:`paretone.techniques.spade.losses`, on the teacher's own speech, on
recordings, or on both. What was lost is back long before the loss has settled: the divergence and the share of equal
first choices, on held-out utterances, show it.

Source: "SPADE: Structured Pruning and Adaptive Distillation for Efficient LLM-TTS", arXiv 2509.20802.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from paretone import files
from paretone.models.files.layer_importance import require_layers
from paretone.techniques.spade.losses import ALPHA, composite_loss, target_layers
from paretone.training.losses import each_divergence
from paretone.training.spoken_tokens import Collate, TokenBatch
from paretone.training.token_network import TokenNetwork
from paretone.training.token_recipe import TokenData, TokenOptions, TokenRecipe, listed
from paretone.wording import percent

RECOVERED = "recovered"


@dataclass(frozen=True)
class StudentOptions(TokenOptions):
    """Options of a run."""

    retained: tuple[int, ...] = ()
    """The teacher's layers that the student starts from."""
    alpha: float = ALPHA
    """Weight of the cross-entropy to spoken tokens; the four terms of distillation share the rest."""
    attention_interval: int = 8
    """Attention is compared in every so-many-th step: the smallest term by far, and the dearest."""
    relative_latents: bool = True
    """See :mod:`paretone.techniques.spade.losses`; false is the published term."""


class StudentRecipe(TokenRecipe):
    """Trains a student of ``teacher``; see :class:`paretone.training.recipe.Recipe`."""

    teacher: TokenNetwork
    options: StudentOptions

    name = "spade"

    def __init__(
        self,
        teacher: TokenNetwork,
        base: str,
        data: TokenData,
        collate: Collate,
        device: torch.device,
        options: StudentOptions,
    ) -> None:
        """Raises :class:`paretone.errors.SettingError` for layers that the teacher has not."""
        layers = teacher.transformer.config.layers
        self._retained = require_layers(options.retained, layers)
        self._targets = target_layers(self._retained, layers)
        torch.manual_seed(options.seed)
        model = teacher.kept(self._retained).requires_grad_(True)
        super().__init__(teacher, model, base, data, collate, device, options)

    @property
    def retained(self) -> tuple[int, ...]:
        return self._retained

    def losses(self, batch: TokenBatch) -> tuple[Tensor, dict[str, float]]:
        options, every = self.options, range(len(self._retained))
        looks = self.steps % options.attention_interval == 0
        with torch.no_grad():
            wanted = self.teacher(batch, outputs=self._targets, attention=self._targets if looks else ())
        found = self.model(batch, outputs=every, attention=every if looks else ())
        spoken = batch.labels[batch.predicting]
        terms = composite_loss(found, wanted, spoken, self._targets, batch.heard, options.relative_latents)
        return terms.total(options.alpha), terms.named()

    def figures(self, batch: TokenBatch) -> dict[str, Tensor]:
        """``divergence`` from the teacher in nats, and the share of positions at which both would choose the same."""
        wanted, found = self.teacher(batch).logits, self.average.module(batch).logits
        return {
            "divergence": each_divergence(found, wanted),
            "same_first": (found.argmax(-1) == wanted.argmax(-1)).float(),
            "correct": (found.argmax(-1) == batch.labels[batch.predicting]).float(),
        }

    def metadata_after(self, seconds: float) -> dict[str, str]:
        return self.metadata_at(RECOVERED, seconds / 60)

    def summary(self, validation: Mapping[str, float]) -> str:
        count = len(self.retained)
        return (
            f"A student with {count} layer{'s' * (count > 1)} ({', '.join(map(str, self.retained))}); on held-out "
            f"speech it agrees with its teacher on {percent(validation['same_first'])} of the tokens, and diverges by "
            f"{validation['divergence']:.3f} nats."
        )

    def metadata_at(self, stage: str, minutes: float) -> dict[str, str]:
        """Metadata of the file of this ``stage``, after CPU ``minutes``."""
        return {
            "kind": "student",
            "base": self.base,
            "retained": listed(self.retained),
            "stage": stage,
            "minutes": f"{minutes:.3g}",
            "steps": str(self.steps),
            "origin": self.data.origin,
        }

    def save(self, path: Path, metadata: Mapping[str, str]) -> None:
        """The whole student, its layers numbered without gaps."""
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(path, save(self.average.module.tensors(), dict(metadata)))

    @property
    def file_name(self) -> str:
        return f"student-{len(self.retained)}.safetensors"
