"""Rows of a pass of a masked network: those before a canvas, and those of each branch with their rotations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from paretone.models.networks.masked_network import MaskedConfig
from paretone.sampling.demasking import Guide

Memory = Callable[[int, Tensor, Tensor], tuple[Tensor, Tensor]]
"""Is given a layer, and the keys and values of the first branch there, and returns those that are attended to."""

Wanted = tuple[slice | Tensor, ...]
"""Rows of each branch, counted within it."""


@dataclass(frozen=True)
class MaskedRequest:
    """The rows before a canvas, and its length."""

    text: Tensor
    """Ids of text tokens, (text,)."""
    reference: Tensor
    """Codes (codebooks, frames) that the canvas continues; there may be none."""
    frames: int
    """Of the canvas."""
    positions: Tensor | None = None
    """Of text, reference and canvas, (text + reference + frames,); ``None``: 0 and on."""
    alone_positions: Tensor | None = None
    """Of the canvas in the unconditional branch, (frames,); ``None``: 0 and on."""

    @property
    def prefix(self) -> int:
        """Rows before the canvas."""
        return len(self.text) + self.reference.shape[1]

    def shortened(self, frames: int) -> MaskedRequest:
        """The same with only the first ``frames`` of the canvas."""
        positions, alone = self.positions, self.alone_positions
        return replace(
            self,
            frames=frames,
            positions=None if positions is None else positions[: self.prefix + frames],
            alone_positions=None if alone is None else alone[:frames],
        )

    def operations(self, config: MaskedConfig, targets: int, guide: Guide) -> float:
        """Operations of a step that scores ``targets`` frames (1 multiply-add = 2 operations); what the last and the
        first layer leave out is not taken off."""
        alone = config.operations(self.frames, 0) if guide is Guide.BOTH else 0.0
        return config.operations(self.prefix + self.frames, targets) + alone


@dataclass(frozen=True)
class Rows:
    """Rows of each branch in a pass, and their rotations."""

    parts: tuple[slice, ...]
    """Rows of each branch."""
    cosines: Tensor
    """(rows, 1, head_width)."""
    sines: Tensor
    """The same; those of a pair's first half are negative."""
    seen: tuple[Tensor, ...] = ()
    """Which rows of each branch are attended to, (1, rows) of truth values; without any, all are."""

    def wanted(self, first: int, last: int, frames: int) -> tuple[slice, ...]:
        """The rows, within each branch, of the frames from ``first`` to ``last``: the canvas of ``frames`` ends it."""
        starts = (part.stop - part.start - frames for part in self.parts)
        return tuple(slice(start + first, start + last) for start in starts)

    def without_prefix(self, prefix: int) -> Rows:
        """The same without the first ``prefix`` rows, which are of the first branch."""
        first, *others = self.parts
        parts = (slice(0, first.stop - prefix), *(slice(one.start - prefix, one.stop - prefix) for one in others))
        return Rows(parts, self.cosines[prefix:], self.sines[prefix:])


def rotated(turned: Tensor, rows: Rows) -> Tensor:
    """Rotate pairs of which the first half of a head holds one part and the second half the other."""
    return torch.addcmul(turned * rows.cosines, turned.roll(turned.shape[-1] // 2, dims=-1), rows.sines)
