"""The recipe of the bundled masked-diffusion model's codec, ``codec-mini``: eight codes for every four mel frames. Its
codebooks are learnt by :mod:`engine.training.recipes.moving_codebooks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from engine.models.minis.omni_mini.codec import ResidualCodec, ResidualCodecConfig
from engine.training.corpus import Corpus
from engine.training.recipes.mel_excerpts import VOCABULARY, ExcerptOptions
from engine.training.recipes.moving_codebooks import CodebookOptions, MovingCodebooks
from engine.training.recipes.quantised_mel import QuantisedMelRecipe


@dataclass(frozen=True)
class CodecMiniOptions(ExcerptOptions):
    """Options of the recipe."""

    frames: int = 64
    batch: int = 24
    lifted_share: float = 0.3
    commitment_weight: float = 0.25
    """Weight of the squared distance of numbers from their entries, which keeps the encoder close to the codebooks."""
    codebooks: CodebookOptions = field(default_factory=CodebookOptions)


class CodecMiniRecipe(QuantisedMelRecipe[CodecMiniOptions]):
    """Trains a residual codec; see :class:`engine.training.recipe.Recipe`."""

    name = "codec-mini"
    model: ResidualCodec

    def __init__(
        self,
        corpus: Corpus,
        device: torch.device,
        options: CodecMiniOptions = CodecMiniOptions(),
        architecture: ResidualCodecConfig = ResidualCodecConfig(),
    ) -> None:
        torch.manual_seed(options.seed)
        model = ResidualCodec(architecture)
        classifier = nn.Linear(architecture.numbers, len(VOCABULARY.phones))
        super().__init__(corpus, device, options, model, classifier)
        self._codebooks = MovingCodebooks(
            self.model.quantiser.codebooks, options.codebooks, self._draw, self._generator
        )

    def total(self, losses: Mapping[str, Tensor]) -> Tensor:
        return super().total(losses) + self.options.commitment_weight * losses["commitment"]

    def rounded(self, latents: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Rounded by the codebooks of this step, which learn from it."""
        numbers, commitment = self._codebooks.rounded(latents)
        return numbers, {"commitment": commitment}

    def state(self) -> dict[str, Any]:
        return {**super().state(), "uses": self._codebooks.uses}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self._codebooks.uses.copy_(state["uses"])
