"""What a pass through a masked network is given: its layers' weights, rows, and what it keeps from pass to pass."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from paretone.models.kernels.few_rows import Product

Wanted = tuple[slice | Tensor, ...]
"""Rows of each branch, counted within it."""


@dataclass(frozen=True)
class Rows:
    """Rows of each branch in a pass, and their rotations."""

    parts: tuple[slice, ...]
    cosines: Tensor
    """(rows, 1, head_width)."""
    sines: Tensor
    """Like ``cosines``, negative in the first half."""
    seen: tuple[Tensor, ...] = ()
    """Attended rows of each branch, (1, rows) of truth values; empty: all."""

    def wanted(self, first: int, last: int, frames: int) -> tuple[slice, ...]:
        """Rows, in each branch, of the frames from ``first`` to ``last``; the canvas of ``frames`` is at its end."""
        starts = (part.stop - part.start - frames for part in self.parts)
        return tuple(slice(start + first, start + last) for start in starts)

    def without_prefix(self, prefix: int) -> Rows:
        """The rows without the first ``prefix``, which belong to the first branch."""
        first, *others = self.parts
        parts = (slice(0, first.stop - prefix), *(slice(one.start - prefix, one.stop - prefix) for one in others))
        return Rows(parts, self.cosines[prefix:], self.sines[prefix:])


@dataclass(frozen=True)
class FusedLayer:
    attention_norm: Tensor
    queries_keys_values: Product
    turned_norm: Tensor
    """Weights of the norms of queries and keys, (heads + key heads, head_width)."""
    output: Product
    feed_forward_norm: Tensor
    gate_up: Product
    down: Product


class PrefixMemory:
    """Keys and values of the rows before the canvas, layer by layer."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.kept: dict[int, tuple[Tensor, Tensor]] = {}
        """By layer, (rows, key heads, head_width) each."""
        self.recording = True
        """Whether a pass includes these rows, to be kept, or lacks them, so that the kept ones are prepended."""

    def __call__(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values that a layer's conditional branch attends to, (rows, key heads, head_width) each."""
        if self.recording:
            self.kept[layer] = keys[: self.rows], values[: self.rows]
            return keys, values
        before = self.kept[layer]
        return torch.cat([before[0], keys]), torch.cat([before[1], values])


class LayerSpan:
    """Consecutive inner layers, and their last contribution to the residual stream."""

    def __init__(self, layers: range) -> None:
        self.layers = layers
        self.recording = True
        """Whether the next pass computes the layers, or adds their last contribution."""
        self.added: Tensor | None = None
        """Of rows (n, hidden)."""

    def last(self, rows: int) -> Tensor:
        """The last contribution to the first ``rows``, (rows, hidden)."""
        if self.added is None:
            raise ValueError("The layers of the span have not run yet.")
        return self.added[:rows]

    def ran(self, before: Tensor, after: Tensor) -> None:
        """Keep the layers' contribution, from rows (n, hidden) before and after the span."""
        self.added = after - before
