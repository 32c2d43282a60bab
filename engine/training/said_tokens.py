"""Clips of a corpus of natural speech as tokens: what is said in them, and the phones that sound in it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.front_end.frame_phones import labels
from engine.front_end.natural.phones import PHONES
from engine.front_end.phones import PhoneVocabulary
from engine.models.files.checkpoints import fingerprint
from engine.models.minis.frames import token_phones
from engine.models.minis.lm_mini.speech_tokenizer import SpeechTokenizer
from engine.models.minis.natural.layout import HOP, SAMPLE_RATE
from engine.models.minis.natural.said import NaturalVoice
from engine.models.networks.quantised_mel import WEIGHT_FILE, QuantisedMel
from engine.training.corpus import Corpus
from engine.training.natural_corpus import NaturalClip
from engine.training.natural_frames import voice_frames
from engine.training.spoken_tokens import SpokenTokens, corpus_tokens

VOCABULARY = PhoneVocabulary(PHONES)
LONGEST = 700
"""Mel frames of the longest clips: all of them."""


def frame_phones(clip: NaturalClip) -> np.ndarray:
    """(latent frames,) int64: the phone that sounds in each."""
    return labels(clip.phones, len(clip.latents), VOCABULARY, SAMPLE_RATE, HOP)


def voices_of(clips: Iterable[NaturalClip]) -> dict[str, NaturalVoice]:
    """Every voice, over all its clips."""
    frames: dict[str, list[Tensor]] = {}
    for clip in clips:
        frames.setdefault(clip.voice, []).append(voice_frames(clip))
    return {voice: NaturalVoice.of(torch.cat(some)) for voice, some in frames.items()}


class Said:
    """What is said in the clips of a corpus, each apart from the voice that says it."""

    def __init__(self, corpus: Corpus[NaturalClip]) -> None:
        self.voices = voices_of((*corpus.training, *corpus.held_out))
        """Every voice of the corpus, over all its clips."""

    @torch.inference_mode()
    def codes(self, clip: NaturalClip, codec: QuantisedMel) -> np.ndarray:
        """(n, …) int16: what is said in ``clip``."""
        said: Tensor = self.voices[clip.voice].said(voice_frames(clip))
        return codec.encode(said[None].to(codec.mel_mean.device))[0].cpu().numpy().astype(np.int16)

    def tokens(self, clip: NaturalClip, tokenizer: SpeechTokenizer) -> SpokenTokens:
        """``clip`` as a language model sees it: one phone for every code."""
        phones = token_phones(frame_phones(clip), tokenizer.config.stride)
        return SpokenTokens(clip.voice, phones.astype(np.int16), self.codes(clip, tokenizer))


def said_tokens(
    corpus: Corpus[NaturalClip], tokenizer: SpeechTokenizer, folder: Path, work: Path
) -> tuple[tuple[SpokenTokens, ...], tuple[SpokenTokens, ...]]:
    """Clips to train a language model on, and held-out ones, by the ``tokenizer`` in ``folder``; they are kept in
    ``work``."""
    said = Said(corpus)
    kept = work / f"tokens-{fingerprint(folder / WEIGHT_FILE)[:12]}-{len(corpus.training)}"
    return corpus_tokens(corpus, lambda clip: said.tokens(clip, tokenizer), kept, LONGEST)
