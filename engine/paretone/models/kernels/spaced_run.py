"""A canvas of which most passes leave something out: whole is the first pass of a canvas or block, and every n-th from
there."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from paretone.models.kernels.fused_masked import FusedMasked, MaskedRun
from paretone.models.kernels.masked_rows import MaskedRequest, Rows
from paretone.sampling.demasking import Guide


class SpacedRun(MaskedRun):
    """Counts passes and says which are whole. A subclass says what short ones leave out: in ``_hidden``, where it calls
    :meth:`_begin_pass` first, in ``_short_rows``, and in ``_cost``."""

    def __init__(self, network: FusedMasked, request: MaskedRequest, guidance: float, every: int) -> None:
        super().__init__(network, request, guidance)
        self._every, self._passes, self._was_whole = every, 0, True
        self._last_whole: Guide | None = None
        """Guidance of the last whole pass."""

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
        """Number of rows of a whole pass that cost as much as a short pass over ``rows``."""
        raise NotImplementedError

    def _is_whole(self, number: int, guide: Guide, last_whole: Guide | None) -> bool:
        """Whether pass ``number`` of a canvas or block, from 0, is whole; ``last_whole`` is how the last whole pass was
        guided."""
        return number % self._every == 0

    def _next_is_whole(self, guide: Guide) -> bool:
        """Whether the next pass is whole."""
        return self._is_whole(self._passes, guide, self._last_whole)

    def _begin_pass(self, rows: Rows) -> bool:
        """A pass over ``rows`` begins: whether it is whole."""
        guide = Guide.BOTH if len(rows.parts) == 2 else Guide.ALONE
        self._was_whole = self._next_is_whole(guide)
        self._last_whole = guide if self._was_whole else self._last_whole
        self._passes += 1
        return self._was_whole
