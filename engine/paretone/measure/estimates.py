"""Means, medians and rates with 95 % intervals, by bootstrap over clusters; and limits judged by them. Torch-free.

Takes of one sentence are not independent, so sentences are resampled, not takes. Source: B. Efron and R. Tibshirani,
"An Introduction to the Bootstrap", 1993, percentile intervals; A. C. Davison and D. V. Hinkley, "Bootstrap Methods and
their Application", 1997, section 3.8, on resampling clusters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from paretone.wording import grouped, listed

# --- Bootstrap: draws are seeded, so equal figures have equal intervals -----------------------------------------------
PERCENTILES = (2.5, 97.5)


def picks(size: int, draws: int, seed: int = 0) -> np.ndarray:
    """Indices of the findings in each draw, (draws, size)."""
    return np.random.default_rng(seed).integers(0, size, (draws, size))


def ends(drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Low and high ends of the 95 % interval of a drawn statistic (draws, …); each of shape (…)."""
    low, high = np.percentile(drawn, PERCENTILES, axis=0)
    return low, high


def bootstrap(
    statistic: Callable[..., np.ndarray], *findings: np.ndarray, draws: int, seed: int = 0
) -> tuple[float, float, float]:
    """A statistic of paired ``findings``, (n,) each, with the ends of its 95 % interval. ``statistic`` maps draws of
    all findings, (draws, n) each, to its values (draws,)."""
    columns = [np.asarray(one) for one in findings]
    chosen = picks(len(columns[0]), draws, seed)
    low, high = ends(statistic(*(one[chosen] for one in columns)))
    return float(statistic(*(one[None] for one in columns))[0]), float(low), float(high)


def median_interval(values: Sequence[float], seed: int = 0) -> tuple[float, float, float]:
    """The median of ``values`` with the ends of its 95 % interval; equal values give equal intervals."""
    return bootstrap(lambda drawn: np.median(drawn, axis=1), np.asarray(values, dtype=float), draws=4000, seed=seed)


def tails(values: Sequence[float], clusters: Sequence[int] = ()) -> tuple[float, np.ndarray]:
    """90th percentile of runs, and that of each draw (DRAWS,) of ``clusters`` (one number per run) if there are
    several, otherwise of the runs."""
    found = np.asarray(values, dtype=float)
    _, place = np.unique(clusters or range(len(found)), return_inverse=True)
    place = place if place.max() else np.arange(len(found))
    # Each draw repeats a cluster's runs as often as it drew the cluster.
    order = np.argsort(found)
    weights = _counts(int(place.max()) + 1)[:, place[order]].cumsum(1)
    return float(np.percentile(found, TAIL)), found[order][(weights >= weights[:, -1:] * TAIL / 100).argmax(1)]


def tail_interval(values: Sequence[float], clusters: Sequence[int] = ()) -> tuple[float, float, float]:
    """90th percentile of runs with the ends of its 95 % interval: see :func:`tails`."""
    value, drawn_tails = tails(values, clusters)
    return around(value, drawn_tails)


def around(value: float, drawn_values: np.ndarray) -> tuple[float, float, float]:
    """``value`` with the ends of its 95 % interval from draws (draws,), which always include it."""
    low, high = ends(drawn_values)
    return value, min(float(low), value), max(float(high), value)


def mean_ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Mean of one finding over the mean of another in each draw, (draws, n) each: (draws,)."""
    return above.mean(1) / below.mean(1)


def rate(counts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Sum of counts over sum of sizes in each draw, (draws, n) each: (draws,)."""
    return counts.sum(1) / sizes.sum(1)


NORMAL_95 = 1.959964
"""The normal distribution's 97.5 % quantile."""


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """95 % interval of a proportion, by Wilson's score, which stays within 0 and 1 and suits few trials."""
    if trials == 0:
        return 0.0, 1.0
    share, square = successes / trials, NORMAL_95**2
    centre = (share + square / (2 * trials)) / (1 + square / trials)
    half = NORMAL_95 / (1 + square / trials) * math.sqrt(share * (1 - share) / trials + square / (4 * trials**2))
    return max(0.0, centre - half), min(1.0, centre + half)


DRAWS = 1000
Statistic = Literal["mean", "median", "rate", "p90"]
TAIL = 90
"""Percentile of the statistic ``p90``, over runs (:func:`tails`), with linear interpolation between them."""


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval; ``low`` and ``high`` equal the value if there is only one cluster."""

    value: float
    low: float
    high: float
    n: int
    clusters: int
    """Number of sentences in the interval."""
    words: int = 0
    """Number of words of an error rate; 0 for other figures."""

    @property
    def ends(self) -> tuple[float, float, float]:
        """The value, and both ends of its interval."""
        return self.value, self.low, self.high

    @property
    def spreads(self) -> bool:
        """Whether the interval has a width: it has none for a single sentence or equal figures."""
        return self.clusters > 1 and self.low < self.high

    @property
    def over(self) -> str:
        """Word count of a rate without an interval, such as ``18 words``; otherwise ``""``. A bootstrap over no errors
        always gives none, so only the word count shows the certainty."""
        if self.spreads or not self.words:
            return ""
        return f"{self.words} word{'' if self.words == 1 else 's'}"


def estimates(columns: np.ndarray, statistic: Statistic, n: Sequence[int]) -> list[Estimate]:
    """One estimate per column of (clusters, columns): the statistic over clusters. ``n``: takes per column. For a
    ``rate``, columns are complex: errors + 1j · words, and the figure is all errors over all words. The draws are
    fixed, so equal columns have equal intervals."""
    clusters = len(columns)
    values = statistic_of(columns[None], statistic)[0]
    if clusters == 1:
        lows = highs = values
    else:
        lows, highs = ends(drawn(columns, statistic))
    words = columns.imag.sum(0).round().astype(int) if statistic == "rate" else np.zeros(len(values), int)
    parts = zip(values.tolist(), lows.tolist(), highs.tolist(), n, words.tolist(), strict=True)
    return [Estimate(value, low, high, count, clusters, said) for value, low, high, count, said in parts]


def drawn(columns: np.ndarray, statistic: Statistic) -> np.ndarray:
    """The statistic in each draw of clusters, from (clusters, columns): (DRAWS, columns)."""
    clusters = len(columns)
    if statistic == "median":
        # The median of a draw is that of its ranks, and the middle ranks are the same for all columns.
        lower, upper = _middles(clusters)
        ordered = np.sort(columns, axis=0)
        return (ordered[lower] + ordered[upper]) / 2
    sums = _counts(clusters) @ columns
    return sums.real / sums.imag if statistic == "rate" else sums / clusters


def statistic_of(columns: np.ndarray, statistic: Statistic) -> np.ndarray:
    """The statistic over the clusters, from (…, clusters, columns): (…, columns)."""
    if statistic == "median":
        return np.median(columns, axis=1)
    sums = columns.sum(1)
    return sums.real / sums.imag if statistic == "rate" else sums / columns.shape[1]


@lru_cache(maxsize=64)
def _picks(clusters: int) -> np.ndarray:
    return picks(clusters, DRAWS)


@lru_cache(maxsize=64)
def _middles(clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Middle ranks of each draw, (DRAWS,) each; equal for an odd number of clusters."""
    ranks = np.sort(_picks(clusters), axis=1)
    return ranks[:, (clusters - 1) // 2], ranks[:, clusters // 2]


@lru_cache(maxsize=64)
def _counts(clusters: int) -> np.ndarray:
    """Multiplicity of each cluster in each draw, (DRAWS, clusters)."""
    counts = np.zeros((DRAWS, clusters))
    np.add.at(counts, (np.arange(DRAWS)[:, None], _picks(clusters)), 1.0)
    return counts


# --- Limits -----------------------------------------------------------------------------------------------------------
# A figure passes if its whole interval is within the limit, fails if the whole interval is beyond it, and is undecided
# otherwise: a point estimate within the limit from a few sentences is no pass. An undecided figure states how many more
# sentences would decide, if they were like those so far.
PASSES, FAILS, UNDECIDED = "passes", "fails", "undecided"
RULE_OF_THREE = 3.0
"""With no error in n words, up to 3 / n of the words may be wrong (95 %): no error rate is known more exactly. A
bootstrap over few errors would underestimate this."""
MOST_SENTENCES = 1000
"""Upper limit of the advised number of sentences."""


@dataclass(frozen=True)
class Margin:
    """Distance of a figure from its limit (below 0: beyond it), with its 95 % interval over the sentences."""

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
        """Further sentences needed until the interval is on one side; ``None`` if unknown."""
        half = self.value - self.low if self.value >= 0 else self.high - self.value
        if self.verdict != UNDECIDED or not (math.isfinite(half) and self.value):
            return None
        return math.ceil(self.sentences * min((half / self.value) ** 2, 1e9)) - self.sentences


UNKNOWN = Margin(math.nan, -math.inf, math.inf, 0)


def margin(
    one: np.ndarray,
    baseline: np.ndarray | None,
    bound: float,
    *,
    above: bool = False,
    share: bool = False,
    statistic: Statistic = "mean",
) -> Margin:
    """Margin of a figure by sentence, ``one`` (n,), errors + 1j · words for a ``rate``.

    The limit is ``bound``; with a ``baseline`` (n,) on the same sentences it is the baseline's figure plus ``bound``,
    or times ``bound`` for a ``share``. The limit is a minimum, or a maximum if ``above`` is refused. Sentences that
    lack one of the two (NaN) are ignored.
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
class Margins:
    """All limits of one speech variant."""

    margins: Mapping[str, Margin]

    @property
    def verdict(self) -> str:
        """``FAILS`` if any fails, ``PASSES`` if all pass, otherwise ``UNDECIDED``."""
        verdicts = {one.verdict for one in self.margins.values()}
        return next((one for one in (FAILS, UNDECIDED) if one in verdicts), PASSES)

    def by(self, verdict: str) -> tuple[str, ...]:
        return tuple(name for name, one in self.margins.items() if one.verdict == verdict)

    @property
    def more(self) -> int | None:
        """Further sentences needed to decide every undecided figure; ``None`` if unknown."""
        wanted = [one.more for one in self.margins.values() if one.verdict == UNDECIDED]
        known = [one for one in wanted if one is not None]
        return max(known) if known and len(known) == len(wanted) else None

    @property
    def words(self) -> str:
        """Verdict in words, such as ``undecided by the spread over seeds: 14 more sentences would decide``."""
        if self.verdict == PASSES:
            return PASSES
        names = listed(self.by(self.verdict))
        if self.verdict == FAILS:
            return f"{FAILS} by the {names}"
        return f"{UNDECIDED} by the {names}: {advice(self.more)}"


def advice(more: int | None) -> str:
    """Clause on the number of further sentences needed."""
    if more is None:
        return "more sentences would decide"
    if more > MOST_SENTENCES:
        return f"it lies so near the limit that more than {grouped(MOST_SENTENCES)} more sentences would have to decide"
    return f"{more} more sentence{'s' * (more != 1)} would decide"
