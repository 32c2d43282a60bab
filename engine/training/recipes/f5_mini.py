"""The recipe of the bundled F5 model, ``f5-mini``: a small DiT over phones, one phone a mel frame.

What a small model cannot afford to learn is which sound belongs to which moment. Here it is given away: the text has as
many tokens as the mel has frames, tokens and frames are paired, and a table of mean durations is used at synthesis. The
official layout does not change, so the official code runs the result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.front_end.durations import labels
from engine.front_end.phones import CONSONANTS, PAUSE, VOWELS, PhoneVocabulary
from engine.models.f5.config import BackboneConfig
from engine.models.f5.dit import DiT
from engine.training.batch_queue import held_out_pairs
from engine.training.corpora import Clip, Corpus
from engine.training.flow_matching import (
    LAYER_MATRICES,
    FlowMatchingDraw,
    FlowMatchingOptions,
    SpeechBatch,
    draw_problem,
    predicted_velocity,
    span_error,
    synthesis_problem,
)
from engine.training.flow_times import errors_by_time
from engine.training.recipes.bundled_recipe import BundledOptions, BundledRecipe
from engine.training.recipes.export_f5 import export_f5
from engine.training.recipes.initialising import open_gates

VOCABULARY = PhoneVocabulary((PAUSE, *sorted(VOWELS | CONSONANTS)))
ARCHITECTURE = BackboneConfig(
    "DiT",
    dim=256,
    depth=8,
    heads=4,
    ff_mult=2,
    text_dim=128,
    text_mask_padding=True,
    conv_layers=3,
    text_num_embeds=len(VOCABULARY.phones),
)


@dataclass(frozen=True)
class F5Options(BundledOptions):
    """Options of the recipe."""

    objective: FlowMatchingOptions = field(default_factory=FlowMatchingOptions)


class F5Mini(BundledRecipe[F5Options, Clip, DiT]):
    """Trains a small F5; see :class:`engine.training.session.Recipe`."""

    name, term = "f5-mini", "flow"

    def __init__(
        self,
        corpus: Corpus,
        device: torch.device,
        options: F5Options = F5Options(),
        architecture: BackboneConfig = ARCHITECTURE,
    ) -> None:
        torch.manual_seed(options.seed)
        model = DiT(architecture)
        initialise(model, _mean_mel(corpus.training))
        super().__init__(corpus, corpus.training, model, LAYER_MATRICES, device, options)

    def loss(self, items: list[list[Clip]]) -> Tensor:
        batch = collate(items)
        problem = draw_problem(batch, self.options.objective, self.generator).to(self.device)
        return self._error(self.model, batch, problem)

    def _error(self, model: DiT, batch: SpeechBatch, problem: FlowMatchingDraw) -> Tensor:
        with self.autocast():
            velocity = predicted_velocity(model, batch.ids.to(self.device), problem)
        return span_error(velocity, problem.target, problem.span)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """The span error by time where a prompt is known and the clip after it is not."""

        def error(batch: SpeechBatch, time: float, generator: torch.Generator) -> Tensor:
            problem = synthesis_problem(batch, time, generator).to(self.device)
            return self._error(self.average.module, batch, problem)

        return errors_by_time(self._validation_batches, error)

    @cached_property
    def _validation_batches(self) -> list[SpeechBatch]:
        batches = held_out_pairs(self.corpus.held_out, self.options.validation_items, 8)
        return [collate(items) for items in batches]

    def export(self, folder: Path) -> None:
        export_f5(folder, self.name, self.average.module, VOCABULARY, self.corpus, self.steps)


def collate(items: list[list[Clip]]) -> SpeechBatch:
    """A batch whose items are one clip, or two of one voice joined."""
    lengths = [sum(clip.frames for clip in item) for item in items]
    mel = torch.zeros(len(items), max(lengths), items[0][0].mel.shape[1])
    ids = torch.full((len(items), max(lengths)), -1)
    for row, item in enumerate(items):
        first = 0
        for clip in item:
            last = first + clip.frames
            mel[row, first:last] = torch.from_numpy(clip.mel.astype(np.float32))
            ids[row, first:last] = torch.from_numpy(labels(clip.phones, clip.frames, VOCABULARY))
            first = last
    joins = [item[0].frames if len(item) > 1 else 0 for item in items]
    return SpeechBatch(mel, ids, torch.tensor(lengths), torch.tensor(joins))


@torch.no_grad()
def initialise(model: DiT, mean_mel: Tensor) -> None:
    """The official initialisation (AdaLN and output at zero), except that the gates start half open and the output at
    the corpus's mean mel: both save a small model its first hundreds of steps."""
    open_gates(model)
    model.proj_out.weight.zero_()
    model.proj_out.bias.copy_(mean_mel)
    model.text_embed.text_embed.weight.mul_(0.5)


def _mean_mel(clips: tuple[Clip, ...]) -> Tensor:
    return torch.from_numpy(np.concatenate([clip.mel for clip in clips[::7]]).astype(np.float32).mean(axis=0))
