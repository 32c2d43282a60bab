"""Recordings as batches of speech: one clip an item, or two of one voice joined."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import torch

from paretone.training.features import Example
from paretone.training.flow_matching import SpeechBatch


def collate(items: Sequence[Sequence[Example]]) -> SpeechBatch:
    """A batch whose items are one recording, or two of one voice joined; a prompt within one counts as the first."""
    lengths = [sum(one.frames for one in item) for item in items]
    counts = [sum(len(one.ids) for one in item) for item in items]
    mel = torch.zeros(len(items), max(lengths), items[0][0].mel.shape[1])
    ids = torch.full((len(items), max(counts)), -1)
    for row, item in enumerate(items):
        mel[row, : lengths[row]] = torch.from_numpy(np.concatenate([one.mel for one in item]).astype(np.float32))
        ids[row, : counts[row]] = torch.from_numpy(np.concatenate([one.ids for one in item]))
    joins = [item[0].frames if len(item) > 1 else item[0].prompt for item in items]
    return SpeechBatch(mel, ids, torch.tensor(lengths), torch.tensor(joins))


def validation_batches(examples: Sequence[Example], count: int) -> list[SpeechBatch]:
    """About ``count`` items, the same every time: a recording after another one of its voice if that can be."""
    draw = random.Random(3)
    joins = may_join(examples)
    items = []
    for one in examples[:: max(1, len(examples) // count)]:
        others = [other for other in examples if joins and other.voice == one.voice and other is not one]
        items.append([draw.choice(others), one] if others else [one])
    items.sort(key=lambda item: sum(one.frames for one in item))
    return [collate(items[start : start + 8]) for start in range(0, len(items), 8)]


def may_join(examples: Sequence[Example]) -> bool:
    """Only what has one token a frame can be joined, and only where voices are distinguished and nothing has a prompt
    already."""
    return all(one.voice and len(one.ids) == one.frames and not one.prompt for one in examples)
