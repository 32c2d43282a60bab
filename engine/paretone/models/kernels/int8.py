"""A linear layer with 8-bit weights, whose inputs are quantised as they come (dynamic quantisation)."""

from __future__ import annotations

import warnings
from functools import cache

import torch
from torch import Tensor, nn

_ENGINES = ("onednn", "x86", "fbgemm", "qnnpack")
"""Torch's back ends for products of whole numbers, the preferred one first: oneDNN's are twice as fast as the others on
processors with AMX."""


class Int8Linear(nn.Module):
    """(…, inputs) to (…, outputs), float32. Weights are whole numbers with one scale an output, chosen so that the
    largest is 127; inputs have one scale a call, and 7 bits on processors that would cut sums of products off."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self._packed = self._whole(weight.detach(), bias)
        self._seven_bits = self._saturates()

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.quantized.linear_dynamic(x, self._packed, self._seven_bits)

    @classmethod
    def available(cls) -> bool:
        """Whether this build of torch has a back end for it."""
        return cls._engine() is not None

    @classmethod
    @cache
    def _saturates(cls) -> bool:
        """Whether sums of two products are cut off at 16 bits, as they are without VNNI instructions: then products of
        8 bits are wrong by several per cent, and those of 7 are not."""
        largest = torch.ones(64, 64, device="cpu")
        found = torch.ops.quantized.linear_dynamic(largest, cls._whole(largest, None), False)
        return bool(found.min() < 0.9 * 64)

    @classmethod
    def _whole(cls, weight: Tensor, bias: Tensor | None) -> object:
        """A layer's weights as the back end wants them."""
        scales = weight.abs().amax(dim=1).clamp_min(torch.finfo(weight.dtype).tiny).double() / 127
        before, engine = torch.backends.quantized.engine, cls._engine()
        if engine is None:
            raise ValueError("This build of torch has no products of whole numbers; see available.")
        try:
            torch.backends.quantized.engine = engine
            with warnings.catch_warnings():
                # Torch means to replace its quantised tensors, but has nothing in their place that is as fast here.
                warnings.simplefilter("ignore", UserWarning)
                whole = torch.quantize_per_channel(
                    weight, scales, torch.zeros(len(scales), dtype=torch.long), 0, torch.qint8
                )
                return torch.ops.quantized.linear_prepack(whole, None if bias is None else bias.detach())
        finally:
            torch.backends.quantized.engine = before

    @staticmethod
    def _engine() -> str | None:
        return next((one for one in _ENGINES if one in torch.backends.quantized.supported_engines), None)
