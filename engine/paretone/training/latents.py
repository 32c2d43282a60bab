"""Clips of MegaTTS 3: latents with the phone of every mel frame, and batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from paretone.front_end.phones import PHONES
from paretone.models.megatts3.config import LATENT_STRIDE
from paretone.models.megatts3.phones import ENGLISH_TONE
from paretone.models.minis.megatts3_mini import DURATION_HOP, phones_of_frames
from paretone.models.minis.natural_decoder import SAMPLE_RATE
from paretone.models.minis.natural_vocoder import grouped
from paretone.training.flow_matching import LatentBatch
from paretone.training.learner import LayerMatrices
from paretone.training.natural_corpus import NaturalClip, voice_frames

LAYER_MATRICES = LayerMatrices("encoder.layers.", apart_from="attention_norm")
"""Weights of a :class:`paretone.models.megatts3.dit.MegaDiT` that Muon trains."""
NUMBERS = {phone: number for number, phone in enumerate(PHONES, start=1)}
"""Rows of the phone table; 0 is padding."""


@dataclass(frozen=True)
class LatentClip:
    voice: str
    latents: np.ndarray = field(repr=False)
    """(n, latent) float16."""
    phones: np.ndarray = field(repr=False)
    """(phones,) numbers of the phone table."""
    phones_of_frames: np.ndarray = field(repr=False)
    """(n · stride,) indices into ``phones``, from 1."""
    tones: np.ndarray | None = field(default=None, repr=False)
    """(phones,) official tone numbers; ``None``: English."""
    prompt: int = 0
    """Latent frames of prompt at the beginning."""

    @property
    def frames(self) -> int:
        return len(self.latents)

    @property
    def all_tones(self) -> np.ndarray:
        return np.full(len(self.phones), ENGLISH_TONE) if self.tones is None else self.tones


def collate_latents(items: Sequence[Sequence[LatentClip]]) -> LatentBatch:
    """Batch whose items are one clip, or two of one voice joined; a prompt inside a clip counts as the first."""
    lengths = [sum(clip.frames for clip in item) for item in items]
    spoken = [np.concatenate([clip.phones for clip in item]) for item in items]
    first = items[0][0]
    stride = len(first.phones_of_frames) // first.frames
    latents = torch.zeros(len(items), max(lengths), first.latents.shape[1])
    phones, tones = (torch.zeros(len(items), max(map(len, spoken)), dtype=torch.long) for _ in range(2))
    places = torch.zeros(len(items), max(lengths) * stride, dtype=torch.long)
    for row, item in enumerate(items):
        phones[row, : len(spoken[row])] = torch.from_numpy(spoken[row])
        tones[row, : len(spoken[row])] = torch.from_numpy(np.concatenate([clip.all_tones for clip in item]))
        start = before = 0
        for clip in item:
            end = start + clip.frames
            latents[row, start:end] = torch.from_numpy(clip.latents.astype(np.float32))
            places[row, start * stride : end * stride] = torch.from_numpy(clip.phones_of_frames + before)
            start, before = end, before + len(clip.phones)
    joins = [item[0].frames if len(item) > 1 else item[0].prompt for item in items]
    return LatentBatch(latents, phones, tones, places, torch.tensor(lengths), torch.tensor(joins))


def latent_clip(clip: NaturalClip) -> LatentClip:
    """``clip`` as model input."""
    latents, phones = grouped(voice_frames(clip)), clip.phones
    numbers = np.array([NUMBERS[name] for name, _, _ in phones], np.int64)
    places = phones_of_frames(phones, len(latents) * LATENT_STRIDE, SAMPLE_RATE, DURATION_HOP)
    return LatentClip(clip.voice, latents.numpy(), numbers, places)
