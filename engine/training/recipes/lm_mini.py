"""The recipe of the bundled language model, ``lm-mini``: :mod:`engine.training.recipes.lm_recipe` over the tokens of
:mod:`engine.training.recipes.speech_tokenizer`. A table of mean durations stands in for the alignment at synthesis.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from engine.front_end.frame_phones import labels
from engine.models.minis.folder import DURATIONS
from engine.models.minis.frames import token_phones
from engine.models.minis.lm_mini.speech_tokenizer import SpeechTokenizer
from engine.training.corpora import Clip
from engine.training.recipes.durations import write_duration_tables
from engine.training.recipes.lm_recipe import LmRecipe
from engine.training.recipes.mel_excerpts import VOCABULARY
from engine.training.spoken_tokens import FRAMES, SpokenTokens


class LmMini(LmRecipe[Clip]):
    """Trains it on flite's speech."""

    name = "lm-mini"
    vocabulary, longest = VOCABULARY, FRAMES[1]

    @torch.inference_mode()
    def encoded(self, clip: Clip, tokenizer: SpeechTokenizer) -> SpokenTokens:
        mel = torch.from_numpy(clip.mel.astype(np.float32))[None].to(tokenizer.mel_mean.device)
        phones = token_phones(labels(clip.phones, clip.frames, self.vocabulary), tokenizer.config.stride)
        codes = tokenizer.encode(mel)[0].cpu().numpy()
        return SpokenTokens(clip.voice, phones.astype(np.int16), codes.astype(np.int16))

    def export(self, folder: Path) -> None:
        super().export(folder)
        write_duration_tables(folder / DURATIONS, self.corpus.training, self.vocabulary.phones)
