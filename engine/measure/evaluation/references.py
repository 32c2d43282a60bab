"""Reference speech: what a judge's own errors are measured on."""

from __future__ import annotations

import numpy as np
import soundfile

from engine.errors import PlainError
from engine.models.base import Voice
from engine.models.f5.config import SAMPLE_RATE
from engine.training.corpora import VOICES, speak


def reference_speech(text: str, voice: Voice, recording: str = "") -> tuple[np.ndarray, int]:
    """Mono samples and their rate of someone saying ``text``: the ``recording`` of it if there is one, else the
    synthesiser that the shipped voices are of.

    Raises :class:`PlainError` if there is neither.
    """
    if recording:
        try:
            samples, rate = soundfile.read(recording, dtype="float32")
        except (OSError, RuntimeError) as error:
            raise PlainError(f"The reference recording {recording} could not be read ({error}).") from error
        return samples if samples.ndim == 1 else samples.mean(1), rate
    if voice.id in VOICES:
        return np.asarray(speak(text, voice.id).samples, np.float32), SAMPLE_RATE
    raise PlainError(f"There is no recording of {voice.title} saying this sentence.")
