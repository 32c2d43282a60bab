"""Common part of several families' diffusion transformers: layers whose norms are modulated by time (AdaLN-zero).

A sampling run begins with the family's own ``begin``, which computes everything independent of the state. Each
evaluation then enters, passes the layers, leaves and is projected: :meth:`DiffusionTransformer.velocity`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from paretone.models.networks.layers import (
    AdaptiveNorm,
    FeedForward,
    SelfAttention,
    TimeEmbedding,
    modulate_items,
    modulation,
    sinusoids,
)
from paretone.sampling.flow import Probe
from paretone.sampling.skipping import COMPUTE, LayerMemory, LayerPlan, apply_module


@dataclass(frozen=True)
class Conditioning:
    """State shared by the evaluations of a sampling run. Rows: all items of a branch, then of the next."""

    branches: int
    modulations: Tensor
    """(evaluations, layers, 6, width): shift, scale, gate of attention, then of the feed-forward."""
    final_modulations: Tensor
    """(evaluations, 2, width): scale, shift."""
    rotary: Tensor
    mask: Tensor | None
    """(rows, frames), true for frames within their item's duration; ``None`` for a single item."""
    lengths: tuple[int, ...] | None = field(default=None, kw_only=True)
    """Frames of sequences that are one after another in one row, which attention keeps apart; ``None``: one each."""


Run = TypeVar("Run", bound=Conditioning)
"""Result of a family's own ``begin``."""


class LayerParts(NamedTuple):
    norm: AdaptiveNorm
    attention: SelfAttention
    feed_forward: FeedForward


class DiffusionTransformer(nn.Module, Generic[Run]):
    """The layers and their evaluation. A family's own class holds the parameters under their official names."""

    def __init__(self) -> None:
        super().__init__()
        self._tabulated: tuple[bytes, tuple[Tensor, Tensor]] | None = None

    @property
    def keeps_entered(self) -> bool:
        """Whether :meth:`leave` needs the result of :meth:`enter`."""
        return False

    @property
    def is_causal(self) -> bool:
        """Whether frames see only part of the others, so that attention must go through :meth:`attend`."""
        return False

    @property
    def layers(self) -> int:
        raise NotImplementedError

    @property
    def time_embedding(self) -> TimeEmbedding:
        raise NotImplementedError

    @property
    def final_norm(self) -> AdaptiveNorm:
        """The norm before the output projection, with a scale and a shift."""
        raise NotImplementedError

    def block(self, index: int) -> LayerParts:
        raise NotImplementedError

    @property
    def blocks(self) -> tuple[LayerParts, ...]:
        return tuple(map(self.block, range(self.layers)))

    def enter(self, x: Tensor, evaluation: int, run: Run) -> Tensor:
        """State (batch, frames, bands) to the first layer's input (rows, frames, width)."""
        raise NotImplementedError

    def leave(self, hidden: Tensor, entered: Tensor, evaluation: int, run: Run) -> Tensor:
        """Last layer's output and :meth:`enter`'s result to what DiTReducio calibrates on, (rows, frames, …)."""
        raise NotImplementedError

    def project(self, left: Tensor) -> Tensor:
        """Output of :meth:`leave` to velocities (rows, frames, bands)."""
        return left

    def tabulate(self, times: np.ndarray) -> tuple[Tensor, Tensor]:
        """AdaLN vectors of a schedule. They depend only on time, so they are cached for all runs on it."""
        weight = self.final_norm.linear.weight
        key = times.tobytes() + f"{weight.device}{weight.dtype}".encode()
        found = self._tabulated  # Another thread may replace it.
        if found is None or found[0] != key:
            vectors = self.time_embedding.of_schedule(torch.from_numpy(times).to(weight.device, weight.dtype))
            found = self._tabulated = key, self.modulations(vectors)
        return found[1]

    def modulations(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """AdaLN vectors at time vectors (n, width): layers' (n, layers, 6, width), the final norm's (n, 2, width)."""
        layers = torch.stack([block.norm.table(vectors) for block in self.blocks], dim=1)
        return layers, self.final_norm.table(vectors)

    def attend(self, index: int, entering: Tensor, evaluation: int, run: Run) -> Tensor:
        """Attention of a layer over its modulated input (rows, frames, width), to the same shape."""
        return self.block(index).attention(entering, run.rotary, run.mask, run.lengths)

    def layer(
        self,
        index: int,
        hidden: Tensor,
        evaluation: int,
        run: Run,
        plan: LayerPlan = COMPUTE,
        memory: LayerMemory | None = None,
        probe: Probe | None = None,
        in_place: bool = False,
    ) -> Tensor:
        """One layer, (rows, frames, width) to the same shape. ``in_place``: overwrites ``hidden``."""
        block = self.block(index)
        shift, scale, gate, shift_forward, scale_forward, gate_forward = run.modulations[evaluation, index]
        normed, normed_forward = modulation(shift, scale), modulation(shift_forward, scale_forward)

        def attention(rows: Tensor) -> Tensor:
            entering = normed(rows)
            output = self.attend(index, entering, evaluation, run)
            if probe is not None:
                probe(index, "attention_input", entering)
                probe(index, "attention", output)
            return output

        def feed_forward(rows: Tensor) -> Tensor:
            output = block.feed_forward(normed_forward(rows))
            if probe is not None:
                probe(index, "feed_forward", output)
            return output

        # Without a probe or mask, a module's complete output is not needed.
        unseen = probe is None and run.mask is None and not self.is_causal

        def at_once(
            module: SelfAttention | FeedForward, add_to: Callable[[Tensor, Tensor], None]
        ) -> Callable[[Tensor, Tensor], None] | None:
            return add_to if unseen and module.is_packed(hidden) else None

        attention_memory, forward_memory = (None, None) if memory is None else (memory.attention, memory.feed_forward)
        mixing = partial(block.attention.add_to, norm=normed, rotary=run.rotary, lengths=run.lengths)
        adding = at_once(block.attention, mixing)
        hidden = apply_module(hidden, gate, attention, plan.attention, attention_memory, run.branches, in_place, adding)
        in_place = not hidden.requires_grad
        adding = at_once(block.feed_forward, partial(block.feed_forward.add_to, norm=normed_forward))
        hidden = apply_module(
            hidden, gate_forward, feed_forward, plan.feed_forward, forward_memory, run.branches, in_place, adding
        )
        if probe is not None:
            probe(index, "output", hidden)
        return hidden

    def velocity(
        self,
        x: Tensor,
        evaluation: int,
        run: Run,
        plans: Sequence[LayerPlan] | None = None,
        memory: Sequence[LayerMemory] | None = None,
        probe: Probe | None = None,
    ) -> Tensor:
        """Velocities of all branches, (rows, frames, bands), at one evaluation of the run."""
        return self.project(self.evaluate(x, evaluation, run, plans, memory, probe))

    def evaluate(
        self,
        x: Tensor,
        evaluation: int,
        run: Run,
        plans: Sequence[LayerPlan] | None = None,
        memory: Sequence[LayerMemory] | None = None,
        probe: Probe | None = None,
    ) -> Tensor:
        """One evaluation without the projection: the result of :meth:`leave`, which calibration compares and guides."""
        entered = hidden = self.enter(x, evaluation, run)
        for index in range(self.layers):
            plan = COMPUTE if plans is None else plans[index]
            layer_memory = None if plans is None or memory is None else memory[index]
            # In place only if nobody keeps the tensor: a probe does, and so does ``entered`` if needed later.
            in_place = probe is None and (index > 0 or not self.keeps_entered)
            hidden = self.layer(index, hidden, evaluation, run, plan, layer_memory, probe, in_place)
        return self.leave(hidden, entered, evaluation, run)

    @torch.inference_mode()
    def velocities_together(self, calls: Sequence[tuple[Tensor, int, Run]]) -> list[Tensor]:
        """:meth:`velocity` of the state, evaluation and run of each of ``calls``. Runs at one time are computed at
        once, their frames one after another: only attention keeps them apart."""
        found: dict[int, Tensor] = {}
        groups: dict[tuple[int, int], list[int]] = {}
        for place, (_, evaluation, run) in enumerate(calls):
            groups.setdefault((evaluation, run.modulations.data_ptr()), []).append(place)
        for places in groups.values():
            if len(places) == 1:
                found[places[0]] = self.velocity(*calls[places[0]])
                continue
            some = [calls[place] for place in places]
            entered = [self.enter(*one) for one in some]
            lengths = tuple(one.shape[1] for one in entered for _ in range(len(one)))
            rotary = torch.cat([run.rotary for one, (_, _, run) in zip(entered, some, strict=True) for _ in one])
            _, evaluation, run = some[0]
            joined = replace(run, branches=1, rotary=rotary, mask=None, lengths=lengths)
            first = hidden = torch.cat([one.flatten(0, 1) for one in entered])[None]
            for index in range(self.layers):
                hidden = self.layer(index, hidden, evaluation, joined, in_place=index > 0 or not self.keeps_entered)
            left = self.project(self.leave(hidden, first, evaluation, joined))[0]
            rows = left.split([len(one) * one.shape[1] for one in entered])
            for place, one, own in zip(places, entered, rows, strict=True):
                found[place] = own.unflatten(0, one.shape[:2])
        return [found[place] for place in range(len(calls))]

    def pass_layers(
        self, entered: Tensor, times: Tensor, attend: Callable[[int, Tensor], Tensor]
    ) -> tuple[Tensor, Tensor]:
        """All layers as in training, with gradients: each item has its own time, (items,), or other input to embed.
        ``entered`` is (items, frames, width); ``attend`` is the attention of a layer, by its number, over its modulated
        input. Returns the last layer's output before the final norm, and the final norm's scale and shift, (items, 2,
        1, width)."""
        hidden, vectors = entered, self.time_embedding(times)
        for index, block in enumerate(self.blocks):
            parts = block.norm.table(vectors)[:, :, None]
            shift, scale, gate, shift_forward, scale_forward, gate_forward = parts.unbind(1)
            hidden = hidden + gate * attend(index, modulate_items(hidden, shift, scale))
            hidden = hidden + gate_forward * block.feed_forward(modulate_items(hidden, shift_forward, scale_forward))
        return hidden, self.final_norm.table(vectors)[:, :, None]

    def attention_map_inputs(self, index: int, attention_input: Tensor) -> tuple[Tensor, Tensor]:
        """Unsplit, unrotated queries and keys of a layer from its modulated input, each (rows, frames, inner width)."""
        query, key, _ = self.block(index).attention.inputs
        attention_input = attention_input.to(query.weight.dtype)
        return query(attention_input), key(attention_input)

    def heads(self, index: int) -> int:
        return self.block(index).attention.heads

    def attention_maps(self, index: int, attention_input: Tensor, run: Run, largest: int) -> Tensor:
        """Attention of a layer from its modulated input, averaged over heads: (rows, queries, keys), summing to one.
        Longer sequences are pooled to at most ``largest``: queries by the mean, keys by the sum. Heads are processed
        one at a time, so that memory holds only one map."""
        attention = self.block(index).attention
        attention_input = attention_input.to(attention.inputs[0].weight.dtype)
        query, key, _ = (part.float() for part in attention.queries_keys_values(attention_input, run.rotary))
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
        """Prepare for inference: see :meth:`SelfAttention.fuse` and :meth:`FeedForward.fuse`."""
        for block in self.blocks:
            block.attention.fuse()
            block.feed_forward.fuse()


# Time embedding of a network for the average velocity over an interval of time.
#
# Such a network has one more perceptron, whose output for the interval's length r − t is added to the vector of its
# start t. It is built like the official time perceptron, and its output is zero at first, so that the network starts
# equal to its source (arXiv 2510.07979).


def intervals(times: Tensor) -> Tensor:
    """Intervals (n, 2) from each of ``times`` (n,) to the next, the last one to speech."""
    return torch.stack([times, torch.cat([times[1:], times.new_ones(1)])], dim=-1)


class IntervalEmbedding(TimeEmbedding):
    """Intervals (n, 2), each from t to r, to vectors (n, width); times (n,) are intervals of length zero."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.interval_mlp = nn.Sequential(nn.Linear(self.sinusoid_width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, times: Tensor) -> Tensor:
        starts, ends = times.unbind(-1) if times.ndim == 2 else (times, times)
        lengths = sinusoids(1000 * (ends - starts), self.sinusoid_width).to(starts.dtype)
        return super().forward(starts) + self.interval_mlp(lengths)

    def of_schedule(self, times: Tensor) -> Tensor:
        return self(intervals(times))


def add_interval(backbone: DiffusionTransformer) -> None:
    """Make ``backbone`` accept intervals, without effect until the new perceptron is trained."""
    own = backbone.time_embedding
    name = next(name for name, child in backbone.named_children() if child is own)
    first = own.time_mlp[0]
    assert isinstance(first, nn.Linear)
    embedding = IntervalEmbedding(first.out_features).to(first.weight.device, first.weight.dtype)
    embedding.time_mlp = own.time_mlp
    last = embedding.interval_mlp[2]
    assert isinstance(last, nn.Linear)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    setattr(backbone, name, embedding)
