"""The original speech of the voices that ship: their own speaker, who says any sentence."""

from __future__ import annotations

import functools

import numpy as np
import torch

from paretone.errors import PlainError
from paretone.models.base import Voice
from paretone.models.minis.natural_decoder import NaturalDecoder
from paretone.models.shipped_voices import Origin, origin_of
from paretone.training.natural_corpus import Manner, SpokenSentence
from paretone.training.natural_teacher import NaturalTeacher, at_prompt_level


def original_speech(text: str, voice: Voice) -> np.ndarray:
    """``text`` as the speaker of ``voice`` says it: (n,) float32 at 24 kHz, at the level of a prompt.

    Raises :class:`PlainError` if the voice does not ship, or its speaker is not installed.
    """
    return at_prompt_level(_spoken(text, _origin(voice)))


def decoder_copy(text: str, voice: Voice) -> np.ndarray:
    """What the bundled decoder makes of the latents of ``text`` as the speaker of ``voice`` says it: (n,) float32 at
    24 kHz. It is the best that a model of these latents can sound. Raises :class:`PlainError` as
    :func:`original_speech` does."""
    origin = _origin(voice)
    spoken = _spoken(text, origin)
    copies = [_decoder().decode(torch.from_numpy(one.latents), formant_scale=origin.formant) for one in spoken]
    return torch.cat(copies).numpy()


def _origin(voice: Voice) -> Origin:
    origin = origin_of(voice)
    if origin is None:
        raise PlainError(f"There is no recording of {voice.title} saying this sentence.")
    return origin


def _spoken(text: str, origin: Origin) -> list[SpokenSentence]:
    return _teacher().speak(text, Manner(origin.pitch, origin.formant))


@functools.cache
def _teacher() -> NaturalTeacher:
    return NaturalTeacher(_decoder())


@functools.cache
def _decoder() -> NaturalDecoder:
    return NaturalDecoder.load()
