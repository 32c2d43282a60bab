"""A linear layer with 8-bit weights, whose inputs are quantised as they come (dynamic quantisation)."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn

_ENGINES = ("onednn", "x86", "fbgemm", "qnnpack")
"""Torch's back ends for products of whole numbers, the preferred one first: oneDNN's are twice as fast as the others on
processors with AMX."""


class Int8Linear(nn.Module):
    """(…, inputs) to (…, outputs), float32. Weights are whole numbers with one scale an output, chosen so that the
    largest is 127; inputs have one scale a call."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        weight = weight.detach()
        scales = weight.abs().amax(dim=1).clamp_min(torch.finfo(weight.dtype).tiny).double() / 127
        before = torch.backends.quantized.engine
        try:
            torch.backends.quantized.engine = self._engine()
            with warnings.catch_warnings():
                # Torch means to replace its quantised tensors, but has nothing in their place that is as fast here.
                warnings.simplefilter("ignore", UserWarning)
                whole = torch.quantize_per_channel(
                    weight, scales, torch.zeros(len(scales), dtype=torch.long), 0, torch.qint8
                )
                self._packed = torch.ops.quantized.linear_prepack(whole, None if bias is None else bias.detach())
        finally:
            torch.backends.quantized.engine = before

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.quantized.linear_dynamic(x, self._packed, False)

    @classmethod
    def available(cls) -> bool:
        """Whether this build of torch has a back end for it."""
        return cls._engine() is not None

    @staticmethod
    def _engine() -> str | None:
        return next((one for one in _ENGINES if one in torch.backends.quantized.supported_engines), None)
