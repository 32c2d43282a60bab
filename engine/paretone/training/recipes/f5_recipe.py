"""Common part of the recipes of small F5 models: a DiT that reads one phone per mel frame and fills in masked spans.

The alignment, which a small model cannot learn, is given: text has as many tokens as the mel has frames, token k for
frame k. The layout is the official one, so the official code runs the result.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from paretone.models.f5.config import BackboneConfig
from paretone.models.f5.dit import DiT
from paretone.training.batch_queue import QueuedClip, held_out_pairs
from paretone.training.corpus import Corpus
from paretone.training.flow_matching import (
    LAYER_MATRICES,
    FlowMatchingDraw,
    FlowMatchingOptions,
    SpeechBatch,
    draw_problem,
    predicted_velocity,
    span_error,
    synthesis_problem,
)
from paretone.training.flow_times import errors_by_time
from paretone.training.recipes.bundled_recipe import BundledOptions, BundledRecipe
from paretone.training.recipes.initialising import WithMel, mel_frames, open_gates

SMALL_F5 = BackboneConfig(
    "DiT", dim=256, depth=8, heads=4, ff_mult=2, text_dim=128, text_mask_padding=True, conv_layers=3
)
"""A recipe adds the size of its vocabulary."""


class MelClip(QueuedClip, WithMel, Protocol):
    """A clip with its mel."""


@dataclass(frozen=True)
class F5Options(BundledOptions):
    """What a run of the recipe can change."""

    objective: FlowMatchingOptions = field(default_factory=FlowMatchingOptions)


Options = TypeVar("Options", bound=F5Options)
Clips = TypeVar("Clips", bound=MelClip)


class F5Recipe(BundledRecipe[Options, Clips, DiT]):
    """Trains a small F5; see :class:`paretone.training.recipe.Recipe`."""

    term = "flow"

    def __init__(self, corpus: Corpus[Clips], device: torch.device, options: Options, model: DiT) -> None:
        super().__init__(corpus, corpus.training, model, LAYER_MATRICES, device, options)

    @abstractmethod
    def tokens(self, item: Sequence[Clips]) -> list[np.ndarray]:
        """One token a frame, (frames,) int64, of each clip of a training item."""

    def loss(self, items: list[list[Clips]]) -> Tensor:
        batch = self.laid_out(items)
        problem = draw_problem(batch, self.options.objective, self.generator).to(self.device)
        return self.error(self.model, batch, problem)

    def laid_out(self, items: list[list[Clips]]) -> SpeechBatch:
        """A batch of ``items``, with their tokens."""
        return laid_out(items, [self.tokens(item) for item in items])

    def error(self, model: DiT, batch: SpeechBatch, problem: FlowMatchingDraw) -> Tensor:
        """Of the velocity that ``model`` predicts."""
        with self.autocast():
            velocity = predicted_velocity(model, batch.ids.to(self.device), problem)
        return span_error(velocity, problem.target, problem.span)

    @torch.no_grad()
    def errors(self, batches: Sequence[SpeechBatch]) -> dict[str, float]:
        """The span error by time where a prompt is known and the clip after it is not."""

        def error(batch: SpeechBatch, time: float, generator: torch.Generator) -> Tensor:
            problem = synthesis_problem(batch, time, generator).to(self.device)
            return self.error(self.average.module, batch, problem)

        return errors_by_time(batches, error)

    @cached_property
    def held_out_items(self) -> list[list[list[Clips]]]:
        """Batches of pairs to validate on."""
        return held_out_pairs(self.corpus.held_out, self.options.validation_items, 8)


def laid_out(items: Sequence[Sequence[MelClip]], tokens: Sequence[Sequence[np.ndarray]]) -> SpeechBatch:
    """A batch whose items are one clip, or two of one voice joined, with the tokens of their clips."""
    lengths = [sum(clip.frames for clip in item) for item in items]
    mel = torch.zeros(len(items), max(lengths), items[0][0].mel.shape[1])
    ids = torch.full((len(items), max(lengths)), -1)
    for row, (item, ids_of_clips) in enumerate(zip(items, tokens, strict=True)):
        first = 0
        for clip, one in zip(item, ids_of_clips, strict=True):
            last = first + clip.frames
            mel[row, first:last] = torch.from_numpy(clip.mel.astype(np.float32))
            ids[row, first:last] = torch.from_numpy(one)
            first = last
    joins = [item[0].frames if len(item) > 1 else 0 for item in items]
    return SpeechBatch(mel, ids, torch.tensor(lengths), torch.tensor(joins))


def untrained(architecture: BackboneConfig, clips: Sequence[MelClip], seed: int) -> DiT:
    """A model with random weights, for the mels of ``clips``."""
    torch.manual_seed(seed)
    model = DiT(architecture)
    initialise(model, torch.from_numpy(mel_frames(clips).mean(axis=0)))
    return model


@torch.no_grad()
def initialise(model: DiT, mean_mel: Tensor) -> None:
    """The official initialisation (AdaLN and output at zero), except that the gates start half open and the output at
    the corpus's mean mel: both save a small model its first hundreds of steps."""
    open_gates(model)
    model.proj_out.weight.zero_()
    model.proj_out.bias.copy_(mean_mel)
    model.text_embed.text_embed.weight.mul_(0.5)
