"""The recipe of an F5 that speaks naturally, ``voice-f5``: :mod:`paretone.training.recipes.f5_recipe` on the speech of
a teacher in hundreds of voices, which differ only in the prompt. How exactly the text is aligned changes, see
:mod:`paretone.training.natural_alignment`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paretone.errors import CheckpointError
from paretone.front_end.phones import PHONES, PhoneVocabulary, TimedPhone, labels
from paretone.models.f5.checkpoint import NATURAL_PHONES, read_f5_checkpoint
from paretone.models.f5.config import BackboneConfig
from paretone.models.f5.dit import DiT
from paretone.models.files.checkpoints import fingerprint
from paretone.training.corpus import Corpus
from paretone.training.f5_checkpoints import diffusion_transformer
from paretone.training.flow_matching import (
    FlowMatchingDraw,
    FlowMatchingOptions,
    SpeechBatch,
    predicted_velocity,
    span_error,
)
from paretone.training.natural_alignment import Alignment, AlignmentOptions, drawn_alignment, evened
from paretone.training.natural_corpus import NaturalClip
from paretone.training.recipes.f5_layout import export_layout
from paretone.training.recipes.f5_recipe import SMALL_F5, F5Options, F5Recipe, laid_out, untrained
from paretone.training.recipes.normalised_mel import MelNormalisation

MODEL = "f5-mini"
"""The architecture that exports are of, which profiles and tables name."""
VOCABULARY = PhoneVocabulary(PHONES)
ARCHITECTURE = replace(SMALL_F5, text_num_embeds=len(PHONES))


@dataclass(frozen=True)
class NaturalF5Options(F5Options):
    """What a run of the recipe can change."""

    frames: int = 2_000
    objective: FlowMatchingOptions = field(
        default_factory=lambda: FlowMatchingOptions(
            whole_second_clip=0.8, drop_audio=0.05, drop_both=0.1, uniform_times=0.3
        )
    )
    joined_share: float = 0.8
    shortest_prompt: int = 70
    """Mel frames of the first clip of a pair that are seen, between this and the next one."""
    longest_prompt: int = 350
    alignment: AlignmentOptions = field(default_factory=AlignmentOptions)


@dataclass(frozen=True)
class Excerpt:
    """Some frames of a clip."""

    voice: str
    mel: np.ndarray
    """(frames, bands)."""

    @property
    def frames(self) -> int:
        return len(self.mel)


class NaturalF5(F5Recipe[NaturalF5Options, NaturalClip]):
    """Trains it. The network sees normalised mels; the export has the official layout."""

    name = "voice-f5"

    def __init__(
        self,
        corpus: Corpus[NaturalClip],
        device: torch.device,
        options: NaturalF5Options = NaturalF5Options(),
        architecture: BackboneConfig = ARCHITECTURE,
        initial: Path | None = None,
    ) -> None:
        """``initial``: folder of an exported model to start from, instead of random weights, and with text that is
        aligned as at the end of a training. Raises :class:`CheckpointError`."""
        normalisation = MelNormalisation.of([clip.mel for clip in corpus.training[::7]])
        if initial:
            checkpoint = read_f5_checkpoint(initial)
            if checkpoint.config != architecture or checkpoint.text_front_end != NATURAL_PHONES:
                raise CheckpointError(f"{checkpoint.path} is not of the model that {self.name} makes.")
            model = normalisation.unfolded(diffusion_transformer(checkpoint))
            model.train().requires_grad_(True)
            options = replace(options, alignment=replace(options.alignment, exact_until=0.0))
            self._initial = fingerprint(checkpoint.path)
        else:
            model = untrained(architecture, corpus.training, options.seed)
            with torch.no_grad():
                model.proj_out.bias.zero_()
            self._initial = "random"
        super().__init__(corpus, device, options, model)
        self._normalisation = normalisation.to(device)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "initial_weights": self._initial}

    @property
    def prompt_frames(self) -> int:
        """Frames of the first clip of a pair, the middle of what is drawn."""
        return round(math.sqrt(self.options.shortest_prompt * self.options.longest_prompt))

    def laid_out(self, items: list[list[NaturalClip]]) -> SpeechBatch:
        """A batch of ``items``; of pairs, only an excerpt of the first clip, of one length in the whole batch."""
        shortest, longest = self.options.shortest_prompt, self.options.longest_prompt
        count = round(shortest * (longest / shortest) ** self._share())
        seen: list[list[Excerpt]] = []
        tokens: list[list[np.ndarray]] = []
        for item in items:
            ids = self.tokens(item)
            parts = [slice(None)] * len(item)
            if len(item) > 1:
                first = int(self._share() * max(item[0].frames - count + 1, 1))
                parts[0] = slice(first, first + count)
            seen.append([Excerpt(clip.voice, clip.mel[part]) for clip, part in zip(item, parts, strict=True)])
            tokens.append([one[part] for one, part in zip(ids, parts, strict=True)])
        return laid_out(seen, tokens)

    def error(self, model: DiT, batch: SpeechBatch, problem: FlowMatchingDraw) -> Tensor:
        """Of the velocity of the normalised mel."""
        normalisation = self._normalisation
        with self.autocast():
            predicted = predicted_velocity(model, batch.ids.to(self.device), normalisation.problem(problem))
        target = (problem.target - normalisation.mean) / normalisation.deviation
        return span_error(predicted, target, problem.span)

    def _share(self) -> float:
        return float(torch.rand((), generator=self.generator))

    def tokens(self, item: Sequence[NaturalClip]) -> list[np.ndarray]:
        aligned = drawn_alignment(self.options.alignment, self.progress, self.generator)
        return [_labels(aligned(clip.phones), clip) for clip in item]

    def validate(self) -> dict[str, float]:
        """Errors with every phone at its own frames, and with phones spread over their words."""
        exact, spread = (self.errors(batches) for batches in self._validation_batches)
        return exact | {f"{name}, by word": value for name, value in spread.items()}

    @cached_property
    def _validation_batches(self) -> tuple[list[SpeechBatch], list[SpeechBatch]]:
        return self._laid_out(tuple), self._laid_out(evened)

    def _laid_out(self, aligned: Alignment) -> list[SpeechBatch]:
        """The held-out items, their text aligned by ``aligned``."""
        return [
            laid_out(items, [[_labels(aligned(clip.phones), clip) for clip in item] for item in items])
            for items in self.held_out_items
        ]

    def export(self, folder: Path) -> None:
        """The official layout: ``model.safetensors``, ``model.yaml``, ``vocab.txt``."""
        plain = self._normalisation.folded(self.average.module)
        export_layout(folder, MODEL, plain, VOCABULARY, self.steps)


def _labels(phones: Sequence[TimedPhone], clip: NaturalClip) -> np.ndarray:
    return labels(phones, clip.frames, VOCABULARY)
