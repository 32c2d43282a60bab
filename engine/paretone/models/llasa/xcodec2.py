"""XCodec2's decoder: one code per 20 ms to 16 kHz speech.

Ye et al., "Llasa: Scaling Train-Time and Inference-Time Compute for Llama-based Speech Synthesis" (arXiv 2502.04128),
and ``vq/codec_decoder_vocos.py`` of the package ``xcodec2`` 0.1.5, whose module names are used. Its rotary embedding is
left out: upstream applies it over heads instead of time, so it rotates a head's queries and keys by the same angle and
cancels. Only the convolutions encode the order in time.

The decoder is not causal: attention and group norms run over the whole clip.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from paretone.errors import CheckpointError
from paretone.models.families.passages import Decoded, StreamingDifference, TokenDecoder, streaming_difference
from paretone.models.files.config_file import WeightShapes
from paretone.models.kernels.attention import attend
from paretone.models.llasa.config import FIRST_CODES
from paretone.models.networks.layers import Residual, chained
from paretone.models.networks.vocos import InverseTransform

LEVELS = 4
"""Number of values of each dimension of a code."""
DIMENSIONS = 8
SAMPLE_RATE = 16000
OVERLAP = 4
"""Number of STFT frames that cover a sample."""
HEAD_WIDTH = 64
NORM_GROUPS = 32
EPSILON = 1e-6
LARGEST_MAGNITUDE = 100.0
"""Upper limit of spectral magnitudes, as in the official head."""
SMALLEST_ENVELOPE = 1e-11
REACH = 13
"""Reach of a code to either side in codes, through the convolutions (3 + 4 · 2) and the inverse transform (2), apart
from operations over the whole clip."""


@dataclass(frozen=True)
class XCodec2Config:
    """Sizes of a decoder; the defaults are the release's."""

    width: int = 1024
    latent: int = 2048
    """Width of a projected code."""
    layers: int = 12
    heads: int = 16
    feed_forward: int = 4096
    window: int = 1280
    """Samples per frame of the short-time Fourier transform."""

    @property
    def hop(self) -> int:
        """Samples per code."""
        return self.window // OVERLAP

    @classmethod
    def from_shapes(cls, shapes: Mapping[str, tuple[int, ...]], where: str, heads: int | None = None) -> XCodec2Config:
        """Sizes from the shapes of a state dict with original names; heads are 64 wide unless ``heads`` is given.
        Raises :class:`CheckpointError` that names a missing or impossible weight."""
        shape = WeightShapes(shapes, where, "a decoder of XCodec2")
        width, latent = shape("fc_post_a.weight", 2)
        layers = shape.count(r"generator\.backbone\.transformers\.(\d+)\.")
        feed_forward, _ = shape("generator.backbone.transformers.0.mlp.fc1.weight", 2)
        window = shape("generator.head.out.weight", 2)[0] - 2
        heads = heads or width // HEAD_WIDTH
        if window < OVERLAP or window % OVERLAP or not heads or width % heads or width % NORM_GROUPS:
            raise CheckpointError(
                f"{where} has impossible sizes for XCodec2: width {width}, {heads} heads, frames of {window} samples."
            )
        return cls(width, latent, layers, heads, feed_forward, window)


def residual_block(width: int) -> Residual:
    """Two convolutions over three codes with a residual connection; (B, width, T) to the same shape."""
    layers: dict[str, nn.Module] = {}
    for number in (1, 2):
        layers[f"norm{number}"] = nn.GroupNorm(NORM_GROUPS, width, eps=EPSILON)
        layers[f"silu{number}"] = nn.SiLU()
        layers[f"conv{number}"] = nn.Conv1d(width, width, kernel_size=3, padding=1)
    return Residual(OrderedDict(layers))


class CodecAttention(nn.Module):
    """Full attention without positions."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width, bias=False)
        self.c_proj = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, width) to the same shape."""
        query, key, value = self.c_attn(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.c_proj(attend(query, key, value).transpose(1, 2).flatten(2))


class CodecBlock(nn.Module):
    def __init__(self, config: XCodec2Config) -> None:
        super().__init__()
        self.att_norm = nn.RMSNorm(config.width, eps=EPSILON)
        self.att = CodecAttention(config.width, config.heads)
        self.ffn_norm = nn.RMSNorm(config.width, eps=EPSILON)
        enter = nn.Linear(config.width, config.feed_forward, bias=False)
        self.mlp = chained(fc1=enter, silu=nn.SiLU(), fc2=nn.Linear(config.feed_forward, config.width, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, width) to the same shape."""
        x = x + self.att(self.att_norm(x))
        return x + self.mlp(self.ffn_norm(x))


class CodecBackbone(nn.Module):
    def __init__(self, config: XCodec2Config) -> None:
        super().__init__()
        width = config.width
        self.embed = nn.Conv1d(width, width, kernel_size=7, padding=3)
        self.prior_net = nn.Sequential(residual_block(width), residual_block(width))
        self.transformers = nn.Sequential(*(CodecBlock(config) for _ in range(config.layers)))
        self.post_net = nn.Sequential(residual_block(width), residual_block(width))
        self.final_layer_norm = nn.LayerNorm(width, eps=EPSILON)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, width) to the same shape."""
        x = self.transformers(self.prior_net(self.embed(x.transpose(1, 2))).transpose(1, 2))
        return self.final_layer_norm(self.post_net(x.transpose(1, 2)).transpose(1, 2))


class WholeHops(InverseTransform):
    """Overlap-add synthesis of exactly one hop per frame."""

    def forward(self, spectrum: Tensor) -> Tensor:
        """(B, T, window // 2 + 1) complex to (B, T · hop)."""
        frames = torch.fft.irfft(spectrum, len(self.window)) * self.window
        envelope = self._overlapped(self.window.square().expand(1, frames.shape[1], -1))
        return self._overlapped(frames) / envelope.clamp(min=SMALLEST_ENVELOPE)

    def _overlapped(self, frames: Tensor) -> Tensor:
        """Overlap-add of (B, T, window) at the hop, without the half windows at both ends, (B, T · hop)."""
        batch, count, window = frames.shape
        parts = frames.unflatten(2, (OVERLAP, self.hop))
        total = frames.new_zeros(batch, count + OVERLAP - 1, self.hop)
        for part in range(OVERLAP):
            total[:, part : part + count] += parts[:, :, part]
        edge = (window - self.hop) // 2
        return total.flatten(1)[:, edge : edge + count * self.hop]


class FourierHead(nn.Module):
    """Hidden frames to log magnitude and phase, and on to audio."""

    def __init__(self, config: XCodec2Config) -> None:
        super().__init__()
        self.out = nn.Linear(config.width, config.window + 2)
        self.istft = WholeHops(config.window, config.hop)

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, T, width) to (B, T · hop)."""
        log_magnitude, phase = self.out(hidden).chunk(2, dim=2)
        return self.istft(torch.polar(log_magnitude.exp().clip(max=LARGEST_MAGNITUDE), phase))


class Quantiser(nn.Module):
    """Finite scalar quantisation: a code is eight base-four digits, each a value from −1 to ½."""

    def __init__(self, latent: int) -> None:
        super().__init__()
        self.project_in = nn.Linear(latent, DIMENSIONS)
        self.project_out = nn.Linear(DIMENSIONS, latent)

    def forward(self, codes: Tensor) -> Tensor:
        """(B, T) integers below 4⁸ to (B, T, latent)."""
        return self.project_out(self.values(codes).to(self.project_out.weight.dtype))

    @staticmethod
    def values(codes: Tensor) -> Tensor:
        """(B, T) codes to their eight values, (B, T, 8)."""
        digits = codes[..., None] // LEVELS ** torch.arange(DIMENSIONS, device=codes.device) % LEVELS
        return (digits - LEVELS // 2) / (LEVELS / 2)


class Generator(nn.Module):
    def __init__(self, config: XCodec2Config) -> None:
        super().__init__()
        self.quantizer = Quantiser(config.latent)
        self.backbone = CodecBackbone(config)
        self.head = FourierHead(config)


class XCodec2Decoder(nn.Module):
    """The decoder under the original names of weights, always in float32: half precision is audible in the phases."""

    def __init__(self, config: XCodec2Config) -> None:
        super().__init__()
        self.config = config
        self.generator = Generator(config)
        self.fc_post_a = nn.Linear(config.latent, config.width)

    @torch.inference_mode()
    def decode(self, codes: Tensor) -> Tensor:
        """(B, T) codes to (B, T · hop) float32."""
        hidden = self.fc_post_a(self.generator.quantizer(codes))
        return self.generator.head(self.generator.backbone(hidden))


# Streaming of XCodec2's speech.
#
# The decoder sees the whole clip, so no output is final before the last code. Streaming is an approximation: a window
# of new codes is decoded with earlier codes as context (at first those of the reference recording) and with later codes
# over the convolutions' reach, and fades in over the end of the previous window.
FADE_CODES = 2
"""Codes of a window's fade-in, 40 ms; fewer than the codes after a window."""


@dataclass(frozen=True)
class Window:
    """Sizes of decoding windows, in codes."""

    fresh: int = 50
    context: int = 100
    first: int = FIRST_CODES
    """Maximum size of the first window, for an earlier start."""


class WindowedDecoder(TokenDecoder):
    """Decodes one passage window by window. The output does not depend on the grouping of the codes."""

    exact = False

    def __init__(self, codec: XCodec2Decoder, reference: Sequence[int] = (), window: Window = Window()) -> None:
        """``reference``: codes of the recording that the passage continues, not output."""
        self._codec = codec
        self._window = window
        self._reference = tuple(reference)
        self._codes = list(reference)
        self._heard = len(self._codes)
        """Number of codes with final audio."""
        self._ending = np.zeros(0, np.float32)
        """Audio of the last window after its final codes."""
        self._pieces: list[np.ndarray] = []

    def push(self, tokens: Sequence[int]) -> np.ndarray:
        self._codes.extend(tokens)
        pieces = [np.zeros(0, np.float32)]
        while len(self._codes) - self._heard >= self._fresh + REACH:
            pieces.append(self._next(self._heard + self._fresh))
        return np.concatenate(pieces)

    @property
    def _fresh(self) -> int:
        """Number of new codes in the next window."""
        return self._window.fresh if self._pieces else min(self._window.first, self._window.fresh)

    def finish(self) -> np.ndarray:
        return self._next(len(self._codes)) if len(self._codes) > self._heard else np.zeros(0, np.float32)

    def whole(self, tokens: Sequence[int]) -> Decoded:
        audio = self._decode([*self._reference, *tokens]) if len(tokens) else np.zeros(0, np.float32)
        return Decoded(audio[len(self._reference) * self._codec.config.hop :])

    def difference(self) -> StreamingDifference | None:
        if len(self._pieces) < 2:
            return None
        whole = self.whole(self._codes[len(self._reference) :]).samples
        streamed = np.concatenate(self._pieces)
        return streaming_difference(streamed, whole[: len(streamed)])

    def _next(self, end: int) -> np.ndarray:
        """Audio from the last final code up to code ``end``."""
        hop = self._codec.config.hop
        start, last = max(self._heard - self._window.context, 0), min(end + REACH, len(self._codes))
        audio = self._decode(self._codes[start:last])[(self._heard - start) * hop :]
        overlap = min(FADE_CODES * hop, len(self._ending), len(audio))
        if overlap:
            rise = np.linspace(0, 1, overlap, dtype=np.float32)
            audio[:overlap] = audio[:overlap] * rise + self._ending[:overlap] * (1 - rise)
        final = (end - self._heard) * hop
        self._heard, self._ending = end, audio[final:]
        self._pieces.append(audio[:final])
        return self._pieces[-1]

    def _decode(self, codes: Sequence[int]) -> np.ndarray:
        device = self._codec.fc_post_a.weight.device
        return self._codec.decode(torch.tensor([codes], device=device))[0].cpu().numpy()
