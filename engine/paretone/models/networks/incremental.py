"""Causal layers on a signal that arrives in parts, equal to passing the whole.

A layer's past is kept in a :class:`Memory`; each input is computed once.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

GROWTH = 1.125
"""Growth factor of full memory: few copies, little unused space."""
PROJECTED = 500
"""Maximum number of frames (ten seconds) with kept keys and values; see :meth:`Memory.projected`."""


class Growing:
    """A tensor (…, length, width) that grows along its second last axis, in place if there is room."""

    def __init__(self) -> None:
        self._held: Tensor | None = None
        self.length = 0

    @property
    def everything(self) -> Tensor:
        assert self._held is not None
        return self._held[..., : self.length, :]

    def extend(self, new: Tensor) -> Tensor:
        """Append ``new`` and return all rows, as a view."""
        end, held = self.length + new.shape[-2], self._held
        if held is None or end > held.shape[-2]:
            larger = new.new_empty(*new.shape[:-2], max(end, int(GROWTH * self.length)), new.shape[-1])
            if held is not None:
                larger[..., : self.length, :] = held[..., : self.length, :]
            held = self._held = larger
        held[..., self.length : end, :] = new
        self.length = end
        return held[..., :end, :]


class Memory:
    """Past of one pass through causal layers, by layer. Initially empty: zeros precede the first frame."""

    def __init__(self, closing: bool = False) -> None:
        self.closing = closing
        """Whether the request ends now, so that nothing needs to be kept."""
        self._tails: dict[nn.Module, Tensor] = {}
        self._contexts: dict[tuple[nn.Module, str], Growing] = {}
        self._windows: dict[tuple[nn.Module, str], Tensor] = {}

    def fork(self) -> Memory:
        """A memory of the same past, apart from this one; for layers that keep windows only."""
        assert not self._contexts, "Growing contexts are written in place."
        other = Memory()
        other._tails, other._windows = dict(self._tails), dict(self._windows)
        return other

    def preceded(self, layer: nn.Module, x: Tensor, width: int) -> Tensor:
        """``x`` (B, channels, n) preceded by ``layer``'s last ``width`` frames."""
        tail = self._tails.get(layer)
        x = F.pad(x, (width, 0)) if tail is None else torch.cat([tail, x], dim=-1)
        if not self.closing:
            self._tails[layer] = x[..., x.shape[-1] - width :].clone()
        return x

    def extended(self, layer: nn.Module, name: str, new: Tensor) -> Tensor:
        """Append ``new`` to ``layer``'s context ``name``; return all of it, (…, so far, width)."""
        context = self._contexts.get((layer, name))
        if context is None:
            if self.closing:
                return new
            context = self._contexts[layer, name] = Growing()
        return context.extend(new)

    def projected(
        self, layer: nn.Module, x: Tensor, project: Callable[[Tensor, int], tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        """Keys and values (B, heads, so far, width) of all inputs of ``layer``, ending with ``x`` (B, n, channels);
        ``project`` computes them for any part and its first position. They are kept for the first :data:`PROJECTED`
        frames. For later ones, the inputs are kept instead, at a quarter of the size, and projected again each time: a
        long request takes more time instead of exhausting memory."""
        kept = self.seen(layer, "keys")
        if not self.seen(layer, "inputs") and kept + x.shape[1] <= PROJECTED:
            key, value = project(x, kept)
            return self.extended(layer, "keys", key), self.extended(layer, "values", value)
        late = project(self.extended(layer, "inputs", x), kept)
        if not kept:
            return late
        early = (self._contexts[layer, name].everything for name in ("keys", "values"))
        key, value = (torch.cat(pair, dim=2) for pair in zip(early, late, strict=True))
        return key, value

    def windowed(self, layer: nn.Module, name: str, new: Tensor, width: int) -> Tensor:
        """Append ``new`` (…, n, width) to the last ``width`` rows of ``layer``'s context ``name``; return all of it."""
        before = self._windows.get((layer, name))
        everything = new if before is None else torch.cat([before, new], dim=-2)
        if not self.closing:
            self._windows[layer, name] = everything[..., max(everything.shape[-2] - width, 0) :, :].clone()
        return everything

    def seen(self, layer: nn.Module, name: str) -> int:
        """Number of rows kept by :meth:`extended`."""
        context = self._contexts.get((layer, name))
        return 0 if context is None else context.length


class CausalConv(nn.Conv1d):
    """A causal convolution over time, (B, channels, n) to (B, channels, n)."""

    def __init__(self, inputs: int, outputs: int, kernel: int, groups: int = 1, dilation: int = 1) -> None:
        super().__init__(inputs, outputs, kernel, groups=groups, dilation=dilation)

    def forward(self, x: Tensor, memory: Memory) -> Tensor:  # type: ignore[override]  # never called as a Conv1d
        return super().forward(memory.preceded(self, x, self.dilation[0] * (self.kernel_size[0] - 1)))


class CausalTransposedConv(nn.ConvTranspose1d):
    """A transposed convolution whose outputs follow from the inputs so far: (B, channels, n) to (B, channels, n ·
    stride). The kernel is as long as the stride, or twice."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__(inputs, outputs, kernel, stride)

    def forward(self, x: Tensor, memory: Memory) -> Tensor:  # type: ignore[override]  # never called as a parent
        stride = self.stride[0]
        overlap = self.kernel_size[0] // stride - 1
        full = super().forward(memory.preceded(self, x, overlap))
        return full[..., overlap * stride : (overlap + x.shape[-1]) * stride]


def chunk_mask(first: int, count: int, chunk: int, device: torch.device) -> Tensor | None:
    """Positions that those from ``first`` may attend to: (count, first + count) bool. A position sees its own chunk and
    all earlier ones. Returns ``None`` if all is visible, as for a single added chunk."""
    if first // chunk == (first + count - 1) // chunk:
        return None
    ends = (torch.arange(first, first + count, device=device) // chunk + 1) * chunk
    return torch.arange(first + count, device=device) < ends[:, None]
