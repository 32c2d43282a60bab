"""Short passes of causal transformers recorded as CUDA graphs; see :mod:`paretone.models.kernels.graphs`."""

from __future__ import annotations

import math
from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.models.kernels.fused_causal import FusedLayer, FusedTransformer, turn
from paretone.models.kernels.graphs import GraphCache, Record
from paretone.models.networks.causal import NOTHING, CausalConfig, Probe
from paretone.sampling.cache import KeyValueCache

MOST_CACHES = 2
"""Most caches of a language model, for the lengths used last; recorded graphs belong to a cache."""
MOST_TOKENS = 16
"""Longer passes of a language model, such as reading a prompt, are not recorded: they come once."""


class GraphedTransformer(nn.Module):
    """A fused transformer whose short passes are recordings. Its caches are of lengths in multiples of ``bucket`` and
    used again: it serves one request at a time."""

    def __init__(self, plain: FusedTransformer, cache: GraphCache[_Step], bucket: int) -> None:
        super().__init__()
        self._plain, self._cache, self._bucket = (plain,), cache, bucket
        self._caches: OrderedDict[int, KeyValueCache] = OrderedDict()
        """By length; the one used last comes last."""

    @property
    def plain(self) -> FusedTransformer:
        """The plain computation, without recordings."""
        return self._plain[0]

    @property
    def config(self) -> CausalConfig:
        """Sizes."""
        return self.plain.config

    @property
    def fused_layers(self) -> tuple[FusedLayer, ...]:
        """The layers, in order."""
        return self.plain.fused_layers

    def rotation(self, positions: Tensor) -> Tensor:
        """As :meth:`paretone.models.kernels.fused_causal.FusedTransformer.rotation`."""
        return self.plain.rotation(positions)

    def cache(self, capacity: int, batch: int = 1) -> KeyValueCache:
        """An empty cache; the next one of its length takes its memory."""
        room = math.ceil(capacity / self._bucket) * self._bucket
        if room not in self._caches:
            while len(self._caches) >= MOST_CACHES:
                self._cache.forget(self._caches.popitem(last=False)[1])
            self._caches[room] = self.plain.cache(room, batch)
            # What was never written is masked, but must be numbers.
            self._caches[room].clear_memory()
        self._caches.move_to_end(room)
        self._caches[room].crop(0)
        return self._caches[room]

    def reach(self, positions: int) -> None:
        """As :meth:`paretone.models.kernels.fused_causal.FusedTransformer.reach`."""
        self.plain.reach(positions)

    def operations(self, tokens: int, context: int = 0) -> float:
        """Operations of a pass."""
        return self.plain.operations(tokens, context)

    def fill(self, embedded: Tensor, cache: KeyValueCache, positions: Tensor) -> None:
        """As :meth:`paretone.models.kernels.fused_causal.FusedTransformer.fill`."""
        self.plain.fill(embedded, cache, positions)

    @torch.inference_mode()
    def forward(
        self,
        embedded: Tensor,
        cache: KeyValueCache | None = None,
        positions: Tensor | None = None,
        probe: Probe | None = None,
        skip: frozenset[int] = NOTHING,
    ) -> Tensor:
        """As :meth:`paretone.models.kernels.fused_causal.FusedTransformer.forward`."""
        tokens = embedded.shape[1]
        looked_into = probe is not None or bool(skip)
        if cache is None or positions is None or looked_into or not 1 <= tokens <= MOST_TOKENS:
            return self.plain(embedded, cache, positions, probe, skip)
        if cache not in self._caches.values():
            return self.plain(embedded, cache, positions)
        end = cache.length + tokens
        seen = min(math.ceil(end / self._bucket) * self._bucket, cache.capacity)
        found = self._cache.find(
            ("language", id(self.plain), id(cache), tokens, seen),
            lambda: _Step(self.plain, self._cache.record, cache, seen, embedded, positions),
            f"a pass over {tokens} token{'s' if tokens > 1 else ''} within {seen}",
        )
        if found is None:
            return self.plain(embedded, cache, positions)
        hidden = found.hidden(embedded, cache.length, positions)
        cache.advance(tokens)
        return hidden


class _Step:
    """The recording of a pass over a few tokens, with all of the cache's first ``seen`` places in view and those after
    the tokens masked."""

    def __init__(
        self,
        transformer: FusedTransformer,
        record: Record,
        cache: KeyValueCache,
        seen: int,
        embedded: Tensor,
        positions: Tensor,
    ) -> None:
        config, device, tokens = transformer.config, transformer.device, embedded.shape[1]
        self._of = transformer, cache
        # Recording runs it: what it then writes into the cache must be what belongs there.
        self._embedded, self._positions = embedded.clone(), positions.clone()
        self._offsets = torch.arange(tokens, device=device)
        self._places = self._offsets + cache.length
        memory, keys, values = cache.first(seen)
        every = torch.arange(seen, device=device)
        groups = config.heads // config.key_value_heads
        heads, key_heads, width = config.heads, config.key_value_heads, config.head_width

        def run() -> Tensor:
            rotation = transformer.rotation(self._positions)
            late = every[None] > self._places[:, None]
            mask = torch.zeros(tokens, seen, dtype=self._embedded.dtype, device=device)
            mask = mask.masked_fill(late, -math.inf).repeat(groups, 1)
            hidden = self._embedded.reshape(-1, config.hidden)
            for index, layer in enumerate(transformer.fused_layers):
                projected = layer.queries_keys_values(layer.attention_norm(hidden)).view(1, tokens, -1, width)
                turn(projected.narrow(2, 0, heads + key_heads), rotation)
                query, both = projected.split((heads, 2 * key_heads), dim=2)
                memory[index].index_copy_(1, self._places, both)
                query = query.transpose(1, 2).reshape(1, key_heads, -1, width)
                mixed = F.scaled_dot_product_attention(query, keys[index], values[index], mask)
                mixed = mixed.reshape(1, heads, tokens, width)
                hidden = layer.output(mixed.transpose(1, 2).reshape(-1, heads * width)) + hidden
                gate, up = layer.gate_up(layer.feed_forward_norm(hidden)).chunk(2, dim=-1)
                hidden = layer.down(F.silu(gate) * up) + hidden
            return transformer.final_norm(hidden).view_as(self._embedded)

        self._replay, self._output = record(run)

    def hidden(self, embedded: Tensor, length: int, positions: Tensor) -> Tensor:
        """The hidden states of ``embedded`` after ``length`` others."""
        self._embedded.copy_(embedded)
        torch.add(self._offsets, length, out=self._places)
        self._positions.copy_(positions)
        self._replay()
        return self._output.clone()
