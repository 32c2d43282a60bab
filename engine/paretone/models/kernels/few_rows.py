"""Matrix products with few rows, whose time is that of reading the weights; float16 weights are read as float16.

If every weight is exactly representable in float16 or bfloat16, as in many checkpoints, 16 bits store it without loss:
the processor widens it in a register and computes in float32. Results equal those of float32 weights up to rounding,
with half the memory. The code is that of :mod:`paretone.models.kernels.machine_code`. It uses one thread, so on many
cores large weights stay with torch where that is measured to be faster.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from timeit import Timer
from types import ModuleType
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.errors import Cancelled
from paretone.observer import Check, Status
from paretone.sampling.tokens import unless_numba_fails

Product = Callable[[Tensor], Tensor]
"""Maps (rows, inputs) to (rows, outputs)."""
LARGE = 2_000_000
"""Number of weights from which torch's products may be faster, on several threads."""
TRIALS = 5


def product(weight: Tensor, bias: Tensor | None = None) -> Product:
    """The product with ``weight`` (outputs, inputs) plus ``bias`` (outputs,), in the fastest exact form."""
    plain = weight.device.type == "cpu" and weight.dtype == torch.float32
    if plain and (bias is None or bias.dtype == torch.float32) and machine_code() is not None:
        scale = half_scale(weight)
        half, threads = scale is not None, torch.get_num_threads()
        if weight.numel() < LARGE or blocks_pay(*weight.shape, threads, half):
            return BlockProduct(weight, bias, scale or 1.0, half=half)
    return partial(F.linear, weight=weight.contiguous(), bias=bias)


@functools.cache
def blocks_pay(outputs: int, inputs: int, threads: int, half: bool) -> bool:
    """Whether one and four rows take less time with weights in blocks, which only one of the ``threads`` reads."""
    weight = torch.zeros(outputs, inputs)

    def seconds(product: Product) -> float:
        few = (torch.zeros(count, inputs) for count in (1, 4))
        return sum(min(Timer(partial(product, rows)).repeat(TRIALS, 1)) for rows in few)

    return seconds(BlockProduct(weight, half=half)) < seconds(partial(F.linear, weight=weight))


def half_scale(weight: Tensor) -> float | None:
    """The power of two by which float32 ``weight`` can be stored in float16 without loss, 1 if possible; ``None``: it
    cannot. Numbers of bfloat16 fit if they are made large: those with the exponents of float16's smallest numbers,
    whose last digits it lacks, are then below 2⁻³¹ of the largest weight, and their errors below 2⁻³⁹ of it."""
    weight = weight.detach()
    if torch.equal(weight.half().float(), weight):
        return 1.0
    scale = 2.0 ** (15 - math.frexp(float(weight.abs().max()))[1])
    scaled = weight * scale
    return scale if float((scaled.half().float() - scaled).abs().max()) <= 2.0**-25 else None


@unless_numba_fails("Passes run in torch, slower")
def machine_code() -> ModuleType:
    """:mod:`paretone.models.kernels.one_call`, if its code can be compiled here and multiplies correctly."""
    from paretone.models.kernels import one_call

    generator = torch.Generator().manual_seed(0)
    weight, bias = torch.randn(96, 48, generator=generator).half().float(), torch.randn(96, generator=generator)
    rows = torch.randn(7, 48, generator=generator)
    tried = [BlockProduct(weight, bias, half=half) for half in (False, True)]
    if not all(torch.allclose(one(rows), F.linear(rows, weight, bias), atol=1e-4) for one in tried):
        raise ArithmeticError("its products are wrong")
    one_call.prepare()
    return one_call


@contextmanager
def compiling(status: Status, check: Check) -> Iterator[None]:
    """Report that machine code is compiled, if it is, and cancel that at numba's next step."""
    try:
        from numba.core import event
    except ImportError:
        yield
        return

    class Listener(event.Listener):
        said = False

        def on_start(self, event: Any) -> None:
            try:
                if not self.said:
                    self.said = True
                    status("Compiling machine code for this processor, once: 5 to 10 s …")
                check()
            except Cancelled as cancelled:
                # Other exceptions mean that nothing can be compiled here.
                raise KeyboardInterrupt from cancelled

        def on_end(self, event: Any) -> None: ...

    try:
        with event.install_listener("numba:run_pass", Listener()):
            yield
    except KeyboardInterrupt as interruption:
        raise Cancelled from interruption


def weight_of(product: Product) -> tuple[Tensor, Tensor | None]:
    """Float32 weights (outputs, inputs) and bias (outputs,) of a result of :func:`product`, exactly."""
    if isinstance(product, BlockProduct):
        return product.weight, product.bias
    assert isinstance(product, partial)
    return product.keywords["weight"], product.keywords["bias"]


class Immutable:
    """A product that copies of a model share."""

    def __deepcopy__(self, memory: dict[int, Any]) -> Self:
        return self


class BlockProduct(Immutable):
    """A product with weights in blocks, float16 or float32, for any number of rows."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None, scale: float = 1.0, *, half: bool) -> None:
        """``scale``: power of two by which weights are stored; rows are divided by it."""
        from paretone.models.kernels.machine_code import BLOCK

        self.scale, self.half, self.bias = scale, half, None if bias is None else bias.detach()
        self.outputs, self.inputs = weight.shape
        self._padding = -self.outputs % BLOCK
        blocks = F.pad(weight.detach() * scale, (0, 0, 0, self._padding)).unflatten(0, (-1, BLOCK)).transpose(1, 2)
        self.blocks = (blocks.half() if half else blocks).contiguous()
        """(blocks, inputs, BLOCK)."""

    @property
    def address(self) -> int:
        return self.blocks.data_ptr()

    @property
    def weight_bytes(self) -> float:
        return float(self.blocks.element_size())

    @property
    def weight(self) -> Tensor:
        """Float32 weights (outputs, inputs)."""
        return self.blocks.float().transpose(1, 2).flatten(0, 1)[: self.outputs].div(self.scale).contiguous()

    def __call__(self, x: Tensor) -> Tensor:
        from paretone.models.kernels.one_call import multiply

        rows = x if self.scale == 1 else x / self.scale
        found = x.new_zeros(len(x), self.outputs + self._padding)
        if self.bias is not None:
            found[:, : self.outputs] = self.bias
        multiply(found, rows, self.address, self.half)
        return found[:, : self.outputs] if self._padding else found


# Matrix products of few rows with weights of 8 or 4 bits, packed once (weight-only quantisation).
#
# Integer weights are widened in registers and multiplied by rows in bfloat16; sums are float32. Scales and zero points
# are bfloat16, and the weights are rounded for these, so the only error is rounding of weights and rows. Products of
# more rows, such as those of a prompt, use the unpacked weights. In float32 and float16 torch's operators are loops
# without vector instructions, tens of times slower.


FEW_ROWS = 16
"""Maximum number of rows for packed weights: one token, or a draft to verify."""
GROUPS = (32, 64, 128, 256)
"""Inputs that share a scale and a zero point in 4-bit weights."""
_OUTPUTS, _INPUTS = 16, 64
"""Required multiples: of outputs for 4 bits, of inputs for 8 bits, which the operator does not check."""


class Int8Product(Immutable):
    """A product with integer weights from −127 to 127 and one scale per output."""

    weight_bytes = 1.0

    def __init__(self, weight: Tensor, bias: Tensor | None, many: Product) -> None:
        """``weight`` is (outputs, inputs); ``many`` is the same product for more rows."""
        self._scales = (weight.abs().amax(dim=1).clamp_min(torch.finfo(torch.float32).tiny) / 127).bfloat16()
        whole = (weight / self._scales.float()[:, None]).round().clamp_(-127, 127).to(torch.int8)
        self._inputs = weight.shape[1]
        self._padding = -self._inputs % _INPUTS
        self._whole = F.pad(whole, (0, self._padding)).contiguous()
        self._bias, self.many = bias, many

    @property
    def weight(self) -> Tensor:
        return self._whole[:, : self._inputs].float() * self._scales.float()[:, None]

    def __call__(self, x: Tensor) -> Tensor:
        if len(x) > FEW_ROWS:
            return self.many(x)
        rows = F.pad(x, (0, self._padding)) if self._padding else x
        found = torch.ops.aten._weight_int8pack_mm(rows.bfloat16(), self._whole, self._scales).float()
        return found if self._bias is None else found.add_(self._bias)


class Int4Product(Immutable):
    """A product with weights of 16 values, evenly spaced from least to greatest in each group of inputs."""

    def __init__(self, weight: Tensor, bias: Tensor | None, many: Product, group: int) -> None:
        """As :class:`Int8Product`; ``group`` divides the inputs and is one of :data:`GROUPS`."""
        self._outputs = len(weight)
        grouped = F.pad(weight, (0, 0, 0, -self._outputs % _OUTPUTS)).unflatten(1, (-1, group))
        least, greatest = grouped.amin(-1), grouped.amax(-1)
        scales = ((greatest - least) / 15).clamp_min(torch.finfo(torch.float32).tiny).bfloat16()
        zeros = (least + 8 * scales.float()).bfloat16()
        # The operator computes (whole − 8) · scale + zero.
        whole = (grouped - zeros.float()[..., None]) / scales.float()[..., None]
        whole = whole.add_(8).round_().clamp_(0, 15).int()
        self._whole, self._scales, self._zeros = whole.to(torch.uint8), scales, zeros
        self._packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(whole.flatten(1).contiguous(), 1)
        self._scaling = torch.stack([scales, zeros], dim=-1).transpose(0, 1).contiguous()
        self._bias, self.many, self._group = bias, many, group
        self.weight_bytes = 0.5 + 4 / group

    @property
    def weight(self) -> Tensor:
        whole = self._whole.float() - 8
        return (whole * self._scales.float()[..., None] + self._zeros.float()[..., None]).flatten(1)[: self._outputs]

    def __call__(self, x: Tensor) -> Tensor:
        if len(x) > FEW_ROWS:
            return self.many(x)
        found = torch.ops.aten._weight_int4pack_mm_for_cpu(x.bfloat16(), self._packed, self._group, self._scaling)
        found = found[:, : self._outputs].float()
        return found if self._bias is None else found.add_(self._bias)


def packed_product(product: Product, inputs: int, bits: int, group: int = GROUPS[0]) -> Product:
    """``product`` of ``inputs`` numbers, with 8 or 4 ``bits`` for few rows; unchanged if these make no whole groups."""
    if bits == 4 and inputs % group:
        return product
    weight, bias = weight_of(product)
    return Int8Product(weight, bias, product) if bits == 8 else Int4Product(weight, bias, product, group)


@functools.cache
def can_read_packed() -> bool:
    """Whether this build of torch has correct operators."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(48, 64, generator=generator)
    rows = torch.randn(3, 64, generator=generator)

    def plain(x: Tensor) -> Tensor:
        return F.linear(x, weight)

    try:
        tried = (Int8Product(weight, None, plain), Int4Product(weight, None, plain, GROUPS[0]))
        return all(torch.allclose(one(rows), F.linear(rows, one.weight), rtol=0.02, atol=0.2) for one in tried)
    except (AttributeError, NotImplementedError, RuntimeError):
        return False
