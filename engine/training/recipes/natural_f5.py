"""The recipe of an F5 that speaks naturally, ``voice-f5``: :mod:`engine.training.recipes.f5_recipe` on the speech of a
teacher in hundreds of voices, which differ only in the prompt.

How exactly the text is aligned changes from item to item: every phone at its own frames, phones whose lengths inside
of a word are inexact, or phones spread evenly over their word. The model has to decide what is aligned less exactly,
and decides better with more steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from engine.front_end.durations import TimedPhone, labels
from engine.front_end.phones import PhoneVocabulary
from engine.models.f5.config import BackboneConfig
from engine.training.corpora import Corpus
from engine.training.flow_matching import SpeechBatch
from engine.training.natural_corpus import NaturalClip
from engine.training.natural_phones import PHONES, respaced
from engine.training.recipes.export_f5 import export_layout
from engine.training.recipes.f5_recipe import SMALL_F5, F5Options, F5Recipe, laid_out

VOCABULARY = PhoneVocabulary(PHONES)
ARCHITECTURE = replace(SMALL_F5, text_num_embeds=len(PHONES))


@dataclass(frozen=True)
class NaturalF5Options(F5Options):
    """What a run of the recipe can change."""

    frames: int = 2_000
    joined_share: float = 0.7
    inexact_share: float = 0.3
    """Share of items whose phones have inexact lengths inside of their words."""
    inexactness: float = 0.4
    """Standard deviation of the logarithm of these lengths."""
    evened_share: float = 0.4
    """Share of items whose phones are spread evenly over their words."""


class NaturalF5(F5Recipe[NaturalF5Options, NaturalClip]):
    """Trains it."""

    name = "voice-f5"

    def __init__(
        self,
        corpus: Corpus[NaturalClip],
        device: torch.device,
        options: NaturalF5Options = NaturalF5Options(),
        architecture: BackboneConfig = ARCHITECTURE,
    ) -> None:
        super().__init__(corpus, device, options, architecture)

    def tokens(self, item: Sequence[NaturalClip]) -> list[np.ndarray]:
        kind = float(torch.rand((), generator=self.generator))
        if kind < self.options.evened_share:
            return [_labels(evened(clip.phones), clip) for clip in item]
        if kind < self.options.evened_share + self.options.inexact_share:
            return [_labels(respaced(clip.phones, self._inexact), clip) for clip in item]
        return [_labels(clip.phones, clip) for clip in item]

    def _inexact(self, lengths: np.ndarray) -> np.ndarray:
        noise = torch.randn(len(lengths), generator=self.generator).numpy()
        return lengths * np.exp(self.options.inexactness * noise)

    def validate(self) -> dict[str, float]:
        """Errors with every phone at its own frames, and with phones spread over their words."""
        exact, spread = (self.errors(batches) for batches in self._validation_batches)
        return exact | {f"{name}, by word": value for name, value in spread.items()}

    @cached_property
    def _validation_batches(self) -> tuple[list[SpeechBatch], list[SpeechBatch]]:
        return self._laid_out(tuple), self._laid_out(evened)

    def _laid_out(self, aligned: Callable[[Sequence[TimedPhone]], Sequence[TimedPhone]]) -> list[SpeechBatch]:
        """The held-out items, their text aligned by ``aligned``."""
        return [
            laid_out(items, [[_labels(aligned(clip.phones), clip) for clip in item] for item in items])
            for items in self.held_out_items
        ]

    def export(self, folder: Path) -> None:
        """The official layout: ``model.safetensors``, ``model.yaml``, ``vocab.txt``."""
        export_layout(folder, self.name, self.average.module, VOCABULARY, self.steps)


def evened(phones: Sequence[TimedPhone]) -> tuple[TimedPhone, ...]:
    """``phones``, those of each word all of one length."""
    return respaced(phones, np.ones_like)


def _labels(phones: Sequence[TimedPhone], clip: NaturalClip) -> np.ndarray:
    return labels(phones, clip.frames, VOCABULARY)
