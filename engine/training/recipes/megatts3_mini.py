"""The recipe of the bundled MegaTTS 3, ``megatts3-mini``: a small DiT of the official layout over the latents of
:mod:`engine.training.recipes.mel_codec`.

MegaTTS 3 gets the duration of every phone, so what a small model cannot learn, the alignment, is given away by its
design: the corpus's own phone times in training, a table of mean durations at synthesis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from engine.models.f5.config import HOP, SAMPLE_RATE
from engine.models.files.checkpoints import fingerprint
from engine.models.megatts3.config import DiTConfig
from engine.models.megatts3.dit import MegaDiT
from engine.models.megatts3.phone_table import ENGLISH_TONE
from engine.models.minis.megatts3_mini.mel_codec import WEIGHT_FILE, MelCodec
from engine.models.minis.megatts3_mini.phones import phone_ids, phones_of_frames
from engine.training.batch_queue import held_out_pairs
from engine.training.corpora import Clip, Corpus
from engine.training.flow_matching import span_error
from engine.training.flow_times import errors_by_time
from engine.training.latent_flow import (
    LatentBatch,
    LatentFlowOptions,
    LatentProblem,
    draw_latent_problem,
    latent_synthesis_problem,
)
from engine.training.optimisers import LayerMatrices
from engine.training.recipes.bundled_recipe import BundledOptions, BundledRecipe
from engine.training.recipes.export_megatts3 import export_mega
from engine.training.recipes.initialising import open_gates

ARCHITECTURE = DiTConfig(
    dim=192, layers=10, heads=3, ff_hidden=512, local_cond=128, phone_layers=2, phone_heads=4, phone_ff_hidden=384
)
FRAMES_ENCODED = 4_000
"""Mel frames that the codec encodes at a time."""
_ATTENTION = partial(sdpa_kernel, SDPBackend.MATH)
"""Attention in plain products: items here are so short that the fused kernel's backward pass costs a tenth more of a
step on processors."""
LAYER_MATRICES = LayerMatrices("encoder.layers.", apart_from="attention_norm")


@dataclass(frozen=True)
class MegaOptions(BundledOptions):
    """Options of the recipe."""

    frames: int = 1_500
    joined_share: float = 0.7
    objective: LatentFlowOptions = field(default_factory=LatentFlowOptions)


@dataclass(frozen=True)
class LatentClip:
    """A clip as the model sees it."""

    voice: str
    latents: np.ndarray = field(repr=False)
    """(n, latent) float16."""
    phones: np.ndarray = field(repr=False)
    """(phones,) official numbers."""
    phones_of_frames: np.ndarray = field(repr=False)
    """(n · stride,) places in ``phones``, from one."""

    @property
    def frames(self) -> int:
        """Latent frames."""
        return len(self.latents)


def latent_clips(clips: Sequence[Clip], codec: MelCodec, cache: Path) -> tuple[LatentClip, ...]:
    """All ``clips``, each cut to whole latents, through ``codec``. The latents are kept in the file ``cache``, which
    must belong to this codec and these clips."""
    stride = codec.config.stride
    lengths = [clip.frames // stride for clip in clips]
    if not cache.exists():
        cache.parent.mkdir(parents=True, exist_ok=True)
        unfinished = cache.with_suffix(".part.npy")
        np.save(unfinished, np.concatenate(_encoded(clips, lengths, codec)))
        unfinished.replace(cache)
    every = np.load(cache, mmap_mode="r")
    starts = np.cumsum([0, *lengths])
    return tuple(
        LatentClip(
            clip.voice,
            every[start : start + length],
            phone_ids(phone for phone, _, _ in clip.phones),
            phones_of_frames(clip.phones, length * stride, SAMPLE_RATE, HOP),
        )
        for clip, start, length in zip(clips, starts, lengths, strict=False)
    )


@torch.inference_mode()
def _encoded(clips: Sequence[Clip], lengths: Sequence[int], codec: MelCodec) -> list[np.ndarray]:
    """The latents (n, latent) of every clip, float16. Clips of one length go through the encoder together: no padding,
    which convolutions would see."""
    stride, device = codec.config.stride, codec.mel_mean.device
    encoded: list[np.ndarray] = [np.empty(0)] * len(clips)
    of_length: dict[int, list[int]] = {}
    for number, length in enumerate(lengths):
        of_length.setdefault(length, []).append(number)
    for length, numbers in of_length.items():
        together = max(1, FRAMES_ENCODED // (length * stride))
        for first in range(0, len(numbers), together):
            some = numbers[first : first + together]
            mels = np.stack([clips[number].mel[: length * stride] for number in some]).astype(np.float32)
            latents = codec.encode(torch.from_numpy(mels).to(device)).half().cpu().numpy()
            for number, one in zip(some, latents, strict=True):
                encoded[number] = one
    return encoded


class MegaMini(BundledRecipe[MegaOptions, LatentClip, MegaDiT]):
    """Trains a small MegaTTS 3; see :class:`engine.training.session.Recipe`."""

    name, term = "megatts3-mini", "flow"

    def __init__(
        self,
        corpus: Corpus,
        codec_folder: Path,
        work: Path,
        device: torch.device,
        options: MegaOptions = MegaOptions(),
        architecture: DiTConfig = ARCHITECTURE,
    ) -> None:
        """``codec_folder`` is an exported codec; the corpus's latents are kept in ``work``."""
        self.codec_folder = codec_folder
        codec = MelCodec.load(codec_folder, device)
        self._codec_fingerprint = fingerprint(codec_folder / WEIGHT_FILE)
        kept = work / f"latents-{self._codec_fingerprint[:12]}-{len(corpus.training)}"
        clips = latent_clips(corpus.training, codec, kept / "training.npy")
        self._held_out = latent_clips(corpus.held_out, codec, kept / "held_out.npy")
        torch.manual_seed(options.seed)
        model = MegaDiT(architecture)
        initialise(model)
        super().__init__(corpus, clips, model.requires_grad_(True).train(), LAYER_MATRICES, device, options)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "codec": self._codec_fingerprint}

    def loss(self, items: list[list[LatentClip]]) -> Tensor:
        batch = collate_latents(items)
        problem = draw_latent_problem(batch, self.options.objective, self.generator).to(self.device)
        return self._error(self.model, problem)

    def _error(self, model: MegaDiT, problem: LatentProblem) -> Tensor:
        with self.autocast(), _ATTENTION():
            velocity = model(
                problem.noised,
                problem.condition,
                problem.prompt,
                problem.phones,
                problem.tones,
                problem.phones_of_frames,
                problem.times,
                problem.mask,
            )
        return span_error(velocity, problem.target, problem.span)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """The error by time where a prompt is known and the clip after it is not."""

        def error(batch: LatentBatch, time: float, generator: torch.Generator) -> Tensor:
            problem = latent_synthesis_problem(batch, time, generator).to(self.device)
            return self._error(self.average.module, problem)

        return errors_by_time(self._validation_batches, error)

    @cached_property
    def _validation_batches(self) -> list[LatentBatch]:
        batches = held_out_pairs(self._held_out, self.options.validation_items, 8)
        return [collate_latents(items) for items in batches]

    def export(self, folder: Path) -> None:
        export_mega(folder, self.average.module, self.codec_folder, self.corpus)


def collate_latents(items: list[list[LatentClip]]) -> LatentBatch:
    """A batch whose items are one clip, or two of one voice joined."""
    lengths = [sum(clip.frames for clip in item) for item in items]
    spoken = [np.concatenate([clip.phones for clip in item]) for item in items]
    first = items[0][0]
    stride = len(first.phones_of_frames) // first.frames
    latents = torch.zeros(len(items), max(lengths), first.latents.shape[1])
    phones = torch.zeros(len(items), max(map(len, spoken)), dtype=torch.long)
    places = torch.zeros(len(items), max(lengths) * stride, dtype=torch.long)
    for row, item in enumerate(items):
        phones[row, : len(spoken[row])] = torch.from_numpy(spoken[row])
        start = before = 0
        for clip in item:
            end = start + clip.frames
            latents[row, start:end] = torch.from_numpy(clip.latents.astype(np.float32))
            places[row, start * stride : end * stride] = torch.from_numpy(clip.phones_of_frames + before)
            start, before = end, before + len(clip.phones)
    tones = torch.where(phones > 0, ENGLISH_TONE, 0)
    joins = [item[0].frames if len(item) > 1 else 0 for item in items]
    return LatentBatch(latents, phones, tones, places, torch.tensor(lengths), torch.tensor(joins))


@torch.no_grad()
def initialise(model: MegaDiT) -> None:
    """AdaLN and output at zero, except that the gates start half open; tones, which say nothing in English, quiet."""
    open_gates(model)
    model.postnet.weight.zero_()
    model.postnet.bias.zero_()
    model.tone_embed.weight.mul_(0.1)
