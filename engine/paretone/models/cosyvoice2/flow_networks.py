"""Networks of CosyVoice 2's flow, run chunk by chunk: the conformer from speech tokens to mel frames, and the velocity
estimator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from paretone.models.cosyvoice2.config import FRAMES_PER_TOKEN, EncoderConfig, EstimatorConfig
from paretone.models.kernels.products import PackableLinear
from paretone.models.networks.diffusion import intervals
from paretone.models.networks.incremental import CausalConv, Memory, chunk_mask
from paretone.models.networks.layers import chained, sinusoids, split_heads
from paretone.models.networks.shapes import Modules
from paretone.sampling.operations import OperationCounts

# CosyVoice 2's conformer from speech tokens to two mel frames each, chunk by chunk.
#
# Official names and sizes: ``cosyvoice/transformer/upsample_encoder.py`` (``UpsampleConformerEncoder``), without the
# parts that the release does not use (convolution module, macaron feed-forward). Relative positions as in
# Transformer-XL (Dai et al., arXiv 1901.02860, appendix B). Every layer keeps its keys, values and projected positions,
# so the cost of a chunk depends on its past only by reading these.
LAYER_EPSILON = 1e-12
"""Epsilon of norms inside layers; others have PyTorch's 1e-5."""


class RelativeAttention(nn.Module):
    """Self-attention with scores that also depend on the distance between query and key."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.heads = config.heads
        head_width = config.width // config.heads
        self.pos_bias_u, self.pos_bias_v = (nn.Parameter(torch.zeros(config.heads, head_width)) for _ in range(2))
        self.linear_q, self.linear_k, self.linear_v, self.linear_out = (
            PackableLinear(config.width, config.width) for _ in range(4)
        )
        self.linear_pos = nn.Linear(config.width, config.width, bias=False)

    def forward(self, x: Tensor, mask: Tensor | None, memory: Memory) -> Tensor:
        """(1, n, width) to the same shape; ``mask`` (n, seen + n) is true for visible keys."""
        query, key, value = (split_heads(one(x), self.heads) for one in (self.linear_q, self.linear_k, self.linear_v))
        key, value = memory.extended(self, "keys", key), memory.extended(self, "values", value)
        u, v = self.pos_bias_u[:, None], self.pos_bias_v[:, None]
        scores = (query + u) @ key.mT + self._distance_scores(query + v, key.shape[2], memory)
        scores = scores / math.sqrt(query.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        mixed = scores.softmax(dim=-1) @ value
        return self.linear_out(mixed.transpose(1, 2).flatten(2))

    def _distance_scores(self, query: Tensor, keys: int, memory: Memory) -> Tensor:
        """Products of ``query`` (1, heads, n, head_width) with each key's distance embedding, (1, heads, n, keys)."""
        count = query.shape[2]
        # Distances from keys - 1 down to 1 - count; each query has them one column earlier than the previous one.
        later = self._projected(torch.arange(1, count, device=query.device).neg())
        new = torch.arange(memory.seen(self, "distances"), keys, device=query.device)
        earlier = memory.extended(self, "distances", self._projected(new))
        products = (query @ torch.cat([earlier.flip(2), later], dim=2).mT).contiguous()
        row = products.shape[-1]
        return products.as_strided(
            (1, self.heads, count, keys),
            (products.stride(0), products.stride(1), row - 1, 1),
            products.storage_offset() + count - 1,
        )

    def _projected(self, distances: Tensor) -> Tensor:
        """Distances (n,) from a key to a later query, embedded as alternating sines and cosines and projected, (1,
        heads, n, head_width)."""
        weight = self.linear_pos.weight
        width = weight.shape[1]
        falling = torch.arange(0, width, 2, device=distances.device).float() * -(math.log(10000.0) / width)
        angles = distances.float()[:, None] * falling.exp()
        embedded = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
        return split_heads(self.linear_pos(embedded.to(weight.dtype))[None], self.heads)


class EncoderLayer(nn.Module):
    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.self_attn = RelativeAttention(config)
        width, inner = config.width, config.feed_forward
        self.feed_forward = chained(w_1=PackableLinear(width, inner), silu=nn.SiLU(), w_2=PackableLinear(inner, width))
        self.norm_ff = nn.LayerNorm(config.width, eps=LAYER_EPSILON)
        self.norm_mha = nn.LayerNorm(config.width, eps=LAYER_EPSILON)

    def forward(self, x: Tensor, mask: Tensor | None, memory: Memory) -> Tensor:
        """(1, n, width) to the same shape."""
        x = x + self.self_attn(self.norm_mha(x), mask, memory)
        return x + self.feed_forward(self.norm_ff(x))


class InputLayer(nn.Module):
    """A linear layer and a norm, scaled for a transformer's input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width))
        self.scale = math.sqrt(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(x) * self.scale


class LookAhead(nn.Module):
    """Adds information from the next ``tokens`` to each token."""

    def __init__(self, width: int, inner: int, tokens: int) -> None:
        super().__init__()
        self.tokens = tokens
        self.conv1 = nn.Conv1d(width, inner, tokens + 1)
        self.conv2 = CausalConv(inner, width, 3)

    def forward(self, x: Tensor, ahead: Tensor | None, memory: Memory) -> Tensor:
        """(1, n, width) to the same shape; ``ahead`` (1, tokens, width) follows, or ``None`` at the end."""
        known = F.pad(x, (0, 0, 0, self.tokens)) if ahead is None else torch.cat([x, ahead], dim=1)
        hidden = F.leaky_relu(self.conv1(known.transpose(1, 2)))
        return x + self.conv2(hidden, memory).transpose(1, 2)


class TokenUpsampling(nn.Module):
    """Repeats each token for two mel frames and smooths."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = CausalConv(width, width, 2 * FRAMES_PER_TOKEN + 1)

    def forward(self, x: Tensor, memory: Memory) -> Tensor:
        """(1, n, width) to (1, 2 · n, width)."""
        repeated = x.repeat_interleave(FRAMES_PER_TOKEN, dim=1)
        return self.conv(repeated.transpose(1, 2), memory).transpose(1, 2)


class UpsamplingEncoder(nn.Module):
    """Embedded speech tokens to hidden mel frames."""

    def __init__(self, config: EncoderConfig, look_ahead: int, chunk: int) -> None:
        super().__init__()
        self.chunk = chunk
        self.embed = InputLayer(config.width)
        self.after_norm = nn.LayerNorm(config.width)
        self.pre_lookahead_layer = LookAhead(config.width, config.width, look_ahead)
        self.encoders = Modules(EncoderLayer(config) for _ in range(config.layers))
        self.up_layer = TokenUpsampling(config.width)
        self.up_embed = InputLayer(config.width)
        self.up_encoders = Modules(EncoderLayer(config) for _ in range(config.upsampled_layers))

    def forward(self, x: Tensor, ahead: Tensor | None, first: int, memory: Memory) -> Tensor:
        """Hidden frames (1, 2 · n, width) of the embedded tokens ``x`` (1, n, width), which follow the ``first`` ones.

        ``ahead`` (1, look_ahead, width) are the next embedded tokens, ``None`` at the end of the request.
        """
        count = x.shape[1]
        x = self.embed(x)
        x = self.pre_lookahead_layer(x, None if ahead is None else self.embed(ahead), memory)
        mask = chunk_mask(first, count, self.chunk, x.device)
        for layer in self.encoders:
            x = layer(x, mask, memory)
        x = self.up_embed(self.up_layer(x, memory))
        mask = chunk_mask(first * FRAMES_PER_TOKEN, x.shape[1], self.chunk * FRAMES_PER_TOKEN, x.device)
        for layer in self.up_encoders:
            x = layer(x, mask, memory)
        return self.after_norm(x)


# CosyVoice 2's velocity estimator, causal over time.
#
# Official names and sizes: ``cosyvoice/flow/decoder.py`` (``CausalConditionalDecoder``, a U-Net without downsampling)
# with the blocks of Matcha-TTS. Time embeddings are tabulated for all steps of a request. Operations and their order
# are upstream's: the vocoder sums pitch to phases of ten thousand turns, where different rounding changes the phase.
CONDITIONS = 3
"""Encoder output, speaker and prompt, each as wide as the state."""
BRANCHES = 2
"""Guidance branches: with and without conditions."""


class CausalBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.block = nn.Sequential(CausalConv(inputs, outputs, 3), nn.Identity(), nn.LayerNorm(outputs))

    def forward(self, x: Tensor, memory: Memory) -> Tensor:
        """(B, inputs, n) to (B, outputs, n)."""
        convolution, _, norm = self.block
        return F.mish(norm(convolution(x, memory).transpose(1, 2)).transpose(1, 2))


class Residual(nn.Module):
    """Two causal blocks with the time added in between, and a residual projection of the input."""

    def __init__(self, inputs: int, outputs: int, time_width: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Mish(), nn.Linear(time_width, outputs))
        self.block1 = CausalBlock(inputs, outputs)
        self.block2 = CausalBlock(outputs, outputs)
        self.res_conv = nn.Conv1d(inputs, outputs, 1)

    def forward(self, x: Tensor, time: Tensor, memory: Memory) -> Tensor:
        """(B, inputs, n) to (B, outputs, n); ``time``, (outputs,) or (B, outputs), comes from ``mlp``."""
        hidden = self.block1(x, memory) + time[..., None]
        return self.block2(hidden, memory) + self.res_conv(x)


class EstimatorAttention(nn.Module):
    """Self-attention that keeps its keys and values, or their inputs."""

    def __init__(self, config: EstimatorConfig) -> None:
        super().__init__()
        self.heads = config.heads
        inner = config.heads * config.head_width
        self.to_q, self.to_k, self.to_v = (PackableLinear(config.channels, inner, bias=False) for _ in range(3))
        self.to_out = nn.ModuleList([PackableLinear(inner, config.channels)])

    def forward(self, x: Tensor, mask: Tensor | None, memory: Memory) -> Tensor:
        """(B, n, channels) to the same shape; ``mask``, (n, seen + n) or (B, 1, n or 1, seen + n): visible keys."""

        def headed(projection: nn.Linear, part: Tensor) -> Tensor:
            return split_heads(projection(part), self.heads)

        key, value = memory.projected(self, x, lambda part, _: (headed(self.to_k, part), headed(self.to_v, part)))
        mixed = F.scaled_dot_product_attention(headed(self.to_q, x), key, value, mask)
        return self.to_out[0](mixed.transpose(1, 2).flatten(2))


class TransformerBlock(nn.Module):
    def __init__(self, config: EstimatorConfig) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(config.channels)
        self.attn1 = EstimatorAttention(config)
        self.norm3 = nn.LayerNorm(config.channels)
        width, inner = config.channels, 4 * config.channels
        enter = chained(proj=PackableLinear(width, inner), gelu=nn.GELU())
        self.ff = chained(net=nn.Sequential(enter, nn.Identity(), PackableLinear(inner, width)))

    def forward(self, x: Tensor, mask: Tensor | None, memory: Memory) -> Tensor:
        """(B, n, channels) to the same shape."""
        x = x + self.attn1(self.norm1(x), mask, memory)
        return x + self.ff(self.norm3(x))


class EstimatorTimeEmbedding(nn.Module):
    """Times (n,) to vectors (n, width)."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.linear_1 = nn.Linear(inputs, width)
        self.linear_2 = nn.Linear(width, width)

    def forward(self, times: Tensor) -> Tensor:
        hidden = sinusoids(1000 * times, self.linear_1.in_features).to(self.linear_1.weight.dtype)
        return self.linear_2(F.silu(self.linear_1(hidden)))


class EstimatorIntervalEmbedding(EstimatorTimeEmbedding):
    """Intervals (n, 2), each from t to r, to vectors (n, width); times (n,) are intervals of length zero. A second
    perceptron of the same size embeds the length; see :mod:`paretone.models.networks.diffusion`."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__(inputs, width)
        self.interval_mlp = nn.Sequential(nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, times: Tensor) -> Tensor:
        starts, ends = times.unbind(-1) if times.ndim == 2 else (times, times)
        lengths = sinusoids(1000 * (ends - starts), self.linear_1.in_features).to(self.linear_1.weight.dtype)
        return super().forward(starts) + self.interval_mlp(lengths)


def conditions(encoded: Tensor, speaker: Tensor, prompt: Tensor) -> Tensor:
    """Conditions of both branches, (2, 3 · bands, n): ``encoded`` and ``prompt`` (1, bands, n) and ``speaker`` (1,
    bands) for the first, zeros for the second."""
    present = torch.cat([encoded, speaker[:, :, None].expand_as(encoded), prompt], dim=1)
    return torch.cat([present, torch.zeros_like(present)])


@dataclass(frozen=True)
class EstimatorRun:
    """Inputs of one part of a request; see :meth:`FlowEstimator.begin`."""

    branches: int
    conditions: Tensor
    times: Tensor
    first: int
    memories: Sequence[Memory]


class FlowEstimator(nn.Module):
    """A network of the velocity, run part by part. CosyVoice 2 and 3 have different ones."""

    @property
    def takes_intervals(self) -> bool:
        raise NotImplementedError

    def schedule(self, times: np.ndarray) -> Any:
        """What depends on the ``times`` (n,) of all evaluations, kept for later parts; weights for intervals take those
        between them."""
        raise NotImplementedError

    def begin(self, conditions: Tensor, times: Any, first: int, memories: Sequence[Memory]) -> Any:
        """Prepare the evaluations of the frames after ``first``: ``conditions`` (branches, 3 · bands, frames) from
        :func:`conditions`, or only its first branch, the result of :meth:`schedule`, and the past of each
        evaluation."""
        raise NotImplementedError

    def velocity(
        self, x: Tensor, evaluation: int, run: Any, plans: Any = None, memory: Any = None, probe: Any = None
    ) -> Tensor:
        """See :class:`paretone.sampling.flow.Evaluated`."""
        raise NotImplementedError

    def operations(self, frames: int, branches: int = BRANCHES, before: int = 0) -> OperationCounts:
        """Of one evaluation of ``frames`` that see those ``before``, too."""
        raise NotImplementedError

    def at_once(self, states: Tensor, conditions: Tensor, times: Tensor, within: Tensor) -> Tensor:
        """Velocities (B, bands, n) of complete items as in training, with gradients: each item has its own of
        ``times``, (B,) or intervals (B, 2).

        ``states`` are (B, bands, n), ``conditions`` (B, 3 · bands, n), ``within`` (B, n) true within the items. Output
        in the padding is undefined. Attention is that of streaming.
        """
        raise NotImplementedError

    def add_interval(self) -> None:
        """Accept intervals, without effect until the new perceptron is trained."""
        raise NotImplementedError


class EstimatorStage(nn.ModuleList):
    """A residual block, transformer blocks and, in the outer stages, a convolution, under their official numbers."""

    def __init__(self, config: EstimatorConfig, inputs: int, time_width: int, smooth: bool) -> None:
        channels = config.channels
        blocks = Modules(TransformerBlock(config) for _ in range(config.blocks))
        residual = Residual(inputs, channels, time_width)
        super().__init__([residual, blocks, *([CausalConv(channels, channels, 3)] if smooth else [])])

    # Types are known only by position.
    @property
    def residual(self) -> Residual:
        return cast("Residual", self[0])

    @property
    def blocks(self) -> Modules[TransformerBlock]:
        return cast("Modules[TransformerBlock]", self[1])

    @property
    def smooth(self) -> CausalConv:
        return cast("CausalConv", self[2])


class Estimator(FlowEstimator):
    """State and conditions to velocities, both guidance branches in one batch."""

    def __init__(self, config: EstimatorConfig, bands: int, chunk: int) -> None:
        super().__init__()
        self.bands, self.chunk = bands, chunk
        self._scheduled: tuple[bytes, Tensor] | None = None
        inputs, channels = (1 + CONDITIONS) * bands, config.channels
        time_width = 4 * channels

        self.time_mlp: EstimatorTimeEmbedding = EstimatorTimeEmbedding(inputs, time_width)
        self.down_blocks = Modules([EstimatorStage(config, inputs, time_width, smooth=True)])
        self.mid_blocks = Modules(
            EstimatorStage(config, channels, time_width, smooth=False) for _ in range(config.middle_stages)
        )
        self.up_blocks = Modules([EstimatorStage(config, 2 * channels, time_width, smooth=True)])
        self.final_block = CausalBlock(channels, channels)
        self.final_proj = nn.Conv1d(channels, bands, 1)

    def add_interval(self) -> None:
        own = self.time_mlp
        embedding = EstimatorIntervalEmbedding(own.linear_1.in_features, own.linear_2.out_features)
        embedding = embedding.to(own.linear_1.weight.device, own.linear_1.weight.dtype)
        embedding.linear_1, embedding.linear_2 = own.linear_1, own.linear_2
        last = embedding.interval_mlp[2]
        assert isinstance(last, nn.Linear)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.time_mlp = embedding

    @property
    def takes_intervals(self) -> bool:
        return isinstance(self.time_mlp, EstimatorIntervalEmbedding)

    @property
    def residuals(self) -> list[Residual]:
        return [stage.residual for stage in (*self.down_blocks, *self.mid_blocks, *self.up_blocks)]

    def schedule(self, times: np.ndarray) -> Tensor:
        key, found = times.tobytes(), self._scheduled  # Another thread may replace it.
        if found is None or found[0] != key:
            parameter = next(self.parameters())
            starts = torch.from_numpy(times).to(parameter.device, parameter.dtype)
            found = self._scheduled = key, self.time_table(intervals(starts) if self.takes_intervals else starts)
        return found[1]

    def begin(self, conditions: Tensor, times: Tensor, first: int, memories: Sequence[Memory]) -> EstimatorRun:
        return EstimatorRun(len(conditions), conditions, times, first, memories)

    def velocity(
        self, x: Tensor, evaluation: int, run: EstimatorRun, plans: Any = None, memory: Any = None, probe: Any = None
    ) -> Tensor:
        """See :class:`FlowEstimator`; it has no layers to skip or to see."""
        return self(x.mT, run.conditions, run.times[evaluation], run.first, run.memories[evaluation]).mT

    def time_table(self, times: Tensor) -> Tensor:
        """Time embeddings of each stage at each of ``times``, (n,) or intervals (n, 2), as (n, stages, channels)."""
        # The same number of rows as upstream; another number rounds differently.
        return torch.stack([self.time_rows(time.expand(BRANCHES, *time.shape))[:, 0] for time in times])

    def time_rows(self, times: Tensor) -> Tensor:
        """Time embeddings for items with their own times, (B,) or (B, 2): (stages, B, channels)."""
        vectors = self.time_mlp(times)
        return torch.stack([one.mlp(vectors) for one in self.residuals])

    @cached_property
    def _products(self) -> tuple[int, int]:
        """Multiplications per frame, apart from attention's products with frames, and per frame and frame that it sees.
        Found once: looking through all modules takes milliseconds."""

        def weights(module: nn.Module) -> int:
            return sum(one.weight.numel() for one in module.modules() if isinstance(one, nn.Linear | nn.Conv1d))

        of_time = weights(self.time_mlp) + sum(weights(one.mlp) for one in self.residuals)
        attention = sum(2 * one.to_q.out_features for one in self.modules() if isinstance(one, EstimatorAttention))
        return weights(self) - of_time, attention

    def operations(self, frames: int, branches: int = BRANCHES, before: int = 0) -> OperationCounts:
        alone, seen = self._products
        return OperationCounts(0.0, 0.0, 2.0 * frames * (alone + (before + frames) * seen), 0, branches)

    def forward(self, state: Tensor, conditions: Tensor, times: Tensor, first: int, memory: Memory) -> Tensor:
        """Velocities (branches, bands, n) of the frames ``state`` (1, bands, n) after ``first``; ``times`` are a row of
        :meth:`time_table`, and ``memory`` belongs to one solver step."""
        mask = chunk_mask(first, state.shape[-1], self.chunk, state.device)
        return self._passed(state.expand(len(conditions), -1, -1), conditions, times, mask, memory)

    def at_once(self, states: Tensor, conditions: Tensor, times: Tensor, within: Tensor) -> Tensor:
        """See :class:`FlowEstimator`."""
        seen = chunk_mask(0, states.shape[-1], self.chunk, states.device)
        mask = within[:, None, None] if seen is None else within[:, None, None] & seen
        return self._passed(states, conditions, self.time_rows(times), mask, Memory(closing=True))

    def _passed(self, states: Tensor, conditions: Tensor, times: Tensor, mask: Tensor | None, memory: Memory) -> Tensor:
        down, up = self.down_blocks[0], self.up_blocks[0]
        x = down.residual(torch.cat([states, conditions], dim=1), times[0], memory)
        skipped = self._attended(x, down.blocks, mask, memory)
        x = down.smooth(skipped, memory)
        for middle, time in zip(self.mid_blocks, times[1:-1], strict=True):
            x = self._attended(middle.residual(x, time, memory), middle.blocks, mask, memory)
        x = up.residual(torch.cat([x, skipped], dim=1), times[-1], memory)
        x = up.smooth(self._attended(x, up.blocks, mask, memory), memory)
        return self.final_proj(self.final_block(x, memory))

    @staticmethod
    def _attended(x: Tensor, blocks: Modules[TransformerBlock], mask: Tensor | None, memory: Memory) -> Tensor:
        x = x.transpose(1, 2)
        for block in blocks:
            x = block(x, mask, memory)
        return x.transpose(1, 2)
