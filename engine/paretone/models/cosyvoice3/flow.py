"""CosyVoice 3's flow: speech tokens to mel frames by a causal diffusion transformer, at once or exactly in parts.

Official names and sizes: ``cosyvoice/flow/flow.py`` (``CausalMaskedDiffWithDiT``) and ``flow/DiT/dit.py``. There is no
encoder: a look-ahead convolution over embedded tokens, each twice, is the estimator's input. Blocks are F5's, with
positions in the first head only. Frames see their own chunk and earlier ones; :class:`MelStream` keeps what later
chunks need for each solver step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from paretone.models.cosyvoice2.config import FRAMES_PER_TOKEN
from paretone.models.cosyvoice2.flow_networks import BRANCHES, CONDITIONS, FlowEstimator, LookAhead
from paretone.models.cosyvoice2.token_to_mel import TokenFlow
from paretone.models.cosyvoice3.config import FlowConfig
from paretone.models.f5.dit import DiTBlock, NamedLikeF5
from paretone.models.f5.layers import RotaryEmbedding
from paretone.models.networks.diffusion import Conditioning, add_interval
from paretone.models.networks.incremental import CausalConv, Memory, chunk_mask
from paretone.models.networks.layers import (
    AdaptiveNorm,
    SelfAttention,
    TimeEmbedding,
    modulate_items,
    modulation,
    rotate,
)
from paretone.models.networks.shapes import Modules
from paretone.sampling.operations import OperationCounts

KERNEL, GROUPS = 31, 16
"""Of the convolutions that encode positions."""


@dataclass(frozen=True)
class CausalRun(Conditioning):
    """Inputs of one part of a request for the evaluations that pass over it."""

    given: Tensor
    """Prompt, encoded tokens and speaker of all rows, (rows, frames, 3 · bands)."""
    within: Tensor | None
    """(rows, frames), true within the items; ``None`` if all are complete."""
    seen: Tensor | None
    """Frames visible to each, (frames, all so far) or (rows, 1, frames, frames); ``None`` if all are."""
    first: int
    """Frames before this part."""
    memories: Sequence[Memory]
    """Past of each evaluation."""


class CausalPositions(nn.Module):
    """Two grouped convolutions over earlier frames that encode positions."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = (Modules([CausalConv(width, width, KERNEL, GROUPS)]) for _ in range(2))

    def forward(self, x: Tensor, memory: Memory) -> Tensor:
        """(rows, frames, width) to the same shape."""
        hidden = x.mT
        for (convolution,) in (self.conv1, self.conv2):
            hidden = F.mish(convolution(hidden, memory))
        return hidden.mT


class CausalInput(nn.Module):
    """State, prompt, encoded tokens and speaker to the layers' width."""

    def __init__(self, bands: int, width: int) -> None:
        super().__init__()
        self.proj = nn.Linear((1 + CONDITIONS) * bands, width)
        self.conv_pos_embed = CausalPositions(width)

    def forward(self, x: Tensor, memory: Memory) -> Tensor:
        """(rows, frames, 4 · bands) to (rows, frames, width)."""
        projected = self.proj(x)
        return self.conv_pos_embed(projected, memory) + projected


class CausalDiT(NamedLikeF5[CausalRun], FlowEstimator):
    """The velocity estimator."""

    def __init__(self, config: FlowConfig) -> None:
        super().__init__()
        self.config, sizes = config, config.estimator
        self.time_embed = TimeEmbedding(sizes.dim)
        self.input_embed = CausalInput(config.bands, sizes.dim)
        self.rotary_embed = RotaryEmbedding(sizes.dim_head)
        self.transformer_blocks = Modules(DiTBlock(sizes) for _ in range(sizes.depth))
        self.norm_out = AdaptiveNorm(sizes.dim, 2)
        self.proj_out = nn.Linear(sizes.dim, config.bands)

    @property
    def is_causal(self) -> bool:
        return True

    def add_interval(self) -> None:
        add_interval(self)

    def schedule(self, times: np.ndarray) -> tuple[Tensor, Tensor]:
        return self.tabulate(times)

    def begin(
        self,
        conditions: Tensor,
        times: tuple[Tensor, Tensor],
        first: int,
        memories: Sequence[Memory],
        within: Tensor | None = None,
    ) -> CausalRun:
        """See :class:`paretone.models.cosyvoice2.flow_networks.FlowEstimator`; ``times`` are the AdaLN vectors of all
        evaluations."""
        encoded, speaker, prompt = conditions.mT.chunk(CONDITIONS, dim=-1)
        count = conditions.shape[-1]
        seen = chunk_mask(first, count, self.config.chunk * FRAMES_PER_TOKEN, conditions.device)
        if within is not None:
            seen = within[:, None, None] if seen is None else within[:, None, None] & seen
        given = torch.cat([prompt, encoded, speaker], dim=-1)
        rotary = self.rotary_embed.table(first + count)
        return CausalRun(len(conditions), *times, rotary, None, given, within, seen, first, memories)

    def enter(self, x: Tensor, evaluation: int, run: CausalRun) -> Tensor:
        branches = len(run.given) // len(x)
        return self.input_embed(torch.cat([x.repeat(branches, 1, 1), run.given], dim=-1), run.memories[evaluation])

    def attend(self, index: int, entering: Tensor, evaluation: int, run: CausalRun) -> Tensor:
        attention: SelfAttention = self.transformer_blocks[index].attn
        to_query, to_key, to_value = attention.inputs

        def headed(x: Tensor, projection: nn.Linear) -> Tensor:
            return projection(x).unflatten(-1, (attention.heads, -1))

        def turned(x: Tensor, first: int) -> Tensor:
            table = run.rotary[first : first + x.shape[1]]
            return rotate(x, table, attention.rotary_heads).transpose(1, 2)

        def keys_and_values(part: Tensor, first: int) -> tuple[Tensor, Tensor]:
            return turned(headed(part, to_key), first), headed(part, to_value).transpose(1, 2)

        key, value = run.memories[evaluation].projected(attention, entering, keys_and_values)
        query = turned(headed(entering, to_query), run.first)
        mixed = F.scaled_dot_product_attention(query, key, value, run.seen)
        output = attention.output(mixed.transpose(1, 2).flatten(-2))
        return output if run.within is None else output.masked_fill(~run.within[..., None], 0)

    def leave(self, hidden: Tensor, entered: Tensor, evaluation: int, run: CausalRun) -> Tensor:
        scale, shift = run.final_modulations[evaluation]
        return self.proj_out(modulation(shift, scale)(hidden))

    def at_once(self, states: Tensor, conditions: Tensor, times: Tensor, within: Tensor) -> Tensor:
        empty = states.new_empty(0)
        run = self.begin(conditions, (empty, empty), 0, [Memory(closing=True)], within)
        hidden, final = self.pass_layers(
            self.enter(states.mT, 0, run), times, lambda index, entering: self.attend(index, entering, 0, run)
        )
        scale, shift = final.unbind(1)
        return self.proj_out(modulate_items(hidden, shift, scale)).mT

    def operations(self, frames: int, branches: int = BRANCHES, before: int = 0) -> OperationCounts:
        sizes = self.config.estimator
        inner, products = sizes.heads * sizes.dim_head, 2 * frames
        entering = (1 + CONDITIONS) * self.config.bands * sizes.dim + 2 * KERNEL * sizes.dim**2 // GROUPS
        return OperationCounts(
            attention=products * 4 * sizes.dim * inner + 4 * frames * (before + frames) * inner,
            feed_forward=products * 2 * sizes.ff_mult * sizes.dim**2,
            fixed=products * (entering + self.config.bands * sizes.dim),
            layers=sizes.depth,
            branches=branches,
        )


class TokenToMel(TokenFlow):
    """The weights of CosyVoice 3's flow."""

    config: FlowConfig

    def __init__(self, config: FlowConfig = FlowConfig()) -> None:
        super().__init__(config, config.bands)
        self.pre_lookahead_layer = LookAhead(config.bands, config.look_ahead_channels, config.look_ahead)

    def new_estimator(self) -> CausalDiT:
        return CausalDiT(self.config)

    def encode(self, tokens: Sequence[int], ahead: Sequence[int], first: int, memory: Memory) -> Tensor:
        following = self.embed(ahead) if ahead else None
        hidden = self.pre_lookahead_layer(self.embed(tokens), following, memory)
        return hidden.repeat_interleave(FRAMES_PER_TOKEN, dim=1).mT
