"""The speech tokenizer of the bundled language model: mel frames to one code for every two of them, and back.

Encoder and decoder are ConvNeXt blocks as in Vocos. Between them stands a finite scalar quantiser (FSQ): a few numbers,
each rounded to one of its levels, make one code (Mentzer et al., arXiv 2309.15505). The decoder is told who speaks by
the mean mel of the voice, taken over much of its speech: the mean of a single clip is not good enough for it.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from engine.errors import CheckpointError
from engine.models.checkpoints import load_strictly, read_weights
from engine.models.vocos import ConvNeXtBlock

CONFIG_FILE, WEIGHT_FILE = "config.json", "model.safetensors"
OVERFLOW = 1e-3
"""By how much the bounded numbers may exceed their outermost levels."""


@dataclass(frozen=True)
class SpeechTokenizerConfig:
    """Sizes of a speech tokenizer, and the levels of its quantiser."""

    bands: int = 100
    stride: int = 2
    """Mel frames of one token."""
    levels: tuple[int, ...] = (8, 8, 6, 5)
    width: int = 256
    inner_width: int = 512
    encoder_frame_layers: int = 3
    encoder_token_layers: int = 2
    decoder_token_layers: int = 3
    decoder_frame_layers: int = 4

    @property
    def codes(self) -> int:
        """Size of the codebook."""
        return math.prod(self.levels)

    def as_dict(self) -> dict[str, int | list[int]]:
        return {**asdict(self), "levels": list(self.levels)}


class ScalarQuantiser(nn.Module):
    """Numbers to the levels nearest to them, and to one code."""

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
        """(…, numbers) to the same rounded, from −1 to 1; the gradient passes as if nothing were rounded."""
        bounded = torch.tanh(x + self.shift) * self.span - self.offset
        rounded = bounded + (bounded.round() - bounded).detach()
        return rounded / (self.levels // 2)

    def codes(self, quantised: Tensor) -> Tensor:
        """What :meth:`forward` gave to codes (…), int64."""
        half = self.levels // 2
        return ((quantised * half + half).round().long() * self.places).sum(-1)

    def numbers(self, codes: Tensor) -> Tensor:
        """Codes (…) to the rounded numbers (…, numbers)."""
        half = self.levels // 2
        return (codes[..., None] // self.places % self.levels - half).float() / half


class SpeechTokenizer(nn.Module):
    """Encoder, quantiser and decoder. Statistics of the corpus are part of the weights, so callers see plain log
    mels."""

    mel_mean: Tensor
    mel_scale: Tensor

    def __init__(self, config: SpeechTokenizerConfig) -> None:
        super().__init__()
        self.config = config
        width, inner, stride = config.width, config.inner_width, config.stride

        def blocks(count: int) -> nn.Sequential:
            return nn.Sequential(*(ConvNeXtBlock(width, inner) for _ in range(count)))

        self.register_buffer("mel_mean", torch.zeros(config.bands))
        self.register_buffer("mel_scale", torch.ones(config.bands))
        self.quantiser = ScalarQuantiser(config.levels)
        self.encoder = nn.ModuleDict(
            {
                "enter": nn.Conv1d(config.bands, width, kernel_size=5, padding=2),
                "frames": blocks(config.encoder_frame_layers),
                "gather": nn.Linear(stride * width, width),
                "tokens": blocks(config.encoder_token_layers),
                "leave": nn.Linear(width, len(config.levels)),
            }
        )
        self.decoder = nn.ModuleDict(
            {
                "enter": nn.Linear(len(config.levels), width),
                "voice": nn.Linear(config.bands, width),
                "tokens": blocks(config.decoder_token_layers),
                "spread": nn.Linear(width, stride * width),
                "frames": blocks(config.decoder_frame_layers),
                "leave": nn.Linear(width, config.bands),
            }
        )

    def quantised(self, mel: Tensor) -> Tensor:
        """Log mel (B, frames, bands), frames a multiple of the stride, to rounded numbers (B, tokens, numbers)."""
        encoder, stride = self.encoder, self.config.stride
        x = encoder["enter"](((mel - self.mel_mean) / self.mel_scale).transpose(1, 2))
        x = encoder["frames"](x).transpose(1, 2)
        x = encoder["gather"](x.unflatten(1, (-1, stride)).flatten(2))
        x = encoder["tokens"](x.transpose(1, 2)).transpose(1, 2)
        return self.quantiser(encoder["leave"](x))

    def encode(self, mel: Tensor) -> Tensor:
        """Log mel (B, frames, bands) to codes (B, frames / stride); what does not fill a token is left out."""
        frames = mel.shape[1] // self.config.stride * self.config.stride
        return self.quantiser.codes(self.quantised(mel[:, :frames]))

    def entered(self, codes: Tensor, voice: Tensor) -> Tensor:
        """Codes (B, n) and the voice's mean mel (B, bands) to what the decoder's blocks are given, (B, width, n)."""
        return self._entered(self.quantiser.numbers(codes), voice)

    def _entered(self, numbers: Tensor, voice: Tensor) -> Tensor:
        told = self.decoder["voice"]((voice - self.mel_mean) / self.mel_scale)
        return (self.decoder["enter"](numbers) + told[:, None]).transpose(1, 2)

    def spread(self, x: Tensor) -> Tensor:
        """(B, width, n) at the rate of tokens to (B, width, n · stride) at that of frames."""
        return self.decoder["spread"](x.transpose(1, 2)).unflatten(2, (self.config.stride, -1)).flatten(1, 2).mT

    def left(self, x: Tensor) -> Tensor:
        """What the decoder's blocks gave, (B, width, frames), to log mel (B, frames, bands)."""
        return self.decoder["leave"](x.transpose(1, 2)) * self.mel_scale + self.mel_mean

    def decode_numbers(self, numbers: Tensor, voice: Tensor) -> Tensor:
        """Rounded numbers (B, n, numbers) in the voice of a mean mel (B, bands) to log mel (B, n · stride, bands)."""
        x = self.decoder["tokens"](self._entered(numbers, voice))
        return self.left(self.decoder["frames"](self.spread(x)))

    def decode(self, codes: Tensor, voice: Tensor) -> Tensor:
        """Codes (B, n) in the voice of a mean mel (B, bands) to log mel (B, n · stride, bands)."""
        return self.decode_numbers(self.quantiser.numbers(codes), voice)


@dataclass(frozen=True)
class TokenizerFolder:
    """A tokenizer on disk: ``config.json`` with its sizes and the voices' mean mels, and its weights in float16."""

    root: Path

    def read(self, device: torch.device | str = "cpu") -> tuple[SpeechTokenizer, dict[str, Tensor]]:
        """The tokenizer in float32, and the mean mel (bands,) of each voice. Raises :class:`CheckpointError`."""
        config, voices = self._described()
        model = SpeechTokenizer(config)
        path = self.root / WEIGHT_FILE
        load_strictly(model, {name: value.float() for name, value in read_weights(path).items()}, str(path))
        model = model.eval().requires_grad_(False).to(device)
        return model, {name: mean.to(device) for name, mean in voices.items()}

    def _described(self) -> tuple[SpeechTokenizerConfig, dict[str, Tensor]]:
        path = self.root / CONFIG_FILE
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            means = {name: torch.tensor(mean, dtype=torch.float32) for name, mean in data.pop("voices").items()}
            config = SpeechTokenizerConfig(**{**data, "levels": tuple(data["levels"])})
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise CheckpointError(
                f"{path} does not describe a speech tokenizer ({type(error).__name__}: {error}); restore the model "
                "folder."
            ) from error
        if not means or any(mean.shape != (config.bands,) for mean in means.values()):
            raise CheckpointError(f"{path} lists no voice with {config.bands} bands; restore the model folder.")
        return config, means
