"""Draft of speech speculative decoding: a few of the target's layers, of which the lowest and the head are trained.

The published draft has the target's lowest two layers and topmost quarter; the upper layers, all embeddings and the
final norm stay frozen, so that a draft's file holds two layers and a head. For a target with few layers the lowest two
alone are faster: the benefit of a frozen layer is smaller than its cost. The paper's loss is the cross-entropy of
spoken tokens. Here the divergence from the target's distribution is added, and one minus the overlap of the two
distributions, which is the rejection rate.

Source: "Accelerating Autoregressive Speech Synthesis Inference With Speech Speculative Decoding", arXiv 2505.15380.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from paretone.errors import SettingError, TrainingError
from paretone.models.base import DraftWeights
from paretone.models.files.checkpoints import read_weights
from paretone.models.files.layer_importance import layer_of
from paretone.models.files.trained_weights import DRAFTS, read_draft
from paretone.techniques.base import JobTask
from paretone.techniques.resolving import known
from paretone.techniques.speculative import TECHNIQUE, DraftRequest, OfLayers, fitting_upper
from paretone.techniques.speculative.feature_training import DraftOnFeatures
from paretone.training.companions import Companion, CompanionRecipe, MakeRecipe, train_companion
from paretone.training.learner import Rates
from paretone.training.requests import CompanionRequest, Follower, Trained
from paretone.training.runs import Reporting, use_threads
from paretone.training.spoken_tokens import TokenBatch
from paretone.training.teachers import Teacher
from paretone.training.token_recipe import (
    TokenData,
    TokenNetwork,
    TokenOptions,
    cross_entropy,
    divergence,
    listed,
    overlap,
)
from paretone.wording import percent


@dataclass(frozen=True)
class DraftOptions(OfLayers, TokenOptions):
    """Options of a run. Raises :class:`paretone.errors.SettingError` for shares outside 0 to 1."""

    temperature: float = 0.8
    """Temperature of the comparison of draft and target: that of the sampler that verifies drafts."""

    def __post_init__(self) -> None:
        for name, share in (("cross-entropy", self.spoken_share), ("overlap", self.overlap_share)):
            if not 0 <= share <= 1:
                raise SettingError(f"The share of the {name} in the loss must lie between 0 and 1, not at {share:g}.")


class DraftRecipe(CompanionRecipe[TokenNetwork]):
    """Trains a draft of ``teacher``; see :class:`paretone.training.session.Recipe`."""

    options: DraftOptions

    name = kind = "draft"

    def __init__(
        self,
        teacher: Teacher,
        data: TokenData,
        device: torch.device,
        options: DraftOptions = DraftOptions(),
        initial: Mapping[str, Tensor] | None = None,
    ) -> None:
        """``initial`` are tensors of an earlier draft with the same layers to start from, instead of the teacher's."""
        layers = teacher.network.transformer.config.layers
        upper = fitting_upper(layers) if options.upper is None else options.upper
        retained = retained_layers(layers, options.lower, upper)
        torch.manual_seed(options.seed)
        model = teacher.network.kept(retained).requires_grad_(False)
        if initial is not None:
            model.take(initial, retained)
        for layer in model.transformer.layers[: options.lower]:
            layer.requires_grad_(True)
        model.head.weight.requires_grad_(True)
        super().__init__(teacher, model, retained, data, device, options)

    @property
    def trained(self) -> tuple[int, ...]:
        return self.retained[: self.options.lower]

    def losses(self, batch: TokenBatch) -> tuple[Tensor, dict[str, float]]:
        with torch.no_grad():
            wanted = self.teacher(batch).logits
        found = self.model(batch).logits
        spoken = cross_entropy(found, batch.labels[batch.predicting])
        warmth = self.options.temperature
        found, wanted = found.float() / warmth, wanted.float() / warmth
        apart = divergence(found, wanted)
        rejected = 1 - torch.minimum(found.softmax(-1), wanted.softmax(-1)).sum(-1).mean()
        share, overlapping = self.options.spoken_share, self.options.overlap_share
        loss = share * spoken + (1 - share) * ((1 - overlapping) * apart + overlapping * rejected)
        terms = {"cross_entropy": spoken, "divergence": apart, "rejected": rejected}
        return loss, {name: float(value.detach()) for name, value in terms.items()}

    def figures(self, batch: TokenBatch) -> dict[str, Tensor]:
        """``acceptance``: Σ min(p, q) at a position, the probability that the target accepts the draft's token."""
        wanted, found = self.teacher(batch).logits, self.average.module(batch).logits
        spoken = batch.labels[batch.predicting]
        return {
            "acceptance": overlap(found, wanted, self.sampler),
            "same_first": (found.argmax(-1) == wanted.argmax(-1)).float(),
            "correct": (found.argmax(-1) == spoken).float(),
        }

    @property
    def particulars(self) -> dict[str, str]:
        return {"retained": listed(self.retained), "trained": listed(self.trained), "head": "true"}

    def summary(self, validation: Mapping[str, float]) -> str:
        return (
            f"A draft of {len(self.retained)} layers ({', '.join(map(str, self.retained))}), of which "
            f"{len(self.trained)} and the head were trained; on held-out speech {percent(validation['acceptance'])} of "
            "its tokens would be accepted."
        )

    def tensors(self) -> Mapping[str, Tensor]:
        """The trained part only: the layers under the target's numbers, and the head."""
        network = self.average.module
        names, places = network.names, dict(enumerate(self.retained))
        kept = {}
        for name, value in network.tensors().items():
            layer = layer_of(name)
            if name == names.head:
                kept[name] = value
            elif layer is not None and places[layer] in self.trained:
                inner = name.removeprefix(f"{names.layers}{layer}.")
                kept[f"{names.layers}{places[layer]}.{inner}"] = value
        return kept

    @property
    def file_name(self) -> str:
        return f"draft-{len(self.retained)}.safetensors"


def retained_layers(layers: int, lower: int, upper: int) -> tuple[int, ...]:
    lower = min(lower, layers)
    return (*range(lower), *range(max(lower, layers - upper), layers))


@dataclass(frozen=True)
class Draft(Companion):
    """The model's lowest and topmost layers."""

    kind: ClassVar[str] = DRAFTS
    large_rates: ClassVar[Rates] = Rates(None, 1e-4)
    """AdamW's. The SSD paper gives no rate for drafts; this one is untested on releases."""
    options: DraftOptions
    initial: Path | None = None
    """Earlier draft with the same layers to start from."""

    @classmethod
    def of(cls, request: DraftRequest) -> Draft:
        chosen = {one.name: getattr(request, one.name) for one in fields(OfLayers)}
        return cls(DraftOptions(**request.token_options, **chosen), Path(request.initial) if request.initial else None)

    def recipe(self, request: CompanionRequest, teacher: Teacher, rates: Rates, follower: Follower) -> MakeRecipe:
        """Raises :class:`CheckpointError` for another checkpoint's draft, :class:`SettingError` for other layers."""
        recipe = partial(DraftRecipe, teacher, options=self.options_at(rates, temperature=teacher.temperature))
        if self.initial is None:
            return recipe
        lower = min(self.options.lower, teacher.network.transformer.config.layers)
        draft = read_draft(self.initial, teacher.base, DraftWeights, follower.check)
        if draft.trained != tuple(range(lower)):
            raise SettingError(
                f"{self.initial} has learnt in {len(draft.trained)} of the model's layers, not in the {lower} lowest "
                "ones; train a draft with as many, or start without it."
            )
        return partial(recipe, initial=read_weights(self.initial, follower.check))


def train(task: JobTask) -> Trained:
    request: DraftRequest = task.request
    if reason := TECHNIQUE.not_offered(known(request.model)):
        raise TrainingError(reason)
    use_threads(request)
    companion = DraftOnFeatures.of(request) if request.features else Draft.of(request)
    return train_companion(request, companion, Reporting(task.observer))
