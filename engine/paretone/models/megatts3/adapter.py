"""A MegaTTS 3 model that speaks: what :class:`paretone.models.families.flow.FlowSpeech` leaves to a family.

The second half of ``forward`` of ``tts/infer_cli.py``, with what it throws away not computed: the prompt is sampled, as
the speech depends on it, but not decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from paretone import device as devices
from paretone.audio.cross_fade import CrossFader
from paretone.models.base import ModelInfo, Voice
from paretone.models.families.flow import FlowSpeech
from paretone.models.families.passages import Decoded, Sampler
from paretone.models.megatts3.config import LATENT_STRIDE
from paretone.models.megatts3.dit import MegaConditioning, MegaDiT
from paretone.models.megatts3.passages import MegaPassage, MegaPassages, MegaPrompt
from paretone.models.megatts3.phones import ENGLISH_TONE, SILENCE
from paretone.models.megatts3.segments import level_matched, segment_fader
from paretone.models.megatts3.wavvae import LatentDecoder
from paretone.sampling.flow import OvershootNoise, overshoot_steps, sampling_grid
from paretone.sampling.guidance import needed_branches, three_branch_velocity
from paretone.sampling.operations import OperationCounts
from paretone.setting.knobs import Values

WARM_UP_LATENTS = 24


class FrontEnd(Protocol):
    """Makes a voice and a text ready."""

    def __call__(
        self, text: str, voice: Voice, options: Values, check: Callable[[], None], seed: int | None = None
    ) -> tuple[MegaPrompt, MegaPassages]:
        """``options`` are the sampler's, of which the speed matters here; ``check`` may raise to cancel; a front end of
        natural speech draws the pace from ``seed``. Raises :class:`paretone.errors.AudioError` and
        :class:`paretone.errors.TextError`."""


class MegaSpeech(FlowSpeech):
    """A loaded MegaTTS 3: backbone, decoder of latents, front end."""

    _backbone: MegaDiT

    def __init__(self, info: ModelInfo, backbone: MegaDiT, decoder: LatentDecoder, front_end: FrontEnd) -> None:
        super().__init__(
            info, backbone, backbone.postnet.weight.device, decoder.samples_per_latent / decoder.sample_rate
        )
        self._decoder = decoder
        self._front_end = front_end

    @torch.inference_mode()
    def _warm_up(self, backbone: MegaDiT) -> None:
        state = torch.zeros(1, WARM_UP_LATENTS, backbone.config.latent, device=self._device)
        phones = torch.full((1, 1), SILENCE, device=self._device)
        run = backbone.begin(
            state,
            torch.zeros(1, WARM_UP_LATENTS, dtype=torch.bool, device=self._device),
            phones,
            torch.full_like(phones, ENGLISH_TONE),
            phones.new_ones(1, WARM_UP_LATENTS * LATENT_STRIDE),
            sampling_grid(1)[:-1],
        )
        self._decoder(backbone.velocity(state, 0, run)[:1], 0)
        devices.synchronise(self._device)

    def _prepare(
        self,
        text: str,
        voice: Voice,
        options: Values,
        check: Callable[[], None] = lambda: None,
        seed: int | None = None,
    ) -> tuple[MegaPrompt, MegaPassages]:
        return self._front_end(text, voice, options, check, seed)

    def _begin(
        self,
        backbone: MegaDiT,
        passage: MegaPassage,
        prompt: MegaPrompt,
        times: np.ndarray,
        options: Values,
        branches: Sequence[int] | None = None,
    ) -> MegaConditioning:
        context = torch.zeros(1, passage.frames, backbone.config.latent, device=self._device)
        context[:, : prompt.frames] = prompt.latents.to(self._device)
        is_prompt = torch.arange(passage.frames, device=self._device)[None] < prompt.frames
        phones, tones, mel2ph = (one.to(self._device) for one in (passage.phones, passage.tones, passage.mel2ph))
        return backbone.begin(context, is_prompt, phones, tones, mel2ph, times, branches or self._needed(options))

    def _sampler(self, passage: MegaPassage, times: np.ndarray, seed: int, options: Values) -> Sampler:
        # All noise is drawn here, so that a synthesis with a technique and its baseline are given the same.
        shape = 1, passage.frames, self._backbone.config.latent
        noise = OvershootNoise.draw(shape, len(times) - 1, seed).to(self._device)
        return Sampler(noise.initial, overshoot_steps(times, noise.steps, options["overshoot"]))

    def _guided(self, velocities: Tensor, options: Values) -> Tensor:
        return three_branch_velocity(velocities, options["intelligibility"], options["similarity"])

    def _decode(self, state: Tensor, passage: MegaPassage, prompt: MegaPrompt) -> Decoded:
        latents = torch.cat([prompt.latents.to(self._device), state[:, prompt.frames :]], dim=1)
        decoded = self._decoder(latents, prompt.frames)
        return replace(decoded, samples=level_matched(decoded.samples, prompt.lufs, self.info.sample_rate))

    def _operations(self, frames: int, options: Values, branches: int | None = None) -> OperationCounts:
        return self._backbone.operations(frames, branches or len(self._needed(options)))

    def _fader(self, options: Values) -> CrossFader:
        return segment_fader(self.info.sample_rate, options["cross_fade"])

    @staticmethod
    def _needed(options: Values) -> tuple[int, ...]:
        return needed_branches(options["intelligibility"], options["similarity"])
