"""Reference speech: what a judge's own errors are measured on."""

from __future__ import annotations

import numpy as np
import soundfile

from paretone.errors import PlainError
from paretone.models.base import Voice
from paretone.models.f5.config import SAMPLE_RATE
from paretone.reading import require_regular
from paretone.training.natural_teacher import original_speech


def reference_speech(text: str, voice: Voice, recording: str = "") -> tuple[np.ndarray, int]:
    """Mono samples and their rate of someone saying ``text``: the ``recording`` of it if there is one, else the
    speaker of the shipped voice.

    Raises :class:`PlainError` if there is neither.
    """
    if recording:
        try:
            require_regular(recording)
            samples, rate = soundfile.read(recording, dtype="float32")
        except (OSError, RuntimeError) as error:
            raise PlainError(f"The reference recording {recording} could not be read ({error}).") from error
        return samples if samples.ndim == 1 else samples.mean(1), rate
    return original_speech(text, voice), SAMPLE_RATE
