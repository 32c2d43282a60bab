"""Speech-like clips without a speaker: every phone is a chord of its own, so a model has something to learn from."""

from dataclasses import dataclass, field

import numpy as np
import torch

from paretone.audio.mel import MelFrontEnd
from paretone.front_end.phones import TimedPhone
from paretone.models.f5.config import HOP, SAMPLE_RATE
from paretone.training.batches import Corpus

PHONES = ("ˈɑ", "s", "ˈi", "m", "ˈu", "k")
LEVEL = 0.1
"""Root mean square of every clip: that of an F5 prompt."""


@dataclass(frozen=True)
class Clip:
    """One sentence of one voice; ``samples`` are 24 kHz float32, a whole number of hops, ``mel`` (frames, 100)."""

    voice: str
    text: str
    phones: tuple[TimedPhone, ...]
    samples: np.ndarray = field(repr=False)
    mel: np.ndarray = field(repr=False)

    @property
    def frames(self) -> int:
        return len(self.mel)


def toy_clip(voice: str, seed: int, frames: int = 60) -> Clip:
    """A clip of ``frames`` mel frames whose phones last between 4 and 12 frames each."""
    draw = np.random.default_rng(seed)
    pitch = 200.0 if voice == "anna" else 110.0
    time = np.arange(frames * HOP) / SAMPLE_RATE
    samples = draw.normal(0, 0.002, len(time))
    phones, first = [], 0
    while first < frames:
        last = min(frames, first + int(draw.integers(4, 13)))
        number = int(draw.integers(len(PHONES)))
        inside = slice(first * HOP, last * HOP)
        for harmonic in (1, 2 + number, 9 - number):
            samples[inside] += np.sin(2 * np.pi * harmonic * pitch * time[inside])
        phones.append((PHONES[number], first * HOP / SAMPLE_RATE, last * HOP / SAMPLE_RATE))
        first = last
    samples = (samples * LEVEL / np.sqrt(np.mean(samples**2))).astype(np.float32)
    mel = MelFrontEnd()(torch.from_numpy(samples))[0, :frames].numpy().astype(np.float16)
    return Clip(voice, f"toy {seed}", tuple(phones), samples, mel)


def toy_corpus(clips: int = 12, frames: int = 60) -> Corpus:
    """Half of the clips in each of two voices, and four held out."""
    every = [toy_clip(("anna", "bella")[seed % 2], seed, frames + seed) for seed in range(clips + 4)]
    return Corpus(tuple(every[4:]), tuple(every[:4]), "toy")
