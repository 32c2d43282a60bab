"""Matrix products with weights that are laid out beforehand as the processor's kernels read them.

Intel's MKL copies a weight matrix into such a layout at every product. Packed once, products of 900 rows take a tenth
less time, those of 200 rows a fifth; the results are the same to rounding. Layers take their rows in blocks of
:data:`ROWS`, so that what one product passes to the next stays in the processor's cache. The price: packed weights are
held twice.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ROWS = 256
"""Rows of a block: enough that a product reaches full speed, few enough that its results stay in a core's cache."""
FEED_FORWARD_ROWS = 4 * ROWS
"""Rows of a feed-forward's block: its results leave the cache anyway, and fewer blocks read the weights less often."""
NARROWEST = 512
"""Inputs from which on packing pays: in narrower layers, calling a kernel for every block costs more than it saves."""


@functools.cache
def available() -> bool:
    """Whether this build of torch packs weights, and its products are right for any number of rows.

    MKL asks for the number of rows when it packs. Its result does not depend on it, but no manual says so: it is tried.
    """
    if not (torch.backends.mkl.is_available() and hasattr(torch.ops.mkl, "_mkl_linear")):
        return False
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        product = PackedProduct(torch.randn(384, 640), torch.randn(384))
        rows = torch.randn(FEED_FORWARD_ROWS, 640)
        tried = (1, 3, 64, ROWS - 1, ROWS, ROWS + 45, FEED_FORWARD_ROWS)
        return all(torch.allclose(product(rows[:one]), product.plain(rows[:one]), atol=1e-3) for one in tried)


def blocks(rows: int, most: int | None = None) -> Iterator[slice]:
    """Slices of at most ``most`` (:data:`ROWS`) that cover ``rows``, of one length but for the last: products of few
    rows are slow."""
    length = math.ceil(rows / math.ceil(rows / (most or ROWS)))
    return (slice(start, min(start + length, rows)) for start in range(0, rows, length))


class PackedProduct:
    """A weight (outputs, inputs) and its bias, where there is one, packed: maps (rows, inputs) to (rows, outputs),
    float32 on the CPU.

    Immutable, so copies of a model share it.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._weight, self._bias = weight.detach(), None if bias is None else bias.detach()
        self._packed = torch.ops.mkl._mkl_reorder_linear_weight(self._weight, ROWS)

    def __call__(self, x: Tensor) -> Tensor:
        return torch.ops.mkl._mkl_linear(x, self._packed, self._weight, self._bias, len(x))

    def plain(self, x: Tensor) -> Tensor:
        """The same without what was packed."""
        return F.linear(x, self._weight, self._bias)

    def __deepcopy__(self, memory: dict[int, Any]) -> PackedProduct:
        return self


def can_pack(weight: Tensor) -> bool:
    """Whether packing this weight, as it is now, is possible and pays."""
    plain = weight.device.type == "cpu" and weight.dtype == torch.float32 and weight.layout == torch.strided
    return available() and plain and weight.shape[1] >= NARROWEST


class PackableLinear(nn.Linear):
    """A linear layer that can be packed for inference; its parameters stay what they are."""

    _product: PackedProduct | None = None

    def pack(self) -> None:
        """Pack the weights as they are now, where that is possible."""
        self._product = PackedProduct(self.weight, self.bias) if can_pack(self.weight) else None

    def unpack(self) -> None:
        """Give up what was packed."""
        self._product = None

    def is_packed(self, x: Tensor) -> bool:
        """Whether ``x`` can go through blockwise."""
        return self._product is not None and can_pack(self.weight) and x.dtype == torch.float32 and not x.requires_grad

    def forward(self, x: Tensor) -> Tensor:
        if not self.is_packed(x):
            return F.linear(x, self.weight, self.bias)
        return self._product(x.flatten(0, -2)).unflatten(0, x.shape[:-1])
