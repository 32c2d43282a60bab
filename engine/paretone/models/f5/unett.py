"""E2-TTS's flat UNet transformer: the time is a separate token, and late layers also get the inputs of early ones.

Provides the sampler's interface of :class:`paretone.models.f5.dit.DiT`: begin, velocity, fuse, operations. Source: the
official ``f5_tts/model/backbones/unett.py`` (1.1.20).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.models.f5.config import BackboneConfig
from paretone.models.f5.dit import chosen_branches, given
from paretone.models.f5.layers import F5Attention, F5FeedForward, InputEmbedding, RotaryEmbedding, TextEmbedding
from paretone.models.networks.layers import TimeEmbedding
from paretone.models.networks.shapes import Modules
from paretone.sampling.flow import Probe
from paretone.sampling.operations import OperationCounts
from paretone.sampling.skipping import COMPUTE, LayerMemory, LayerPlan, apply_module


@dataclass(frozen=True)
class UNetTConditioning:
    """State shared by the evaluations of a sampling run. Rows: conditional items, then unconditional."""

    branches: int
    constant: tuple[Tensor, Tensor]
    """Parts of the input projection and of its first convolution that are independent of the state."""
    time_tokens: Tensor
    """(evaluations, width): the token before the frames."""
    rotary: Tensor
    """Rotations of 1 + frames positions; the first is the time token's."""
    mask: Tensor | None = None
    """(rows, 1 + frames), true for the time token and for frames within their item's duration; ``None``: all are.
    Unlike the DiT's, it applies only to attention outputs."""


class UNetTNorm(nn.Module):
    """Scales rows to length √width, times a learnt gain (x-transformers' form, without an epsilon in the root)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.g = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.normalize(x, dim=-1) * math.sqrt(x.shape[-1]) * self.g


class UNetTLayer(NamedTuple):
    """Parameters of one layer."""

    join: nn.Linear | None
    """Projects a hidden state and the matching early layer's input, concatenated; only in the second half."""
    attention_norm: UNetTNorm
    attention: F5Attention
    feed_forward_norm: UNetTNorm
    feed_forward: F5FeedForward


def _layer(config: BackboneConfig, joins: bool) -> nn.ModuleList:
    """The modules of a :class:`UNetTLayer`; their official names are their numbers."""
    join: Any = nn.Linear(2 * config.dim, config.dim, bias=False) if joins else None  # A part may be missing.
    norms = UNetTNorm(config.dim), UNetTNorm(config.dim)
    return nn.ModuleList([join, norms[0], F5Attention(config), norms[1], F5FeedForward(config)])


class UNetT(nn.Module):
    """The backbone of E2-TTS. ``state_dict`` has the official keys, without their ``transformer.`` prefix."""

    def __init__(self, config: BackboneConfig) -> None:
        super().__init__()
        self.config = config
        self.time_embed = TimeEmbedding(config.dim)
        self.text_embed = TextEmbedding(config, longest=4096)
        self.input_embed = InputEmbedding(config)
        self.rotary_embed = RotaryEmbedding(config.dim_head)
        self.layers = Modules(_layer(config, index >= config.depth // 2) for index in range(config.depth))
        self.norm_out = UNetTNorm(config.dim)
        self.proj_out = nn.Linear(config.dim, config.mel_dim)

    def begin(
        self, prompt: Tensor, ids: Tensor, times: np.ndarray, guided: bool, branches: Sequence[int] | None = None
    ) -> UNetTConditioning:
        """See :meth:`paretone.models.f5.dit.DiT.begin`."""
        weight, frames, chosen = self.proj_out.weight, prompt.shape[1], chosen_branches(guided, branches)
        prompt = prompt.to(weight.dtype)
        return UNetTConditioning(
            len(chosen),
            self.input_embed.constant(*given(self.text_embed, prompt, ids, chosen), None),
            self.time_embed(torch.from_numpy(times).to(weight.device, weight.dtype)),
            self.rotary_embed.table(1 + frames),
        )

    def enter(self, x: Tensor, evaluation: int, run: UNetTConditioning) -> Tensor:
        """State (batch, frames, bands) to the first layer's input (rows, 1 + frames, width)."""
        frames = self.input_embed(x.to(self.proj_out.weight.dtype), run.constant, None)
        return torch.cat([run.time_tokens[evaluation].expand(len(frames), 1, -1), frames], dim=1)

    def layer(
        self,
        index: int,
        hidden: Tensor,
        run: UNetTConditioning,
        plan: LayerPlan = COMPUTE,
        memory: LayerMemory | None = None,
        probe: Probe | None = None,
    ) -> Tensor:
        """One layer without the joining, (rows, 1 + frames, width) to the same shape. ``hidden`` is unchanged."""
        parts = self.block(index)
        gate = hidden.new_ones(())

        def attention(rows: Tensor) -> Tensor:
            normed = parts.attention_norm(rows)
            output = parts.attention(normed, run.rotary, run.mask)
            if probe is not None:
                probe(index, "attention_input", normed)
                probe(index, "attention", output)
            return output

        def feed_forward(rows: Tensor) -> Tensor:
            output = parts.feed_forward(parts.feed_forward_norm(rows))
            if probe is not None:
                probe(index, "feed_forward", output)
            return output

        attention_memory = None if memory is None else memory.attention
        forward_memory = None if memory is None else memory.feed_forward
        hidden = apply_module(hidden, gate, attention, plan.attention, attention_memory, run.branches)
        hidden = apply_module(hidden, gate, feed_forward, plan.feed_forward, forward_memory, run.branches)
        if probe is not None:
            probe(index, "output", hidden)
        return hidden

    def leave(self, hidden: Tensor) -> Tensor:
        """Last layer's output to velocities (rows, frames, bands), dropping the time token."""
        return self.proj_out(self.norm_out(hidden)[:, 1:]).float()

    def velocity(
        self,
        x: Tensor,
        evaluation: int,
        run: UNetTConditioning,
        plans: Sequence[LayerPlan] | None = None,
        memory: Sequence[LayerMemory] | None = None,
        probe: Probe | None = None,
    ) -> Tensor:
        """Velocities of all branches, (rows, frames, bands), at one evaluation of the run."""
        hidden = self.enter(x, evaluation, run)
        early: list[Tensor] = []
        for index, parts in enumerate(self.blocks):
            if parts.join is None:
                early.append(hidden)
            else:
                hidden = parts.join(torch.cat([hidden, early.pop()], dim=-1))
            plan = COMPUTE if plans is None else plans[index]
            layer_memory = None if plans is None or memory is None else memory[index]
            hidden = self.layer(index, hidden, run, plan, layer_memory, probe)
        return self.leave(hidden)

    def block(self, index: int) -> UNetTLayer:
        return UNetTLayer(*cast("Any", self.layers[index]))

    @property
    def blocks(self) -> tuple[UNetTLayer, ...]:
        return tuple(map(self.block, range(len(self.layers))))

    def fuse(self) -> None:
        """Prepare for inference; see :meth:`F5Attention.fuse` and :meth:`ConvPositionEmbedding.fuse`."""
        self.input_embed.conv_pos_embed.fuse()
        for parts in self.blocks:
            parts.attention.fuse()
            parts.feed_forward.fuse()

    def operations(self, frames: int, guided: bool, branches: int | None = None) -> OperationCounts:
        """Operations of one evaluation at this length, for one item, with ``branches`` or those of ``guided``."""
        config = self.config
        inner = config.heads * config.dim_head
        tokens = frames + 1
        joins = config.depth - config.depth // 2
        branches = branches or (2 if guided else 1)
        ends = self.input_embed.operations(frames, branches) + 2 * frames * config.mel_dim * config.dim
        return OperationCounts(
            attention=2 * tokens * 4 * config.dim * inner + 4 * tokens * tokens * inner,
            feed_forward=2 * tokens * 2 * config.ff_mult * config.dim**2,
            fixed=ends + joins * 2 * tokens * 2 * config.dim**2,
            layers=config.depth,
            branches=branches,
        )
