"""Common part of the recipes of small MegaTTS 3 models: a DiT of the official layout over latents of some kind.

MegaTTS 3 gets the duration of every phone, so the alignment is given: the corpus's phone times in training, a table of
mean durations at synthesis.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from paretone.models.megatts3.config import DiTConfig
from paretone.models.megatts3.dit import MegaDiT
from paretone.models.megatts3.phones import ENGLISH_TONE
from paretone.training.batch_queue import QueuedClip, held_out_pairs
from paretone.training.corpus import Corpus
from paretone.training.flow_matching import span_error
from paretone.training.flow_times import errors_by_time
from paretone.training.latent_flow import (
    LatentBatch,
    LatentFlowOptions,
    LatentProblem,
    draw_latent_problem,
    latent_synthesis_problem,
)
from paretone.training.optimisers import LayerMatrices
from paretone.training.recipes.bundled_recipe import BundledOptions, BundledRecipe
from paretone.training.recipes.initialising import open_gates

_ATTENTION = partial(sdpa_kernel, SDPBackend.MATH)
"""Attention in plain products: items here are so short that the fused kernel's backward pass costs a tenth more of a
step on processors."""
LAYER_MATRICES = LayerMatrices("encoder.layers.", apart_from="attention_norm")


@dataclass(frozen=True)
class MegaOptions(BundledOptions):
    """Options of these recipes."""

    frames: int = 1_500
    joined_share: float = 0.7
    objective: LatentFlowOptions = field(default_factory=LatentFlowOptions)


@dataclass(frozen=True)
class LatentClip:
    """A clip as the model sees it."""

    voice: str
    latents: np.ndarray = field(repr=False)
    """(n, latent) float16."""
    phones: np.ndarray = field(repr=False)
    """(phones,) numbers of the phone table."""
    phones_of_frames: np.ndarray = field(repr=False)
    """(n · stride,) places in ``phones``, from one."""
    tones: np.ndarray | None = field(default=None, repr=False)
    """(phones,) by their official numbers; ``None``: English."""
    prompt: int = 0
    """Latent frames at its beginning that are a prompt."""

    @property
    def frames(self) -> int:
        """Latent frames."""
        return len(self.latents)

    @property
    def all_tones(self) -> np.ndarray:
        """(phones,) int64."""
        return np.full(len(self.phones), ENGLISH_TONE) if self.tones is None else self.tones


Options = TypeVar("Options", bound=MegaOptions)
Clips = TypeVar("Clips", bound=QueuedClip)


class MegaRecipe(BundledRecipe[Options, Clips, MegaDiT]):
    """Trains a small MegaTTS 3; see :class:`paretone.training.recipe.Recipe`."""

    term = "flow"

    def __init__(
        self,
        corpus: Corpus,
        clips: Sequence[Clips],
        device: torch.device,
        options: Options,
        architecture: DiTConfig,
    ) -> None:
        torch.manual_seed(options.seed)
        model = MegaDiT(architecture)
        initialise(model)
        super().__init__(corpus, clips, model.requires_grad_(True).train(), LAYER_MATRICES, device, options)

    @abstractmethod
    def seen(self, item: Sequence[Clips]) -> list[LatentClip]:
        """The clips of a training item as the model sees them."""

    @property
    @abstractmethod
    def held_out(self) -> Sequence[LatentClip]:
        """Clips to validate on, as the model sees them."""

    def loss(self, items: list[list[Clips]]) -> Tensor:
        batch = collate_latents([self.seen(item) for item in items])
        problem = draw_latent_problem(batch, self.options.objective, self.generator).to(self.device)
        return self._error(self.model, problem)

    def _error(self, model: MegaDiT, problem: LatentProblem) -> Tensor:
        with self.autocast(), _ATTENTION():
            velocity = model(
                problem.noised,
                problem.condition,
                problem.prompt,
                problem.phones,
                problem.tones,
                problem.phones_of_frames,
                problem.times,
                problem.mask,
            )
        return span_error(velocity, problem.target, problem.span)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """The error by time where a prompt is known and the clip after it is not."""

        def error(batch: LatentBatch, time: float, generator: torch.Generator) -> Tensor:
            problem = latent_synthesis_problem(batch, time, generator).to(self.device)
            return self._error(self.average.module, problem)

        return errors_by_time(self._validation_batches, error)

    @cached_property
    def _validation_batches(self) -> list[LatentBatch]:
        batches = held_out_pairs(self.held_out, self.options.validation_items, 8)
        return [collate_latents(items) for items in batches]


def collate_latents(items: Sequence[Sequence[LatentClip]]) -> LatentBatch:
    """A batch whose items are one clip, or two of one voice joined; a prompt within one counts as the first."""
    lengths = [sum(clip.frames for clip in item) for item in items]
    spoken = [np.concatenate([clip.phones for clip in item]) for item in items]
    first = items[0][0]
    stride = len(first.phones_of_frames) // first.frames
    latents = torch.zeros(len(items), max(lengths), first.latents.shape[1])
    phones, tones = (torch.zeros(len(items), max(map(len, spoken)), dtype=torch.long) for _ in range(2))
    places = torch.zeros(len(items), max(lengths) * stride, dtype=torch.long)
    for row, item in enumerate(items):
        phones[row, : len(spoken[row])] = torch.from_numpy(spoken[row])
        tones[row, : len(spoken[row])] = torch.from_numpy(np.concatenate([clip.all_tones for clip in item]))
        start = before = 0
        for clip in item:
            end = start + clip.frames
            latents[row, start:end] = torch.from_numpy(clip.latents.astype(np.float32))
            places[row, start * stride : end * stride] = torch.from_numpy(clip.phones_of_frames + before)
            start, before = end, before + len(clip.phones)
    joins = [item[0].frames if len(item) > 1 else item[0].prompt for item in items]
    return LatentBatch(latents, phones, tones, places, torch.tensor(lengths), torch.tensor(joins))


@torch.no_grad()
def initialise(model: MegaDiT) -> None:
    """AdaLN and output at zero, except that the gates start half open; tones, which say nothing in English, quiet."""
    open_gates(model)
    model.postnet.weight.zero_()
    model.postnet.bias.zero_()
    model.tone_embed.weight.mul_(0.1)
