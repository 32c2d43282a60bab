"""The recipe of the bundled MegaTTS 3, ``megatts3-mini``: :mod:`engine.training.recipes.mega_recipe` over the latents
of :mod:`engine.training.recipes.mel_codec`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.models.f5.config import HOP, SAMPLE_RATE
from engine.models.files.checkpoints import fingerprint
from engine.models.megatts3.config import DiTConfig
from engine.models.minis.megatts3_mini.mel_codec import WEIGHT_FILE, MelCodec
from engine.models.minis.megatts3_mini.phones import phone_ids, phones_of_frames
from engine.training.corpora import Clip
from engine.training.corpus import Corpus
from engine.training.recipes.export_megatts3 import export_mega
from engine.training.recipes.mega_recipe import LatentClip, MegaOptions, MegaRecipe

ARCHITECTURE = DiTConfig(
    dim=192, layers=10, heads=3, ff_hidden=512, local_cond=128, phone_layers=2, phone_heads=4, phone_ff_hidden=384
)
FRAMES_ENCODED = 4_000
"""Mel frames that the codec encodes at a time."""


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


class MegaMini(MegaRecipe[MegaOptions, LatentClip]):
    """Trains it on flite's speech."""

    name = "megatts3-mini"

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
        super().__init__(corpus, clips, device, options, architecture)

    @property
    def held_out(self) -> Sequence[LatentClip]:
        return self._held_out

    def seen(self, item: Sequence[LatentClip]) -> list[LatentClip]:
        return list(item)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "codec": self._codec_fingerprint}

    def export(self, folder: Path) -> None:
        export_mega(folder, self.average.module, self.codec_folder, self.corpus)
