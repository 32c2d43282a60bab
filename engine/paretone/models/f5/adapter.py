"""An F5-TTS or E2-TTS model that speaks: what :class:`paretone.models.families.flow.FlowSpeech` leaves to a family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paretone import device as devices
from paretone.models.base import ModelInfo, Voice, WeightSet
from paretone.models.f5.config import HOP, SAMPLE_RATE
from paretone.models.f5.dit import DiT
from paretone.models.f5.front_end import Passage, Passages, Prompt, TextFrontEnd
from paretone.models.f5.unett import UNetT
from paretone.models.families.flow import FlowSpeech
from paretone.models.families.passages import Decoded, Sampler
from paretone.models.vocoders import Vocoder
from paretone.sampling.flow import Run, euler_steps, sampling_grid
from paretone.sampling.guidance import guided_velocity, is_guided
from paretone.sampling.operations import OperationCounts
from paretone.setting.knobs import Values


class F5Speech(FlowSpeech):
    """A loaded F5-TTS or E2-TTS model: backbone, vocoder, text front end."""

    _backbone: DiT | UNetT

    def __init__(
        self,
        info: ModelInfo,
        backbone: DiT | UNetT,
        vocoder: Vocoder,
        front_end: TextFrontEnd,
        read_prompt: Callable[[Voice], Prompt],
        read_weights: Callable[[WeightSet], DiT | UNetT] | None = None,
    ) -> None:
        super().__init__(info, backbone, backbone.proj_out.weight.device, HOP / SAMPLE_RATE, read_weights)
        self._vocoder = vocoder
        self._front_end = front_end
        self._read_prompt = read_prompt

    def read_by(self, front_end: TextFrontEnd) -> None:
        """Read texts by another front end from now on."""
        self._front_end = front_end

    @torch.inference_mode()
    def _warm_up(self, backbone: DiT | UNetT) -> None:
        # On a second of silence.
        frames = SAMPLE_RATE // HOP
        silence = torch.zeros(1, frames, backbone.config.mel_dim, device=self._device)
        ids = torch.zeros(1, 1, dtype=torch.long, device=self._device)
        run: Any = backbone.begin(silence, ids, sampling_grid(1)[:-1], guided=True)
        self._vocoder.decode(backbone.velocity(silence, 0, run)[:1].transpose(1, 2))
        devices.synchronise(self._device)

    def _prepare(
        self,
        text: str,
        voice: Voice,
        options: Values,
        check: Callable[[], None] = lambda: None,
        seed: int | None = None,
    ) -> tuple[Prompt, Passages]:
        prompt = self._read_prompt(voice)
        speed, quick_start = float(options["speed"]), bool(options["quick_start"])
        return prompt, self._front_end.passages(text, prompt, speed, quick_start, seed)

    def _begin(
        self,
        backbone: DiT | UNetT,
        passage: Passage,
        prompt: Prompt,
        times: np.ndarray,
        options: Values,
        branches: Sequence[int] | None = None,
    ) -> Run:
        frames = min(prompt.mel.shape[1], passage.frames)
        canvas = torch.zeros(1, passage.frames, prompt.mel.shape[2], device=self._device)
        canvas[:, :frames] = prompt.mel[:, :frames].to(self._device)
        guided = is_guided(options["guidance"])
        if branches is None:
            return backbone.begin(canvas, passage.ids.to(self._device), times, guided)
        return backbone.begin(canvas, passage.ids.to(self._device), times, guided, branches=branches)

    def _sampler(self, passage: Passage, times: np.ndarray, seed: int, options: Values) -> Sampler:
        # Drawn on the CPU, so that one seed is one noise on every device; every passage starts from the seed, as
        # upstream.
        generator = torch.Generator().manual_seed(seed)
        noise = torch.randn(1, passage.frames, self._backbone.config.mel_dim, generator=generator)
        return Sampler(noise.to(self._device), euler_steps(times))

    def _guided(self, velocities: Tensor, options: Values) -> Tensor:
        return guided_velocity(velocities, float(options["guidance"]))

    def _decode(self, state: Tensor, passage: Passage, prompt: Prompt) -> Decoded:
        mel = state[0, prompt.frames :]
        samples = prompt.level.restored(self._vocoder.decode(mel.T[None])[0])
        return Decoded(samples.cpu().numpy(), mel.cpu().numpy())

    def _operations(self, frames: int, options: Values, branches: int | None = None) -> OperationCounts:
        return self._backbone.operations(frames, is_guided(options["guidance"]), branches)
