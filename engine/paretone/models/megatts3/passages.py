"""Passages of MegaTTS 3: a prepared voice, and pieces of a text as phones over frames.

Two front ends make them: that of the official release, and that of the bundled model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from paretone.models.megatts3.config import LATENT_STRIDE
from paretone.models.megatts3.phones import frames_of_phones, tones_for_speech


@dataclass(frozen=True)
class Timed:
    """Phones and tones by their official numbers, each with its duration in frames of the duration clock."""

    phones: tuple[int, ...]
    tones: tuple[int, ...]
    durations: tuple[int, ...]

    @property
    def frames(self) -> int:
        """Frames of all phones together."""
        return sum(self.durations)

    def __add__(self, other: Timed) -> Timed:
        return Timed(self.phones + other.phones, self.tones + other.tones, self.durations + other.durations)


@dataclass(frozen=True)
class MegaPrompt:
    """A voice made ready."""

    latents: Tensor = field(repr=False)
    """(1, frames, 32) float32, on the CPU."""
    spoken: Timed = field(repr=False)
    """Phones of the recording, as long as its latents."""
    lufs: float
    """Loudness of the recording, which all speech is brought to."""
    seconds: float
    """Its length without the added silence."""
    notes: tuple[str, ...] = ()

    @property
    def frames(self) -> int:
        """Latents of the prompt."""
        return self.latents.shape[1]


@dataclass(frozen=True)
class MegaPassage:
    """One segment of a text after its prompt, as the backbone is given it."""

    text: str
    frames: int
    """Latents, those of the prompt included."""
    phones: Tensor = field(repr=False)
    """(1, phones) int64, those of the prompt first."""
    tones: Tensor = field(repr=False)
    """(1, phones) int64."""
    mel2ph: Tensor = field(repr=False)
    """(1, 4 · frames) int64: which phone, from one, sounds in each frame of the duration clock."""

    @classmethod
    def of(cls, text: str, prompt: Timed, spoken: Timed) -> MegaPassage:
        """``spoken`` after ``prompt``; a last latent that is not full is left out, as upstream does."""
        whole = prompt + spoken
        frames = whole.frames // LATENT_STRIDE
        return cls(
            text,
            frames,
            _row(whole.phones),
            _row(tones_for_speech(whole.tones)),
            _row(frames_of_phones(whole.durations)[: frames * LATENT_STRIDE]),
        )


def _row(numbers: Sequence[int] | np.ndarray) -> Tensor:
    return torch.from_numpy(np.asarray(numbers, np.int64))[None]


@dataclass(frozen=True)
class MegaPassages:
    """A whole text, and what the user should know about it."""

    passages: tuple[MegaPassage, ...]
    notes: tuple[str, ...] = ()
