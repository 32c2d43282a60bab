"""Layers of a masked network for inference: weights that are used together in one product, in a precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.models.kernels import products
from paretone.models.kernels.half_products import Product
from paretone.models.kernels.int8 import Int8Linear
from paretone.models.kernels.precision import DTYPES
from paretone.models.kernels.products import PackedProduct
from paretone.models.networks.bidirectional import BidirectionalLayer


@dataclass(frozen=True)
class FusedLayer:
    """One layer: the weights of its norms, and its products."""

    attention_norm: Tensor
    queries_keys_values: Product
    turned_norm: Tensor
    """Weights of the norms of queries and keys, (heads + key heads, head_width)."""
    output: Product
    feed_forward_norm: Tensor
    gate_up: Product
    down: Product


def fused_layer(
    layer: BidirectionalLayer,
    product: Callable[[Tensor], Product],
    inner: torch.dtype,
    stream: torch.dtype,
    share: bool,
) -> FusedLayer:
    """``layer`` with weights that ``product`` takes; norms of queries and keys in ``inner``, the others in ``stream``.
    With ``share``, the weights of ``layer`` become parts of ours."""
    attention, feed_forward = layer.self_attn, layer.mlp
    turned = [
        norm.weight.expand(heads, -1)
        for norm, heads in (
            (attention.q_norm, attention.config.heads),
            (attention.k_norm, attention.config.key_value_heads),
        )
    ]
    return FusedLayer(
        attention_norm=layer.input_layernorm.weight.detach().to(stream),
        queries_keys_values=product(_side_by_side((attention.q_proj, attention.k_proj, attention.v_proj), share)),
        turned_norm=torch.cat(turned).detach().to(inner),
        output=product(attention.o_proj.weight.detach()),
        feed_forward_norm=layer.post_attention_layernorm.weight.detach().to(stream),
        gate_up=product(_side_by_side((feed_forward.gate_proj, feed_forward.up_proj), share)),
        down=product(feed_forward.down_proj.weight.detach()),
    )


def _side_by_side(linears: Sequence[nn.Linear], share: bool) -> Tensor:
    """Their weights in one; where they ``share`` it, theirs are parts of it afterwards."""
    weight = torch.cat([one.weight.detach() for one in linears])
    if share:
        parts = weight.split([one.out_features for one in linears])
        for one, part in zip(linears, parts, strict=True):
            one.weight = nn.Parameter(part, requires_grad=False)
    return weight


def plain_product(weight: Tensor) -> Product:
    """The product with ``weight`` (out, in) as it is."""
    return PackedProduct(weight) if products.can_pack(weight) else partial(F.linear, weight=weight)


def _int8(weight: Tensor) -> Product:
    return Int8Linear(weight, None).forward


def _narrow(dtype: torch.dtype) -> Callable[[Tensor], Product]:
    def product(weight: Tensor) -> Product:
        weight = weight.to(dtype)
        return lambda x: F.linear(x.to(dtype), weight)

    return product


PRODUCTS = {"int8": _int8, **{name: _narrow(dtype) for name, dtype in DTYPES.items()}}
"""Product types by precision."""
