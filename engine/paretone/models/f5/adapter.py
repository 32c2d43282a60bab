"""F5-TTS and E2-TTS: implementation of :class:`paretone.models.families.flow.FlowSpeech`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paretone import device as devices
from paretone.audio.mel import VOCOS
from paretone.errors import CheckpointError
from paretone.front_end.pronunciations import HowToRead
from paretone.models.base import ModelInfo, Voice, WeightSet
from paretone.models.f5.checkpoint import F5Checkpoint, read_f5_checkpoint
from paretone.models.f5.config import HOP, NATURAL_PHONES, SAMPLE_RATE
from paretone.models.f5.dit import DiT
from paretone.models.f5.front_end import CharacterFrontEnd, FramePhones, Passage, Prompt, PromptReader, TextFrontEnd
from paretone.models.f5.text import Vocabulary
from paretone.models.f5.unett import UNetT
from paretone.models.families.flow import FlowSpeech
from paretone.models.families.passages import Decoded, Passages, Sampler
from paretone.models.files.checkpoints import fingerprint
from paretone.models.files.trained_weights import trained_guidance
from paretone.models.kernels.precision import offered, upstream
from paretone.models.loading import LoadRequest, Vocoder
from paretone.models.networks.vocos import Vocos
from paretone.observer import Check
from paretone.sampling.flow import Run, euler_steps, sampling_grid
from paretone.sampling.guidance import guided_velocity, is_guided
from paretone.sampling.operations import OperationCounts
from paretone.setting.knobs import Values


class F5Speech(FlowSpeech):
    backbone: DiT | UNetT

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
        self._vocoder, self.front_end, self._read_prompt = vocoder, front_end, read_prompt

    @torch.inference_mode()
    def first_run(self, backbone: DiT | UNetT) -> None:
        # With one second of silence.
        frames = SAMPLE_RATE // HOP
        silence = torch.zeros(1, frames, backbone.config.mel_dim, device=self._device)
        ids = torch.zeros(1, 1, dtype=torch.long, device=self._device)
        run: Any = backbone.begin(silence, ids, sampling_grid(1)[:-1], guided=True)
        self._vocoder.decode(backbone.velocity(silence, 0, run)[:1].transpose(1, 2))
        devices.synchronise(self._device)

    def prepare(
        self, text: str, voice: Voice, options: Values, check: Check, seed: int | None = None
    ) -> tuple[Prompt, Passages[Passage]]:
        prompt = self._read_prompt(voice)
        return prompt, self.front_end.passages(text, prompt, HowToRead.of(options, seed))

    def begin(
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
        ids, guided = passage.ids.to(self._device), is_guided(options["guidance"])
        return backbone.begin(canvas, ids, times, guided, branches=branches)

    def sampler(self, passage: Passage, times: np.ndarray, seed: int, options: Values) -> Sampler:
        # Drawn on the CPU, so that a seed gives the same noise on every device; every passage starts from the seed, as
        # upstream.
        generator = torch.Generator().manual_seed(seed)
        noise = torch.randn(1, passage.frames, self.backbone.config.mel_dim, generator=generator)
        return Sampler(noise.to(self._device), euler_steps(times))

    def guided(self, velocities: Tensor, options: Values) -> Tensor:
        return guided_velocity(velocities, float(options["guidance"]))

    def decode(self, state: Tensor, passage: Passage, prompt: Prompt) -> Decoded:
        mel = state[0, prompt.frames :]
        samples = prompt.level.restored(self._vocoder.decode(mel.T[None])[0])
        return Decoded(samples.cpu().numpy(), mel.cpu().numpy())

    def evaluation_cost(self, passage: Passage, options: Values, branches: int | None = None) -> OperationCounts:
        return self.backbone.operations(passage.frames, is_guided(options["guidance"]), branches)


def load_f5(request: LoadRequest) -> F5Speech:
    """Load a checkpoint with its vocoder. Raises :class:`CheckpointError`."""
    chosen, place, target = request.entry, request.place, request.device
    # A folder of the user's own is described by its name or sidecar before the catalogue.
    own = place != chosen.folder
    checkpoint = read_f5_checkpoint(place, request.variant or ("" if own else chosen.variant), request.check)
    if checkpoint.mel_style != VOCOS:
        raise CheckpointError(
            f"{checkpoint.path} was made for the {checkpoint.mel_style} vocoder, which Paretone does not have; "
            "choose a checkpoint for Vocos."
        )
    vocoder, bands = request.vocoder(), checkpoint.config.mel_dim
    if isinstance(vocoder, Vocos) and vocoder.config.bands != bands:
        raise CheckpointError(
            f"The vocoder in {request.vocoder_folder} takes mels of {vocoder.config.bands} bands, but "
            f"{checkpoint.path} makes {bands}; choose the vocoder that it was trained for."
        )
    request.status(f"Moving {chosen.title} to {devices.title(target)} …")
    backbone = _fused(checkpoint, target)
    request.check()
    front_end = _front_end(checkpoint)
    trained_weight = trained_guidance(checkpoint.path)
    info = request.info(
        variant=checkpoint.variant,
        checkpoint=str(checkpoint.path),
        fingerprint=fingerprint(checkpoint.path, request.check),
        sample_rate=SAMPLE_RATE,
        layers=checkpoint.config.depth,
        branches=2 if trained_weight is None else 1,
        parameters=sum(one.numel() for one in backbone.parameters()),
        text_front_end=checkpoint.text_front_end,
        precision="float32" if chosen.bundled else upstream(target),
        precisions=tuple(dict.fromkeys((*offered(target), upstream(target)))),
        trained_guidance=trained_weight,
    )

    architecture = replace(checkpoint, weights={})  # The backbone has the weights; avoid keeping them twice.

    def read_weights(one: WeightSet) -> DiT | UNetT:
        return _fused(architecture.with_weights(Path(one.path)), target)

    prompts = PromptReader(front_end.phones if isinstance(front_end, FramePhones) else None)
    return F5Speech(info, backbone, vocoder, front_end, prompts, read_weights)


def _fused(checkpoint: F5Checkpoint, device: torch.device) -> DiT | UNetT:
    backbone = checkpoint.build().to(device)
    backbone.fuse()
    return backbone


def _front_end(checkpoint: F5Checkpoint) -> TextFrontEnd:
    folder = checkpoint.path.parent
    if checkpoint.text_front_end == NATURAL_PHONES:
        return FramePhones(folder)
    if checkpoint.tokenizer == "byte":
        return CharacterFrontEnd(None, "byte")
    vocabulary = Vocabulary.read(folder / "vocab.txt")
    vocabulary.require_entries(checkpoint.config.text_num_embeds, str(folder / "vocab.txt"))
    return CharacterFrontEnd(vocabulary, checkpoint.tokenizer)
