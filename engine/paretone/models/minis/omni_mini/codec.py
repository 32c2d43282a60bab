"""The codec of the bundled masked-diffusion model: latent frames of natural speech to eight codes for every four of
them, and back.

Between encoder and decoder (:mod:`paretone.models.networks.quantised_mel`) is a residual quantiser: the first
codebook's entry that is nearest to a token's numbers, then the second's that is nearest to what the first left over,
and so on. The first codes alone give speech that can be understood, which is what an audible half-finished canvas
needs."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from paretone.models.networks.quantised_mel import QuantisedMel, QuantisedMelConfig, Quantiser


@dataclass(frozen=True)
class ResidualCodecConfig(QuantisedMelConfig):
    """Sizes of the codec and of its quantiser."""

    stride: int = 4
    decoder_token_layers: int = 1
    """Few, because each waits for three tokens that are still to come; see
    :mod:`paretone.models.minis.omni_mini.decoding`."""
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
