"""Speech from a trained MegaTTS 3 of ours, straight from its parts: what a run is judged by while it lasts, and after.

The way is that of synthesis in the application, for one sentence: phones and mean durations after a prompt's, three
branches, overshooting steps, codec, vocoder.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.front_end.durations import DurationTable, TimedPhone, timed
from engine.front_end.phonemiser import Phonemiser
from engine.models.checkpoints import load_strictly, read_weights
from engine.models.megatts3.config import DiTConfig
from engine.models.megatts3.dit import MegaDiT
from engine.models.megatts3.mel_codec import MelCodec
from engine.models.megatts3.phones import ENGLISH_TONE, phone_ids, phones_of_frames
from engine.models.vocos import Vocos
from engine.sampling.flow import integrate, sampling_grid
from engine.sampling.guidance import needed_branches, three_branch_velocity
from engine.sampling.overshoot import OvershootNoise, overshoot_steps
from engine.training.corpora import HOP, SAMPLE_RATE
from engine.training.export_mega import CODEC, DIT, DIT_WEIGHTS, DURATIONS, VOICES


@dataclass(frozen=True)
class LatentSampling:
    """How latents are drawn; names and defaults as in the official command line, but for guidance."""

    steps: int = 32
    spacing: str = "uniform"
    sway: float = -1.0
    overshoot: float = 3.0
    intelligibility: float = 1.6
    similarity: float = 2.5


@dataclass(frozen=True)
class LatentPrompt:
    """What comes before new speech."""

    latents: Tensor
    """(1, n, latent)."""
    phones: tuple[TimedPhone, ...]


@dataclass(frozen=True)
class LatentSpeaker:
    """A model and all that it needs to speak."""

    model: MegaDiT
    codec: MelCodec
    vocoder: Vocos
    durations: DurationTable
    prompts: dict[str, LatentPrompt]
    phonemise: Phonemiser

    @classmethod
    def load(cls, folder: Path, vocoder: Vocos) -> LatentSpeaker:
        """From an exported folder. Raises :class:`engine.errors.CheckpointError`."""
        path = folder / DIT / DIT_WEIGHTS
        weights = {name: value.float() for name, value in read_weights(path).items()}
        model = MegaDiT(DiTConfig.from_shapes({name: tuple(one.shape) for name, one in weights.items()}, str(path)))
        load_strictly(model, weights, str(path))
        return cls(
            model.eval().requires_grad_(False),
            MelCodec.load(folder / CODEC),
            vocoder,
            DurationTable.load(folder / DURATIONS),
            {one.stem: _prompt(one) for one in sorted((folder / VOICES).glob("*.npy"))},
            Phonemiser(),
        )

    @torch.inference_mode()
    def say(self, text: str, voice: str, sampling: LatentSampling = LatentSampling(), seed: int = 0) -> np.ndarray:
        """(n,) float32 samples at 24 kHz. Raises :class:`engine.errors.TextError` for what cannot be spoken."""
        prompt, stride = self.prompts[voice], self.codec.config.stride
        names = self.phonemise(text).phones
        said = timed(names, self.durations.seconds(names, voice))
        before = prompt.latents.shape[1]
        after = -(-round(said[-1][2] * SAMPLE_RATE / HOP) // stride)
        context = torch.cat([prompt.latents, prompt.latents.new_zeros(1, after, prompt.latents.shape[2])], dim=1)
        phones = phone_ids(phone for phone, _, _ in (*prompt.phones, *said))
        places = np.concatenate(
            [
                phones_of_frames(prompt.phones, before * stride, SAMPLE_RATE, HOP),
                phones_of_frames(said, after * stride, SAMPLE_RATE, HOP) + len(prompt.phones),
            ]
        )
        weights = sampling.intelligibility, sampling.similarity
        times = sampling_grid(sampling.steps, sampling.spacing, sampling.sway)
        run = self.model.begin(
            context,
            torch.arange(before + after)[None] < before,
            torch.from_numpy(phones)[None],
            torch.full((1, len(phones)), ENGLISH_TONE),
            torch.from_numpy(places)[None],
            times[:-1],
            needed_branches(*weights),
        )
        noise = OvershootNoise.draw(tuple(context.shape), sampling.steps, seed)
        latents = integrate(
            lambda state, step: three_branch_velocity(self.model.velocity(state, step, run), *weights),
            noise.initial,
            times,
            follow=overshoot_steps(times, noise.steps, sampling.overshoot),
        )
        latents[:, :before] = prompt.latents
        mel = self.codec.decode(latents)[:, before * stride :]
        return self.vocoder.decode(mel.transpose(1, 2))[0].numpy()


def _prompt(latents: Path) -> LatentPrompt:
    phones = json.loads(latents.with_suffix(".json").read_text(encoding="utf-8"))["phones"]
    return LatentPrompt(torch.from_numpy(np.load(latents)), tuple((name, start, end) for name, start, end in phones))
