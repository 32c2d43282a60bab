"""Matrix products with weights that are laid out beforehand as the processor's kernels read them.

Intel's MKL copies a weight matrix into such a layout at every product; packed once, products of many rows take a tenth
less time, those of few rows a quarter. A packed weight serves one number of rows, so rows go through in blocks of
:data:`ROWS`; and because what a block passes between layers stays in the processor's cache, layers take them one block
at a time. The results are the same to rounding. The price: packed weights are held twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ROWS = 256
"""Rows of a block: enough that a product reaches full speed, few enough that its results stay in a core's cache."""
NARROWEST = 512
"""Inputs from which on packing pays: in narrower layers, calling a kernel for every block costs more than it saves."""


def available() -> bool:
    """Whether this build of torch packs weights."""
    return torch.backends.mkl.is_available() and hasattr(torch.ops.mkl, "_mkl_linear")


def blocks(rows: int) -> Iterator[slice]:
    """Slices of at most :data:`ROWS` that cover ``rows``."""
    return (slice(start, min(start + ROWS, rows)) for start in range(0, rows, ROWS))


class PackedProduct:
    """A weight (outputs, inputs) and its bias, packed: maps (rows, inputs) to (rows, outputs), float32 on the CPU.

    Immutable, so copies of a model share it.
    """

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self._weight, self._bias = weight.detach(), bias.detach()
        self._packed = torch.ops.mkl._mkl_reorder_linear_weight(self._weight, ROWS)

    def __call__(self, x: Tensor) -> Tensor:
        if len(x) == ROWS and x.ndim == 2:
            return torch.ops.mkl._mkl_linear(x, self._packed, self._weight, self._bias, ROWS)
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

    def is_packed(self, x: Tensor) -> bool:
        """Whether ``x`` can go through blockwise."""
        return self._product is not None and can_pack(self.weight) and x.dtype == torch.float32 and not x.requires_grad

    def forward(self, x: Tensor) -> Tensor:
        if not self.is_packed(x):
            return F.linear(x, self.weight, self.bias)
        if x.ndim == 2 and len(x) <= ROWS:
            return self._product(x)
        rows = x.flatten(0, -2)
        result = rows.new_empty(len(rows), self.out_features)
        for block in blocks(len(rows)):
            result[block] = self._product(rows[block])
        return result.unflatten(0, x.shape[:-1])
