"""Float32 matrix products computed by the processor's 8-bit integer units (AMX), to about float32's accuracy.

The Ozaki scheme (Ozaki, Ogita, Oishi, Rump, Numerical Algorithms 59, 2012; on 8-bit units: Ootomo, Ozaki, Yokota,
arXiv 2306.11975):

* Each row of both factors is divided by its largest entry and rounded to 24-bit fixed point: three digits to the base
  256, from -128 to 127. This is the only rounding of the factors.
* Of the nine digit-by-digit products, the six with the highest weight are computed. Each is exact, since integer sums
  do not round. They are scaled and added in float32.

**Error.** Terms below 2⁻²³ of largest times largest are dropped, so the error grows with the ratio of a row's largest
entry to a typical one. Relative to float32's own error: at most 4.3 times on the trained ``f5-mini``, 4 to 5 times for
log-normal channels, 6 to 8 times with one channel a thousand times as strong as the others (4e-6 of the result). With
one entry a million times the others, the others are lost. Normalised activations have no such rows.

A row's result depends on that row only, bit for bit, whichever rows are computed with it. Rows of zeros give the bias;
rows with an infinity or a NaN give results that are not finite. Rows whose largest entry is below 1e-30 are scaled as
if it were 1e-30.

Without AMX, or with ``PARETONE_SPLIT_PRODUCTS=0`` in the environment, this is not used. It takes three bytes per weight
in addition to the weights, one less than packed float32.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

ROWS = 1024
"""Maximum rows of one product: its weights are read from memory once for all of them."""
FEWEST_ROWS = 128
"""Least number of rows for which it is faster than float32 products: it calls six kernels instead of one."""
NARROWEST = 1024
"""Least number of inputs and outputs for which it is faster."""
DEEPEST = 1 << 15
"""Maximum number of inputs for which sums of digit products fit into 32 bits."""
LARGEST = 127 << 16
"""Integer of a row's largest entry; its highest digit is then 127."""
SMALLEST = 1e-30
"""Lower limit of a row's largest entry, so that its reciprocal does not overflow."""
PAIRS = ((2, 0), (1, 1), (0, 2), (0, 1), (1, 0), (0, 0))
"""Digits to multiply, of the first and second factor; 0 is the highest. The least come first, for less rounding."""
PIECE = 1 << 17
"""Numbers split at a time, so that they stay in the processor's cache."""
VARIABLE = "PARETONE_SPLIT_PRODUCTS"
"""Environment variable; 0 disables split products."""


def in_use() -> bool:
    """Whether products are split where possible and useful."""
    return os.environ.get(VARIABLE, "") != "0" and has_amx() and exact()


def has_amx() -> bool:
    """Whether the processor has AMX and this system enables it."""
    return getattr(torch.cpu, "_is_amx_tile_supported", bool)()


@functools.cache
def exact() -> bool:
    """Whether this build of torch has the operators (oneDNN's, meant for its compiler) with exact sums: on processors
    that add 8-bit products in pairs of 16 bits they are not."""
    if not all(hasattr(torch.ops.onednn, name) for name in ("qlinear_prepack", "qlinear_pointwise")):
        return False
    generator = torch.Generator().manual_seed(0)
    # Extreme values, but few enough that float32 represents their sums.
    rows, weights = (
        torch.where(torch.rand(count, 448, generator=generator) < 0.6, 127, -128).to(torch.int8) for count in (70, 300)
    )
    zeros = torch.zeros(300, dtype=torch.int32)
    try:
        sums = _add(None, rows, _laid_out(weights), 1.0, torch.ones(300), zeros)
        sums = _add(sums, rows, _laid_out(weights), 1.0, torch.ones(300), zeros)
    except (RuntimeError, TypeError, NotImplementedError):
        return False
    return torch.equal(sums.double(), 2 * rows.double() @ weights.double().T)


def can_split(weight: Tensor) -> bool:
    """Whether products with this weight (outputs, inputs), float32 on the CPU, can be split with benefit."""
    wide = min(weight.shape) >= NARROWEST and weight.shape[1] <= DEEPEST
    return wide and in_use() and bool(weight.isfinite().all())


class Digits(NamedTuple):
    """Rows (rows, inputs) as ``scales`` · (high · 2¹⁶ + middle · 2⁸ + low) / 2¹⁶, each digit int8."""

    high: Tensor
    middle: Tensor
    low: Tensor
    scales: Tensor
    """(rows, 1), float32: a 127th of each row's largest entry."""


def split(rows: Tensor) -> Digits:
    """The digits of ``rows`` (rows, inputs), float32."""
    count, inputs = rows.shape
    largest = torch.maximum(rows.amax(dim=1, keepdim=True), rows.amin(dim=1, keepdim=True).neg_()).clamp_min_(SMALLEST)
    factors = LARGEST / largest
    high, middle, low = (rows.new_empty(count, inputs, dtype=torch.int8) for _ in range(3))
    length = min(count, max(1, PIECE // inputs))
    scaled, whole = rows.new_empty(length, inputs), rows.new_empty(length, inputs, dtype=torch.int32)
    for start in range(0, count, length):
        piece = slice(start, start + length)
        if count - start < length:
            scaled, whole = scaled[: count - start], whole[: count - start]
        whole.copy_(torch.mul(rows[piece], factors[piece], out=scaled).round_())
        # Copying keeps the lowest eight bits as a signed number; adding 128 carries its sign.
        low[piece] = whole
        middle[piece] = whole.add_(128).bitwise_right_shift_(8)
        high[piece] = whole.add_(128).bitwise_right_shift_(8)
    return Digits(high, middle, low, largest.div_(127))


class SplitProduct:
    """A split weight (outputs, inputs) with optional bias: maps (rows, inputs) to (rows, outputs). Immutable."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        *digits, scales = split(weight.detach())
        self._weights = tuple(map(_laid_out, digits))
        self._scales, self._zeros = scales.flatten(), torch.zeros(len(weight), dtype=torch.int32)
        self._bias = None if bias is None else bias.detach()

    def __call__(self, x: Tensor) -> Tensor:
        *digits, scales = split(x)
        sums = self._added(None, digits, *PAIRS[0])
        for one, other in PAIRS[1:]:
            sums = self._added(sums, digits, one, other)
        length = max(1, PIECE // sums.shape[1])
        for piece, scale in zip(sums.split(length), scales.split(length), strict=True):
            piece.mul_(scale)
            if self._bias is not None:
                piece.add_(self._bias)
        return sums

    def _added(self, sums: Tensor | None, digits: Sequence[Tensor], one: int, other: int) -> Tensor:
        """``sums`` plus the products of the rows' digit ``one`` with the weights' digit ``other``."""
        scale = 2.0 ** (-8 * (one + other))
        return _add(sums, digits[one], self._weights[other], scale, self._scales, self._zeros)


def _add(sums: Tensor | None, digits: Tensor, weights: Tensor, scale: float, scales: Tensor, zeros: Tensor) -> Tensor:
    """``sums`` plus ``scale`` · ``digits`` (rows, inputs) · packed ``weights``; ``scales``, ``zeros`` per output."""
    multiply, more = torch.ops.onednn.qlinear_pointwise, (torch.float32, 1.0, 0)
    if sums is None:
        return multiply(digits, scale, 0, weights, scales, zeros, None, 1.0, 0, torch.float32, "none", [], "")
    return multiply.binary(
        digits, scale, 0, weights, scales, zeros, sums, None, 1.0, 0, *more, "sum", 1.0, "none", [], ""
    )


def _laid_out(weights: Tensor) -> Tensor:
    """Integers (outputs, inputs) in the layout of oneDNN's kernels."""
    return torch.ops.onednn.qlinear_prepack(weights.contiguous(), [ROWS, weights.shape[1]])
