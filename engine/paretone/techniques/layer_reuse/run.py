"""A canvas whose middle layers are computed at every n-th step only: in between, their last change of the residual
stream is reused.

Codes that were committed in the meantime have changed their rows, so this is an approximation. See
:mod:`paretone.techniques.layer_reuse`.
"""

from __future__ import annotations

from torch import Tensor

from paretone.models.kernels.fused_masked import FusedMasked, LayerSpan, MaskedRequest, Rows
from paretone.models.kernels.kept_prefix import SpacedRun
from paretone.sampling.demasking import Guide


class ReusedLayersRun(SpacedRun):
    """See the module."""

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
        # What was found without the unconditional branch does not serve a pass with it.
        unknown = guide is Guide.BOTH and last_whole is not Guide.BOTH
        return unknown or super()._is_whole(number, guide, last_whole)

    def _hidden(self, codes: Tensor, first: int, last: int, rows: Rows) -> Tensor:
        self._span.recording = self._begin_pass(rows)
        return super()._hidden(codes, first, last, rows)

    def _cost(self, targets: int, guide: Guide) -> float:
        whole, config = super()._cost(targets, guide), self._network.config
        if self._next_is_whole(guide):
            return whole
        of_layers = whole - config.operations(0, targets)
        return whole - of_layers * len(self._span.layers) / config.transformer.layers
