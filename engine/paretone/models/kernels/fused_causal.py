"""A causal transformer for decoding: :class:`paretone.models.networks.causal.CausalTransformer` in fewer operators.

At one token per pass, the time goes into reading weights and calling operators. Hence one product for queries, keys and
values and one for gate and up; float16 weights are read as such; rows of queries and keys are ordered so that a
rotation is one complex product with a table; masks are slices of one tensor. Results are equal up to rounding.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.models.files.layer_importance import require_layers
from paretone.models.kernels.few_rows import BlockProduct, Product, machine_code, product
from paretone.models.networks.causal import (
    NOTHING,
    CausalConfig,
    CausalLayer,
    CausalTransformer,
    Probe,
    cache_for,
    rotary_frequencies,
)
from paretone.sampling.cache import KeyValueCache

if TYPE_CHECKING:
    from paretone.models.kernels.one_call import Layers, Place

_reaching = threading.Lock()


class QuickNorm:
    """RMS norm of rows (…, width), equal to :class:`torch.nn.RMSNorm`."""

    def __init__(self, weight: Tensor, epsilon: float) -> None:
        """``weight`` is (…, width)."""
        self.weight, self.epsilon = weight, epsilon

    @classmethod
    def of(cls, norm: nn.RMSNorm) -> QuickNorm:
        return cls(norm.weight.detach().clone(), norm.eps or 0.0)

    def __call__(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, self.epsilon)

    def of_heads(self, x: Tensor) -> None:
        """Normalise each head's queries and keys in place, (…, heads, head_width), by a weight of that shape."""
        x.copy_(F.rms_norm(x, x.shape[-1:], None, self.epsilon) * self.weight)


POSITIONS = 4096
"""Initial number of positions with tabulated rotations."""


@dataclass(frozen=True)
class FusedLayer:
    attention_norm: QuickNorm
    queries_keys_values: Product
    output: Product
    feed_forward_norm: QuickNorm
    gate_up: Product
    down: Product
    heads_norm: QuickNorm | None = None
    """Of queries and keys, before they are rotated (Qwen3)."""

    @classmethod
    def of(cls, layer: CausalLayer) -> FusedLayer:
        """Fuse ``layer``, copying its weights."""
        attention, feed_forward = layer.self_attn, layer.mlp
        config, width = attention.config, attention.config.head_width
        turned = (attention.q_proj, attention.k_proj)
        weight = torch.cat([*(_paired(one.weight, width) for one in turned), attention.v_proj.weight])
        bias = heads_norm = None
        if config.biased:
            bias = torch.cat([*(_paired(one.bias, width) for one in turned), attention.v_proj.bias])
        if attention.q_norm is not None and attention.k_norm is not None:
            counts = (attention.q_norm, config.heads), (attention.k_norm, config.key_value_heads)
            weights = [_paired(one.weight, width).expand(count, -1) for one, count in counts]
            heads_norm = QuickNorm(torch.cat(weights).detach(), config.epsilon)
        return cls(
            attention_norm=QuickNorm.of(layer.input_layernorm),
            queries_keys_values=product(weight, bias),
            output=product(attention.o_proj.weight.detach().clone()),
            feed_forward_norm=QuickNorm.of(layer.post_attention_layernorm),
            gate_up=product(torch.cat([feed_forward.gate_proj.weight, feed_forward.up_proj.weight])),
            down=product(feed_forward.down_proj.weight.detach().clone()),
            heads_norm=heads_norm,
        )

    def turn(self, x: Tensor, rotation: Tensor) -> None:
        """Normalise, if the model does, and rotate queries and keys ``x`` (…, heads, head_width) in place."""
        if self.heads_norm is not None:
            self.heads_norm.of_heads(x)
        turn(x, rotation)

    def after(self, mixed: Tensor, entered: Tensor) -> Tensor:
        """``mixed`` values (rows, heads · head_width) and the layer's input (rows, hidden) to its output."""
        hidden = self.output(mixed).add_(entered)
        gate, up = self.gate_up(self.feed_forward_norm(hidden)).chunk(2, dim=-1)
        return self.down(F.silu(gate).mul_(up)).add_(hidden)


def _paired(rows: Tensor, head_width: int) -> Tensor:
    """Rows (heads · head_width, …) with the two rows of each rotated pair adjacent."""
    return rows.unflatten(0, (-1, 2, head_width // 2)).transpose(1, 2).flatten(0, 2)


class FusedTransformer(nn.Module):
    """The fused network. It has no parameters, so it cannot be trained or saved."""

    def __init__(self, config: CausalConfig, layers: Sequence[FusedLayer], norm: QuickNorm) -> None:
        super().__init__()
        self.config = config
        self.fused_layers = tuple(layers)
        self.final_norm = norm
        self._rotations = _rotations(config, POSITIONS, norm.weight.device)
        self._masks: dict[int, Tensor] = {}
        self._layers = _for_one_call(config, self.fused_layers, norm)

    @classmethod
    @torch.no_grad()
    def of(cls, plain: CausalTransformer) -> FusedTransformer:
        """Fuse ``plain``, copying its weights."""
        return cls(plain.config, [FusedLayer.of(layer) for layer in plain.layers], QuickNorm.of(plain.norm))

    @torch.inference_mode()
    def forward(
        self,
        embedded: Tensor,
        cache: KeyValueCache | None = None,
        positions: Tensor | None = None,
        probe: Probe | None = None,
        skip: frozenset[int] = NOTHING,
    ) -> Tensor:
        """As :meth:`paretone.models.networks.causal.CausalTransformer.forward`, without attention weights."""
        return self.final_norm(self.unnormed(embedded, cache, positions, probe, skip)).view_as(embedded)

    @torch.inference_mode()
    def fill(self, embedded: Tensor, cache: KeyValueCache, positions: Tensor) -> None:
        """As :meth:`paretone.models.networks.causal.CausalTransformer.fill`, without the last layer's attention."""
        self.unnormed(embedded, cache, positions, filling=True)

    def unnormed(
        self,
        embedded: Tensor,
        cache: KeyValueCache | None,
        positions: Tensor | None,
        probe: Probe | None = None,
        skip: frozenset[int] = NOTHING,
        *,
        filling: bool = False,
    ) -> Tensor:
        """Output of all layers, (batch · tokens, hidden); undefined when only ``filling`` the cache."""
        config = self.config
        batch, tokens, hidden_width = embedded.shape
        start = cache.length if cache is not None else 0
        if positions is None:
            positions = torch.arange(start, start + tokens, device=embedded.device)
        if cache is not None and not skip:
            call = self.as_one_call(tokens, cache, positions)
            if call is not None:
                from paretone.models.kernels.one_call import pass_of

                outputs = pass_of(embedded, *call, filling=filling)
                if probe is not None:
                    for index, output in enumerate(outputs):
                        probe(index, "output", output.view_as(embedded))
                cache.advance(tokens)
                return embedded[0] if filling else outputs[-1]
        rotation = self.rotation(positions)
        heads, key_heads, width = config.heads, config.key_value_heads, config.head_width
        mask = None if tokens == 1 else self._mask(tokens, start + tokens, embedded)
        windows = None if cache is None else cache.windows(tokens)
        hidden = embedded.reshape(-1, hidden_width)
        for index, layer in enumerate(self.fused_layers):
            if index in skip:
                continue
            projected = layer.queries_keys_values(layer.attention_norm(hidden)).view(batch, tokens, -1, width)
            layer.turn(projected.narrow(2, 0, heads + key_heads), rotation)
            query, both = projected.split((heads, 2 * key_heads), dim=2)
            if windows is None:
                key, value = both.transpose(1, 2).chunk(2, dim=1)
            else:
                place, key, value = windows[index]
                place.copy_(both)
            if filling and index == len(self.fused_layers) - 1:
                break
            query = query.transpose(1, 2)
            if heads != key_heads:
                # Heads that share keys are treated as further queries.
                query = query.reshape(batch, key_heads, -1, width)
            mixed = F.scaled_dot_product_attention(query, key, value, mask)
            if heads != key_heads:
                mixed = mixed.reshape(batch, heads, tokens, width)
            hidden = layer.after(mixed.transpose(1, 2).reshape(-1, heads * width), hidden)
            if probe is not None:
                probe(index, "output", hidden.view_as(embedded))
        if cache is not None:
            cache.advance(tokens)
        return hidden

    def together(
        self, embedded: Sequence[Tensor], caches: Sequence[KeyValueCache], positions: Sequence[Tensor], probe: Probe
    ) -> Tensor:
        """:meth:`unnormed` of several sequences in one pass: (1, tokens, hidden) each, after those of its cache, to the
        rows of all, one sequence after another. Products run over all rows, attention within each sequence."""
        config, counts = self.config, [one.shape[1] for one in embedded]
        heads, key_heads, width = config.heads, config.key_value_heads, config.head_width
        calls = [self.as_one_call(*one) for one in zip(counts, caches, positions, strict=True)]
        places = [call[1] for call in calls if call is not None]
        if self._layers is not None and len(places) == len(calls):
            from paretone.models.kernels.one_call import pass_together

            outputs = pass_together([one[0] for one in embedded], self._layers, places, _alike(caches))
            for index, output in enumerate(outputs):
                probe(index, "output", output)
            for one, count in zip(caches, counts, strict=True):
                one.advance(count)
            return outputs[-1]
        hidden = torch.cat([one[0] for one in embedded])
        rotation, windows = self.rotation(torch.cat(list(positions))), []
        for one, count in zip(caches, counts, strict=True):
            mask = None if count == 1 else self._mask(count, one.length + count, hidden)
            windows.append((one.windows(count), mask))
        for index, layer in enumerate(self.fused_layers):
            projected = layer.queries_keys_values(layer.attention_norm(hidden)).view(len(hidden), -1, width)
            layer.turn(projected.narrow(1, 0, heads + key_heads), rotation)
            mixed = []
            for rows, (places, mask) in zip(projected[None].split(counts, dim=1), windows, strict=True):
                query, both = rows.split((heads, 2 * key_heads), dim=2)
                place, key, value = places[index]
                place.copy_(both)
                query = query.transpose(1, 2).reshape(1, key_heads, -1, width)
                found = F.scaled_dot_product_attention(query, key, value, mask)
                mixed.append(found.view(heads, -1, width).transpose(0, 1))
            hidden = layer.after(torch.cat(mixed).flatten(1), hidden)
            probe(index, "output", hidden)
        for one, count in zip(caches, counts, strict=True):
            one.advance(count)
        return hidden

    def as_one_call(self, tokens: int, cache: KeyValueCache, positions: Tensor) -> tuple[Layers, Place] | None:
        """For :mod:`paretone.models.kernels.one_call`: a pass over ``tokens`` at ``positions`` after those of
        ``cache``; ``None`` if it does not take it. Raises :class:`ValueError` beyond the capacity."""
        if self._layers is None:
            return None
        from paretone.models.kernels.one_call import Place

        # Machine code does not check that positions are within the table.
        self.reach(int(positions.max()) + 1)
        return self._layers, Place(cache.memory_for(tokens), cache.length, tokens, positions, self._rotations)

    def is_like(self, *products: Product) -> bool:
        """Whether passes are one call, and ``products`` have weights as theirs, for calls that compute these too."""
        layers = self._layers
        halves = [one.half for one in products if isinstance(one, BlockProduct) and one.scale == 1]
        return layers is not None and halves == [layers.half] * len(products)

    @property
    def device(self) -> torch.device:
        return self.final_norm.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.final_norm.weight.dtype

    @property
    def rotations(self) -> Tensor:
        """As :meth:`rotation`, of all tabulated positions."""
        return self._rotations.unsqueeze(-2)

    def rotation(self, positions: Tensor) -> Tensor:
        """Rotations of queries and keys at ``positions`` (…), (…, 1, head_width / 2)."""
        return self._rotations[positions].unsqueeze(-2)

    def reach(self, positions: int) -> None:
        """Tabulate rotations for positions below ``positions``."""
        with _reaching:  # No thread may replace a longer table.
            if positions > len(self._rotations):
                self._rotations = _rotations(self.config, positions, self.device)

    def cache(self, capacity: int, batch: int = 1) -> KeyValueCache:
        return cache_for(self.config, capacity, self.final_norm.weight, batch)

    def kept(self, retained: Sequence[int]) -> FusedTransformer:
        """A transformer with only the layers ``retained``, ascending from 0, sharing their weights."""
        require_layers(retained, self.config.layers)
        layers = [self.fused_layers[index] for index in retained]
        return FusedTransformer(replace(self.config, layers=len(retained)), layers, self.final_norm)

    @torch.no_grad()
    def replaced(self, layers: Mapping[int, CausalLayer]) -> FusedTransformer:
        """A copy with ``layers`` in place of those with their numbers; the others are shared."""
        fused = {index: FusedLayer.of(layer) for index, layer in layers.items()}
        kept = [fused.get(index, layer) for index, layer in enumerate(self.fused_layers)]
        return FusedTransformer(self.config, kept, self.final_norm)

    def with_products(self, change: Callable[[Product, int], Any]) -> FusedTransformer:
        """A copy with products made by ``change`` from each product and its number of inputs."""
        hidden, mixed, wide = self.config.hidden, self.config.width, self.config.feed_forward
        inputs = {"queries_keys_values": hidden, "output": mixed, "gate_up": hidden, "down": wide}
        layers = [
            replace(one, **{name: change(getattr(one, name), count) for name, count in inputs.items()})
            for one in self.fused_layers
        ]
        return FusedTransformer(self.config, layers, self.final_norm)

    def _mask(self, tokens: int, length: int, like: Tensor) -> Tensor:
        """Causal mask added to scores, (groups · tokens, length): −∞ for later tokens."""
        groups = self.config.heads // self.config.key_value_heads
        mask = self._masks.get(tokens)
        if mask is None or mask.shape[1] < length or mask.dtype != like.dtype:
            room = max(length, POSITIONS if tokens <= 16 else length)
            late = torch.full((tokens, tokens), -math.inf, dtype=like.dtype, device=like.device).triu(1)
            mask = torch.cat([late.new_zeros(tokens, room - tokens), late], dim=1).repeat(groups, 1)
            if tokens <= 16:
                self._masks[tokens] = mask
        return mask[:, mask.shape[1] - length :]


def _alike(caches: Sequence[KeyValueCache]) -> list[tuple[int, int]]:
    """Consecutive caches that began with the same tokens: how many, and with how many tokens."""
    found: list[tuple[int, int]] = []
    for _, some in itertools.groupby(caches, lambda one: id(one if one.prefix is None else one.prefix)):
        group = list(some)
        prefix = group[0].prefix
        found.append((len(group), 0 if prefix is None or len(group) == 1 else prefix.shape[3]))
    return found


def _for_one_call(config: CausalConfig, layers: Sequence[FusedLayer], norm: QuickNorm) -> Layers | None:
    """``None`` unless the layers are of a kind that :mod:`paretone.models.kernels.one_call` takes."""
    products = [(one.queries_keys_values, one.output, one.gate_up, one.down) for one in layers]
    norms = [one for layer in layers for one in (layer.attention_norm, layer.feed_forward_norm)]
    if machine_code() is None or len({one.epsilon for one in norms}) > 1:
        return None
    from paretone.models.kernels.machine_code import BLOCK
    from paretone.models.kernels.one_call import layers_of

    kinds = {one.half if isinstance(one, BlockProduct) else None for some in products for one in some}
    # Heads are read in whole blocks.
    if len(kinds) > 1 or kinds == {None} or config.head_width % BLOCK:
        return None
    of_heads = [one.heads_norm for one in layers if one.heads_norm is not None]
    return layers_of(config, products, norms, of_heads)


def turn(x: Tensor, rotation: Tensor) -> None:
    """Rotate ``x``, (…, heads, head_width), in place."""
    if x.dtype in (torch.float32, torch.float64):
        torch.view_as_complex(x.unflatten(-1, (-1, 2))).mul_(rotation)
    else:
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
        x.copy_(torch.view_as_real(pairs * rotation).flatten(-2))


def _rotations(config: CausalConfig, positions: int, device: torch.device) -> Tensor:
    """Unit complex numbers, (positions, head_width / 2)."""
    angles = torch.outer(torch.arange(positions).float(), rotary_frequencies(config))
    return torch.polar(torch.ones_like(angles), angles).to(device)
