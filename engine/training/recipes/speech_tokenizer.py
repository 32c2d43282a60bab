"""The recipe of the bundled language model's speech tokenizer: mel frames to one code of 1,920 for every two.

Lessons from experiments: a phone classifier that is linear cannot tell 41 phones from four numbers, a perceptron can.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from engine.models.minis.lm_mini.speech_tokenizer import SpeechTokenizer, SpeechTokenizerConfig
from engine.training.corpus import Corpus
from engine.training.recipes.mel_excerpts import VOCABULARY, ExcerptOptions
from engine.training.recipes.quantised_mel import QuantisedMelRecipe


@dataclass(frozen=True)
class SpeechTokenizerOptions(ExcerptOptions):
    """Options of the recipe."""

    frames: int = 64
    batch: int = 24
    phone_weight: float = 0.4


class SpeechTokenizerRecipe(QuantisedMelRecipe[SpeechTokenizerOptions]):
    """Trains a speech tokenizer; see :class:`engine.training.recipe.Recipe`."""

    name = "speech-tokenizer"

    def __init__(
        self,
        corpus: Corpus,
        device: torch.device,
        options: SpeechTokenizerOptions = SpeechTokenizerOptions(),
        architecture: SpeechTokenizerConfig = SpeechTokenizerConfig(),
    ) -> None:
        torch.manual_seed(options.seed)
        model = SpeechTokenizer(architecture)
        classifier = nn.Sequential(
            nn.Linear(len(architecture.levels), 192), nn.GELU(), nn.Linear(192, len(VOCABULARY.phones))
        )
        super().__init__(corpus, device, options, model, classifier)
