"""Common part of the recipes of small codecs: excerpts of mels, their phones, one AdamW, and the contents of a
checkpoint. See :class:`engine.training.recipe.Recipe`.

A phone classifier is trained with the codec, so that latents keep the words, which a spectral distance alone does not.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.front_end.frame_phones import labels
from engine.front_end.phones import CONSONANTS, PAUSE, VOWELS, PhoneVocabulary
from engine.models.networks.mel_statistics import MelStatistics
from engine.training.corpora import Clip
from engine.training.corpus import Corpus
from engine.training.draws import draw_state, restore_draw
from engine.training.recipe import require_finite
from engine.training.recipes.bundled_recipe import described
from engine.training.recipes.initialising import begin_over_mels
from engine.training.schedule import AveragedModel, Rated

VOCABULARY = PhoneVocabulary((PAUSE, *sorted(VOWELS | CONSONANTS)))
SMALLEST_SCALE = 1.0
"""Bands above 8 kHz are all but constant in this corpus; their deviation must not become a tiny divisor."""
LIFTED_FLOOR = (-7.5, -5.5)
"""Log mel to which the quantisation noise of a 16-bit recording lifts silent bands, give or take."""


@dataclass(frozen=True)
class ExcerptOptions(Rated):
    """Options of all these recipes."""

    frames: int = 96
    """Mel frames of one training excerpt, a multiple of the codec's stride."""
    batch: int = 16
    learning_rate: float = 2e-3
    warm_up: int = 100
    hold: float = 0.3
    change_weight: float = 0.5
    """Weight of the error in the mel's change from frame to frame."""
    phone_weight: float = 0.1
    average_decay: float = 0.998
    lifted_share: float = 0.0
    """Share of excerpts that the encoder sees with a lifted floor and the decoder is to give without."""
    half_precision: bool = False
    seed: int = 1


@dataclass(frozen=True)
class Excerpt:
    """A stretch of a clip: its mel (frames, bands), float32, and the phone of each frame (frames,)."""

    clip: Clip
    mel: Tensor
    phones: Tensor


Options = TypeVar("Options", bound=ExcerptOptions)
Codec = TypeVar("Codec", bound=MelStatistics)


class ExcerptRecipe(Generic[Options, Codec]):
    """Trains ``model`` and ``classifier`` on excerpts drawn from a corpus."""

    name: ClassVar[str]

    def __init__(
        self, corpus: Corpus, device: torch.device, options: Options, model: Codec, classifier: nn.Module
    ) -> None:
        self.corpus, self.device, self.options = corpus, device, options
        self._clips = [clip for clip in corpus.training if clip.frames > options.frames]
        self._held_out = corpus.held_out[::3]
        begin_over_mels(model, corpus.training, SMALLEST_SCALE)
        self.model, self.classifier = model.to(device), classifier.to(device)
        self.average = AveragedModel(self.model, options.average_decay)
        self._optimiser = torch.optim.AdamW(
            self._parameters, lr=options.learning_rate, betas=(0.9, 0.98), weight_decay=0.01, fused=True
        )
        self._draw = random.Random(options.seed)
        self._generator = torch.Generator().manual_seed(options.seed)

    # --- What a recipe adds -------------------------------------------------------------------------------------------
    def losses(self, excerpts: list[Excerpt]) -> dict[str, Tensor]:
        """``mel``, ``change`` and ``phone`` of a batch, as :func:`spectral_losses` and a classifier give them."""
        raise NotImplementedError

    def total(self, losses: Mapping[str, Tensor]) -> Tensor:
        """The loss to go down, of those of a batch."""
        options = self.options
        return losses["mel"] + options.change_weight * losses["change"] + options.phone_weight * losses["phone"]

    # --- The recipe ---------------------------------------------------------------------------------------------------
    @property
    def _parameters(self) -> list[nn.Parameter]:
        return [*self.model.parameters(), *self.classifier.parameters()]

    def describe(self) -> dict[str, Any]:
        return described(self.corpus, self._clips, self.model, self.options)

    def step(self, number: int, progress: float) -> dict[str, float]:
        options = self.options
        self._optimiser.param_groups[0]["lr"] = options.learning_rate * options.scale(
            number, progress, options.warm_up, options.hold
        )
        losses = self.losses([self._excerpt() for _ in range(options.batch)])
        total = self.total(losses)
        self._optimiser.zero_grad(set_to_none=True)
        total.backward()
        norm = nn.utils.clip_grad_norm_(self._parameters, 1.0)
        require_finite(float(total.detach() + norm), "loss or its gradient", number)
        self._optimiser.step()
        self.average.update(self.model, number)
        return {name: float(value.detach()) for name, value in losses.items()}

    def _excerpt(self) -> Excerpt:
        clip = self._draw.choice(self._clips)
        start = self._draw.randrange(clip.frames - self.options.frames)
        stretch = slice(start, start + self.options.frames)
        mel = torch.from_numpy(clip.mel[stretch].astype(np.float32))
        return Excerpt(clip, mel, torch.from_numpy(labels(clip.phones, clip.frames, VOCABULARY)[stretch]))

    def _floor(self) -> float | None:
        """A noise floor's level for an excerpt, log mel, or ``None`` for one that is to be seen as it is."""
        if self._draw.random() >= self.options.lifted_share:
            return None
        return self._draw.uniform(*LIFTED_FLOOR)

    def _lifted(self, mel: Tensor, floor: float | None) -> Tensor:
        """``mel`` with a noise floor, fluctuating as noise does."""
        if floor is None:
            return mel
        return torch.logaddexp(mel, floor + 0.25 * torch.randn(mel.shape, generator=self._generator))

    def state(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "classifier": self.classifier.state_dict(),
            "average": self.average.module.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "generator": self._generator.get_state(),
            "draw": draw_state(self._draw),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.classifier.load_state_dict(state["classifier"])
        self.average.module.load_state_dict(state["average"])
        self._optimiser.load_state_dict(state["optimiser"])
        self._generator.set_state(state["generator"])
        restore_draw(self._draw, state["draw"])


def spectral_losses(made: Tensor, wanted: Tensor) -> dict[str, Tensor]:
    """Distance of mels (B, frames, bands), and of their changes from frame to frame, from the target: L1 of log mel."""
    return {
        "mel": functional.l1_loss(made.float(), wanted),
        "change": functional.l1_loss(made.float().diff(dim=1), wanted.diff(dim=1)),
    }
