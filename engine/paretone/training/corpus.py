"""Corpora of speech to train on, by any speaker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from paretone.models.f5.config import HOP, SAMPLE_RATE
from paretone.training.batch_queue import QueuedClip

AnyClip = TypeVar("AnyClip", bound=QueuedClip)


@dataclass(frozen=True)
class Corpus(Generic[AnyClip]):
    """Clips to train on and held-out clips, of all voices."""

    training: tuple[AnyClip, ...]
    held_out: tuple[AnyClip, ...]
    source: str
    """Who spoke."""

    @property
    def seconds(self) -> float:
        return sum(clip.frames for clip in self.training) * HOP / SAMPLE_RATE
