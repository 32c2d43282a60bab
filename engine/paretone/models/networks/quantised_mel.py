"""Small codecs of the bundled models with tokens: frames of natural speech to codes and back.

Encoder and decoder are ConvNeXt blocks as in Vocos, some at the frame rate and some at the token rate. The quantiser in
between is either finite scalar or residual quantisation. The decoder takes a mean frame of the speaker; for frames of
content only, it is zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from paretone.errors import CheckpointError
from paretone.models.files.checkpoints import loaded_strictly, read_float_weights
from paretone.models.files.config_file import ConfigFile
from paretone.models.networks.vocos import ConvNeXtBlock, StreamedBlocks
from paretone.reading import shown


class MelStatistics(nn.Module):
    """Mean and scale of each band, (bands,), as buffers, so that callers use plain log mels."""

    mel_mean: Tensor
    mel_scale: Tensor

    def __init__(self, bands: int) -> None:
        super().__init__()
        self.register_buffer("mel_mean", torch.zeros(bands))
        self.register_buffer("mel_scale", torch.ones(bands))

    def normalised(self, mel: Tensor) -> Tensor:
        """Log mel (…, bands) with mean zero and variance one over the corpus."""
        return (mel - self.mel_mean) / self.mel_scale

    def log_mel(self, normalised: Tensor) -> Tensor:
        """Inverse of :meth:`normalised`: log mel (…, bands)."""
        return normalised * self.mel_scale + self.mel_mean


CONFIG_FILE, WEIGHT_FILE = "config.json", "model.safetensors"


@dataclass(frozen=True)
class QuantisedMelConfig:
    bands: int = 100
    stride: int = 2
    """Frames per token."""
    width: int = 256
    inner_width: int = 512
    encoder_frame_layers: int = 3
    encoder_token_layers: int = 2
    decoder_token_layers: int = 3
    decoder_frame_layers: int = 4

    @classmethod
    def read(cls, file: ConfigFile) -> Self:
        """Read from a ``config.json``, which must have every size. Raises :class:`CheckpointError` with the field."""
        sizes: dict[str, Any] = {
            one.name: (file.numbers if isinstance(one.default, tuple) else file.number)(one.name) for one in fields(cls)
        }
        # Earlier codecs, which took the voice, listed their voices.
        unknown = set(file.entries) - set(sizes) - {"voices"}
        if unknown:
            raise CheckpointError(f"{file.where} has an unknown entry {shown(min(unknown))}; restore the model folder.")
        return cls(**sizes)


Config = TypeVar("Config", bound=QuantisedMelConfig)


class QuantisedMel(MelStatistics, Generic[Config]):
    title: ClassVar[str]
    sizes: ClassVar[type[QuantisedMelConfig]]
    config: Config

    def __init__(self, config: Config) -> None:
        super().__init__(config.bands)
        self.config = config
        self.quantiser, numbers = self.quantiser_of(config)
        width, inner, stride = config.width, config.inner_width, config.stride

        def blocks(count: int) -> nn.Sequential:
            return nn.Sequential(*(ConvNeXtBlock(width, inner) for _ in range(count)))

        self.encoder = nn.ModuleDict(
            {
                "enter": nn.Conv1d(config.bands, width, kernel_size=5, padding=2),
                "frames": blocks(config.encoder_frame_layers),
                "gather": nn.Linear(stride * width, width),
                "tokens": blocks(config.encoder_token_layers),
                "leave": nn.Linear(width, numbers),
            }
        )
        self.decoder = nn.ModuleDict(
            {
                "enter": nn.Linear(numbers, width),
                "voice": nn.Linear(config.bands, width),
                "tokens": blocks(config.decoder_token_layers),
                "spread": nn.Linear(width, stride * width),
                "frames": blocks(config.decoder_frame_layers),
                "leave": nn.Linear(width, config.bands),
            }
        )

    @staticmethod
    def quantiser_of(config: Config) -> tuple[Quantiser, int]:
        """The quantiser, and the number of its inputs per token. Its ``codes`` are int64, of such numbers (…, numbers),
        and its ``numbers`` the rounded ones of codes."""
        raise NotImplementedError

    def latents(self, mel: Tensor) -> Tensor:
        """Log mel (B, frames, bands), a multiple of the stride, to numbers before rounding (B, tokens, numbers)."""
        encoder, stride = self.encoder, self.config.stride
        x = encoder["enter"](self.normalised(mel).transpose(1, 2))
        x = encoder["frames"](x).transpose(1, 2)
        x = encoder["gather"](x.unflatten(1, (-1, stride)).flatten(2))
        x = encoder["tokens"](x.transpose(1, 2)).transpose(1, 2)
        return encoder["leave"](x)

    def encode(self, mel: Tensor) -> Tensor:
        """Log mel (B, frames, bands) to codes (B, frames / stride, …); an incomplete token is dropped."""
        frames = mel.shape[1] // self.config.stride * self.config.stride
        return self.quantiser.codes(self.latents(mel[:, :frames]))

    def entered(self, numbers: Tensor, voice: Tensor) -> Tensor:
        """Rounded numbers (B, n, numbers) and a voice's mean mel (B, bands) to the blocks' input, (B, n, width)."""
        return self.decoder["enter"](numbers) + self.decoder["voice"](self.normalised(voice))[:, None]

    def spread(self, x: Tensor) -> Tensor:
        """(…, n, width) at the token rate to (…, n · stride, width) at the frame rate."""
        return self.decoder["spread"](x).unflatten(-1, (self.config.stride, -1)).flatten(-3, -2)

    def left(self, x: Tensor) -> Tensor:
        """Output of the decoder's blocks, (…, frames, width), to log mel (…, frames, bands)."""
        return self.log_mel(self.decoder["leave"](x))

    def decode_numbers(self, numbers: Tensor, voice: Tensor) -> Tensor:
        """Rounded numbers (B, n, numbers) in the voice of a mean mel (B, bands) to log mel (B, n · stride, bands)."""
        x = self.decoder["tokens"](self.entered(numbers, voice).mT).mT
        return self.left(self.decoder["frames"](self.spread(x).mT).mT)

    def decode(self, codes: Tensor, voice: Tensor) -> Tensor:
        """Codes (B, n, …) in the voice of a mean mel (B, bands) to log mel (B, n · stride, bands)."""
        return self.decode_numbers(self.quantiser.numbers(codes), voice)


Model = TypeVar("Model", bound=QuantisedMel)


def read_quantised_mel(root: Path, kind: type[Model], device: torch.device | str = "cpu") -> Model:
    """Load the codec in ``root`` in float32 by its ``config.json``. Raises :class:`CheckpointError`."""
    sizes = kind.sizes.read(ConfigFile.read(root / CONFIG_FILE))
    path = root / WEIGHT_FILE
    return loaded_strictly(lambda: kind(sizes), read_float_weights(path), str(path)).to(device)


class StreamedCodec:
    def __init__(self, codec: QuantisedMel, voice: Tensor) -> None:
        """``voice`` (bands,) as :meth:`QuantisedMel.decode` takes it."""
        self._codec, self._voice = codec, voice[None]
        self._tokens = StreamedBlocks(codec.decoder["tokens"].children())
        self._frames = StreamedBlocks(codec.decoder["frames"].children())

    def push(self, codes: Tensor, last: bool = False) -> Tensor:
        """Next tokens' codes (n, …), with ``last`` the last ones, possibly none, to the frames that are now final, (m,
        bands)."""
        codec = self._codec
        hidden = self._tokens.push(codec.entered(codec.quantiser.numbers(codes[None]), self._voice)[0], last)
        return codec.left(self._frames.push(codec.spread(hidden), last))

    def whole(self, codes: Tensor) -> Tensor:
        """Decode all codes (n, …) to frames (m, bands) at once, independently of the other methods."""
        return self._codec.decode(codes[None], self._voice)[0]


# --- The speech tokenizer of the bundled language model ---------------------------------------------------------------
@dataclass(frozen=True)
class SpeechTokenizerConfig(QuantisedMelConfig):
    levels: tuple[int, ...] = (8, 8, 6, 5)

    @property
    def codes(self) -> int:
        return math.prod(self.levels)


class ScalarQuantiser(nn.Module):
    """Finite scalar quantisation (arXiv 2309.15505): numbers from −1 to 1, rounded to their levels, form one code."""

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
        half = (counts - 1) * (1 + 1e-3) / 2  # Bounded numbers exceed their outermost levels a little.
        offset = torch.where(counts % 2 == 0, 0.5, 0.0)
        self.register_buffer("span", half, persistent=False)
        self.register_buffer("offset", offset, persistent=False)
        self.register_buffer("shift", torch.atanh(offset / half), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Round (…, numbers); the gradient passes unchanged."""
        bounded = torch.tanh(x + self.shift) * self.span - self.offset
        rounded = bounded + (bounded.round() - bounded).detach()
        return rounded / (self.levels // 2)

    def codes(self, x: Tensor) -> Tensor:
        half = self.levels // 2
        return ((self(x) * half + half).round().long() * self.places).sum(-1)

    def numbers(self, codes: Tensor) -> Tensor:
        half = self.levels // 2
        return (codes[..., None] // self.places % self.levels - half).float() / half


class SpeechTokenizer(QuantisedMel[SpeechTokenizerConfig]):
    """One code, int64, per two frames."""

    title, sizes = "speech tokenizer", SpeechTokenizerConfig

    @staticmethod
    def quantiser_of(config: SpeechTokenizerConfig) -> tuple[Quantiser, int]:
        return ScalarQuantiser(config.levels), len(config.levels)


# --- The codec of the bundled masked model ----------------------------------------------------------------------------
@dataclass(frozen=True)
class ResidualCodecConfig(QuantisedMelConfig):
    stride: int = 4
    decoder_token_layers: int = 1
    """Few, because each looks ahead by three tokens; see :mod:`paretone.models.minis.omni_mini`."""
    decoder_frame_layers: int = 5
    codebooks: int = 8
    codes: int = 128
    numbers: int = 24
    """Numbers per token and per entry."""

    @property
    def absent(self) -> int:
        """Code for a missing entry, which adds nothing."""
        return self.codes


class ResidualQuantiser(nn.Module):
    """Residual quantisation: the nearest entry of the first codebook, then the second's nearest to the remainder, and
    so on; codes are (…, codebooks). The first codes alone give intelligible speech, even of half a canvas."""

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
        """Sum of the entries of ``codes``; :attr:`ResidualCodecConfig.absent` adds nothing."""
        entries = functional.pad(self.codebooks, (0, 0, 0, 1))
        return sum(table[column] for table, column in zip(entries, codes.unbind(-1), strict=True))


Quantiser = ScalarQuantiser | ResidualQuantiser


class ResidualCodec(QuantisedMel[ResidualCodecConfig]):
    """Codes (…, tokens, codebooks), int64, per four frames."""

    quantiser: ResidualQuantiser
    title, sizes = "residual codec", ResidualCodecConfig

    @staticmethod
    def quantiser_of(config: ResidualCodecConfig) -> tuple[Quantiser, int]:
        return ResidualQuantiser(config), config.numbers


def token_phones(frames: np.ndarray, stride: int) -> np.ndarray:
    """One phone per frame (n,) to one per whole token (n // stride,): that of the frame after the token's middle."""
    whole = len(frames) // stride * stride
    return frames[:whole][stride // 2 :: stride]
