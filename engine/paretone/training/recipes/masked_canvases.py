"""Canvases to train masked models on: utterances of which some cells are hidden, as demasking meets them.

What is known in demasking is: the voice's recording; in blockwise streaming also everything before the block; and
within the canvas or the block whatever was committed, which the layer penalty makes mostly lower codebooks. Nothing is
known after a block. Items are drawn of all these kinds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from paretone.models.minis.omni_mini import positions
from paretone.training.moving import moved
from paretone.training.spoken_tokens import SpokenTokens

LEAST, EXTENT = 0.03, 1.07
"""Start and range of ``u``; values above one count as one, because demasking begins with everything hidden."""


@dataclass(frozen=True)
class CanvasOptions:
    """Options for drawing canvases."""

    text_dropped: float = 0.12
    """Share of the items without text and prompt, for guidance."""
    begun: float = 0.3
    """Share of the items of which more than the prompt is known, up to any frame."""
    ended: float = 0.25
    """Share of the items of which nothing is known after any frame."""


@dataclass(frozen=True)
class Canvases:
    """Sequences of one batch, each a text and a canvas of ``n`` frames."""

    text: Tensor
    """(B, n) int64."""
    codes: Tensor
    """(B, codebooks, n) int64 as the network sees them, the mask if they are hidden."""
    spoken: Tensor
    """(B, codebooks, n) int64 as they are."""
    hidden: Tensor
    """(B, codebooks, n) bool: what is to be said."""
    seen: Tensor
    """(B, 2 · n) bool: what of text and canvas is looked at."""

    @property
    def positions(self) -> Tensor:
        """(2 · n,)."""
        return positions(self.text.shape[1]).to(self.text.device)

    def to(self, device: torch.device) -> Canvases:
        """The same on ``device``."""
        return moved(self, device)


@dataclass(frozen=True)
class Joined:
    """Items side by side: an utterance each, or a prompt and an utterance of one voice."""

    text: Tensor
    """(B, n) int64."""
    codes: Tensor
    """(B, codebooks, n) int64."""
    inside: Tensor
    """(B, n) bool: false for padding."""
    prompts: Tensor
    """(B,) frames of the prompts, 0 without one."""

    @classmethod
    def of(cls, items: Sequence[Sequence[SpokenTokens]]) -> Joined:
        """All but the last utterance of an item are its prompt."""
        lengths = [sum(one.frames for one in item) for item in items]
        shape = (len(items), max(lengths))
        text = torch.zeros(shape, dtype=torch.long)
        codes = torch.zeros(*shape, items[0][0].codes.shape[1], dtype=torch.long)
        for row, item in enumerate(items):
            text[row, : lengths[row]] = torch.from_numpy(np.concatenate([one.phones for one in item]).astype(np.int64))
            codes[row, : lengths[row]] = torch.from_numpy(np.concatenate([one.codes for one in item]).astype(np.int64))
        inside = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        prompts = torch.tensor([sum(one.frames for one in item[:-1]) for item in items])
        return cls(text, codes.transpose(1, 2).contiguous(), inside, prompts)

    def hiding(self, hidden: Tensor, mask: int, text_seen: Tensor | None = None) -> Canvases:
        """With ``hidden`` (B, codebooks, n) masked. Items where ``text_seen`` (B,) is false see neither their text nor
        their prompt."""
        text_seen = torch.ones(len(self.text), dtype=torch.bool) if text_seen is None else text_seen
        after_prompt = torch.arange(self.text.shape[1]) >= self.prompts[:, None]
        canvas = self.inside & (after_prompt | text_seen[:, None])
        seen = torch.cat([self.inside & text_seen[:, None], canvas], dim=1)
        return Canvases(self.text, torch.where(hidden, mask, self.codes), self.codes, hidden, seen)


def draw(joined: Joined, mask: int, options: CanvasOptions, generator: torch.Generator) -> Canvases:
    """Hide a share of what follows the prompts: sin(π u / 2) of it for a uniform ``u``, in some items all of it. Cells
    of higher codebooks come before those of lower ones, more strictly in some items than in others."""
    items, codebooks, frames = joined.codes.shape

    def uniform(*shape: int) -> Tensor:
        return torch.rand(items, *shape, generator=generator)

    lengths = joined.inside.sum(1)
    first = joined.prompts + (uniform() * (uniform() < options.begun) * (lengths - joined.prompts)).long()
    ahead = 1 + (uniform() * (lengths - first)).long()
    last = torch.where(uniform() < options.ended, first + ahead, lengths)
    places = torch.arange(frames)
    block = joined.inside & (places >= first[:, None]) & (places < last[:, None])
    after = joined.inside & (places >= last[:, None])
    cells = block[:, None].expand(-1, codebooks, -1).flatten(1)
    share = torch.sin((LEAST + EXTENT * uniform()).clamp(max=1) * math.pi / 2)
    count = (share * cells.sum(1)).ceil().long()
    order = uniform(codebooks, frames) + uniform(1, 1) * torch.arange(codebooks)[:, None]
    order = order.flatten(1).masked_fill(~cells, -1.0)
    threshold = order.sort(dim=1, descending=True).values.gather(1, count[:, None] - 1)
    chosen = (cells & (order >= threshold)).unflatten(1, (codebooks, frames))
    return joined.hiding(chosen | after[:, None], mask, uniform() >= options.text_dropped)


def layer(joined: Joined, mask: int, codebook: int) -> Canvases:
    """With the prompts and all lower codebooks known, and the rest hidden."""
    hidden = joined.inside & (torch.arange(joined.text.shape[1]) >= joined.prompts[:, None])
    higher = torch.arange(joined.codes.shape[1])[:, None] >= codebook
    return joined.hiding(hidden[:, None] & higher, mask)
