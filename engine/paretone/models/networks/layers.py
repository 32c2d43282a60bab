"""Layers shared by several families' diffusion transformers; parameter names are the families' own.

Sources: AdaLN and the time embedding of F5-TTS 1.1.20 (``f5_tts/model/modules.py``), shared by MegaTTS 3; rotary
position embedding, Su et al., arXiv 2104.09864, on neighbouring pairs.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.models.files.checkpoints import check_shapes, load_strictly, shapes_of
from paretone.models.kernels import products
from paretone.models.kernels.attention import attend
from paretone.models.kernels.products import PackableLinear, PackedProduct

NORM_EPSILON = 1e-6


def chained(**layers: nn.Module) -> nn.Sequential:
    """``layers`` one after another, under their official names."""
    return nn.Sequential(OrderedDict(layers))


class Residual(nn.Sequential):
    """Layers one after another, with a residual connection."""

    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)


def sinusoids(values: Tensor, width: int) -> Tensor:
    """Values (n,) to (n, width): sines, then cosines, of frequencies falling geometrically from 1 to 1/10000."""
    half = width // 2
    exponents = torch.arange(half, device=values.device).float() * -(math.log(10000) / (half - 1))
    angles = values[:, None] * exponents.exp()
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


class TimeEmbedding(nn.Module):
    """Times (n,) to vectors (n, width): sinusoids of 1000·t, then a two-layer perceptron."""

    sinusoid_width = 256

    def __init__(self, width: int) -> None:
        super().__init__()
        self.time_mlp = nn.Sequential(nn.Linear(self.sinusoid_width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, times: Tensor) -> Tensor:
        return self.time_mlp(sinusoids(1000 * times, self.sinusoid_width).to(times.dtype))

    def of_schedule(self, times: Tensor) -> Tensor:
        """Vectors of all evaluations of a schedule, at ``times`` (n,) in order."""
        return self(times)


class AdaptiveNorm(nn.Module):
    """The linear layer that turns a time vector into a layer's shifts, scales and gates (AdaLN)."""

    def __init__(self, width: int, parts: int) -> None:
        super().__init__()
        self.parts = parts
        self.linear = nn.Linear(width, width * parts)

    def table(self, time_vectors: Tensor) -> Tensor:
        """(times, width) to (times, parts, width)."""
        # In this order, the product of few rows takes three fifths of the time on a CPU.
        vectors = torch.addmm(self.linear.bias[:, None], self.linear.weight, F.silu(time_vectors).T)
        return vectors.T.unflatten(-1, (self.parts, -1))


def modulation(shift: Tensor, scale: Tensor) -> Callable[[Tensor], Tensor]:
    """Layer norm without parameters, then ``· (1 + scale) + shift``, of tensors (…, width)."""
    return partial(F.layer_norm, normalized_shape=scale.shape, weight=1 + scale, bias=shift, eps=NORM_EPSILON)


def modulate_items(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """:func:`modulation` of ``x`` with a shift and a scale per item, each (items, 1, width)."""
    return F.layer_norm(x, x.shape[-1:], eps=NORM_EPSILON) * (1 + scale) + shift


def rotary_frequencies(head_width: int) -> Tensor:
    """Rotation speed of each pair of a head, (head_width / 2,) in radians per position."""
    # On the CPU whatever the default device: arithmetic on the meta device would import torch's compiler, for seconds.
    return 10000.0 ** -(torch.arange(0, head_width, 2, device="cpu").float() / head_width)


def rotary_table(length: int, frequencies: Tensor) -> Tensor:
    """Unit complex numbers, (length, head_width / 2)."""
    angles = torch.outer(torch.arange(length, device=frequencies.device).float(), frequencies.float())
    return torch.polar(torch.ones_like(angles), angles)


def rotate(x: Tensor, table: Tensor, heads: int | None = None) -> Tensor:
    """Rotate the first ``heads`` heads (``None``: all) of ``x``, (rows, sequence, heads, head_width), pair by pair."""
    if heads is not None and heads < x.shape[2]:
        return torch.cat([rotate(x[:, :, :heads], table), x[:, :, heads:]], dim=2)
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * table[:, None]).flatten(-2).to(x.dtype)


def rotate_into(target: Tensor, x: Tensor, table: Tensor, heads: int | None = None) -> None:
    """:func:`rotate` of one item in float32, (sequence, heads, head_width), written to ``target`` of that shape."""
    turned = x.shape[1] if heads is None else min(heads, x.shape[1])
    pairs, result = (torch.view_as_complex(one[:, :turned].unflatten(-1, (-1, 2))) for one in (x, target))
    torch.mul(pairs, table[:, None], out=result)
    if turned < x.shape[1]:
        target[:, turned:] = x[:, turned:]


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(…, sequence, width) to (…, heads, sequence, width / heads)."""
    return x.unflatten(-1, (heads, -1)).transpose(-2, -3)


class SelfAttention(nn.Module):
    """Self-attention over (rows, sequence, width) with rotated queries and keys. A family's own class holds the four
    projections under their official names and returns them as ``inputs`` and ``output``. Output rows of padded frames
    are zero."""

    heads: int
    rotary_heads: int | None = None
    """Number of heads with positions, from the first; ``None``: all."""
    attends_padding = True
    """Whether padded frames are attended like others, as in the F5 family (``attn_mask_enabled: False``)."""
    _fused: Callable[[Tensor], Tensor] | None = None

    @property
    def inputs(self) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
        raise NotImplementedError

    @property
    def output(self) -> nn.Linear:
        raise NotImplementedError

    def normalised(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys (rows, sequence, heads, head_width) before rotation."""
        return query, key

    def fuse(self) -> None:
        """Make the three input projections adjacent in memory, so that inference runs them as one product."""
        with torch.no_grad():
            weight = torch.cat([one.weight for one in self.inputs])
            bias = torch.cat([one.bias for one in self.inputs])
            for one, rows, values in zip(self.inputs, weight.chunk(3), bias.chunk(3), strict=True):
                one.weight = nn.Parameter(rows, requires_grad=False)
                one.bias = nn.Parameter(values, requires_grad=False)
        if products.can_pack(weight):
            self.project_by(PackedProduct(weight, bias, many_rows=True))
        else:
            self.project_by(partial(F.linear, weight=weight, bias=bias))
        products.packed(self.output)

    def project_by(self, projection: Callable[[Tensor], Tensor]) -> None:
        """Compute queries, keys and values, side by side, by ``projection``."""
        self._fused = projection

    @property
    def packed(self) -> PackedProduct | None:
        return self._fused if isinstance(self._fused, PackedProduct) else None

    def queries_keys_values(self, x: Tensor, rotary: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Normalised and rotated queries and keys, and values, each (rows, heads, sequence, head_width)."""
        if self.packed is not None and not x.requires_grad:
            return self._by_blocks(self.packed, x, rotary)
        parts = [project(x) for project in self.inputs] if self._fused is None else self._fused(x).chunk(3, dim=-1)
        query, key, value = (part.unflatten(-1, (self.heads, -1)) for part in parts)
        query, key = self.normalised(query, key)
        query, key = rotate(query, rotary, self.rotary_heads), rotate(key, rotary, self.rotary_heads)
        return query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)

    def _by_blocks(
        self, packed: PackedProduct, x: Tensor, rotary: Tensor, norm: Callable[[Tensor], Tensor] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """:meth:`queries_keys_values` in blocks, with each head's rows adjacent in memory, which attention reads a
        quarter faster. ``norm`` is applied to the rows first."""
        items, length, _ = x.shape
        width = self.inputs[0].out_features // self.heads
        query, key, value = (x.new_empty(items, self.heads, length, width) for _ in range(3))
        for some, block in products.tiles(items, length, packed.rows):
            rows = x[some, block] if norm is None else norm(x[some, block])
            parts = packed(rows.flatten(0, 1)).unflatten(0, rows.shape[:2])
            new_query, new_key, new_value = parts.unflatten(-1, (3, self.heads, width)).unbind(2)
            new_query, new_key = self.normalised(new_query, new_key)
            for target, part in ((query, new_query), (key, new_key)):
                for item, one in zip(target[some, :, block], part, strict=True):
                    rotate_into(item.transpose(0, 1), one, rotary[block], self.rotary_heads)
            value[some, :, block] = new_value.transpose(1, 2)
        return query, key, value

    def is_packed(self, x: Tensor) -> bool:
        """Whether :meth:`add_to` supports ``x``."""
        output = self.output
        return self.packed is not None and isinstance(output, PackableLinear) and output.is_packed(x)

    def add_to(
        self,
        hidden: Tensor,
        gate: Tensor,
        norm: Callable[[Tensor], Tensor],
        rotary: Tensor,
        lengths: Sequence[int] | None = None,
    ) -> None:
        """Add ``gate`` · attention(``norm``(``hidden``)) to ``hidden``, (rows, sequence, width), without padding;
        ``lengths`` as in :func:`attend`. Everything but the attention itself runs in blocks that stay in the
        processor's cache."""
        assert self.packed is not None, "Only packed projections go block by block; see is_packed."
        query, key, value = self._by_blocks(self.packed, hidden, rotary, norm)
        mixed = attend(query, key, value, lengths=lengths)
        items, length, _ = hidden.shape
        for some, block in products.tiles(items, length, self.packed.rows):
            hidden[some, block].addcmul_(gate, self.output(mixed[some, :, block].transpose(1, 2).flatten(-2)))

    def forward(
        self, x: Tensor, rotary: Tensor, mask: Tensor | None = None, lengths: Sequence[int] | None = None
    ) -> Tensor:
        """``rotary`` from :func:`rotary_table`; ``mask`` (at least as many rows, sequence), true where valid;
        ``lengths`` as in :func:`attend`."""
        query, key, value = self.queries_keys_values(x, rotary)
        mask = None if mask is None else mask[: len(x)]
        attended = None if mask is None or self.attends_padding else mask[:, None, None]
        mixed = attend(query, key, value, attended, lengths)
        output = self.output(mixed.transpose(1, 2).flatten(-2))
        return output if mask is None else output.masked_fill(~mask[..., None], 0)


class FeedForward(nn.Module):
    """Two linear layers with an activation in between, row by row. A family's own class holds the layers under their
    official names and returns them as ``first`` and ``last``."""

    activation: Callable[[Tensor], Tensor]
    """May overwrite its input."""

    @property
    def first(self) -> nn.Linear:
        raise NotImplementedError

    @property
    def last(self) -> nn.Linear:
        raise NotImplementedError

    def fuse(self) -> None:
        """Pack the weights: see :mod:`paretone.models.kernels.products`."""
        for one in (self.first, self.last):
            products.packed(one)

    def is_packed(self, x: Tensor) -> bool:
        """Whether ``x`` can be processed in blocks."""
        return isinstance(self.last, PackableLinear) and self.last.is_packed(x)

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(0, -2)
        if len(rows) <= products.FEED_FORWARD_ROWS or not self.is_packed(x):
            return self._at_once(x)
        result = torch.empty_like(rows)
        for block in products.blocks(len(rows), products.FEED_FORWARD_ROWS):
            result[block] = self._at_once(rows[block])
        return result.view_as(x)

    def add_to(self, hidden: Tensor, gate: Tensor, norm: Callable[[Tensor], Tensor]) -> None:
        """Add ``gate`` · feed-forward(``norm``(``hidden``)) to ``hidden`` like :meth:`SelfAttention.add_to`."""
        rows = hidden.flatten(0, -2)
        for block in products.blocks(len(rows), products.FEED_FORWARD_ROWS):
            rows[block].addcmul_(gate, self._at_once(norm(rows[block])))

    def _at_once(self, x: Tensor) -> Tensor:
        return self.last(self.activation(self.first(x)))


# --- Weight normalisation ---------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Naming:
    """Names of the two halves of a normalised weight, ``g · v / ‖v‖``, in official files. Each entry of the first axis
    has one ``g`` and one norm (Salimans and Kingma, arXiv 1602.07868; ``torch.nn.utils.weight_norm`` with ``dim=0``):
    the output channel of a convolution, the input channel of a transposed one. PyTorch names the pair in two ways."""

    magnitude: str
    direction: str


HOOKED = Naming("weight_g", "weight_v")
"""Names from ``torch.nn.utils.weight_norm``."""
PARAMETRISED = Naming("parametrizations.weight.original0", "parametrizations.weight.original1")
"""Names from ``torch.nn.utils.parametrizations.weight_norm``."""


def stored_shapes(
    module: nn.Module, naming: Naming = HOOKED, plain: tuple[str, ...] = ()
) -> dict[str, tuple[int, ...]]:
    """Names and shapes in a file of ``module`` with weight norm on convolutions, except those in ``plain`` parts."""
    convolutions = {
        f"{name}.weight"
        for name, part in module.named_modules()
        if isinstance(part, nn.Conv1d | nn.ConvTranspose1d) and not name.startswith(plain)
    }
    shapes: dict[str, tuple[int, ...]] = {}
    for name, value in module.state_dict().items():
        if name in convolutions:
            layer = name.removesuffix("weight")
            shapes[layer + naming.magnitude] = (value.shape[0], *(1 for _ in value.shape[1:]))
            shapes[layer + naming.direction] = tuple(value.shape)
        else:
            shapes[name] = tuple(value.shape)
    return shapes


def fused(weights: Mapping[str, Tensor], naming: Naming = HOOKED) -> dict[str, Tensor]:
    """``weights`` with each pair of magnitude and direction multiplied out to one ``…weight``."""
    result = {}
    for name, value in weights.items():
        if name.endswith(naming.direction):
            layer = name.removesuffix(naming.direction)
            result[layer + "weight"] = torch._weight_norm(value, weights[layer + naming.magnitude], 0)
        elif not name.endswith(naming.magnitude):
            result[name] = value
    return result


def load_normalised(
    module: nn.Module, weights: Mapping[str, Tensor], where: str, naming: Naming = HOOKED, plain: tuple[str, ...] = ()
) -> None:
    """Copy the ``weights`` of a file into ``module``, strictly, with the normalisation multiplied out. Raises
    :class:`paretone.errors.CheckpointError` that names the faulty keys as in the file."""
    check_shapes(stored_shapes(module, naming, plain), shapes_of(weights), where)
    load_strictly(module, fused(weights, naming), where)
