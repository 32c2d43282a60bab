"""The original speech of the voices that ship: their own speaker, who says any sentence."""

from __future__ import annotations

import functools

import numpy as np

from engine.errors import PlainError
from engine.models.base import Voice
from engine.models.shipped_voices import FLITE, HIBARI, origin_of
from engine.training.corpora import speak
from engine.training.natural_corpus import Manner
from engine.training.natural_teacher import NaturalTeacher, at_prompt_level


def original_speech(text: str, voice: Voice) -> np.ndarray:
    """``text`` as the speaker of ``voice`` says it: (n,) float32 at 24 kHz, at the level of a prompt.

    Raises :class:`PlainError` if the voice does not ship, or its speaker is not installed.
    """
    origin = origin_of(voice)
    if origin is not None and origin.speaker == FLITE:
        return np.asarray(speak(text, voice.id).samples, np.float32)
    if origin is not None and origin.speaker == HIBARI:
        return at_prompt_level(_teacher().speak(text, Manner(origin.pitch, origin.formant)))
    raise PlainError(f"There is no recording of {voice.title} saying this sentence.")


@functools.cache
def _teacher() -> NaturalTeacher:
    return NaturalTeacher()
