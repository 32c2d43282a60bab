"""Batches of clips, and of pairs of one voice, in an order that a checkpoint can store; validation pairs."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor

from paretone.errors import TrainingError
from paretone.models.f5.config import HOP, SAMPLE_RATE


def draw_state(draw: random.Random) -> list[Any]:
    """State of ``draw`` as lists and numbers, for JSON."""
    version, internal, gauss = draw.getstate()
    return [version, list(internal), gauss]


def restore_draw(draw: random.Random, state: Sequence[Any]) -> None:
    version, internal, gauss = state
    draw.setstate((version, tuple(internal), gauss))


class QueuedClip(Protocol):
    @property
    def voice(self) -> str: ...

    @property
    def frames(self) -> int: ...


class BatchQueue:
    """Endless sequence of batches of items of similar length. An item is the numbers of one clip or of two."""

    POOL, BATCHES = 192, 12
    """Items drawn, sorted by length and packed at a time, and the fewest batches that they shall fill: more items are
    drawn if the clips are short, so that a batch's items have similar lengths."""

    def __init__(
        self, clips: Sequence[QueuedClip], frames: int, joined_share: float, seed: int, prompt_frames: int | None = None
    ) -> None:
        """``prompt_frames``: upper limit of the frames counted for the first clip of a pair."""
        self._lengths = [clip.frames for clip in clips]
        self._prompt_frames, self._frames, self._joined_share = prompt_frames, frames, joined_share
        self._pool = max(self.POOL, self.BATCHES * frames * len(clips) // max(1, sum(self._lengths)))
        self._draw = random.Random(seed)
        self._drawn = 0
        self._pending: list[list[list[int]]] = []
        self._by_voice: dict[str, list[int]] = {}
        for number, clip in enumerate(clips):
            self._by_voice.setdefault(clip.voice, []).append(number)

    def next(self) -> list[list[int]]:
        """Clip numbers of each item of the next batch."""
        if not self._pending:
            self._pending = self._packed()
        batch = self._pending.pop()
        self._drawn += sum(map(len, batch))
        return batch

    @property
    def epochs(self) -> float:
        """Clips given out over the number of clips. They are drawn at random, so that an epoch has some twice."""
        return self._drawn / max(1, len(self._lengths))

    def _packed(self) -> list[list[list[int]]]:
        items = sorted((self._item() for _ in range(self._pool)), key=self._length)
        batches: list[list[list[int]]] = [[]]
        for item in items:
            if batches[-1] and (len(batches[-1]) + 1) * self._length(item) > self._frames:
                batches.append([])
            batches[-1].append(item)
        self._draw.shuffle(batches)
        return batches

    def _item(self) -> list[int]:
        clips = self._by_voice[self._draw.choice(sorted(self._by_voice))]
        count = 2 if self._draw.random() < self._joined_share else 1
        return [self._draw.choice(clips) for _ in range(count)]

    def _length(self, item: list[int]) -> int:
        *before, last = (self._lengths[number] for number in item)
        return last + sum(min(one, self._prompt_frames or one) for one in before)

    def state(self) -> dict[str, Any]:
        return {"draw": draw_state(self._draw), "pending": self._pending, "drawn": self._drawn}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Raises :class:`TrainingError` if clips are missing that the state was drawn from."""
        numbers = (one for batch in state["pending"] for item in batch for one in item)
        if max(numbers, default=-1) >= len(self._lengths):
            raise TrainingError(
                f"The run to resume learned from more clips than the {len(self._lengths)} that are here; give the same "
                "recordings and the same validation set, or choose another work folder."
            )
        restore_draw(self._draw, state["draw"])
        self._drawn = state.get("drawn", 0)  # Missing in checkpoints of version 0.2.
        self._pending = [[list(item) for item in batch] for batch in state["pending"]]


AnyClip = TypeVar("AnyClip", bound=QueuedClip)


def held_out_pairs(clips: Sequence[AnyClip], count: int, size: int, joins: bool = True) -> list[list[list[AnyClip]]]:
    """About ``count`` fixed validation items in batches of ``size``: a clip after another clip of its voice, like
    synthesis after a prompt. ``joins``: whether clips may be joined."""
    draw = random.Random(3)
    items = []
    for one in clips[:: max(1, len(clips) // count)]:
        others = [other for other in clips if joins and other.voice == one.voice and other is not one]
        items.append([draw.choice(others), one] if others else [one])
    items.sort(key=lambda item: sum(one.frames for one in item))
    return [items[start : start + size] for start in range(0, len(items), size)]


Batch = TypeVar("Batch")


def moved(batch: Batch, device: torch.device) -> Batch:
    """Copy of the dataclass ``batch`` with its tensors on ``device``."""
    parts = {one.name: getattr(batch, one.name) for one in fields(batch)}  # type: ignore[arg-type]
    tensors = {name: part.to(device) for name, part in parts.items() if isinstance(part, Tensor)}
    return replace(batch, **tensors)  # type: ignore[type-var]


@dataclass(frozen=True)
class Corpus(Generic[AnyClip]):
    """Clips to train on and held-out clips, of all voices."""

    training: tuple[AnyClip, ...]
    held_out: tuple[AnyClip, ...]
    source: str
    """Speaker of the clips."""

    @property
    def seconds(self) -> float:
        return sum(clip.frames for clip in self.training) * HOP / SAMPLE_RATE
