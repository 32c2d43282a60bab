"""A pass through a small masked network as one call of machine code, which numba compiles for the processor it runs on.

Half of the operators of such a pass take less time than calling them, and its products are no faster in torch. Here a
pass is one function on one thread, without Python's lock, so that two texts at once do not wait for each other either.
Products, norms and attention are those of :mod:`paretone.models.kernels.one_call` and
:mod:`paretone.models.kernels.compiled_attention`. Results equal those of
:class:`paretone.models.kernels.fused_masked.FusedMasked` up to rounding, and a row's does not depend on rows of other
branches, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from paretone.models.kernels.compiled_attention import attend_within
from paretone.models.kernels.few_rows import BlockProduct
from paretone.models.kernels.fused_causal import QuickNorm
from paretone.models.kernels.machine_code import BLOCK, WIDE
from paretone.models.kernels.masked_pass import FusedLayer, LayerSpan, PrefixMemory, Rows, Wanted
from paretone.models.kernels.one_call import add_product, in_blocks, layers_of, norm, padded
from paretone.models.networks.causal import CausalConfig
from paretone.sampling.compiled_tokens import ONE, compiled, exponential

__all__ = ["BLOCK", "WIDE", "MaskedCall"]
TOGETHER = 96
"""Rows whose wide intermediate results stay in the processor's cache."""


@compiled
def _project(hidden, layer, layers, projected):
    """Queries, keys and values of all rows, normalised, not rotated."""
    width, size = layers.width, layers.norms.shape[2]
    normed = np.empty((TOGETHER, size), np.float32)
    for begin in range(0, len(hidden), TOGETHER):
        some = projected[begin : begin + TOGETHER]
        some[:] = 0
        for row in range(len(some)):
            norm(hidden[begin + row], 0, layers.norms[layer, 0], layers.epsilon, normed[row])
        add_product(some, normed[: len(some)], layers.weights[layer, 0], size, False, layers.kernels)
        for row in range(len(some)):
            for head in range(layers.heads + layers.key_heads):
                weight = layers.norms_of_heads[layer, head]
                norm(some[row], head * width, weight, layers.epsilon_of_heads, some[row])


@compiled
def _rotate(projected, cosines, sines, layers):
    """Rotate pairs whose parts are in the first and second half of a head; ``sines`` are negative in the first."""
    half = layers.width // 2
    for row in range(len(projected)):
        for head in range(layers.heads + layers.key_heads):
            line = projected[row, head * layers.width : (head + 1) * layers.width]
            for place in range(half):
                one, other = line[place], line[half + place]
                line[place] = one * cosines[row, place] + other * sines[row, place]
                line[half + place] = other * cosines[row, half + place] + one * sines[row, half + place]


@compiled
def _feed_forward(hidden, layer, layers):
    size, inner = layers.norms.shape[2], layers.feed_forward
    normed, active = np.empty((TOGETHER, size), np.float32), np.empty((TOGETHER, inner), np.float32)
    wide = np.empty((TOGETHER, padded(2 * inner)), np.float32)
    for begin in range(0, len(hidden), TOGETHER):
        some = hidden[begin : begin + TOGETHER]
        rows = len(some)
        wide[:] = 0
        for row in range(rows):
            norm(some[row], 0, layers.norms[layer, 1], layers.epsilon, normed[row])
        add_product(wide[:rows], normed[:rows], layers.weights[layer, 2], size, False, layers.kernels)
        for row in range(rows):
            for place in range(inner):
                gate, up = wide[row, place], wide[row, inner + place]
                active[row, place] = gate / (ONE + exponential(-gate)) * up
        add_product(some, active[:rows], layers.weights[layer, 3], inner, False, layers.kernels)


@compiled
def _run(hidden, projected, cosines, sines, parts, wanted, kept, span, added, layers):
    """``hidden`` (rows, whole blocks) are the embeddings, and ``projected`` (rows, whole blocks) what the first layer
    makes of them; ``parts`` (branches, 2): wanted rows and rows; ``wanted``: rows whose last hidden states are
    returned.

    ``kept`` (layers, prefix, keys and values) are those of the first rows; they are written, unless ``projected`` has
    as many rows before those of ``hidden`` for them. ``span``: the first layer that may be left out, the one after
    them, and whether they are; ``added`` (rows, whole blocks) is their change of ``hidden``."""
    last, width, heads = len(layers.weights) - 1, layers.width, layers.heads
    before, keys, asked, entered = len(projected) - len(hidden), heads * width, np.empty_like(parts), hidden
    own, prefix = projected[before:], kept.shape[1]
    queries = own
    for branch in range(len(parts)):
        asked[branch] = parts[branch, 1]
    for layer in range(last + 1):
        if layer == span[0]:
            entered = hidden.copy()
            if span[2]:
                hidden += added[: len(hidden)]
        if span[2] and span[0] <= layer < span[1]:
            continue
        if layer > 0:
            _project(hidden, layer, layers, own)
        _rotate(own, cosines, sines, layers)
        if before:
            projected[:before, keys : keys + kept.shape[2]] = kept[layer]
        elif prefix:
            kept[layer] = own[:prefix, keys : keys + kept.shape[2]]
        if layer == last:
            hidden, queries, asked = hidden[wanted], own[wanted], parts.copy()
        asked[0, 1] = parts[0, 1] + before
        mixed = np.zeros((len(queries), heads * width), np.float32)
        attend_within(queries, projected, mixed, (heads, layers.key_heads, width), asked, layers.kernels[0])
        add_product(hidden, mixed, layers.weights[layer, 1], heads * width, False, layers.kernels)
        _feed_forward(hidden, layer, layers)
        if layer == span[1] - 1:
            added[:] = hidden - entered
    return hidden


class MaskedCall:
    """A pass through the layers, which keeps its own copy of their weights."""

    def __init__(self, config: CausalConfig, weights: Iterable[Sequence[Tensor]], layers: Sequence[FusedLayer]) -> None:
        """``weights`` of each of the ``layers``: of queries, keys and values; of the output; of gate and up; of
        down."""
        self._products = [[BlockProduct(one, half=False) for one in some] for some in weights]
        norms = (one for layer in layers for one in (layer.attention_norm, layer.feed_forward_norm))
        of_layers, of_heads = (
            [QuickNorm(one, config.epsilon) for one in some] for some in (norms, (one.turned_norm for one in layers))
        )
        self._layers = layers_of(config, self._products, of_layers, of_heads)

    def __call__(
        self,
        hidden: Tensor,
        projected: tuple[Tensor, Tensor],
        rows: Rows,
        wanted: Wanted,
        memory: PrefixMemory | None = None,
        span: LayerSpan | None = None,
    ) -> Tensor:
        """As :meth:`paretone.models.kernels.fused_masked.FusedMasked.forward` before its last norm."""
        # The parts share out all rows, one after another.
        asked = [torch.arange(part.start, part.stop)[want] for part, want in zip(rows.parts, wanted, strict=True)]
        counts = [(len(some), part.stop - part.start) for some, part in zip(asked, rows.parts, strict=True)]
        cosines, sines = (np.ascontiguousarray(one.flatten(1).numpy()) for one in (rows.cosines, rows.sines))
        first, stream = in_blocks(torch.cat([one.flatten(1) for one in projected], dim=1)), in_blocks(hidden)
        left_out, added = (-1, -1, 0), np.empty((0, stream.shape[1]), np.float32)
        if span is not None:
            left_out = span.layers.start, span.layers.stop, int(not span.recording)
            added = np.empty_like(stream) if span.recording else in_blocks(span.last(len(hidden)))
        kept = np.empty((len(self._products), 0, 0), np.float32)
        if memory is not None and memory.recording:
            kept = np.empty((len(kept), memory.rows, 2 * projected[1].shape[1:].numel()), np.float32)
        elif memory is not None:
            each = [torch.cat([one.flatten(1) for one in memory.kept[layer]], dim=1) for layer in range(len(kept))]
            kept = torch.stack(each).numpy()
            first = np.concatenate([np.empty((memory.rows, first.shape[1]), np.float32), first])
        places = torch.cat(asked).numpy()
        found = _run(stream, first, cosines, sines, np.array(counts), places, kept, left_out, added, self._layers)
        if span is not None and span.recording:
            span.added = torch.from_numpy(added)[:, : hidden.shape[1]]
        if memory is not None and memory.recording:
            for layer, both in enumerate(torch.from_numpy(kept).unflatten(-1, (2, *projected[1].shape[1:]))):
                memory.kept[layer] = both[:, 0], both[:, 1]
        return torch.from_numpy(found)[:, : hidden.shape[1]]
