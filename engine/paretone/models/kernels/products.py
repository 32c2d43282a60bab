"""Matrix products with weights packed in advance into the layout of Intel's MKL or of oneDNN, which is the faster here.

Without packing, MKL copies the weights into that layout at every product: a tenth of the time for 900 rows, a fifth for
200. On AMD's processors oneDNN takes less than half of MKL's time. Results are equal up to rounding. Layers process
rows in blocks, so that intermediate results stay in the processor's cache. Packed weights are a second copy in memory.
On processors with integer matrix units, :mod:`paretone.models.kernels.split_products` is faster.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from timeit import Timer
from typing import Self, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.models.kernels import split_products
from paretone.models.kernels.few_rows import Immutable
from paretone.models.kernels.split_products import SplitProduct

Network = TypeVar("Network", bound=nn.Module)
ROWS = 256
"""Rows per block: enough for a product's full speed, few enough that its results stay in a core's cache."""
FEED_FORWARD_ROWS = 4 * ROWS
"""Rows per block of a feed-forward: its results leave the cache anyway, and fewer blocks read weights less often."""
NARROWEST = 512
"""Least number of inputs for packing: in narrower layers, calling a kernel per block costs more than packing saves. A
quarter of it where oneDNN pays."""
LEAST_WORK = 1 << 20
"""Multiplications from which oneDNN is faster than an unpacked product, in spite of its longer call."""
PAYS = 0.8
"""Share of MKL's time that oneDNN may take and be used: a close measurement must not be decided by chance."""
TRIALS = 10
NOTE = (
    "Wide float32 products were computed from exact 8-bit integer products, which are fast on this processor; "
    f"{split_products.VARIABLE}=0 in the environment turns this off."
)


@functools.cache
def available() -> bool:
    """Whether this build of torch packs weights, with correct products for any number of rows. MKL takes the number of
    rows when packing. The result seems independent of it, hence the test."""
    if not (torch.backends.mkl.is_available() and hasattr(torch.ops.mkl, "_mkl_linear")):
        return False
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        product = PackedProduct(torch.randn(384, 640), torch.randn(384))
        rows = torch.randn(FEED_FORWARD_ROWS, 640)
        tried = (1, 3, 64, ROWS - 1, ROWS, ROWS + 45, FEED_FORWARD_ROWS)
        return all(torch.allclose(product(rows[:one]), product.plain(rows[:one]), atol=1e-3) for one in tried)


@functools.cache
def onednn_pays() -> bool:
    """Whether oneDNN's kernels are faster than MKL's on this processor, by a measurement of some milliseconds."""
    operators = hasattr(torch.ops.mkldnn, "_linear_pointwise") and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    if not (operators and torch.backends.mkldnn.is_available()):
        return False
    weight, rows = torch.zeros(512, 512), torch.zeros(ROWS, 512)

    def seconds(product: Callable[[Tensor, Tensor, Tensor, None], Tensor], packed: Tensor) -> float:
        return min(Timer(lambda: product(rows, packed, weight, None)).repeat(TRIALS, 1))

    with torch.no_grad():
        by_mkl = seconds(_by_mkl, torch.ops.mkl._mkl_reorder_linear_weight(weight, ROWS))
        return seconds(_by_onednn, torch.ops.mkldnn._reorder_linear_weight(weight, ROWS)) < PAYS * by_mkl


def _by_mkl(x: Tensor, packed: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    product: Tensor = torch.ops.mkl._mkl_linear(x, packed, weight, bias, len(x))
    return product


def _by_onednn(x: Tensor, packed: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if len(x) * weight.numel() < LEAST_WORK:
        return F.linear(x, weight, bias)
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
    return product


def blocks(rows: int, most: int | None = None) -> Iterator[slice]:
    """Slices of at most ``most`` (:data:`ROWS`) that cover ``rows``, equally long but the last: few rows are slow."""
    length = math.ceil(rows / math.ceil(rows / (most or ROWS)))
    return (slice(start, min(start + length, rows)) for start in range(0, rows, length))


def tiles(items: int, length: int, most: int) -> Iterator[tuple[slice, slice]]:
    """Items and rows of tiles of at most ``most`` rows over ``items`` of ``length``: whole items, or blocks of one."""
    together = max(1, most // length)
    return itertools.product(blocks(items, together), blocks(length, most))


class PackedProduct(Immutable):
    """A packed weight (outputs, inputs) with optional bias: maps (rows, inputs) to (rows, outputs), float32 on the CPU.
    With ``many_rows`` it is packed for hundreds of rows, and slower for few."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None, many_rows: bool = False) -> None:
        self._weight, self._bias = weight.detach(), None if bias is None else bias.detach()
        self._packed: Tensor | SplitProduct
        self._product = _by_mkl
        if many_rows and split_products.can_split(self._weight):
            self._packed = SplitProduct(self._weight, self._bias)
        elif onednn_pays():
            self._packed, self._product = torch.ops.mkldnn._reorder_linear_weight(self._weight, ROWS), _by_onednn
        else:
            self._packed = torch.ops.mkl._mkl_reorder_linear_weight(self._weight, ROWS)

    @property
    def is_split(self) -> bool:
        return isinstance(self._packed, SplitProduct)

    @property
    def rows(self) -> int:
        """Rows of its optimal blocks."""
        return split_products.ROWS if self.is_split else ROWS

    def __call__(self, x: Tensor) -> Tensor:
        if not isinstance(self._packed, SplitProduct):
            return self._product(x, self._packed, self._weight, self._bias)
        if len(x) < split_products.FEWEST_ROWS:
            return self.plain(x)
        if len(x) <= split_products.ROWS:
            return self._packed(x)
        return torch.cat([self._packed(x[block]) for block in blocks(len(x), split_products.ROWS)])

    def plain(self, x: Tensor) -> Tensor:
        return F.linear(x, self._weight, self._bias)


def can_pack(weight: Tensor) -> bool:
    plain = weight.device.type == "cpu" and weight.dtype == torch.float32 and weight.layout == torch.strided
    # Nothing is tried or measured for weights that are elsewhere, as on a graphics card.
    return plain and available() and weight.shape[1] >= (NARROWEST // 4 if onednn_pays() else NARROWEST)


def notes_of(backbone: nn.Module) -> tuple[str, ...]:
    packed = (one.packed for one in backbone.modules() if isinstance(one, PackableLinear))
    return (NOTE,) if any(one is not None and one.is_split for one in packed) else ()


class PackableLinear(nn.Linear):
    """A linear layer that can be packed for inference; its parameters do not change."""

    packed: PackedProduct | None = None

    def pack(self) -> None:
        self.packed = PackedProduct(self.weight, self.bias, many_rows=True) if can_pack(self.weight) else None

    def unpack(self) -> None:
        self.packed = None

    def train(self, mode: bool = True) -> Self:
        """Forgets what was packed if its weights may change from now on."""
        if mode:
            self.unpack()
        return super().train(mode)

    def is_packed(self, x: Tensor) -> bool:
        """Whether ``x`` can be processed in blocks."""
        learns = torch.is_grad_enabled() and (x.requires_grad or self.weight.requires_grad)
        return self.packed is not None and can_pack(self.weight) and x.dtype == torch.float32 and not learns

    def forward(self, x: Tensor) -> Tensor:
        if self.packed is None or not self.is_packed(x):
            return F.linear(x, self.weight, self.bias)
        return self.packed(x.flatten(0, -2)).unflatten(0, x.shape[:-1])


def packed(network: Network) -> Network:
    """``network`` with :class:`PackableLinear` layers packed where possible; only training may change its weights."""
    for one in network.modules():
        if isinstance(one, PackableLinear):
            one.pack()
    return network
