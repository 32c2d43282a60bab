"""From text to passages: what the sampler speaks at once, as token ids and a duration.

Two front ends know how: characters (the official models) and phones (the bundled one).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from paretone.models.base import Voice
from paretone.models.f5.duration import PromptLevel


@dataclass(frozen=True)
class Prompt:
    """A voice made ready."""

    voice: Voice
    mel: Tensor = field(repr=False)
    """(1, frames, bands) natural-log mel of the recording, on the CPU."""
    frames: int
    """Frames that are cut off in front of the new speech; ``mel`` may have one more."""
    level: PromptLevel
    samples: Tensor = field(repr=False)
    """(n,) the recording as the model is given it, 24 kHz."""
    seconds: float
    """Its length before it was brought to 24 kHz."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Passage:
    """One piece of text, ready for the sampler."""

    text: str
    ids: Tensor = field(repr=False)
    """(1, tokens) vocabulary positions of prompt and new text."""
    frames: int
    """Frames to sample, those of the prompt included."""


@dataclass(frozen=True)
class Passages:
    """A whole text, and what the user should know about it."""

    passages: tuple[Passage, ...]
    notes: tuple[str, ...] = ()


class TextFrontEnd(Protocol):
    """Text front end of a model."""

    def passages(self, text: str, prompt: Prompt, speed: float, quick_start: bool, seed: int | None = None) -> Passages:
        """Cut ``text`` into passages for ``prompt``; with ``quick_start`` the first is short, so that it is heard
        sooner. A front end of natural speech draws the pace from ``seed``. Raises
        :class:`paretone.errors.TextError`."""
