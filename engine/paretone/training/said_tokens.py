"""Clips of a corpus of natural speech as tokens: what is said in them, and the phones that sound in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from paretone.front_end.phones import PHONES, PhoneVocabulary, labels
from paretone.models.files.checkpoints import fingerprint
from paretone.models.minis.natural_coding import NaturalVoice
from paretone.models.minis.natural_decoder import HOP, SAMPLE_RATE
from paretone.models.minis.quantisers import token_phones
from paretone.models.networks.quantised_mel import WEIGHT_FILE, QuantisedMel
from paretone.training.corpus import Corpus
from paretone.training.natural_corpus import NaturalClip
from paretone.training.natural_frames import voice_frames
from paretone.training.spoken_tokens import SpokenTokens, corpus_tokens

VOCABULARY = PhoneVocabulary(PHONES)
TextOfFrames = Callable[[np.ndarray, int], np.ndarray]
"""From one phone per latent frame, (n,), and the frames per token to one text token per token, (n // frames,)."""
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


def said_tokens(
    corpus: Corpus[NaturalClip], codec: QuantisedMel, folder: Path, work: Path, text: TextOfFrames = token_phones
) -> tuple[tuple[SpokenTokens, ...], tuple[SpokenTokens, ...]]:
    """Clips to train a model of tokens on, and held-out ones: what is said in each, apart from the voice that says it.

    ``codec`` is the one in ``folder``; ``text`` gives the text of each token. The tokens are kept in ``work``.
    """
    voices = voices_of((*corpus.training, *corpus.held_out))

    @torch.inference_mode()
    def tokens(clip: NaturalClip) -> SpokenTokens:
        said: Tensor = voices[clip.voice].said(voice_frames(clip))
        codes = codec.encode(said[None].to(codec.mel_mean.device))[0].cpu().numpy()
        phones = text(frame_phones(clip), codec.config.stride)
        return SpokenTokens(clip.voice, phones.astype(np.int16), codes.astype(np.int16))

    kept = work / f"tokens-{fingerprint(folder / WEIGHT_FILE)[:12]}-{len(corpus.training)}"
    return corpus_tokens(corpus, tokens, kept, LONGEST)
