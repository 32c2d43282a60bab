"""A canvas of which the layers in the middle are computed at every n-th step only: in between, what they added to the
residual stream then stands for what they would add.

Codes that were committed in the meantime have changed the rows they stand in, so this is an approximation. See
:mod:`engine.techniques.layer_reuse`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from torch import Tensor

from engine.models.kernels.fused_masked import FusedMasked, MaskedRequest, MaskedRun, Rows
from engine.models.kernels.layer_span import LayerSpan
from engine.sampling.demasking import Guide


class ReusedLayersRun(MaskedRun):
    """See the module."""

    _span: LayerSpan

    def __init__(
        self, network: FusedMasked, request: MaskedRequest, guidance: float, every: int, layers: range
    ) -> None:
        super().__init__(network, request, guidance)
        self._every, self._passes, self._was_whole = every, 0, True
        self._span = LayerSpan(layers)

    def rows_of(self, guide: Guide) -> int:
        whole = super().rows_of(guide)
        return round(whole / self._every + self._short(whole) * (1 - 1 / self._every))

    def rows_of_last(self, guide: Guide) -> int:
        whole = super().rows_of(guide)
        return whole if self._was_whole else round(self._short(whole))

    def begin_block(self) -> None:
        self._passes = 0

    short_name, short_title = "short", "layers reused"

    @property
    def left_out(self) -> range:
        return self._span.layers

    def short_passes(self, guides: Sequence[Guide]) -> list[bool]:
        found, reusable = [], False
        for number, guide in enumerate(guides):
            both = guide is Guide.BOTH
            short = number % self._every != 0 and (reusable or not both)
            if not short:
                # What a pass with one branch finds serves none with both.
                reusable = both
            found.append(short)
        return found

    def stay_short(self) -> None:
        self._every = sys.maxsize

    def _short(self, rows: int) -> float:
        """How many rows through all layers cost as much as ``rows`` through those outside of the span."""
        depth = len(self._network.layers)
        return rows * (depth - len(self._span.layers)) / depth

    def _is_whole(self, guide: Guide) -> bool:
        """Whether the next pass computes all layers. What was found without the unconditional branch does not serve a
        pass with it."""
        return self._passes % self._every == 0 or self._span.rows < super().rows_of(guide)

    def _hidden(self, codes: Tensor, first: int, last: int, rows: Rows) -> Tensor:
        guide = Guide.BOTH if len(rows.parts) == 2 else Guide.ALONE
        self._was_whole = self._span.recording = self._is_whole(guide)
        self._passes += 1
        return super()._hidden(codes, first, last, rows)

    def _cost(self, targets: int, guide: Guide) -> float:
        whole, config = super()._cost(targets, guide), self._network.config
        if self._is_whole(guide):
            return whole
        of_layers = whole - config.operations(0, targets)
        return whole - of_layers * len(self._span.layers) / config.transformer.layers
