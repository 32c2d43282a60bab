"""The recipe of the bundled F5 model, ``f5-mini``: a small DiT over flite's phones; see
:mod:`engine.training.recipes.f5_recipe`. A table of mean durations stands in for the alignment at synthesis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from engine.front_end.durations import labels
from engine.front_end.phones import CONSONANTS, PAUSE, VOWELS, PhoneVocabulary
from engine.models.f5.config import BackboneConfig
from engine.training.corpora import Clip
from engine.training.corpus import Corpus
from engine.training.flow_matching import SpeechBatch
from engine.training.recipes.export_f5 import export_f5
from engine.training.recipes.f5_recipe import SMALL_F5, F5Options, F5Recipe, laid_out

VOCABULARY = PhoneVocabulary((PAUSE, *sorted(VOWELS | CONSONANTS)))
ARCHITECTURE = replace(SMALL_F5, text_num_embeds=len(VOCABULARY.phones))


class F5Mini(F5Recipe[F5Options, Clip]):
    """Trains it on flite's speech."""

    name = "f5-mini"

    def __init__(
        self,
        corpus: Corpus[Clip],
        device: torch.device,
        options: F5Options = F5Options(),
        architecture: BackboneConfig = ARCHITECTURE,
    ) -> None:
        super().__init__(corpus, device, options, architecture)

    def tokens(self, item: Sequence[Clip]) -> list[np.ndarray]:
        return _tokens(item)

    def validate(self) -> dict[str, float]:
        return self.errors(self._validation_batches)

    @cached_property
    def _validation_batches(self) -> list[SpeechBatch]:
        return [collate(items) for items in self.held_out_items]

    def export(self, folder: Path) -> None:
        export_f5(folder, self.name, self.average.module, VOCABULARY, self.corpus, self.steps)


def collate(items: Sequence[Sequence[Clip]]) -> SpeechBatch:
    """A batch whose items are one clip, or two of one voice joined."""
    return laid_out(items, [_tokens(item) for item in items])


def _tokens(item: Sequence[Clip]) -> list[np.ndarray]:
    return [labels(clip.phones, clip.frames, VOCABULARY) for clip in item]
