"""Ranking: which of several settings is preferred? Pairs in random order, every pair as often as the others."""

from __future__ import annotations

import random
from collections.abc import Sequence

from paretone.listening.statistics import pairs
from paretone.listening.trials import RANKING, RecordError
from paretone_app.listening.preference import PairsSession
from paretone_app.listening.session import Planned
from paretone_app.listening.stimuli import PreparedItem

FEWEST, MOST = 3, 12
"""Settings."""


class RankingSession(PairsSession):
    """``trials`` pairs over the items in turn: all pairs of settings once before any comes again, either first equally
    often, give or take one."""

    method = RANKING

    def __init__(
        self,
        items: Sequence[PreparedItem],
        listener: str,
        trials: int,
        chance: random.Random | None = None,
        name: str = "",
        practice: int = 0,
    ) -> None:
        counts = {len(one.stimuli) for one in items}
        if len(counts) != 1 or not FEWEST <= min(counts) <= MOST:
            raise RecordError(f"A ranking is of {FEWEST} to {MOST} settings, each of which has spoken every sentence.")
        self._trials, self._count = trials, counts.pop()
        super().__init__(items, listener, chance, name, practice)

    def _plan(self) -> Sequence[Planned]:
        found: list[tuple[int, int]] = []
        while len(found) < self._trials:
            found += pairs(self._count, self._chance.getrandbits(32))
        return [Planned(item, order) for item, order in zip(self._spread(self._trials), found, strict=False)]
