"""State of causal layers during one request, so that later frames never need the earlier ones again."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

GROWTH = 1.125
"""Factor by which full memory grows, so that a frame is moved only a few times and little of it lies idle."""
PROJECTED = 500
"""Keys and values are kept for this many frames, ten seconds; see :meth:`Memory.projected`."""


class Growing:
    """A tensor (…, length, width) that grows along its second last axis, in place as long as there is room."""

    def __init__(self) -> None:
        self._held: Tensor | None = None
        self.length = 0

    @property
    def everything(self) -> Tensor:
        """All appended rows, as a view. Raises :class:`ValueError` before anything was."""
        if self._held is None:
            raise ValueError("Nothing was appended yet.")
        return self._held[..., : self.length, :]

    def extend(self, new: Tensor) -> Tensor:
        """Append ``new`` and return everything up to its end, as a view."""
        end, held = self.length + new.shape[-2], self._held
        if held is None or end > held.shape[-2]:
            room = max(end, int(GROWTH * self.length))
            larger = new.new_empty(*new.shape[:-2], room, new.shape[-1])
            if held is not None:
                larger[..., : self.length, :] = held[..., : self.length, :]
            held = self._held = larger
        held[..., self.length : end, :] = new
        self.length = end
        return held[..., :end, :]


class Memory:
    """The past of one pass through causal layers, by layer. A new one knows nothing: zeros precede the first frame."""

    def __init__(self) -> None:
        self.closing = False
        """Whether what comes now is the end of the request, so that nothing need be remembered."""
        self._tails: dict[nn.Module, Tensor] = {}
        self._contexts: dict[tuple[nn.Module, str], Growing] = {}

    def preceded(self, layer: nn.Module, x: Tensor, width: int) -> Tensor:
        """``x`` (B, channels, n) with the ``width`` frames that ``layer`` was shown before it."""
        tail = self._tails.get(layer)
        x = F.pad(x, (width, 0)) if tail is None else torch.cat([tail, x], dim=-1)
        if not self.closing:
            self._tails[layer] = x[..., x.shape[-1] - width :].clone()
        return x

    def extended(self, layer: nn.Module, name: str, new: Tensor) -> Tensor:
        """Everything that ``layer`` ever called ``name``, (…, so far, width), with ``new`` at its end."""
        context = self._contexts.get((layer, name))
        if context is None:
            if self.closing:
                return new
            context = self._contexts[layer, name] = Growing()
        return context.extend(new)

    def projected(
        self, layer: nn.Module, x: Tensor, project: Callable[[Tensor], tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        """Keys and values (B, heads, so far, width) of everything that ``layer`` was shown, with those of ``x`` (B, n,
        channels) at their end; ``project`` makes them of any stretch.

        They are remembered of the first :data:`PROJECTED` frames. Of later ones, what they are made of is remembered
        instead, a quarter as much, and they are made again each time: a long request takes more time rather than more
        memory than there is.
        """
        if not self.seen(layer, "inputs") and self.seen(layer, "keys") + x.shape[1] <= PROJECTED:
            key, value = project(x)
            return self.extended(layer, "keys", key), self.extended(layer, "values", value)
        late = project(self.extended(layer, "inputs", x))
        if not self.seen(layer, "keys"):
            return late
        early = (self._contexts[layer, name].everything for name in ("keys", "values"))
        key, value = (torch.cat(pair, dim=2) for pair in zip(early, late, strict=True))
        return key, value

    def seen(self, layer: nn.Module, name: str) -> int:
        """Number of rows that :meth:`extended` has."""
        context = self._contexts.get((layer, name))
        return 0 if context is None else context.length


class CausalConv(nn.Conv1d):
    """A convolution over time that sees no later frame: (B, channels, n) to (B, channels, n)."""

    def __init__(self, inputs: int, outputs: int, kernel: int) -> None:
        super().__init__(inputs, outputs, kernel)

    def forward(self, x: Tensor, memory: Memory) -> Tensor:  # type: ignore[override]  # never called as a Conv1d
        return super().forward(memory.preceded(self, x, self.kernel_size[0] - 1))


def chunk_mask(first: int, count: int, chunk: int | None, device: torch.device) -> Tensor | None:
    """Which positions up to the last one the positions from ``first`` on may attend to: (count, first + count) bool.

    A position sees its own chunk and all before it; with ``chunk`` ``None`` it sees everything. ``None`` if all is
    visible, as when a single chunk is added.
    """
    if chunk is None or first // chunk == (first + count - 1) // chunk:
        return None
    ends = (torch.arange(first, first + count, device=device) // chunk + 1) * chunk
    return torch.arange(first + count, device=device) < ends[:, None]
