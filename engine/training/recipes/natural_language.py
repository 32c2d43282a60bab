"""The recipes of models that speak naturally by tokens: ``voice-lm``, a language model over those of
``voice-tokenizer``, and ``voice-omni``, a masked model over those of ``voice-codec``
(:mod:`engine.training.recipes.natural_tokens`).

They are :mod:`engine.training.recipes.lm_recipe` and :mod:`engine.training.recipes.omni_recipe` with the phones of
natural speech. How long phones last is not in their folders: the text front end of natural speech knows it.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from engine.models.minis.frames import token_phones
from engine.models.minis.lm_mini.speech_tokenizer import SpeechTokenizer
from engine.models.minis.natural.said import NaturalVoice
from engine.models.minis.omni_mini.codec import ResidualCodec
from engine.models.minis.omni_mini.layout import Layout
from engine.models.networks.quantised_mel import QuantisedMel
from engine.training.corpus import Corpus
from engine.training.natural_corpus import NaturalClip
from engine.training.natural_frames import voice_frames
from engine.training.recipes.lm_recipe import LmRecipe
from engine.training.recipes.natural_tokens import VOCABULARY, frame_phones, voices_of
from engine.training.recipes.omni_recipe import OmniRecipe
from engine.training.spoken_tokens import SpokenTokens

LONGEST = 700
"""Mel frames of the longest clips: all of them."""


class OfNaturalSpeech:
    """What both recipes do with a corpus of natural speech."""

    corpus: Corpus[NaturalClip]

    @cached_property
    def voices(self) -> dict[str, NaturalVoice]:
        """Every voice of the corpus, over all its clips."""
        return voices_of((*self.corpus.training, *self.corpus.held_out))

    def codes(self, clip: NaturalClip, codec: QuantisedMel) -> np.ndarray:
        """(n, …) int16: what is said in ``clip``."""
        said: Tensor = self.voices[clip.voice].said(voice_frames(clip))
        return codec.encode(said[None].to(codec.mel_mean.device))[0].cpu().numpy().astype(np.int16)


class NaturalLm(OfNaturalSpeech, LmRecipe[NaturalClip]):
    """Trains the language model."""

    name = "voice-lm"
    vocabulary, longest = VOCABULARY, LONGEST

    @torch.inference_mode()
    def encoded(self, clip: NaturalClip, tokenizer: SpeechTokenizer) -> SpokenTokens:
        phones = token_phones(frame_phones(clip), tokenizer.config.stride)
        return SpokenTokens(clip.voice, phones.astype(np.int16), self.codes(clip, tokenizer))


class NaturalOmni(OfNaturalSpeech, OmniRecipe[NaturalClip]):
    """Trains the masked model."""

    name = "voice-omni"
    layout, longest = Layout(VOCABULARY), LONGEST

    @torch.inference_mode()
    def encoded(self, clip: NaturalClip, codec: ResidualCodec) -> SpokenTokens:
        text = self.layout.text(frame_phones(clip), codec.config.stride)
        return SpokenTokens(clip.voice, text.astype(np.int16), self.codes(clip, codec))
