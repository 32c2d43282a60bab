"""MegaTTS 3: implementation of :class:`paretone.models.families.flow.FlowSpeech`.

The second half of ``forward`` of ``tts/infer_cli.py`` without computing what it discards: the prompt is sampled,
because the speech depends on it, but not decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from paretone import device as devices
from paretone.audio.cross_fade import CrossFader
from paretone.measure.loudness import integrated_loudness
from paretone.models.base import ModelInfo, Voice
from paretone.models.f5.front_end import PromptReader
from paretone.models.families.flow import FlowSpeech
from paretone.models.families.passages import Decoded, Passages, Sampler
from paretone.models.files.checkpoints import fingerprint
from paretone.models.kernels.precision import offered
from paretone.models.loading import LoadRequest
from paretone.models.megatts3.checkpoint import OfficialFolder
from paretone.models.megatts3.config import LATENT_STRIDE
from paretone.models.megatts3.dit import BRANCHES, MegaConditioning, MegaDiT
from paretone.models.megatts3.front_end import OfficialFrontEnd
from paretone.models.megatts3.phones import ENGLISH_TONE, SILENCE, MegaPassage, MegaPrompt
from paretone.models.megatts3.wavvae import LatentDecoder, WavDecoder
from paretone.models.minis.megatts3_mini import MegaMiniFolder, MegaMiniFrontEnd
from paretone.models.minis.natural_vocoder import GroupedCodec
from paretone.models.minis.speaking import NATURAL_PHONES
from paretone.observer import Check
from paretone.sampling.flow import OvershootNoise, overshoot_steps, sampling_grid
from paretone.sampling.guidance import needed_branches, three_branch_velocity
from paretone.sampling.operations import OperationCounts
from paretone.setting.knobs import Values

# Loudness of segments and fades between them: rules of ``tts/infer_cli.py`` and ``tts/utils/audio_utils/io.py``.
FADE_SECONDS = 0.16
PEAK = 0.95
"""Peak of a segment that would otherwise reach full scale."""


def level_matched(samples: np.ndarray, lufs: float, rate: int) -> np.ndarray:
    """Bring ``samples`` (n,) to the loudness ``lufs``, float32; quieter if they would clip. Silence is unchanged."""
    own = integrated_loudness(samples, rate).lufs
    if not (np.isfinite(own) and np.isfinite(lufs)):
        return samples.astype(np.float32)
    louder = samples * 10 ** ((lufs - own) / 20)
    highest = np.abs(louder).max()
    return (louder * (PEAK / highest) if highest >= 1 else louder).astype(np.float32)


def segment_fader(rate: int, seconds: float = FADE_SECONDS) -> CrossFader:
    """Joins segments with the halves of a symmetric Hann window, as the official code does for :data:`FADE_SECONDS`."""

    def fade(samples: int) -> tuple[np.ndarray, np.ndarray]:
        window = np.hanning(2 * samples)
        return window[samples:], window[:samples]

    return CrossFader(int(rate * seconds), fade)


WARM_UP_LATENTS = 24


class FrontEnd(Protocol):
    def __call__(
        self, text: str, voice: Voice, options: Values, check: Check, seed: int | None = None
    ) -> tuple[MegaPrompt, Passages[MegaPassage]]:
        """Prepare voice and text. Of the sampler's ``options``, the speed matters here; ``check`` may raise to cancel;
        a front end of natural speech draws the pace from ``seed``. Raises :class:`paretone.errors.AudioError` and
        :class:`paretone.errors.TextError`."""


class MegaSpeech(FlowSpeech):
    backbone: MegaDiT

    def __init__(self, info: ModelInfo, backbone: MegaDiT, decoder: LatentDecoder, front_end: FrontEnd) -> None:
        seconds = decoder.samples_per_latent / decoder.sample_rate
        super().__init__(info, backbone, backbone.postnet.weight.device, seconds)
        self.decoder, self.front_end = decoder, front_end

    @torch.inference_mode()
    def first_run(self, backbone: MegaDiT) -> None:
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
        self.decoder(backbone.velocity(state, 0, run)[:1], 0)
        devices.synchronise(self._device)

    def prepare(
        self, text: str, voice: Voice, options: Values, check: Check, seed: int | None = None
    ) -> tuple[MegaPrompt, Passages[MegaPassage]]:
        return self.front_end(text, voice, options, check, seed)

    def begin(
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

    def sampler(self, passage: MegaPassage, times: np.ndarray, seed: int, options: Values) -> Sampler:
        # All noise is drawn here, so that a synthesis with a technique and its baseline get the same.
        shape = 1, passage.frames, self.backbone.config.latent
        noise = OvershootNoise.draw(shape, len(times) - 1, seed).to(self._device)
        return Sampler(noise.initial, overshoot_steps(times, noise.steps, options["overshoot"]))

    def guided(self, velocities: Tensor, options: Values) -> Tensor:
        return three_branch_velocity(velocities, options["intelligibility"], options["similarity"])

    def decode(self, state: Tensor, passage: MegaPassage, prompt: MegaPrompt) -> Decoded:
        latents = torch.cat([prompt.latents.to(self._device), state[:, prompt.frames :]], dim=1)
        decoded = self.decoder(latents, prompt.frames)
        return replace(decoded, samples=level_matched(decoded.samples, prompt.lufs, self.info.sample_rate))

    def evaluation_cost(self, passage: MegaPassage, options: Values, branches: int | None = None) -> OperationCounts:
        return self.backbone.operations(passage.frames, branches or len(self._needed(options)))

    def _fader(self, options: Values) -> CrossFader:
        return segment_fader(self.info.sample_rate, options["cross_fade"])

    @staticmethod
    def _needed(options: Values) -> tuple[int, ...]:
        return needed_branches(options["intelligibility"], options["similarity"])


def load_megatts3(request: LoadRequest) -> MegaSpeech:
    """Load all parts. Raises :class:`CheckpointError`."""
    request.require_folder("diffusion_transformer and the others")
    device = request.device
    decoder: LatentDecoder
    front_end: FrontEnd
    if MegaMiniFolder.is_at(request.place):
        mini, codec = MegaMiniFolder(request.place, request.check), GroupedCodec(request.natural_vocoder())
        vocabulary = mini.vocabulary()
        decoder, front_end = codec, MegaMiniFrontEnd(codec, PromptReader(vocabulary.index), vocabulary)
        path, backbone, reads = mini.weights_path, mini.backbone(), NATURAL_PHONES
    else:
        folder = OfficialFolder(request.place, request.check)
        folder.require_parts()
        wavvae = folder.wavvae().to(device)
        request.status("Reading aligner and text front end …")
        decoder, front_end = WavDecoder(wavvae), OfficialFrontEnd.load(folder, wavvae, device)
        request.status(f"Reading the transformer of {request.entry.title} …")
        path, backbone, reads = folder.backbone_path, folder.backbone(), "official"
    request.status(f"Moving {request.entry.title} to {devices.title(device)} …")
    backbone = backbone.to(device)
    backbone.fuse()
    info = request.info(
        checkpoint=str(path),
        fingerprint=fingerprint(path, request.check),
        sample_rate=decoder.sample_rate,
        layers=backbone.layers,
        branches=len(BRANCHES),
        parameters=sum(one.numel() for one in backbone.parameters()),
        text_front_end=reads,
        precisions=offered(device),
    )
    return MegaSpeech(info, backbone, decoder, front_end)
