"""Codebooks of a residual quantiser while they are learnt.

They are not learnt by gradients: an entry is the running mean of the vectors nearest to it, and entries that are
nearest to none are moved to some vector (van den Oord et al., arXiv 1711.00937, appendix; Dhariwal et al., arXiv
2005.00341). Some steps use only the first few codebooks, so that these hold what matters most.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

RESEEDED = 0.1
"""Initial use of a reseeded entry as a share of the mean use: high enough to survive, and low enough to move
quickly."""


@dataclass(frozen=True)
class CodebookOptions:
    """How they move."""

    shortened_share: float = 0.25
    """Share of the steps in which only the first few codebooks, one to all, are used."""
    decay: float = 0.99
    """Of the running means, each step."""
    fewest: float = 0.02
    """An entry that is used less than this share of the mean use is put elsewhere."""


class MovingCodebooks:
    """Moves ``codebooks`` (codebooks, codes, numbers) in place."""

    def __init__(
        self, codebooks: Tensor, options: CodebookOptions, draw: random.Random, generator: torch.Generator
    ) -> None:
        self._codebooks, self._options, self._draw, self._generator = codebooks, options, draw, generator
        self.uses = torch.zeros(codebooks.shape[:2], device=codebooks.device)
        """Running number of tokens a step that each entry was nearest to."""

    def rounded(self, latents: Tensor) -> tuple[Tensor, Tensor]:
        """``latents`` (B, n, numbers) rounded by the codebooks of this step, which learn from them, with a gradient;
        and the mean squared distances from the entries, added up."""
        count = len(self._codebooks)
        if self._draw.random() < self._options.shortened_share:
            count = self._draw.randint(1, count)
        with torch.autocast(latents.device.type, enabled=False):
            left, commitment = latents.float().flatten(0, 1), latents.new_zeros((), dtype=torch.float32)
            for number in range(count):
                entries = self.learnt(number, left.detach())
                commitment = commitment + functional.mse_loss(left, entries)
                left = left - entries
            # What is left over, taken away without a gradient, leaves the entries' sum with that of the latents.
            return latents - left.detach().view_as(latents), commitment

    @torch.no_grad()
    def learnt(self, number: int, left: Tensor) -> Tensor:
        """The entries (n, numbers) of one codebook that are nearest to what is ``left`` over (n, numbers); the codebook
        then moves towards that."""
        codebook, uses, decay = self._codebooks[number], self.uses[number], self._options.decay
        nearest = torch.cdist(left, codebook).argmin(1)
        entries = codebook[nearest]
        chosen = functional.one_hot(nearest, len(codebook)).to(left.dtype)
        before, now = decay * uses, (1 - decay) * chosen.sum(0)
        moved = (before[:, None] * codebook + (1 - decay) * chosen.T @ left) / (before + now).clamp(min=1e-9)[:, None]
        codebook.copy_(torch.where(now[:, None] > 0, moved, codebook))
        uses.copy_(before + now)
        mean = len(left) / len(codebook)
        idle = uses < self._options.fewest * mean
        drawn = torch.randint(len(left), (len(codebook),), generator=self._generator).to(left.device)
        codebook.copy_(torch.where(idle[:, None], left[drawn], codebook))
        uses.copy_(torch.where(idle, torch.full_like(uses, RESEEDED * mean), uses))
        return entries
