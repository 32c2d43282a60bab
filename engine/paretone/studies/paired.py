"""Paired tests of two settings on the same sentences, and the utterances with the most errors. Torch-free.

Each test is of one minus the other: the difference with a 95 % interval by resampling sentences, and the exact
two-sided sign test on the sentences that differ (W. J. Conover, "Practical Nonparametric Statistics", 1999, section
3.4). Takes of one sentence count once, however many voices and seeds it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from paretone.listening.statistics import sign_test
from paretone.measure.estimates import drawn, ends, statistic_of
from paretone.measure.metrics import LOWER, metric

Item = TypeVar("Item")
WORST = 5
"""Utterances shown as the worst of a setting."""
LEVEL = 0.05
SIGN_NOTE = "95 % interval by bootstrap over the sentences; p: exact two-sided sign test on the sentences that differ"


@dataclass(frozen=True)
class PairedTest:
    """One minus the other, on the sentences that both have."""

    metric: str
    difference: float
    low: float | None
    high: float | None
    """Ends of the 95 % interval; ``None`` for a single sentence."""
    sentences: int
    higher: int
    """Sentences with a higher figure in one than in the other."""
    lower: int
    p: float

    @property
    def words(self) -> str:
        """For example ``Word error rate +1.20 % (+0.30 % to +2.10 %), 7 of 50 sentences worse, 1 better, p = 0.0703``.
        Differences of shares are in percentage points."""
        one = metric(self.metric)

        def signed(value: float) -> str:
            return ("+" if value > 0 else "") + one.said(value)

        interval = ""
        if self.low is not None and self.high is not None:
            interval = f" ({signed(self.low)} to {signed(self.high)})"
        worse, better = (self.higher, self.lower) if one.better == LOWER else (self.lower, self.higher)
        split = f"{worse} of {self.sentences} sentence{'' if self.sentences == 1 else 's'} worse, {better} better"
        return f"{one.title} {signed(self.difference)}{interval}, {split}, p = {self.p:.3g}"


def paired(name: str, one: Mapping[str, complex], other: Mapping[str, complex]) -> PairedTest | None:
    """Test of the metric ``name`` from its values by sentence, errors + 1j · words for a rate; ``None`` without a
    common sentence, and for medians, which are of times."""
    statistic = metric(name).statistic
    common = sorted(one.keys() & other.keys())
    if not common or statistic == "median":
        return None
    columns = np.array([[one[text], other[text]] for text in common])
    if statistic == "rate":
        each = columns.real / columns.imag
    else:
        each = columns = columns.real
    votes = sign_test((each[:, 0] - each[:, 1]).tolist())
    value, other_value = statistic_of(columns[None], statistic)[0]
    low = high = None
    if len(common) > 1:
        figures = drawn(columns, statistic)
        low, high = map(float, ends(figures[:, 0] - figures[:, 1]))
    difference = float(value - other_value)
    return PairedTest(name, difference, low, high, len(common), votes.better, votes.worse, votes.p)


def worst(rated: Iterable[tuple[Item, float | None]], count: int = WORST) -> list[Item]:
    """Items with the most errors, the worst first, from pairs with their error rates; none without errors."""
    wrong = [(rate, one) for one, rate in rated if rate]
    return [one for _, one in sorted(wrong, key=lambda pair: -pair[0])[:count]]


def caution(tests: Sequence[PairedTest]) -> str:
    """Sentence on the number of tests, or ``""`` for one."""
    if len(tests) < 2:
        return ""
    return f"{len(tests)} tests, not corrected for their number: of 20 on equal settings, one has p < {LEVEL}."
