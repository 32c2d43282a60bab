"""The speech tokenizer of the bundled language model: latent frames of natural speech to one code for every two of
them, and back.

Between encoder and decoder (:mod:`paretone.models.networks.quantised_mel`) is a finite scalar quantiser (FSQ): a few
numbers, each rounded to one of its levels, make one code (Mentzer et al., arXiv 2309.15505).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from paretone.models.networks.quantised_mel import QuantisedMel, QuantisedMelConfig, Quantiser

OVERFLOW = 1e-3
"""Amount by which bounded numbers may exceed their outermost levels."""


@dataclass(frozen=True)
class SpeechTokenizerConfig(QuantisedMelConfig):
    """Sizes of a speech tokenizer, and the levels of its quantiser."""

    levels: tuple[int, ...] = (8, 8, 6, 5)

    @property
    def codes(self) -> int:
        """Size of the codebook."""
        return math.prod(self.levels)


class ScalarQuantiser(Quantiser):
    """Numbers to the levels nearest to them, and to one code."""

    levels: Tensor
    places: Tensor
    span: Tensor
    offset: Tensor
    shift: Tensor

    def __init__(self, levels: tuple[int, ...]) -> None:
        super().__init__()
        counts = torch.tensor(levels)
        self.register_buffer("levels", counts, persistent=False)
        self.register_buffer("places", torch.cumprod(torch.tensor((1, *levels[:-1])), 0), persistent=False)
        half = (counts - 1) * (1 + OVERFLOW) / 2
        offset = torch.where(counts % 2 == 0, 0.5, 0.0)
        self.register_buffer("span", half, persistent=False)
        self.register_buffer("offset", offset, persistent=False)
        self.register_buffer("shift", torch.atanh(offset / half), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """From −1 to 1."""
        bounded = torch.tanh(x + self.shift) * self.span - self.offset
        rounded = bounded + (bounded.round() - bounded).detach()
        return rounded / (self.levels // 2)

    def codes(self, x: Tensor) -> Tensor:
        """One code (…) of all numbers."""
        half = self.levels // 2
        return ((self(x) * half + half).round().long() * self.places).sum(-1)

    def numbers(self, codes: Tensor) -> Tensor:
        """Codes (…) to the numbers."""
        half = self.levels // 2
        return (codes[..., None] // self.places % self.levels - half).float() / half


class SpeechTokenizer(QuantisedMel[SpeechTokenizerConfig]):
    """One code, int64, for every two frames."""

    title, sizes = "speech tokenizer", SpeechTokenizerConfig

    @staticmethod
    def quantiser_of(config: SpeechTokenizerConfig) -> tuple[Quantiser, int]:
        return ScalarQuantiser(config.levels), len(config.levels)
