"""Layers that look both ways, run on a signal that is not there as a whole yet.

A layer gives out what no later input can change and keeps the inputs that later outputs need. At the end of the signal
it pads as it would have padded the whole, so that all parts together are what the layer makes of the whole signal, and
every input is computed with once.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Progress:
    """Progress of one signal in every layer."""

    def __init__(self, last: bool = False) -> None:
        self.last = last
        """Whether the part that is passed on now is the last one; from the start, if the signal comes as a whole."""
        self._kept: dict[Hashable, Any] = {}

    def take(self, layer: Hashable) -> Any:
        """State of ``layer`` from earlier parts; ``None`` for the first one."""
        return self._kept.pop(layer, None)

    def keep(self, layer: Hashable, what: Any) -> None:
        """Have it ready for the next part."""
        self._kept[layer] = what

    def aligned(self, place: Hashable, *signals: Tensor) -> list[Tensor]:
        """The part of several signals (B, channels, n) that all of them have reached."""
        if (before := self.take(place)) is not None:
            signals = tuple(torch.cat(pair, dim=-1) for pair in zip(before, signals, strict=True))
        count = min(one.shape[-1] for one in signals)
        self.keep(place, [one[..., count:].clone() for one in signals])
        return [one[..., :count] for one in signals]


class IncrementalConv(nn.Conv1d):
    """A convolution with zeros around the signal, in the signal's precision and on its device."""

    bias: Tensor

    def forward(self, x: Tensor, progress: Progress) -> Tensor:  # type: ignore[override]  # never called as a Conv1d
        """(B, channels, n) to what is final by now, (B, channels, m)."""
        before, margin = progress.take(self), int(self.padding[0])
        if before is None and progress.last:
            return self._convolved(x, margin)
        x = F.pad(x, (margin, 0)) if before is None else torch.cat([before, x], dim=-1)
        if progress.last:
            x = F.pad(x, (0, margin))
        span, stride = self.dilation[0] * (self.kernel_size[0] - 1) + 1, self.stride[0]
        count = max((x.shape[-1] - span) // stride + 1, 0)
        progress.keep(self, x[..., count * stride :].clone())
        return self._convolved(x) if count else x.new_empty(len(x), self.out_channels, 0)

    def _convolved(self, x: Tensor, margin: int = 0) -> Tensor:
        weight, bias = self.weight.to(x), self.bias.to(x)
        return F.conv1d(x, weight, bias, self.stride, margin, self.dilation)


def transposed(
    layer: nn.Module, x: Tensor, weight: Tensor, bias: Tensor | None, stride: int, margin: int, progress: Progress
) -> Tensor:
    """A transposed convolution of ``layer`` that crops ``margin`` outputs at both ends of the signal: (B, channels, n)
    to what is final by now, (B, outputs, m)."""
    before = progress.take(layer)
    if before is None and progress.last:
        return F.conv_transpose1d(x, weight, bias, stride, margin)
    inputs, given = (x, margin) if before is None else (torch.cat([before[0], x], dim=-1), before[1])
    count, kernel = inputs.shape[-1], weight.shape[-1]
    # An output is final once all inputs are there that begin no later than it does.
    final = count * stride
    dropped = max(count - -(-(kernel - stride) // stride), 0)
    progress.keep(layer, (inputs[..., dropped:].clone(), max(final, given) - dropped * stride))
    if not count:
        return x.new_empty(len(x), weight.shape[1], 0)
    full = F.conv_transpose1d(inputs, weight, bias, stride)
    return full[..., given : full.shape[-1] - margin if progress.last else final]


class Upsampler(nn.ConvTranspose1d):
    """A transposed convolution, cropped at both ends of the signal."""

    def forward(self, x: Tensor, progress: Progress) -> Tensor:  # type: ignore[override]  # nor as a ConvTranspose1d
        """(B, channels, n) to what is final by now, (B, channels, m)."""
        return transposed(self, x, self.weight, self.bias, self.stride[0], int(self.padding[0]), progress)


class ReflectedStart(nn.Module):
    """One more sample in front of the signal: its second."""

    def forward(self, x: Tensor, progress: Progress) -> Tensor:
        """(B, channels, n) to what is final by now, (B, channels, m); one more altogether."""
        waiting = progress.take(self)
        if waiting is _STARTED:
            progress.keep(self, _STARTED)
            return x
        x = x if waiting is None else torch.cat([waiting, x], dim=-1)
        if x.shape[-1] < 2:
            progress.keep(self, x)
            return x[..., :0]
        progress.keep(self, _STARTED)
        return torch.cat([x[..., 1:2], x], dim=-1)


_STARTED = "started"
