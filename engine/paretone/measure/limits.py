"""Limits that speech must keep, judged by 95 % intervals. Torch-free.

A figure passes if its whole interval keeps the limit, fails if the whole interval is beyond it, and is undecided
otherwise: one that happens to lie on the right side of its limit in few sentences has not passed. What is undecided
says how many more sentences would decide, if they were like those so far.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from paretone.measure.estimates import Statistic, drawn, ends, statistic_of
from paretone.wording import grouped, listed

PASSES, FAILS, UNDECIDED = "passes", "fails", "undecided"
RULE_OF_THREE = 3.0
"""With no error in n words, up to 3 / n of the words may be wrong (95 %): no error rate is known more exactly. A
bootstrap of few errors would say otherwise."""
MOST_SENTENCES = 1000
"""More than this is no advice."""


@dataclass(frozen=True)
class Margin:
    """How far within its limit a figure is (below 0: beyond it), with its 95 % interval over the sentences."""

    value: float
    low: float
    high: float
    sentences: int

    @property
    def verdict(self) -> str:
        if self.low >= 0:
            return PASSES
        return FAILS if self.high < 0 else UNDECIDED

    @property
    def more(self) -> int | None:
        """Further sentences after which the interval would keep to one side; ``None`` if that cannot be said."""
        half = self.value - self.low if self.value >= 0 else self.high - self.value
        if self.verdict != UNDECIDED or not (math.isfinite(half) and self.value):
            return None
        return math.ceil(self.sentences * min((half / self.value) ** 2, 1e9)) - self.sentences


UNKNOWN = Margin(math.nan, -math.inf, math.inf, 0)
"""Of what was not measured."""


def margin(
    one: np.ndarray,
    baseline: np.ndarray | None,
    bound: float,
    *,
    above: bool = False,
    share: bool = False,
    statistic: Statistic = "mean",
) -> Margin:
    """The margin of a figure by sentence, ``one`` (n,), errors + 1j · words for a ``rate``.

    The limit is ``bound``; with a ``baseline`` (n,) of the same sentences it is that figure plus ``bound``, or times
    ``bound`` if it is a ``share``. The figure has to lie at least there, or at most if ``above`` is refused. Sentences
    that lack one of the two (NaN) do not count.
    """
    columns = np.stack([one, np.zeros_like(one) if baseline is None else baseline], axis=1)
    if statistic == "rate" and baseline is None:
        columns[:, 1] = 1j
    columns = columns[~np.isnan(columns).any(1)]
    count = len(columns)
    if not count:
        return UNKNOWN

    def of(figures: np.ndarray) -> np.ndarray:
        limit = bound * figures[:, 1] if share else figures[:, 1] + bound
        return limit - figures[:, 0] if above else figures[:, 0] - limit

    value = float(of(statistic_of(columns[None], statistic))[0])
    if count == 1:
        return Margin(value, -math.inf, math.inf, count)
    low, high = map(float, ends(of(drawn(columns, statistic))))
    if statistic == "rate":
        least = RULE_OF_THREE / max(float(columns[:, 0].imag.sum()), 1.0)
        low, high = min(low, value - least), max(high, value + least)
    return Margin(value, low, high, count)


@dataclass(frozen=True)
class Judgement:
    """All limits of one way of speaking."""

    margins: Mapping[str, Margin]
    """By the figure's name."""

    @property
    def verdict(self) -> str:
        """``FAILS`` if one does, ``PASSES`` if all do, else ``UNDECIDED``."""
        verdicts = {one.verdict for one in self.margins.values()}
        return next((one for one in (FAILS, UNDECIDED) if one in verdicts), PASSES)

    def by(self, verdict: str) -> tuple[str, ...]:
        return tuple(name for name, one in self.margins.items() if one.verdict == verdict)

    @property
    def more(self) -> int | None:
        """Further sentences that would decide all that is undecided; ``None`` if that cannot be said."""
        wanted = [one.more for one in self.margins.values() if one.verdict == UNDECIDED]
        known = [one for one in wanted if one is not None]
        return max(known) if known and len(known) == len(wanted) else None

    @property
    def words(self) -> str:
        """For example ``undecided by the spread over seeds: 14 more sentences would decide``."""
        if self.verdict == PASSES:
            return PASSES
        names = listed(self.by(self.verdict))
        if self.verdict == FAILS:
            return f"{FAILS} by the {names}"
        return f"{UNDECIDED} by the {names}: {advice(self.more)}"


def advice(more: int | None) -> str:
    """How many ``more`` sentences would decide."""
    if more is None:
        return "more sentences would decide"
    if more > MOST_SENTENCES:
        return f"it lies so near the limit that more than {grouped(MOST_SENTENCES)} more sentences would have to decide"
    return f"{more} more sentence{'s' * (more != 1)} would decide"
