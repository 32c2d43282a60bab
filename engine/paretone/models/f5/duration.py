"""Duration and loudness of F5's speech: the official rules around its sampler (``infer/utils_infer.py``)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from paretone.errors import AudioError, SettingError
from paretone.models.f5.config import HOP, SAMPLE_RATE

TARGET_LEVEL = 0.1
"""Root mean square that quieter prompts are raised to."""
LONGEST_FRAMES = 65536
"""The sampler's own limit, prompt included."""
SHORT_TEXT_BYTES = 10
SHORT_TEXT_SPEED = 0.3
"""Texts below this many bytes are spoken at this speed, whatever was asked for."""


def prompt_frames(samples: int) -> int:
    """Frames of a prompt of a number of 24 kHz samples, as the duration rule counts them (the spectrogram has one
    more)."""
    return samples // HOP


def total_frames(
    prompt: int,
    transcript: str,
    text: str,
    speed: float = 1.0,
    fixed_seconds: float | None = None,
) -> int:
    """Frames to sample, prompt included: as many per UTF-8 byte of ``text`` as the ``prompt`` has per byte of its
    ``transcript`` (finished and spaced), divided by ``speed``; or ``fixed_seconds`` of audio in all.

    Raises :class:`SettingError` for a speed or length that is not positive.
    """
    if fixed_seconds is not None:
        if fixed_seconds <= 0:
            raise SettingError(f"The fixed duration must be positive, not {fixed_seconds:g} s.")
        return int(fixed_seconds * SAMPLE_RATE / HOP)
    if speed <= 0:
        raise SettingError(f"The speed must be positive, not {speed:g}.")
    spoken, known = len(text.encode()), len(transcript.encode())
    if spoken < SHORT_TEXT_BYTES:
        speed = SHORT_TEXT_SPEED
    return prompt + int(prompt / known * spoken / speed)


def sampled_frames(requested: int, prompt_mel_frames: int, text_ids: int) -> int:
    """Frames that are sampled in fact: at least one more than the prompt and than the text has ids, at most 65,536."""
    return min(max(max(text_ids, prompt_mel_frames) + 1, requested), LONGEST_FRAMES)


@dataclass(frozen=True)
class PromptLevel:
    """The loudness rule: a quiet prompt is raised to the level that the model knows, and the speech lowered again."""

    level: float
    """Root mean square of the prompt before resampling, in float32."""

    @classmethod
    def measure(cls, samples: Tensor) -> PromptLevel:
        """Measure mono float samples of any shape. Raises :class:`AudioError` when they are silent or not numbers."""
        level = torch.sqrt(torch.mean(torch.square(samples.float()))).item()
        if not 0.0 < level < float("inf"):
            raise AudioError("The reference recording is silent or damaged; choose a recording of speech.")
        return cls(level)

    @property
    def raised(self) -> bool:
        """Whether the prompt is quieter than the target."""
        return self.level < TARGET_LEVEL

    def normalised(self, samples: Tensor) -> Tensor:
        """The prompt at the target level if it is quieter, else as it is."""
        return samples * TARGET_LEVEL / self.level if self.raised else samples

    def restored(self, samples: Tensor) -> Tensor:
        """Generated speech at the prompt's own level."""
        return samples * self.level / TARGET_LEVEL if self.raised else samples
