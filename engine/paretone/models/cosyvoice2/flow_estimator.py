"""The network of CosyVoice 2 that estimates the velocity of the flow, causal over time.

Official names and sizes: ``cosyvoice/flow/decoder.py`` (``CausalConditionalDecoder``, a U-Net that halves nothing) with
the blocks of Matcha-TTS. Time embeddings are tabulated for all steps of a request. Operations and their order are
upstream's: the vocoder sums up pitch to phases of ten thousand turns, where another rounding is another phase.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from paretone.models.cosyvoice2.acoustic_config import EstimatorConfig
from paretone.models.cosyvoice2.memory import CausalConv, Memory, chunk_mask
from paretone.models.networks.layers import sinusoids
from paretone.models.networks.shapes import Modules

CONDITIONS = 3
"""Encoder output, speaker and prompt, each as wide as the state."""
BRANCHES = 2
"""Guidance branches: with and without conditions."""


class CausalBlock(nn.Module):
    """Convolution, norm over channels, Mish."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.block = nn.Sequential(CausalConv(inputs, outputs, 3), nn.Identity(), nn.LayerNorm(outputs))

    def forward(self, x: Tensor, memory: Memory) -> Tensor:
        """(B, inputs, n) to (B, outputs, n)."""
        convolution, _, norm = self.block
        return F.mish(norm(convolution(x, memory).transpose(1, 2)).transpose(1, 2))


class Residual(nn.Module):
    """Two causal blocks, the time between them, around them a projection of the input."""

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
    """Self-attention that remembers its keys and values, or what they are made of."""

    def __init__(self, config: EstimatorConfig) -> None:
        super().__init__()
        self.heads = config.heads
        inner = config.heads * config.head_width
        self.to_q = nn.Linear(config.channels, inner, bias=False)
        self.to_k = nn.Linear(config.channels, inner, bias=False)
        self.to_v = nn.Linear(config.channels, inner, bias=False)
        self.to_out = nn.ModuleList([nn.Linear(inner, config.channels)])

    def forward(self, x: Tensor, mask: Tensor | None, memory: Memory) -> Tensor:
        """(B, n, channels) to the same shape; ``mask``, (n, seen + n) or (B, 1, n or 1, seen + n), is true where a
        query may look."""
        key, value = memory.projected(
            self, x, lambda part: (self._split(self.to_k(part)), self._split(self.to_v(part)))
        )
        mixed = F.scaled_dot_product_attention(self._split(self.to_q(x)), key, value, mask)
        return self.to_out[0](mixed.transpose(1, 2).flatten(2))

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class GeluLinear(nn.Module):
    """A linear layer and an exact GELU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.proj = nn.Linear(inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(self.proj(x))


class EstimatorFeedForward(nn.Module):
    """Two linear layers, four times as wide between them."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.net = nn.Sequential(GeluLinear(channels, 4 * channels), nn.Identity(), nn.Linear(4 * channels, channels))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


class TransformerBlock(nn.Module):
    """Attention and a feed-forward, each after a norm, added to the input."""

    def __init__(self, config: EstimatorConfig) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(config.channels)
        self.attn1 = EstimatorAttention(config)
        self.norm3 = nn.LayerNorm(config.channels)
        self.ff = EstimatorFeedForward(config.channels)

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
    """Intervals (n, 2), each from t to r, to vectors (n, width); times (n,) are intervals without length. What another
    perceptron of the same size makes of the length is added; see :mod:`paretone.models.networks.diffusion`."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__(inputs, width)
        self.interval_mlp = nn.Sequential(nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, times: Tensor) -> Tensor:
        starts, ends = times.unbind(-1) if times.ndim == 2 else (times, times)
        lengths = sinusoids(1000 * (ends - starts), self.linear_1.in_features).to(self.linear_1.weight.dtype)
        return super().forward(starts) + self.interval_mlp(lengths)


def conditions(encoded: Tensor, speaker: Tensor, prompt: Tensor) -> Tensor:
    """For both branches, (2, 3 · bands, n): ``encoded`` and ``prompt`` (1, bands, n) and ``speaker`` (1, bands), then
    nothing."""
    present = torch.cat([encoded, speaker[:, :, None].expand_as(encoded), prompt], dim=1)
    return torch.cat([present, torch.zeros_like(present)])


class EstimatorStage(nn.ModuleList):
    """A residual block, transformer blocks and, in the outer stages, a convolution, under their official numbers."""

    def __init__(self, config: EstimatorConfig, inputs: int, time_width: int, smooth: bool) -> None:
        channels = config.channels
        blocks = Modules(TransformerBlock(config) for _ in range(config.blocks))
        residual = Residual(inputs, channels, time_width)
        super().__init__([residual, blocks, *([CausalConv(channels, channels, 3)] if smooth else [])])

    # Only the numbers say what is of which kind.
    @property
    def residual(self) -> Residual:
        return cast("Residual", self[0])

    @property
    def blocks(self) -> Modules[TransformerBlock]:
        return cast("Modules[TransformerBlock]", self[1])

    @property
    def smooth(self) -> CausalConv:
        """The last convolution; only outer stages have it."""
        return cast("CausalConv", self[2])


class Estimator(nn.Module):
    """State and conditions to velocities, both guidance branches in one batch."""

    def __init__(self, config: EstimatorConfig, bands: int, chunk: int) -> None:
        super().__init__()
        self.bands, self.chunk = bands, chunk
        inputs, channels = (1 + CONDITIONS) * bands, config.channels
        time_width = 4 * channels

        self.time_mlp = EstimatorTimeEmbedding(inputs, time_width)
        self.down_blocks = Modules([EstimatorStage(config, inputs, time_width, smooth=True)])
        self.mid_blocks = Modules(
            EstimatorStage(config, channels, time_width, smooth=False) for _ in range(config.middle_stages)
        )
        self.up_blocks = Modules([EstimatorStage(config, 2 * channels, time_width, smooth=True)])
        self.final_block = CausalBlock(channels, channels)
        self.final_proj = nn.Conv1d(channels, bands, 1)

    @property
    def residuals(self) -> list[Residual]:
        """The first part of every stage, in order."""
        return [stage.residual for stage in (*self.down_blocks, *self.mid_blocks, *self.up_blocks)]

    def time_table(self, times: Tensor) -> Tensor:
        """Time embeddings added by every stage at each of ``times``, (n,) or intervals (n, 2), as (n, stages,
        channels)."""
        # As many rows as upstream has: another number of them would be rounded in another way.
        return torch.stack([self.time_rows(time.expand(BRANCHES, *time.shape))[:, 0] for time in times])

    def time_rows(self, times: Tensor) -> Tensor:
        """The same for items that each have their own, (B,) or (B, 2): (stages, B, channels)."""
        vectors = self.time_mlp(times)
        return torch.stack([one.mlp(vectors) for one in self.residuals])

    def forward(
        self, state: Tensor, conditions: Tensor, times: Tensor, first: int, chunked: bool, memory: Memory
    ) -> Tensor:
        """Velocities (branches, bands, n) of the frames ``state`` (1, bands, n) after ``first``.

        ``conditions`` are those of :func:`conditions`, or of its first branch only; ``times`` (stages, channels) is one
        row of :meth:`time_table`. ``memory`` belongs to one step of the solver.
        """
        chunk = self.chunk if chunked else None
        mask = chunk_mask(first, state.shape[-1], chunk, state.device)
        return self._passed(state.expand(len(conditions), -1, -1), conditions, times, mask, memory)

    def at_once(self, states: Tensor, conditions: Tensor, times: Tensor, within: Tensor) -> Tensor:
        """Velocities (B, bands, n) of whole items as in training: every item has its own time, and gradients flow.

        ``states`` are (B, bands, n), ``conditions`` (B, 3 · bands, n), ``times`` those of :meth:`time_rows`, ``within``
        (B, n) true within the items. What comes out in the padding means nothing. Attention is that of streaming.
        """
        seen = chunk_mask(0, states.shape[-1], self.chunk, states.device)
        mask = within[:, None, None] if seen is None else within[:, None, None] & seen
        memory = Memory()
        memory.closing = True
        return self._passed(states, conditions, times, mask, memory)

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
