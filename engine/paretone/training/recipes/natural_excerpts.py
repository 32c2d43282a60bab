"""Common part of the recipes that learn from excerpts of natural speech: clips, the decoder that says what an error
sounds like, draws, and what a checkpoint holds of them. See :class:`paretone.training.recipe.Recipe`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import torch
from torch import nn

from paretone.models.minis.natural_decoder import NaturalDecoder
from paretone.training.corpus import Corpus
from paretone.training.draws import draw_state, restore_draw
from paretone.training.learner import Learner, LearningOptions
from paretone.training.learning_recipe import LearningRecipe
from paretone.training.natural_corpus import NaturalClip
from paretone.training.optimisers import LayerMatrices
from paretone.training.recipes.bundled_recipe import described
from paretone.training.schedule import Network

Options = TypeVar("Options", bound=LearningOptions)


class NaturalExcerpts(LearningRecipe[Options, Network], Generic[Options, Network]):
    """Trains ``model`` on excerpts of ``clips``, those of ``corpus`` that are long enough."""

    def __init__(
        self,
        corpus: Corpus[NaturalClip],
        clips: Sequence[NaturalClip],
        model: Network,
        layers: LayerMatrices,
        device: torch.device,
        options: Options,
    ) -> None:
        super().__init__(Learner.by(model.to(device), layers, options), device, options)
        self.corpus, self._clips = corpus, clips
        self._decoder = NaturalDecoder.load(device=device)
        self._draw = random.Random(options.seed)
        self._generator = torch.Generator().manual_seed(options.seed)
        """Draws on the processor, so that one seed means one run whatever the device."""

    @property
    def exported(self) -> nn.Module:
        """The part of the model that ships."""
        return self.model

    @property
    def held_out(self) -> Sequence[NaturalClip]:
        """Clips to validate on, of voices that nothing is trained on."""
        clips = self.corpus.held_out
        return clips[:: max(1, len(clips) // self.options.validation_items)]

    def describe(self) -> dict[str, Any]:
        return described(self.corpus, self._clips, self.exported, self.options)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "draw": draw_state(self._draw), "generator": self._generator.get_state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        restore_draw(self._draw, state["draw"])
        self._generator.set_state(state["generator"])
