"""The small codecs of the bundled models with tokens: frames of natural speech to codes, and back. Between encoder and
decoder (:mod:`paretone.models.networks.quantised_mel`) each has a quantiser of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from paretone.models.networks.quantised_mel import QuantisedMel, QuantisedMelConfig, Quantiser

# The speech tokenizer of the bundled language model: latent frames of natural speech to one code for every two of them,
# and back.
#
# Between encoder and decoder (:mod:`paretone.models.networks.quantised_mel`) is a finite scalar quantiser (FSQ): a few
# numbers, each rounded to one of its levels, make one code (Mentzer et al., arXiv 2309.15505).


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


# The codec of the bundled masked-diffusion model: latent frames of natural speech to eight codes for every four of
# them, and back.
#
# Between encoder and decoder (:mod:`paretone.models.networks.quantised_mel`) is a residual quantiser: the first
# codebook's entry that is nearest to a token's numbers, then the second's that is nearest to what the first left over,
# and so on. The first codes alone give speech that can be understood, which is what an audible half-finished canvas
# needs.


@dataclass(frozen=True)
class ResidualCodecConfig(QuantisedMelConfig):
    """Sizes of the codec and of its quantiser."""

    stride: int = 4
    decoder_token_layers: int = 1
    """Few, because each waits for three tokens that are still to come; see
    :mod:`paretone.models.minis.omni_mini`."""
    decoder_frame_layers: int = 5
    codebooks: int = 8
    codes: int = 128
    """Entries of each codebook."""
    numbers: int = 24
    """Numbers in each token, and in each entry."""

    @property
    def absent(self) -> int:
        """The code that stands for none: it adds nothing."""
        return self.codes


class ResidualQuantiser(Quantiser):
    """Codebooks one after another; codes are (…, codebooks)."""

    codebooks: Tensor

    def __init__(self, config: ResidualCodecConfig) -> None:
        super().__init__()
        self.register_buffer("codebooks", torch.zeros(config.codebooks, config.codes, config.numbers))

    def forward(self, x: Tensor) -> Tensor:
        return x + (self.numbers(self.codes(x)) - x).detach()

    def codes(self, x: Tensor) -> Tensor:
        left, codes = x.flatten(0, -2), []
        for codebook in self.codebooks:
            nearest = torch.cdist(left, codebook).argmin(1)
            left = left - codebook[nearest]
            codes.append(nearest)
        return torch.stack(codes, dim=1).view(*x.shape[:-1], -1)

    def numbers(self, codes: Tensor) -> Tensor:
        """The entries that are meant, added up; :attr:`ResidualCodecConfig.absent` adds nothing."""
        entries = functional.pad(self.codebooks, (0, 0, 0, 1))
        return sum(table[column] for table, column in zip(entries, codes.unbind(-1), strict=True))


class ResidualCodec(QuantisedMel[ResidualCodecConfig]):
    """Codes (…, tokens, codebooks), int64, for every four frames."""

    quantiser: ResidualQuantiser
    title, sizes = "residual codec", ResidualCodecConfig

    @staticmethod
    def quantiser_of(config: ResidualCodecConfig) -> tuple[Quantiser, int]:
        return ResidualQuantiser(config), config.numbers


def token_phones(frames: np.ndarray, stride: int) -> np.ndarray:
    """One phone per frame (n,) to one per token (n // stride,): that of the frame after the token's middle. What
    does not fill a token is left out."""
    whole = len(frames) // stride * stride
    return frames[:whole][stride // 2 :: stride]
