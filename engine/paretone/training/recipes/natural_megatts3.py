"""The recipe of a MegaTTS 3 that speaks naturally, ``voice-megatts3``: :mod:`paretone.training.recipes.mega_recipe` on
the latents of a teacher in hundreds of voices, two frames at a time, with the formant scale that each voice has.

What a recording's latents are is read off its mel by the vocoder of ``voice-vocoder``; here they are the teacher's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from paretone.front_end.phones import PHONES
from paretone.models.megatts3.config import LATENT_STRIDE, DiTConfig
from paretone.models.minis.megatts3_mini import DURATION_HOP, VOCABULARY, phones_of_frames
from paretone.models.minis.natural_decoder import SAMPLE_RATE
from paretone.models.minis.natural_vocoder import GROUP, GROUPED, grouped
from paretone.training.corpus import Corpus
from paretone.training.natural_alignment import Alignment, AlignmentOptions, drawn_alignment
from paretone.training.natural_corpus import NaturalClip
from paretone.training.natural_frames import voice_frames
from paretone.training.recipes.mega_recipe import LatentClip, MegaOptions, MegaRecipe
from paretone.training.recipes.megatts3_layout import export_transformer

ARCHITECTURE = DiTConfig(
    dim=256,
    layers=8,
    heads=4,
    ff_hidden=512,
    latent=GROUPED,
    local_cond=160,
    phone_layers=2,
    phone_heads=4,
    phone_ff_hidden=512,
)
NUMBERS = {phone: number for number, phone in enumerate(PHONES, start=1)}
"""Rows of the phone table; zero is padding."""


@dataclass(frozen=True)
class NaturalMegaOptions(MegaOptions):
    """What a run of the recipe can change."""

    frames: int = 1_600
    joined_share: float = 0.8
    alignment: AlignmentOptions = field(default_factory=AlignmentOptions)


@dataclass(frozen=True)
class GroupedClip:
    """A clip of the corpus, its latents in groups."""

    clip: NaturalClip

    @property
    def voice(self) -> str:
        return self.clip.voice

    @property
    def frames(self) -> int:
        """Groups."""
        return len(self.clip.latents) // GROUP


class NaturalMega(MegaRecipe[NaturalMegaOptions, GroupedClip]):
    """Trains it."""

    name = "voice-megatts3"

    def __init__(
        self,
        corpus: Corpus[NaturalClip],
        device: torch.device,
        options: NaturalMegaOptions = NaturalMegaOptions(),
        architecture: DiTConfig = ARCHITECTURE,
    ) -> None:
        clips = [GroupedClip(clip) for clip in corpus.training]
        super().__init__(corpus, clips, device, options, architecture)

    def seen(self, item: Sequence[GroupedClip]) -> list[LatentClip]:
        aligned = drawn_alignment(self.options.alignment, self.progress, self.generator)
        return [latent_clip(one.clip, aligned) for one in item]

    @cached_property
    def held_out(self) -> Sequence[LatentClip]:
        return [latent_clip(clip) for clip in self.corpus.held_out]

    def export(self, folder: Path) -> None:
        """``diffusion_transformer/`` (float16, official keys) and ``vocab.txt``, whose phones have the numbers of their
        lines."""
        export_transformer(folder, self.average.module, DURATION_HOP, LATENT_STRIDE)
        (folder / VOCABULARY).write_text("".join(phone + "\n" for phone in PHONES), encoding="utf-8")


def latent_clip(clip: NaturalClip, aligned: Alignment = tuple) -> LatentClip:
    """``clip`` as the model sees it, its phones at the times that ``aligned`` gives them."""
    latents = groups_of(clip)
    phones = aligned(clip.phones)
    numbers = np.array([NUMBERS[name] for name, _, _ in phones], np.int64)
    places = phones_of_frames(phones, len(latents) * LATENT_STRIDE, SAMPLE_RATE, DURATION_HOP)
    return LatentClip(clip.voice, latents.numpy(), numbers, places)


def groups_of(clip: NaturalClip) -> Tensor:
    """(n, 70) float32, the clip's latents and formant scale."""
    return grouped(voice_frames(clip))
