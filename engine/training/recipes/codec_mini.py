"""The recipe of the bundled masked-diffusion model's codec, ``codec-mini``: eight codes for every four mel frames.

Codebooks are not learnt by gradients: an entry is the running mean of the vectors nearest to it, and entries that are
nearest to none are moved to some vector (van den Oord et al., arXiv 1711.00937, appendix; Dhariwal et al., arXiv
2005.00341). Some steps use only the first few codebooks, so that these hold what matters most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.models.minis.omni_mini.codec import ResidualCodec, ResidualCodecConfig
from engine.training.corpora import Corpus
from engine.training.recipes.mel_excerpts import VOCABULARY, ExcerptOptions
from engine.training.recipes.quantised_mel import QuantisedMelRecipe

RESEEDED = 0.1
"""Initial use of a reseeded entry as a share of the mean use: high enough to survive, and low enough to move
quickly."""


@dataclass(frozen=True)
class CodecMiniOptions(ExcerptOptions):
    """Options of the recipe."""

    frames: int = 64
    batch: int = 24
    lifted_share: float = 0.3
    commitment_weight: float = 0.25
    """Weight of the squared distance of numbers from their entries, which keeps the encoder close to the codebooks."""
    shortened_share: float = 0.25
    """Share of the steps in which only the first few codebooks, one to all, are used."""
    codebook_decay: float = 0.99
    """Decay of the running means, per step."""
    fewest: float = 0.02
    """An entry that is used less than this share of the mean use is put elsewhere."""


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
        self._uses = torch.zeros(architecture.codebooks, architecture.codes, device=device)
        """Running number of tokens a step that each entry was nearest to."""

    def total(self, losses: Mapping[str, Tensor]) -> Tensor:
        return super().total(losses) + self.options.commitment_weight * losses["commitment"]

    def rounded(self, latents: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Rounded by the codebooks of this step, which learn from it."""
        count = self.model.config.codebooks
        if self._draw.random() < self.options.shortened_share:
            count = self._draw.randint(1, count)
        with torch.autocast(self.device.type, enabled=False):
            left, commitment = latents.float().flatten(0, 1), latents.new_zeros((), dtype=torch.float32)
            for number in range(count):
                entries = self._learnt(number, left.detach())
                commitment = commitment + functional.mse_loss(left, entries)
                left = left - entries
            # What is left over, taken away without a gradient, leaves the entries' sum with that of the latents.
            return latents - left.detach().view_as(latents), {"commitment": commitment}

    @torch.no_grad()
    def _learnt(self, number: int, left: Tensor) -> Tensor:
        """The entries (n, numbers) of one codebook that are nearest to what is ``left`` over (n, numbers); the codebook
        then moves towards that."""
        codebook, uses, decay = self.model.quantiser.codebooks[number], self._uses[number], self.options.codebook_decay
        nearest = torch.cdist(left, codebook).argmin(1)
        entries = codebook[nearest]
        chosen = functional.one_hot(nearest, len(codebook)).to(left.dtype)
        before, now = decay * uses, (1 - decay) * chosen.sum(0)
        moved = (before[:, None] * codebook + (1 - decay) * chosen.T @ left) / (before + now).clamp(min=1e-9)[:, None]
        codebook.copy_(torch.where(now[:, None] > 0, moved, codebook))
        uses.copy_(before + now)
        mean = len(left) / len(codebook)
        idle = uses < self.options.fewest * mean
        drawn = torch.randint(len(left), (len(codebook),), generator=self._generator).to(left.device)
        codebook.copy_(torch.where(idle[:, None], left[drawn], codebook))
        uses.copy_(torch.where(idle, torch.full_like(uses, RESEEDED * mean), uses))
        return entries

    def state(self) -> dict[str, Any]:
        return {**super().state(), "uses": self._uses}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self._uses.copy_(state["uses"])
