"""Common part of the recipes that learn from excerpts of natural speech: clips, the decoder that says what an error
sounds like, draws, and what a checkpoint holds of them. See :class:`paretone.training.session.Recipe`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from paretone.models.minis.natural_decoder import PITCH, PITCH_SCALE, VOICING, NaturalDecoder
from paretone.training.batches import Corpus, draw_state, restore_draw
from paretone.training.learner import LearningOptions, Network
from paretone.training.natural_corpus import NaturalClip
from paretone.training.optimisers import LayerMatrices
from paretone.training.recipes.bundled_recipe import CorpusRecipe

CENTS = PITCH_SCALE * 1200 / math.log(2)
"""Of one unit of a frame's pitch."""
AUDIBLE = -8.0
"""Log magnitude under which nothing is compared: 70 dB below full scale."""


def frame_error(made: Tensor, wanted: Tensor, pitch_weight: float) -> Tensor:
    """Mean absolute error of frames (B, n, numbers). Without voice the pitch is between what surrounds it, and counts
    as every other number; with voice it counts ``pitch_weight`` times."""
    weights = torch.ones_like(wanted)
    weights[:, :, PITCH] = torch.where(wanted[:, :, VOICING] > 0, pitch_weight, 1.0)
    return (weights * (made - wanted).abs()).mean()


def spectral_error(decoder: NaturalDecoder, made: Tensor, wanted: Tensor) -> Tensor:
    """Mean absolute error of the log magnitudes that ``decoder`` makes of frames (B, n, numbers), as far as they are
    audible."""
    with torch.no_grad():
        theirs = _magnitudes(decoder, wanted)
    ours = _magnitudes(decoder, made)
    return (ours.clamp(min=AUDIBLE) - theirs.clamp(min=AUDIBLE)).abs().mean()


def _magnitudes(decoder: NaturalDecoder, frames: Tensor) -> Tensor:
    """(3, B · n, bins): of the pulses, the noise and the free part."""
    hidden = decoder.space.hidden(frames.flatten(0, 1)).unflatten(0, frames.shape[:2])
    spectra = decoder.network(hidden.mT)
    return torch.stack([spectra.harmonic, spectra.noise, spectra.free]).float()


ExcerptOptions = TypeVar("ExcerptOptions", bound=LearningOptions)


class NaturalExcerpts(CorpusRecipe[ExcerptOptions, NaturalClip, Network], Generic[ExcerptOptions, Network]):
    """Trains ``model`` on excerpts of ``clips``, those of ``corpus`` that are long enough."""

    def __init__(
        self,
        corpus: Corpus[NaturalClip],
        clips: Sequence[NaturalClip],
        model: Network,
        layers: LayerMatrices,
        device: torch.device,
        options: ExcerptOptions,
    ) -> None:
        super().__init__(corpus, clips, model, layers, device, options)
        self._decoder = NaturalDecoder.load(device=device)
        self._draw = random.Random(options.seed)

    @property
    def held_out(self) -> Sequence[NaturalClip]:
        """Clips to validate on, of voices that nothing is trained on."""
        clips = self.corpus.held_out
        return clips[:: max(1, len(clips) // self.options.validation_items)]

    def state(self) -> dict[str, Any]:
        return {**super().state(), "draw": draw_state(self._draw)}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        restore_draw(self._draw, state["draw"])
