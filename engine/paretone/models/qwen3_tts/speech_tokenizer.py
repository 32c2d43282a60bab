"""Qwen3-TTS's speech tokenizer (12 Hz): recordings to codes, and codes to speech as they come.

A frame of 80 ms has one semantic and fifteen acoustic codes. The decoder is causal without look-ahead: every frame
gives its 1,920 samples at once, and parts of any length equal the whole, because each layer keeps its past. Upstream
decodes in chunks of 300 frames with 25 frames of context, which is not exact. The encoder is Mimi's; only its first
sixteen codebooks are used.

Official names: ``core/tokenizer_12hz/modeling_qwen3_tts_tokenizer_v2.py`` of ``qwen-tts`` 0.1.1, and
``modeling_mimi.py`` of transformers 4.57 (Défossez et al., arXiv 2410.00037).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from paretone.models.files.config_file import ConfigFile
from paretone.models.networks.causal import GatedFeedForward, rotate
from paretone.models.networks.incremental import CausalConv, CausalTransposedConv, Memory
from paretone.models.networks.layers import chained
from paretone.models.networks.shapes import Modules
from paretone.observer import Check

KERNEL = 7
DILATIONS = (1, 3, 9)
"""Dilations of a block's three residual units."""
LEAST_USAGE = 1e-5
LOUDEST = 1.0
FRAMES_OF_PART = 25
"""Frames that a stream decodes at a time: it can be cancelled in between, and long speech takes no more memory."""


@dataclass(frozen=True)
class CodecDecoderConfig:
    """Sizes of the decoder; the defaults are the release's."""

    codes: int = 2048
    codebooks: int = 16
    table_width: int = 256
    quantised: int = 512
    """Width of the sum of both groups of codebooks."""
    latent: int = 1024
    hidden: int = 512
    heads: int = 16
    head_width: int = 64
    feed_forward: int = 1024
    layers: int = 8
    window: int = 72
    """Frames that attention sees, its own included."""
    epsilon: float = 1e-5
    rope_theta: float = 10000.0
    upsampling: tuple[int, ...] = (2, 2)
    width: int = 1536
    """Channels before the first block; each halves them."""
    ratios: tuple[int, ...] = (8, 5, 4, 3)

    @property
    def samples_per_frame(self) -> int:
        return math.prod(self.upsampling) * math.prod(self.ratios)

    @classmethod
    def read(cls, config: ConfigFile | Mapping) -> CodecDecoderConfig:
        """Read ``decoder_config`` of the tokenizer's ``config.json``. Raises
        :class:`paretone.errors.CheckpointError`."""
        file = ConfigFile.of(config, "The speech tokenizer's config.json")
        return cls(
            codes=file.number("codebook_size"),
            codebooks=file.number("num_quantizers"),
            table_width=file.number("codebook_dim") // 2,
            quantised=file.number("codebook_dim"),
            latent=file.number("latent_dim"),
            hidden=file.number("hidden_size"),
            heads=file.number("num_attention_heads"),
            head_width=file.number("head_dim"),
            feed_forward=file.number("intermediate_size"),
            layers=file.number("num_hidden_layers"),
            window=file.number("sliding_window"),
            epsilon=file.real("rms_norm_eps", below=1.0),
            rope_theta=file.real("rope_theta", above=1.0),
            upsampling=file.numbers("upsampling_ratios"),
            width=file.number("decoder_dim"),
            ratios=file.numbers("upsample_rates"),
        )


class Codebook(nn.Module):
    """A table kept as sums of vectors and their counts, as in training."""

    sums = "embedding_sum"

    def __init__(self, codes: int, width: int) -> None:
        super().__init__()
        self.register_buffer("cluster_usage", torch.ones(codes))
        self.register_buffer(self.sums, torch.zeros(codes, width))

    @property
    def table(self) -> Tensor:
        """(codes, width)."""
        usage = cast("Tensor", self.cluster_usage)
        return self.get_buffer(self.sums) / usage.clamp(min=LEAST_USAGE)[:, None]


class CodebookGroup(nn.Module):
    """Several residual codebooks with a projection from their sum. ``input_proj`` is the encoder's, and unused."""

    def __init__(self, config: CodecDecoderConfig, count: int) -> None:
        super().__init__()
        self.input_proj = nn.Conv1d(config.quantised, config.table_width, 1, bias=False)
        self.output_proj = nn.Conv1d(config.table_width, config.quantised, 1, bias=False)
        books = (Codebook(config.codes, config.table_width) for _ in range(count))
        self.vq = nn.ModuleDict({"layers": Modules(nn.ModuleDict({"_codebook": one}) for one in books)})

    @property
    def tables(self) -> list[Tensor]:
        layers = cast("Modules[nn.ModuleDict]", self.vq["layers"])
        return [cast("Codebook", one["_codebook"]).table for one in layers]

    def forward(self, codes: Tensor) -> Tensor:
        """(B, codebooks, n) to (B, quantised, n)."""
        found = [F.embedding(one, table) for one, table in zip(codes.unbind(1), self.tables, strict=True)]
        return self.output_proj(torch.stack(found).sum(0).mT)


class Scale(nn.Module):
    """A factor per channel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * x


def turns(positions: Tensor, width: int, theta: float) -> tuple[Tensor, Tensor]:
    """Cosines and sines for :func:`paretone.models.networks.causal.rotate`, (n, width)."""
    speeds = theta ** -(torch.arange(0, width, 2, device=positions.device).float() / width)
    angles = torch.outer(positions.float(), speeds).repeat(1, 2)
    return angles.cos(), angles.sin()


class WindowedAttention(nn.Module):
    """Causal self-attention over the last frames, (B, n, width) to the same shape."""

    def __init__(self, width: int, heads: int, head_width: int, window: int | None, theta: float) -> None:
        super().__init__()
        self.head_width, self.window, self.theta = head_width, window, theta
        inner = heads * head_width
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(width, inner, bias=False) for _ in range(3))
        self.o_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor, first: int, memory: Memory) -> Tensor:
        """``first`` frames precede ``x``."""
        count = x.shape[1]
        query, key, value = (
            projection(x).unflatten(-1, (-1, self.head_width)).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        rotary = turns(torch.arange(first, first + count, device=x.device), self.head_width, self.theta)
        query, key = rotate(query, rotary), rotate(key, rotary)
        if self.window is not None:
            key = memory.windowed(self, "keys", key, self.window - 1)
            value = memory.windowed(self, "values", value, self.window - 1)
        seen = torch.arange(count - key.shape[2], count, device=x.device)
        ages = torch.arange(count, device=x.device)[:, None] - seen
        mask = (ages >= 0) & (ages < (self.window or count + 1))
        mixed = F.scaled_dot_product_attention(query, key, value, mask)
        return self.o_proj(mixed.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Attention and feed-forward, each between a norm and a scale."""

    def __init__(self, width: int, norm: Callable[[], nn.Module], attention: nn.Module, mlp: nn.Module) -> None:
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = norm(), norm()
        self.self_attn, self.mlp = attention, mlp
        self.self_attn_layer_scale, self.mlp_layer_scale = Scale(width), Scale(width)

    def forward(self, x: Tensor, first: int, memory: Memory) -> Tensor:
        """(B, n, width) to the same shape; ``first`` frames precede ``x``."""
        x = x + self.self_attn_layer_scale(self.self_attn(self.input_layernorm(x), first, memory))
        return x + self.mlp_layer_scale(self.mlp(self.post_attention_layernorm(x)))


def decoder_layer(config: CodecDecoderConfig) -> Layer:
    width, head = config.hidden, config.head_width
    attention = WindowedAttention(width, config.heads, head, config.window, config.rope_theta)
    norm = partial(nn.RMSNorm, width, config.epsilon)
    return Layer(width, norm, attention, GatedFeedForward(width, config.feed_forward))


class DecoderTransformer(nn.Module):
    """(B, n, latent) to the same shape."""

    def __init__(self, config: CodecDecoderConfig) -> None:
        super().__init__()
        self.input_proj = nn.Linear(config.latent, config.hidden)
        self.layers = Modules(decoder_layer(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.hidden, config.epsilon)
        self.output_proj = nn.Linear(config.hidden, config.latent)

    def forward(self, x: Tensor, first: int, memory: Memory) -> Tensor:
        x = self.input_proj(x)
        for layer in self.layers:
            x = layer(x, first, memory)
        return self.output_proj(self.norm(x))


class Held(nn.Module):
    """A layer under the official name ``conv``."""

    def __init__(self, layer: CausalConv | CausalTransposedConv) -> None:
        super().__init__()
        self.conv = layer

    def forward(self, x: Tensor, memory: Memory) -> Tensor:
        return self.conv(x, memory)


class ConvNeXt(nn.Module):
    """(B, channels, n) to the same shape."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dwconv = Held(CausalConv(width, width, KERNEL, groups=width))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.pwconv1 = nn.Linear(width, 4 * width)
        self.pwconv2 = nn.Linear(4 * width, width)
        self.gamma = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor, memory: Memory) -> Tensor:
        hidden = self.norm(self.dwconv(x, memory).mT)
        return x + (self.gamma * self.pwconv2(F.gelu(self.pwconv1(hidden)))).mT


class SnakeBeta(nn.Module):
    """``x + sin²(x · e^alpha) / e^beta``, per channel (Lee et al., arXiv 2206.04658)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha, self.beta = (nn.Parameter(torch.zeros(channels)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        return x + (x * self.alpha.exp()[:, None]).sin().square() / (self.beta.exp()[:, None] + 1e-9)


class ResidualUnit(nn.Module):
    """(B, channels, n) to the same shape."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.act1 = SnakeBeta(channels)
        self.conv1 = Held(CausalConv(channels, channels, KERNEL, dilation=dilation))
        self.act2 = SnakeBeta(channels)
        self.conv2 = Held(CausalConv(channels, channels, 1))

    def forward(self, x: Tensor, memory: Memory) -> Tensor:
        return x + self.conv2(self.act2(self.conv1(self.act1(x), memory)), memory)


class DecoderBlock(nn.Module):
    """(B, inputs, n) to (B, inputs / 2, ratio · n)."""

    def __init__(self, inputs: int, ratio: int) -> None:
        super().__init__()
        outputs = inputs // 2
        upsampling = Held(CausalTransposedConv(inputs, outputs, 2 * ratio, ratio))
        units = (ResidualUnit(outputs, dilation) for dilation in DILATIONS)
        self.block = nn.ModuleList([SnakeBeta(inputs), upsampling, *units])

    def forward(self, x: Tensor, memory: Memory) -> Tensor:
        bend, *others = self.block
        x = bend(x)
        for one in others:
            x = one(x, memory)
        return x


class CodecDecoder(nn.Module):
    """Codes to speech, always in float32."""

    def __init__(self, config: CodecDecoderConfig = CodecDecoderConfig()) -> None:
        super().__init__()
        self.config = config
        self.quantizer = nn.ModuleDict(
            {"rvq_first": CodebookGroup(config, 1), "rvq_rest": CodebookGroup(config, config.codebooks - 1)}
        )
        self.pre_conv = Held(CausalConv(config.quantised, config.latent, 3))
        self.pre_transformer = DecoderTransformer(config)
        width = config.latent
        self.upsample = nn.ModuleList(
            nn.ModuleList([Held(CausalTransposedConv(width, width, ratio, ratio)), ConvNeXt(width)])
            for ratio in config.upsampling
        )
        widths = [config.width >> block for block in range(len(config.ratios) + 1)]
        self.decoder = nn.ModuleList(
            [
                Held(CausalConv(config.latent, config.width, KERNEL)),
                *(DecoderBlock(width, ratio) for width, ratio in zip(widths, config.ratios, strict=False)),
                SnakeBeta(widths[-1]),
                Held(CausalConv(widths[-1], 1, KERNEL)),
            ]
        )

    def quantised(self, codes: Tensor) -> Tensor:
        """(B, codebooks, n) to (B, quantised, n)."""
        return self.quantizer["rvq_first"](codes[:, :1]) + self.quantizer["rvq_rest"](codes[:, 1:])

    def forward(self, codes: Tensor, first: int, memory: Memory) -> Tensor:
        """Speech (B, samples_per_frame · n) of the frames of ``codes`` (B, codebooks, n) after the ``first``."""
        x = self.pre_conv(self.quantised(codes), memory).mT
        x = self.pre_transformer(x, first, memory).mT
        for upsampling, smoothing in cast("list[tuple[Held, ConvNeXt]]", self.upsample):
            x = smoothing(upsampling(x, memory), memory)
        entering, *blocks, bend, leaving = self.decoder
        x = entering(x, memory)
        for block in blocks:
            x = block(x, memory)
        return leaving(bend(x), memory)[:, 0].clamp(-LOUDEST, LOUDEST)


class SpeechStream:
    """Speech of one request in parts, equal to decoding at once."""

    def __init__(self, decoder: CodecDecoder) -> None:
        self._decoder, self._memory, self._first = decoder, Memory(), 0

    @torch.inference_mode()
    def push(self, codes: Tensor, check: Check = lambda: None) -> Tensor:
        """Samples (1, m) of the next frames of ``codes`` (1, codebooks, n); ``check`` may raise to cancel."""
        speech = [codes.new_empty(1, 0, dtype=torch.float32)]
        for start in range(0, codes.shape[-1], FRAMES_OF_PART):
            check()
            part = codes[..., start : start + FRAMES_OF_PART]
            speech.append(self._decoder(part, self._first, self._memory))
            self._first += part.shape[-1]
        return torch.cat(speech, dim=-1)

    def fork(self) -> SpeechStream:
        """A stream that continues from here, apart from this one."""
        other = SpeechStream(self._decoder)
        other._memory, other._first = self._memory.fork(), self._first
        return other


# The encoder: Mimi, whose causal convolutions pad only before the signal, and at the end to a whole frame.


@dataclass(frozen=True)
class CodecEncoderConfig:
    """Sizes of the encoder; the defaults are the release's."""

    codes: int = 2048
    codebooks: int = 32
    kept: int = 16
    """Codebooks that the decoder takes."""
    table_width: int = 256
    width: int = 512
    filters: int = 64
    ratios: tuple[int, ...] = (4, 5, 6, 8)
    heads: int = 8
    head_width: int = 64
    feed_forward: int = 2048
    layers: int = 8
    epsilon: float = 1e-5
    rope_theta: float = 10000.0
    samples_per_frame: int = 1920

    @classmethod
    def read(cls, config: ConfigFile | Mapping) -> CodecEncoderConfig:
        """Read the tokenizer's ``config.json``. Raises :class:`paretone.errors.CheckpointError`."""
        whole = ConfigFile.of(config, "The speech tokenizer's config.json")
        file = whole.part("encoder_config", needed=True)
        for name, value in {"pad_mode": "constant", "use_conv_shortcut": False, "num_residual_layers": 1}.items():
            file.require(name, value, value)
        return cls(
            codes=file.number("codebook_size"),
            codebooks=file.number("num_quantizers"),
            kept=whole.number("encoder_valid_num_quantizers"),
            table_width=file.number("codebook_dim"),
            width=file.number("hidden_size"),
            filters=file.number("num_filters"),
            ratios=tuple(reversed(file.numbers("upsampling_ratios"))),
            heads=file.number("num_attention_heads"),
            head_width=file.number("head_dim"),
            feed_forward=file.number("intermediate_size"),
            layers=file.number("num_hidden_layers"),
            epsilon=file.real("norm_eps", below=1.0),
            rope_theta=file.real("rope_theta", above=1.0),
            samples_per_frame=whole.number("encode_downsample_rate"),
        )


class PaddedConv(nn.Module):
    """A causal convolution over a complete signal, padded to whole strides, under the official name ``conv``."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, mode: str = "constant", bias: bool = True
    ) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, kernel, stride, bias=bias)
        self.mode = mode

    def forward(self, x: Tensor) -> Tensor:
        """(B, inputs, n) to (B, outputs, ⌈n / stride⌉)."""
        kernel, stride = self.conv.kernel_size[0], self.conv.stride[0]
        return self.conv(F.pad(x, (kernel - stride, -x.shape[-1] % stride), self.mode))


class EncoderUnit(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = channels // 2
        self.block = nn.Sequential(nn.ELU(), PaddedConv(channels, inner, 3), nn.ELU(), PaddedConv(inner, channels, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.block(x)


def encoder_layer(config: CodecEncoderConfig) -> Layer:
    """The release's window is not applied upstream, either."""
    width, inner, head = config.width, config.feed_forward, config.head_width
    attention = WindowedAttention(width, config.heads, head, None, config.rope_theta)
    norm = partial(nn.LayerNorm, width, eps=config.epsilon)
    enter, leave = nn.Linear(width, inner, bias=False), nn.Linear(inner, width, bias=False)
    return Layer(width, norm, attention, chained(fc1=enter, gelu=nn.GELU(), fc2=leave))


class EncoderCodebook(Codebook):
    sums = "embed_sum"

    def __init__(self, codes: int, width: int) -> None:
        super().__init__(codes, width)
        self.register_buffer("initialized", torch.ones(1))


class EncoderGroup(nn.Module):
    """Residual codebooks. ``output_proj`` is unused."""

    def __init__(self, config: CodecEncoderConfig, count: int) -> None:
        super().__init__()
        self.input_proj = nn.Conv1d(config.width, config.table_width, 1, bias=False)
        self.output_proj = nn.Conv1d(config.table_width, config.width, 1, bias=False)
        self.layers = Modules(
            nn.ModuleDict({"codebook": EncoderCodebook(config.codes, config.table_width)}) for _ in range(count)
        )

    def forward(self, x: Tensor, count: int) -> Tensor:
        """(1, width, n) to the codes of the first ``count`` codebooks, (count, n)."""
        rest, codes = self.input_proj(x)[0].T, []
        for layer in self.layers[:count]:
            table = cast("EncoderCodebook", layer["codebook"]).table
            code = torch.cdist(rest[None], table[None])[0].argmin(-1)
            codes.append(code)
            rest = rest - table[code]
        return torch.stack(codes) if codes else x.new_empty(0, x.shape[-1], dtype=torch.long)


class CodecEncoder(nn.Module):
    """Recordings to codes, one at a time: in a batch, the last frame of a shorter one would depend on the longest."""

    def __init__(self, config: CodecEncoderConfig = CodecEncoderConfig()) -> None:
        super().__init__()
        self.config = config
        layers: list[nn.Module] = [PaddedConv(1, config.filters, KERNEL)]
        channels = config.filters
        for ratio in config.ratios:
            layers += [EncoderUnit(channels), nn.ELU(), PaddedConv(channels, 2 * channels, 2 * ratio, ratio)]
            channels *= 2
        self.encoder = nn.ModuleDict({"layers": Modules([*layers, nn.ELU(), PaddedConv(channels, config.width, 3)])})
        transformer = Modules(encoder_layer(config) for _ in range(config.layers))
        self.encoder_transformer = nn.ModuleDict({"layers": transformer})
        self.downsample = PaddedConv(config.width, config.width, 4, 2, mode="replicate", bias=False)
        self.quantizer = nn.ModuleDict(
            {
                "semantic_residual_vector_quantizer": EncoderGroup(config, 1),
                "acoustic_residual_vector_quantizer": EncoderGroup(config, config.codebooks - 1),
            }
        )

    def embedded(self, samples: Tensor, check: Check = lambda: None) -> Tensor:
        """Samples (n,) to (1, width, 25 per second)."""
        x = samples[None, None]
        for layer in cast("Modules[nn.Module]", self.encoder["layers"]):
            check()
            x = layer(x)
        return x

    def transformed(self, x: Tensor, check: Check = lambda: None) -> Tensor:
        """(1, width, n) to the same shape."""
        x = x.mT
        for layer in cast("Modules[Layer]", self.encoder_transformer["layers"]):
            check()
            x = layer(x, 0, Memory())
        return x.mT

    @torch.inference_mode()
    def forward(self, samples: Tensor, check: Check = lambda: None) -> Tensor:
        """Samples (n,) at 24 kHz to codes (kept codebooks, ⌈n / samples_per_frame⌉). ``check`` is called before every
        layer, and may raise to cancel."""
        x = self.downsample(self.transformed(self.embedded(samples, check), check))
        groups = self.quantizer
        semantic = groups["semantic_residual_vector_quantizer"](x, 1)
        return torch.cat([semantic, groups["acoustic_residual_vector_quantizer"](x, self.config.kept - 1)])
