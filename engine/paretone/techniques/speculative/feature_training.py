"""Training of a draft that reads its target's hidden states (:mod:`paretone.models.networks.feature_draft`).

It is unrolled as in use: from the second drafted token on it reads its own output in place of the target's states. The
loss of each place of a draft is the cross-entropy to the target's distribution at the sampler's temperature, which
gives way to the rejection rate, one minus the overlap of both distributions.

Source: "EAGLE-3: Scaling up Inference Acceleration of Large Language Models via Training-Time Test", arXiv 2503.01840,
section 3.1. There the loss is the cross-entropy alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.models.base import FeatureDraftWeights
from paretone.models.files.checkpoints import read_float_weights
from paretone.models.files.trained_weights import DRAFTS, FEATURE_DRAFT, read_draft
from paretone.models.networks.feature_draft import FeatureDraft
from paretone.setting.knobs import Values
from paretone.techniques.speculative import DraftRequest
from paretone.training.companions import Companion, CompanionRecipe, MakeRecipe
from paretone.training.learner import LayerMatrices, Rates
from paretone.training.requests import CompanionRequest, Follower
from paretone.training.spoken_tokens import TokenBatch
from paretone.training.teachers import Teacher
from paretone.training.token_recipe import TokenData, TokenOptions, listed, overlap
from paretone.wording import percent

LATER = 0.8
"""Weight of a place of a draft over that of the place before it."""
PATIENCE, LEAST = 1.5, 0.1
"""The cross-entropy's share of the loss falls from 1 by this much over the budget, to at least the second."""
OVERLAP = 3.0
"""Factor of the rejection rate, which is below 1, where the cross-entropy is several nats."""


@dataclass(frozen=True)
class FeatureDraftOptions(TokenOptions):
    matrix_rate: float | None = 0.012
    other_rate: float = 2e-3
    warm_up: int = 50
    hold: float = 0.0
    depth: int = 5
    """Places of a draft that are trained. Beyond them acceptance falls: trained on three places, from 0.74 at the third
    to 0.41 at the fifth."""
    rank: int = 0
    """Of the head; 0: a quarter of the width."""
    temperature: float = 0.8
    """Of the comparison of both distributions: that of the sampler that verifies drafts."""


def read_layers(layers: int) -> tuple[int, ...]:
    """Inner layers to read of a target of ``layers``: the third and the middle one, as far as there are."""
    return tuple(sorted({min(2, layers // 3), layers // 2})) if layers > 1 else ()


@dataclass(frozen=True)
class Spoken:
    """The part of a batch that is speech, (batch, places, …), from the element on that predicts the first token."""

    features: Tensor
    """Of the element before; zero at the first place."""
    embedded: Tensor
    logits: Tensor
    """The target's."""
    labels: Tensor
    there: Tensor
    """False in the padding."""


class FeatureDraftRecipe(CompanionRecipe[FeatureDraft]):
    """Trains a draft of ``teacher``; see :class:`paretone.training.session.Recipe`."""

    options: FeatureDraftOptions
    # The head is an output layer, for AdamW.
    matrices = LayerMatrices("", apart_from="scores.")

    name, kind = "draft", FEATURE_DRAFT

    def __init__(
        self,
        teacher: Teacher,
        data: TokenData,
        device: torch.device,
        options: FeatureDraftOptions = FeatureDraftOptions(),
        initial: Mapping[str, Tensor] | None = None,
    ) -> None:
        """``initial``: tensors of an earlier draft to start from."""
        target = teacher.network
        config = target.transformer.config
        self._progress = 0.0
        torch.manual_seed(options.seed)
        rank = options.rank or max(1, config.hidden // 4)
        reads = read_layers(config.layers)
        model = FeatureDraft.of_target(target.transformer, target.head.weight, target.head.bias, reads, rank)
        if initial is not None:
            model.load_state_dict(dict(initial))
        super().__init__(teacher, model, reads, data, device, options)

    def next_loss(self, progress: float) -> tuple[Tensor, dict[str, Tensor | float]]:
        self._progress = progress
        return super().next_loss(progress)

    def losses(self, batch: TokenBatch) -> tuple[Tensor, dict[str, float]]:
        spoken, warmth = self._spoken(batch), self.options.temperature
        share = max(LEAST, 1 - PATIENCE * self._progress)
        outputs = self.model.unroll(spoken.features, spoken.embedded, self.options.depth)
        every = (spoken.logits.float() / warmth).softmax(-1)
        total, terms = spoken.features.new_zeros(()), {}
        for place, output in enumerate(outputs):
            here = self._places(spoken, place)
            found = F.log_softmax(self.model.logits(output[here]).float() / warmth, dim=-1)
            wanted = every[here]
            entropy = -(wanted * found).sum(-1).mean()
            rejected = 1 - torch.minimum(found.exp(), wanted).sum(-1).mean()
            total = total + LATER**place * (share * entropy + (1 - share) * OVERLAP * rejected)
            if not place:
                terms = {"cross_entropy": float(entropy.detach()), "rejected": float(rejected.detach())}
        return total, terms

    def figures(self, batch: TokenBatch) -> dict[str, Tensor]:
        """``acceptance``: Σ min(p, q), the probability that the target accepts the first drafted token; ``acceptance
        2`` and so on: that of later ones, whose predecessors were drafted."""
        spoken, model = self._spoken(batch), self.average.module
        found = {}
        for place, output in enumerate(model.unroll(spoken.features, spoken.embedded, self.options.depth)):
            here = self._places(spoken, place)
            drafted, wanted = model.logits(output[here]), spoken.logits[here]
            found[f"acceptance {place + 1}" if place else "acceptance"] = overlap(drafted, wanted, self.sampler)
            if not place:
                found["same_first"] = (drafted.argmax(-1) == wanted.argmax(-1)).float()
                found["correct"] = (drafted.argmax(-1) == spoken.labels[here]).float()
        return found

    @torch.no_grad()
    def _spoken(self, batch: TokenBatch) -> Spoken:
        seen = self.teacher(batch, outputs=self.model.reads, complete=True)
        features = torch.cat([*(seen.outputs[layer] for layer in self.model.reads), seen.hidden], dim=-1)
        predicting = batch.predicting
        lengths = predicting.shape[1] - predicting.int().flip(1).argmax(1) - predicting.int().argmax(1)
        where = predicting.int().argmax(1)[:, None] + torch.arange(int(lengths.max()), device=predicting.device)
        where = where.clamp(max=predicting.shape[1] - 1)

        def cut(values: Tensor) -> Tensor:
            index = where if values.dim() == 2 else where[..., None].expand(-1, -1, values.shape[-1])
            return values.gather(1, index)

        there = cut(predicting) & (torch.arange(where.shape[1], device=where.device) < lengths[:, None])
        return Spoken(
            F.pad(cut(features)[:, :-1], (0, 0, 1, 0)),
            cut(seen.embedded),
            self.teacher.head(cut(seen.hidden)),
            cut(batch.labels),
            there,
        )

    @staticmethod
    def _places(spoken: Spoken, back: int) -> Tensor:
        """Where the ``back``-th place after the first of a draft can be."""
        return spoken.there & (torch.arange(spoken.there.shape[1], device=spoken.there.device) >= back)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "reads": list(self.model.reads)}

    @property
    def particulars(self) -> dict[str, str]:
        return {"reads": listed(self.model.reads)}

    def summary(self, validation: Mapping[str, float]) -> str:
        later = "acceptance 2"
        then = f", then {percent(validation[later])} of the second ones" if later in validation else ""
        return (
            f"A draft that reads the states of layers {', '.join(map(str, self.model.reads))} and of the last; on "
            f"held-out speech {percent(validation['acceptance'])} of its first tokens would be accepted{then}."
        )

    def tensors(self) -> Mapping[str, Tensor]:
        return {name: value.half().contiguous() for name, value in self.average.module.state_dict().items()}

    @property
    def file_name(self) -> str:
        return "draft-on-features.safetensors"


@dataclass(frozen=True)
class DraftOnFeatures(Companion):
    """One layer on the target's hidden states."""

    kind: ClassVar[str] = DRAFTS
    large_rates: ClassVar[Rates] = Rates(None, 5e-5)
    """AdamW's, of EAGLE-3's published training; untested on speech."""
    options: FeatureDraftOptions
    initial: Path | None = None
    """Earlier draft to start from."""

    @classmethod
    def of(cls, request: DraftRequest) -> DraftOnFeatures:
        return cls(FeatureDraftOptions(**request.token_options), Path(request.initial) if request.initial else None)

    def recipe(self, request: CompanionRequest, teacher: Teacher, rates: Rates, follower: Follower) -> MakeRecipe:
        """Raises :class:`CheckpointError` for an initial draft of another checkpoint or kind."""
        options = self.options_at(rates, temperature=teacher.temperature)
        initial = None
        if self.initial is not None:
            read_draft(self.initial, teacher.base, FeatureDraftWeights, follower.check)
            initial = read_float_weights(self.initial, follower.check)
        return partial(FeatureDraftRecipe, teacher, options=options, initial=initial)

    def figures(self, recipe: CompanionRecipe) -> Values:
        return Values(reads=",".join(map(str, recipe.retained)))
