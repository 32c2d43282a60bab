"""F5-TTS's diffusion transformer: from noised mel, prompt mel, text and time to the velocity of every branch.

A sampling run first :meth:`DiT.begin`\\ s: everything that does not depend on the state is computed once. Each
evaluation then enters, passes the layers and leaves; :meth:`DiT.velocity` is the three together. Source: the official
``f5_tts/model/backbones/dit.py`` (1.1.20).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from engine.models.base import OperationCounts
from engine.models.f5.config import BackboneConfig
from engine.models.f5.layers import (
    AdaptiveNorm,
    Attention,
    FeedForward,
    InputEmbedding,
    RotaryEmbedding,
    TextEmbedding,
    TimeEmbedding,
    modulate,
)
from engine.sampling.skipping import COMPUTE, LayerDuty, LayerMemory, advance

Look = Callable[[int, str, Tensor], None]
"""Called with layer, name and value of an intermediate result: ``attention_input``, ``attention``, ``feed_forward``,
``output``."""


@dataclass(frozen=True)
class Conditioning:
    """What one sampling run's evaluations share. Rows are branch-major: all conditional items, then all
    unconditional."""

    branches: int
    constant: tuple[Tensor, Tensor]
    """Shares of the input projection and of its first convolution that do not depend on the state."""
    modulations: Tensor
    """(evaluations, layers, 6, width): shift, scale, gate of attention, then of the feed-forward."""
    final_modulations: Tensor
    """(evaluations, 2, width): scale, shift."""
    rotary: Tensor
    mask: Tensor | None
    """(rows, frames) true where a frame is within its item's duration; ``None`` for a single item."""


class DiTBlock(nn.Module):
    """One layer's parameters; how they are used stands in :meth:`DiT.layer`."""

    def __init__(self, config: BackboneConfig) -> None:
        super().__init__()
        self.attn_norm = AdaptiveNorm(config.dim, 6)
        self.attn = Attention(
            config.dim,
            config.heads,
            config.dim_head,
            config.qk_norm is not None,
            config.pe_attn_head,
        )
        self.ff = FeedForward(config.dim, config.ff_mult)


class DiT(nn.Module):
    """The backbone of F5-TTS. ``state_dict`` has the official keys, without their ``transformer.`` prefix."""

    def __init__(self, config: BackboneConfig) -> None:
        super().__init__()
        self.config = config
        self.time_embed = TimeEmbedding(config.dim)
        self.text_embed = TextEmbedding(
            config.text_num_embeds,
            config.text_dim,
            config.conv_layers,
            config.text_mask_padding,
            config.text_embedding_average_upsampling,
        )
        self.input_embed = InputEmbedding(config.mel_dim, config.text_dim, config.dim)
        self.rotary_embed = RotaryEmbedding(config.dim_head)
        self.transformer_blocks = nn.ModuleList(DiTBlock(config) for _ in range(config.depth))
        self.long_skip_connection = (
            nn.Linear(2 * config.dim, config.dim, bias=False) if config.long_skip_connection else None
        )
        self.norm_out = AdaptiveNorm(config.dim, 2)
        self.proj_out = nn.Linear(config.dim, config.mel_dim)
        self._tabulated: tuple[bytes, tuple[Tensor, Tensor]] | None = None

    @property
    def layers(self) -> int:
        """Number of layers."""
        return len(self.transformer_blocks)

    def begin(
        self,
        prompt: Tensor,
        ids: Tensor,
        times: np.ndarray,
        guided: bool,
        durations: Sequence[int] | None = None,
    ) -> Conditioning:
        """Prepare a sampling run.

        ``prompt`` is (batch, frames, bands), zero after each prompt; ``ids`` (batch, tokens) with −1 padding; ``times``
        those of all evaluations, in order; ``durations`` the items' frames when they differ.
        """
        frames = prompt.shape[1]
        branches = 2 if guided else 1
        mask = None
        if durations is not None and len(durations) > 1:
            limits = torch.as_tensor(durations, device=prompt.device)
            mask = torch.arange(frames, device=prompt.device)[None] < limits[:, None]
        texts = [self.text_embed(ids, frames, drop, mask) for drop in (False, True)[:branches]]
        prompts = [prompt, torch.zeros_like(prompt)][:branches]
        mask = None if mask is None else mask.repeat(branches, 1)
        constant = self.input_embed.constant(torch.cat(prompts), torch.cat(texts), mask)
        return Conditioning(
            branches,
            constant,
            *self._tabulate(times),
            self.rotary_embed.table(frames),
            mask,
        )

    def _tabulate(self, times: np.ndarray) -> tuple[Tensor, Tensor]:
        """The AdaLN vectors of a schedule: they depend on time only, so they are computed once for all runs on it."""
        weight = self.proj_out.weight
        key = times.tobytes() + f"{weight.device}{weight.dtype}".encode()
        if self._tabulated is None or self._tabulated[0] != key:
            vectors = self.time_embed(torch.from_numpy(times).to(weight.device, weight.dtype))
            layers = torch.stack(
                [block.attn_norm.table(vectors) for block in self.transformer_blocks],
                dim=1,
            )
            self._tabulated = key, (layers, self.norm_out.table(vectors))
        return self._tabulated[1]

    def enter(self, x: Tensor, run: Conditioning) -> Tensor:
        """The state (batch, frames, bands) to the first layer's input (rows, frames, width)."""
        return self.input_embed(x, run.constant, run.mask)

    def layer(
        self,
        index: int,
        hidden: Tensor,
        evaluation: int,
        run: Conditioning,
        duty: LayerDuty = COMPUTE,
        memory: LayerMemory | None = None,
        look: Look | None = None,
        in_place: bool = False,
    ) -> Tensor:
        """One layer, (rows, frames, width) to the same. ``hidden`` is overwritten when ``in_place``, else left as it
        was."""
        block = self.transformer_blocks[index]
        shift, scale, gate, shift_forward, scale_forward, gate_forward = run.modulations[evaluation, index]

        def attention(rows: Tensor) -> Tensor:
            normed = modulate(rows, shift, scale)
            output = block.attn(normed, run.rotary, run.mask)
            if look is not None:
                look(index, "attention_input", normed)
                look(index, "attention", output)
            return output

        def feed_forward(rows: Tensor) -> Tensor:
            output = block.ff(modulate(rows, shift_forward, scale_forward))
            if look is not None:
                look(index, "feed_forward", output)
            return output

        attention_memory = None if memory is None else memory.attention
        forward_memory = None if memory is None else memory.feed_forward
        hidden = advance(
            hidden,
            gate,
            attention,
            duty.attention,
            attention_memory,
            run.branches,
            in_place,
        )
        hidden = advance(
            hidden,
            gate_forward,
            feed_forward,
            duty.feed_forward,
            forward_memory,
            run.branches,
            in_place=not hidden.requires_grad,
        )
        if look is not None:
            look(index, "output", hidden)
        return hidden

    def leave(self, hidden: Tensor, entered: Tensor, evaluation: int, run: Conditioning) -> Tensor:
        """The last layer's output to velocities (rows, frames, bands); ``entered`` is what :meth:`enter` gave."""
        if self.long_skip_connection is not None:
            hidden = self.long_skip_connection(torch.cat([hidden, entered], dim=-1))
        scale, shift = run.final_modulations[evaluation]
        return self.proj_out(modulate(hidden, shift, scale))

    def velocity(
        self,
        x: Tensor,
        evaluation: int,
        run: Conditioning,
        duties: Sequence[LayerDuty] | None = None,
        memory: Sequence[LayerMemory] | None = None,
        look: Look | None = None,
    ) -> Tensor:
        """The velocities of all branches, (rows, frames, bands), at one of the run's evaluations."""
        entered = hidden = self.enter(x, run)
        for index in range(self.layers):
            duty, layer_memory = (COMPUTE, None) if duties is None else (duties[index], memory[index])
            # Nobody may hold on to what is overwritten: those who look do, and so does a long skip connection.
            in_place = look is None and (index > 0 or self.long_skip_connection is None)
            hidden = self.layer(index, hidden, evaluation, run, duty, layer_memory, look, in_place)
        return self.leave(hidden, entered, evaluation, run)

    def attention_map_inputs(self, index: int, attention_input: Tensor) -> tuple[Tensor, Tensor]:
        """The unsplit, unrotated queries and keys of a layer from its modulated input, each (rows, frames, inner
        width): what DiTReducio's check phase looks at."""
        attention = self.transformer_blocks[index].attn
        return attention.to_q(attention_input), attention.to_k(attention_input)

    def attention_maps(self, index: int, attention_input: Tensor, run: Conditioning, largest: int) -> Tensor:
        """Attention of a layer from its modulated input, mean over heads: (rows, queries, keys), rows summing to one.

        Longer sequences are pooled to at most ``largest``: queries by the mean, keys by the sum. One head at a time,
        so that memory grows with one map only.
        """
        attention = self.transformer_blocks[index].attn
        query, key, _ = attention.queries_keys_values(attention_input, run.rotary)
        frames = query.shape[2]
        width = -(-frames // largest)
        pooled = -(-frames // width)
        maps = query.new_zeros(len(query), pooled, pooled)
        counts = torch.full((pooled,), float(width), device=query.device)
        counts[-1] = frames - width * (pooled - 1)
        for head in range(attention.heads):
            scores = query[:, head] @ key[:, head].transpose(1, 2) / query.shape[-1] ** 0.5
            weights = nn.functional.pad(scores.softmax(dim=-1), (0, pooled * width - frames) * 2)
            maps += weights.unflatten(2, (pooled, width)).sum(3).unflatten(1, (pooled, width)).sum(2)
        return maps / (counts[None, :, None] * attention.heads)

    def fuse(self) -> None:
        """Prepare for inference: see :meth:`Attention.fuse` and :meth:`ConvPositionEmbedding.fuse`."""
        self.input_embed.conv_pos_embed.fuse()
        for block in self.transformer_blocks:
            block.attn.fuse()

    def operations(self, frames: int, guided: bool) -> OperationCounts:
        """What one evaluation costs at this length, for one item."""
        config = self.config
        inner = config.heads * config.dim_head
        products = 2 * frames
        branches = 2 if guided else 1
        return OperationCounts(
            attention=products * 4 * config.dim * inner + 4 * frames * frames * inner,
            feed_forward=products * 2 * config.ff_mult * config.dim**2,
            fixed=self.input_embed.operations(frames, branches) + products * config.mel_dim * config.dim,
            layers=config.depth,
            branches=branches,
        )
