"""Canvases with short passes: the first pass of a canvas or block and every n-th from there are complete, the others
skip something.

Either text and reference are skipped and their kept keys and values used: they attend to the canvas, but depend on it
only a little. Or the middle layers are skipped. Both are approximations.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import torch
from torch import Tensor

from paretone.models.kernels.fused_masked import FusedMasked, MaskedRequest, MaskedRun
from paretone.models.kernels.masked_pass import LayerSpan, PrefixMemory, Rows
from paretone.sampling.demasking import Guide


class SpacedRun(MaskedRun):
    """Counts passes and decides which are complete. Subclasses define short passes in ``hidden``, which calls
    :meth:`_begin_pass` first, in ``_short_rows``, and in ``_cost``."""

    def __init__(self, network: FusedMasked, request: MaskedRequest, guidance: float, every: int) -> None:
        super().__init__(network, request, guidance)
        self._every, self._passes, self._was_whole = every, 0, True
        self._last_whole: Guide | None = None

    def begin_block(self) -> None:
        self._passes = 0

    def stay_short(self) -> None:
        self._every = sys.maxsize

    def short_passes(self, guides: Sequence[Guide]) -> list[bool]:
        found, last_whole = [], None
        for number, guide in enumerate(guides):
            whole = self._is_whole(number, guide, last_whole)
            last_whole = guide if whole else last_whole
            found.append(not whole)
        return found

    def rows_of_last(self, guide: Guide) -> int:
        whole = super().rows_of(guide)
        return whole if self._was_whole else round(self._short_rows(whole))

    def _short_rows(self, rows: int) -> float:
        """Number of rows of a complete pass that cost as much as a short pass over ``rows``."""
        raise NotImplementedError

    def _is_whole(self, number: int, guide: Guide, last_whole: Guide | None) -> bool:
        """Whether pass ``number`` of a canvas or block, from 0, is complete; ``last_whole``: the last one's guide."""
        return number % self._every == 0

    def _next_is_whole(self, guide: Guide) -> bool:
        return self._is_whole(self._passes, guide, self._last_whole)

    def _begin_pass(self, rows: Rows) -> bool:
        """Count a pass over ``rows``; return whether it is complete."""
        guide = Guide.BOTH if len(rows.parts) == 2 else Guide.ALONE
        self._was_whole = self._next_is_whole(guide)
        self._last_whole = guide if self._was_whole else self._last_whole
        self._passes += 1
        return self._was_whole


class KeptPrefixRun(SpacedRun):
    """A canvas whose text and reference are computed in every n-th pass; others use the kept keys and values."""

    def __init__(self, network: FusedMasked, request: MaskedRequest, guidance: float, every: int) -> None:
        super().__init__(network, request, guidance, every)
        self.memory: PrefixMemory = PrefixMemory(request.prefix)

    short_name, short_title = "kept", "text kept"

    @property
    def kept_rows(self) -> int:
        return self._request.prefix

    def rows_of(self, guide: Guide) -> int:
        return super().rows_of(guide) - self._request.prefix + math.ceil(self._request.prefix / self._every)

    def _short_rows(self, rows: int) -> int:
        return rows - self._request.prefix

    def hidden(self, codes: Tensor, first: int, last: int, rows: Rows) -> Tensor:
        self.memory.recording = self._begin_pass(rows)
        if self.memory.recording:
            return super().hidden(codes, first, last, rows)
        canvas, frames = self._network.audio(codes[:, : self._request.frames]), self._request.frames
        branches = len(rows.parts)
        short = rows.without_prefix(self._request.prefix)
        turned, values = (torch.cat([one] * branches) for one in self._network.project(canvas))
        return self._network.forward(
            torch.cat([canvas] * branches), (turned, values), short, short.wanted(first, last, frames), self.memory
        )

    def _cost(self, targets: int, guide: Guide) -> float:
        if self._next_is_whole(guide):
            return super()._cost(targets, guide)
        config, request = self._network.config, self._request
        inner = config.transformer
        # Only the canvas attends to the prefix; nothing else of the prefix is computed.
        seen = 4 * inner.layers * request.frames * request.prefix * inner.width
        alone = config.operations(request.frames, 0) if guide is Guide.BOTH else 0.0
        return config.operations(request.frames, targets) + seen + alone


class ReusedLayersRun(SpacedRun):
    """A canvas whose middle layers are computed only in every n-th pass; other passes reuse the layers' last change of
    the residual stream. Codes committed in between have changed their rows, so this is an approximation."""

    _span: LayerSpan

    def __init__(
        self, network: FusedMasked, request: MaskedRequest, guidance: float, every: int, layers: range
    ) -> None:
        super().__init__(network, request, guidance, every)
        self._span = LayerSpan(layers)

    def rows_of(self, guide: Guide) -> int:
        whole = super().rows_of(guide)
        return round(whole / self._every + self._short_rows(whole) * (1 - 1 / self._every))

    short_name, short_title = "short", "layers reused"

    @property
    def left_out(self) -> range:
        return self._span.layers

    def _short_rows(self, rows: int) -> float:
        depth = len(self._network.layers)
        return rows * (depth - len(self._span.layers)) / depth

    def _is_whole(self, number: int, guide: Guide, last_whole: Guide | None) -> bool:
        # Results without the unconditional branch cannot serve a pass with it.
        unknown = guide is Guide.BOTH and last_whole is not Guide.BOTH
        return unknown or super()._is_whole(number, guide, last_whole)

    def hidden(self, codes: Tensor, first: int, last: int, rows: Rows) -> Tensor:
        self._span.recording = self._begin_pass(rows)
        return super().hidden(codes, first, last, rows)

    def _cost(self, targets: int, guide: Guide) -> float:
        whole, config = super()._cost(targets, guide), self._network.config
        if self._next_is_whole(guide):
            return whole
        return whole - (whole - config.operations(0, targets)) * len(self._span.layers) / config.transformer.layers
