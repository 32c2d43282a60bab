"""A canvas whose text and reference are computed at every n-th step only; in between, their kept keys and values are
used.

They see the canvas and so change with it: this is an approximation. They change little, as most of them does not depend
on the canvas.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paretone.models.kernels.fused_masked import FusedMasked
from paretone.models.kernels.masked_rows import MaskedRequest, Rows
from paretone.models.kernels.spaced_run import SpacedRun
from paretone.sampling.demasking import Guide


class PrefixMemory:
    """Keys and values of the rows before the canvas, layer by layer."""

    def __init__(self, rows: int) -> None:
        """``rows`` before the canvas."""
        self._rows = rows
        self._kept: dict[int, tuple[Tensor, Tensor]] = {}
        self.recording = True
        """Whether a pass has these rows, so that they are kept, or lacks them, so that they are put in front."""

    def __call__(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values that the conditional branch of a layer attends to, (rows, key heads, head_width) both."""
        if self.recording:
            self._kept[layer] = keys[: self._rows], values[: self._rows]
            return keys, values
        before = self._kept[layer]
        return torch.cat([before[0], keys]), torch.cat([before[1], values])


class KeptPrefixRun(SpacedRun):
    """See the module."""

    def __init__(self, network: FusedMasked, request: MaskedRequest, guidance: float, every: int) -> None:
        """Text and reference are computed at the first pass of a canvas or block and at ``every`` n-th from there."""
        super().__init__(network, request, guidance, every)
        self._memory: PrefixMemory = PrefixMemory(request.prefix)

    short_name, short_title = "kept", "text kept"

    @property
    def kept_rows(self) -> int:
        return self._request.prefix

    def rows_of(self, guide: Guide) -> int:
        return super().rows_of(guide) - self._request.prefix + math.ceil(self._request.prefix / self._every)

    def _short_rows(self, rows: int) -> int:
        return rows - self._request.prefix

    def _hidden(self, codes: Tensor, first: int, last: int, rows: Rows) -> Tensor:
        self._memory.recording = self._begin_pass(rows)
        if self._memory.recording:
            return super()._hidden(codes, first, last, rows)
        canvas, frames = self._network.audio(codes[:, : self._request.frames]), self._request.frames
        branches = len(rows.parts)
        short = rows.without_prefix(self._request.prefix)
        turned, values = (torch.cat([one] * branches) for one in self._network.project(canvas))
        return self._network.forward(
            torch.cat([canvas] * branches), (turned, values), short, short.wanted(first, last, frames), self._memory
        )

    def _cost(self, targets: int, guide: Guide) -> float:
        if self._next_is_whole(guide):
            return super()._cost(targets, guide)
        config, request = self._network.config, self._request
        inner = config.transformer
        # Only the canvas after the prefix attends to it; nothing else of the prefix is computed.
        seen = 4 * inner.layers * request.frames * request.prefix * inner.width
        alone = config.operations(request.frames, 0) if guide is Guide.BOTH else 0.0
        return config.operations(request.frames, targets) + seen + alone
