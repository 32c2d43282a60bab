"""Statistics of listening tests: exact if possible, otherwise bootstrapped over listeners and sentences.

Free of Qt and of torch; uses only ``math.comb`` and numpy. Rates and levels are between 0 and 1, intervals are 95 %
unless stated otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from math import comb

import numpy as np

from paretone.measure.estimates import NORMAL_95, ends

# --- Ranking ----------------------------------------------------------------------------------------------------------
# Ranking by preference: the Bradley–Terry model of paired comparisons, with intervals. The first is preferred to the
# second with probability 1/(1 + exp(s₂ − s₁)); strengths s have the mean 0 (Bradley and Terry 1952). A weak normal
# prior keeps them finite for those that always won.
PRIOR = 2.0
"""Prior standard deviation of the strengths: one in three is preferred by more than seven to one."""
_STEPS = 100
_PRECISE = 1e-9
_DRAWS = 4000


@dataclass(frozen=True)
class Preferred:
    """One comparison: ``better`` was preferred to ``worse``, or, in a tie, neither."""

    better: int
    worse: int
    tie: bool = False


@dataclass(frozen=True)
class Ranked:
    number: int
    strength: float
    """Log odds of being preferred to the mean."""
    low: float
    high: float
    """95 % interval of the strength."""
    best: float
    """Probability of being the best of all."""
    compared: int


def ranking(count: int, comparisons: Sequence[Preferred]) -> tuple[Ranked, ...]:
    """All ``count`` items, the most preferred first. A tie counts half for either. Intervals are from the posterior's
    normal approximation. Raises :class:`ValueError` for unknown or equal items."""
    wins = np.zeros((count, count))
    for one in comparisons:
        if one.better == one.worse or not (0 <= one.better < count and 0 <= one.worse < count):
            raise ValueError(f"{one.better} and {one.worse} of {count} cannot be compared")
        share = 0.5 if one.tie else 1.0
        wins[one.better, one.worse] += share
        wins[one.worse, one.better] += 1 - share
    strengths, covariance = _posterior(wins)
    spread = np.sqrt(np.diag(covariance))
    drawn = np.random.default_rng(0).multivariate_normal(strengths, covariance, _DRAWS)
    best = np.bincount(drawn.argmax(1), minlength=count) / _DRAWS
    compared = (wins + wins.T).sum(1)
    return tuple(
        Ranked(
            at,
            float(strengths[at]),
            float(strengths[at] - NORMAL_95 * spread[at]),
            float(strengths[at] + NORMAL_95 * spread[at]),
            float(best[at]),
            round(compared[at]),
        )
        for at in map(int, np.argsort(-strengths, kind="stable"))
    )


def pairs(count: int, seed: int) -> tuple[tuple[int, int], ...]:
    """Every pair once, in random order, with balanced playing orders."""
    generator = np.random.default_rng(seed)
    found = list(combinations(range(count), 2))
    generator.shuffle(found)
    turned = np.arange(len(found)) % 2 == 0
    generator.shuffle(turned)
    return tuple((int(b), int(a)) if swap else (int(a), int(b)) for (a, b), swap in zip(found, turned, strict=True))


def _posterior(wins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mode (n,) and covariance (n, n) of the centred strengths, by Newton's method: the problem is concave."""
    count = len(wins)
    games = wins + wins.T
    strengths = np.zeros(count)
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
        slope = wins.sum(1) - (games * chance).sum(1) - strengths / PRIOR**2
        between = games * chance * (1 - chance)
        information = np.diag(between.sum(1) + PRIOR**-2) - between
        change = np.linalg.solve(information, slope)
        strengths = strengths + change
        if np.abs(change).max() < _PRECISE:
            break
    centring = np.eye(count) - 1 / count
    return centring @ strengths, centring @ np.linalg.inv(information) @ centring


# --- Staircase --------------------------------------------------------------------------------------------------------
# Audibility threshold along a row of settings. Every trial plays the reference again among two sounds, and the listener
# says which of the two is the other: right by chance every second time. The staircase (3 down 1 up: Levitt 1971,
# "Transformed up-down methods in psychoacoustics") spends its trials near the barely audible settings; the answers give
# the posterior of a logistic psychometric function.
GUESSING, LAPSES = 0.5, 0.02
"""Shares of right answers without hearing a difference, and of wrong ones despite hearing it."""
RIGHT_TO_GO_DOWN = 3
TRIALS = 45
"""Default number of trials, which gives an interval of about a third of the row."""
_CENTRES, _WIDTHS = 241, 33
"""Points of the posterior's grid."""
_BEYOND = 0.5
"""Maximum distance of the centre outside the row, as a share of it."""
_NARROWEST, _WIDEST = 0.02, 0.3
"""Widths of the psychometric function, as shares of the row."""


@dataclass(frozen=True)
class Answer:
    """One trial: the row's place compared with the reference, and whether the listener recognised it."""

    place: int
    right: bool


class Staircase:
    """Chooses the place of the next trial in a row of ``places``, 0 being closest to the reference.

    It begins at the far end, where the difference should be obvious. Three right answers at one place lead closer, each
    wrong one further away, by steps that halve with every reversal down to one place. The caller ends the trials.
    """

    def __init__(self, places: int) -> None:
        if places < 2:
            raise ValueError(f"a staircase needs two places or more, not {places}")
        self._last = places - 1
        self.place = self._last
        """Place of the next trial."""
        self.answers: list[Answer] = []
        self._step = max(1, self._last // 3)
        self._right = 0
        self._direction = 0

    def answer(self, right: bool) -> None:
        """Record the answer to the trial at :attr:`place`, and choose the next place."""
        self.answers.append(Answer(self.place, right))
        self._right = self._right + 1 if right else 0
        if not right:
            self._go(1)
        elif self._right == RIGHT_TO_GO_DOWN:
            self._right = 0
            self._go(-1)

    def _go(self, direction: int) -> None:
        """Take a step; a reversal, or an end of the row, halves it."""
        blocked = not 0 <= self.place + direction <= self._last
        if blocked or (self._direction and direction != self._direction):
            self._step = max(1, self._step // 2)
        self._direction = direction
        self.place = min(max(self.place + direction * self._step, 0), self._last)


@dataclass(frozen=True)
class Noticeable:
    """Point on the row's scale where a difference is heard every second time, with its 95 % credible interval."""

    value: float
    low: float
    high: float
    beyond: float
    """Probability that it lies beyond the far end, that is, that nothing in the row is heard that often."""


def noticeable(answers: Sequence[Answer], scale: Sequence[float]) -> Noticeable:
    """Threshold from ``answers``; ``scale`` has an increasing value for every place (such as log2 of the speed-up).

    The probability of a right answer at x is ½ + (½ − λ)·logistic((x − centre)/width), with lapses λ = 0.02. The
    posterior of the centre over a flat prior, which reaches half a row beyond both ends, is summed over widths of 2 to
    30 % of the row (their logarithm is flat, too). Raises :class:`ValueError` without answers.
    """
    if not answers:
        raise ValueError("there are no answers")
    values = np.asarray(scale, float)
    if not (np.diff(values) > 0).all():
        raise ValueError("the scale of a row rises from place to place")
    row = values[-1] - values[0]
    centres = np.linspace(values[0] - _BEYOND * row, values[-1] + _BEYOND * row, _CENTRES)
    widths = row * np.geomspace(_NARROWEST, _WIDEST, _WIDTHS)
    log_likelihood = np.zeros((_CENTRES, _WIDTHS))
    for place in sorted({one.place for one in answers}):
        there = [one.right for one in answers if one.place == place]
        chance = right_share(values[place], centres[:, None], widths)
        log_likelihood += sum(there) * np.log(chance) + (len(there) - sum(there)) * np.log(1 - chance)
    posterior = np.exp(log_likelihood - log_likelihood.max()).sum(1)
    below = np.cumsum(posterior) / posterior.sum()
    low, value, high = (float(np.interp(share, below, centres)) for share in (0.025, 0.5, 0.975))
    beyond = float(posterior[centres > values[-1]].sum() / posterior.sum())
    return Noticeable(value, low, high, beyond)


def right_share(value: float, centre: float | np.ndarray, width: float | np.ndarray) -> np.ndarray:
    """Share of right answers at ``value`` with this psychometric function."""
    return GUESSING + (1 - GUESSING - LAPSES) / (1 + np.exp(-(value - centre) / width))


LEVEL = 0.05
"""Significance level of all tests."""
POWER = 0.8
"""Probability with which a listener at the smallest detectable rate passes."""
RESAMPLES = 10_000
REFERENCE_FLOOR = 90
"""A hidden reference rated below this was not recognised (BS.1534-3, post-screening)."""
ANCHOR_CEILING = 90
"""A mid anchor rated above this was not recognised."""
SCREENED_SHARE = 0.15
"""A listener who fails in more than this share of the items is excluded."""
INDISTINCT_SHARE = 0.25
"""If more than this share of the listeners rate the mid anchor above 90, the sentence has too little above 7 kHz and
excludes nobody."""
FEWEST_TO_BLAME_THE_SENTENCE = 4
"""With fewer listeners, a single one would exceed that share."""
_BATCH = 500_000
"""Maximum number of weights in memory."""
_EXACT_PAIRS = 14
"""Up to this many differences, all sign combinations are enumerated."""


# --- ABX -------------------------------------------------------------------------------------------------------------
@lru_cache(maxsize=4096)
def at_least(hits: int, trials: int, rate: float = 0.5) -> float:
    """Exact probability of ``hits`` or more in ``trials`` by a listener with the true ``rate``."""
    if not 0 <= hits <= trials:
        raise ValueError(f"{hits} hits in {trials} trials cannot be")
    if rate == 0.5:
        return sum(comb(trials, one) for one in range(hits, trials + 1)) / 2**trials
    return float(sum(comb(trials, one) * rate**one * (1 - rate) ** (trials - one) for one in range(hits, trials + 1)))


@lru_cache(maxsize=1024)
def needed(trials: int, level: float = LEVEL) -> int | None:
    """Fewest hits in ``trials`` that guessing reaches with at most ``level``; ``None`` if not even all suffice."""
    return next((hits for hits in range(trials + 1) if at_least(hits, trials) <= level), None)


def power(trials: int, rate: float, level: float = LEVEL) -> float:
    """Probability that a listener with the true ``rate`` passes a test of ``trials``."""
    hits = needed(trials, level)
    return 0.0 if hits is None else at_least(hits, trials, rate)


def smallest_detectable(trials: int) -> float | None:
    """Smallest true rate at which a listener passes with probability :data:`POWER`; ``None`` if nobody can pass. A null
    result does not exclude lower rates: such listeners often fail although they hear something."""
    if needed(trials) is None:
        return None
    return _bisected(lambda rate: power(trials, rate) >= POWER, 0.5, 1.0)


def exact_interval(hits: int, trials: int) -> tuple[float, float]:
    """Interval of the true rate after ``hits`` in ``trials`` (Clopper and Pearson 1934)."""
    tail = 0.025
    low = 0.0 if hits == 0 else _bisected(lambda rate: at_least(hits, trials, rate) >= tail, 0.0, 1.0)
    high = 1.0
    if hits < trials:
        high = _bisected(lambda rate: 1 - at_least(hits + 1, trials, rate) <= tail, 0.0, 1.0)
    return low, high


def _bisected(true_above: Callable[[float], bool], low: float, high: float) -> float:
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if true_above(middle) else (middle, high)
    return high


def peeking_rate(first: int, last: int) -> float:
    """Exact false-alarm rate of a test that is stopped at the first significant count from trial ``first`` to trial
    ``last``, the reason for a fixed number of trials; counts the sequences that have not passed."""
    going = np.ones(1)
    passed = 0.0
    for trials in range(1, last + 1):
        going = (np.append(going, 0.0) + np.append(0.0, going)) / 2
        hits = needed(trials) if trials >= first else None
        if hits is not None:
            passed += float(going[hits:].sum())
            going[hits:] = 0.0
    return passed


# --- Preference ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class SignTest:
    better: int
    worse: int
    ties: int
    """Votes for neither, excluded from the test."""
    p: float
    """Exact two-sided probability of a split at least this uneven if neither is better."""


def sign_test(votes: Sequence[float]) -> SignTest:
    """Votes above 0 are for better."""
    better, worse = sum(vote > 0 for vote in votes), sum(vote < 0 for vote in votes)
    return SignTest(better, worse, len(votes) - better - worse, split_p(better, worse))


def split_p(first: int, second: int) -> float:
    """Two-sided probability of votes split at least as unevenly as ``first`` to ``second``, if neither is favoured."""
    return min(1.0, 2 * at_least(max(first, second), first + second)) if first + second else 1.0


# --- Means of clusters -----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class MeanInterval:
    mean: float
    low: float
    high: float
    n: int


def clustered(
    values: Sequence[float],
    listeners: Sequence[Hashable],
    sentences: Sequence[Hashable],
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> MeanInterval:
    """Mean of ``values`` with an interval that generalises to other listeners *and* other sentences.

    Both are resampled, with replacement and independently; an answer's weight is the product of its listener's and its
    sentence's multiplicity (Owen 2007, "The pigeonhole bootstrap"). Answers of one listener, or to one sentence, are
    alike: resampling single answers would make the interval too narrow. For only one listener and one sentence, the
    answers themselves are resampled, and the interval says nothing about others.
    """
    if not values:
        raise ValueError("there are no answers")
    scores = np.asarray(values, float)
    generator = np.random.default_rng(seed)
    groups = [np.unique([repr(one) for one in names], return_inverse=True)[1] for names in (listeners, sentences)]
    groups = [group for group in groups if group.max() > 0] or [np.arange(len(scores))]
    means = []
    batch = max(1, _BATCH // len(scores))
    for start in range(0, resamples, batch):
        weights = np.ones((min(batch, resamples - start), len(scores)))
        for group in groups:
            size = int(group.max()) + 1
            weights *= generator.multinomial(size, np.full(size, 1 / size), len(weights))[:, group]
        total = weights.sum(1)
        # A draw may miss every answer if not everybody heard everything.
        means.append((weights @ scores)[total > 0] / total[total > 0])
    low, high = ends(np.concatenate(means))
    return MeanInterval(float(scores.mean()), float(low), float(high), len(scores))


def paired_p(differences: Sequence[float], resamples: int = RESAMPLES) -> float:
    """Two-sided probability of a mean this far from 0, if the sign of each difference is random. Up to 14 differences
    all signs are enumerated, otherwise ``resamples`` are drawn (Fisher's randomisation test)."""
    values = np.asarray([one for one in differences if one != 0], float)
    if not len(values):
        return 1.0
    observed = abs(values.sum()) - 1e-9
    if len(values) <= _EXACT_PAIRS:
        signs = np.array(list(product((-1, 1), repeat=len(values))))
        return float(np.mean(np.abs(signs @ values) >= observed))
    generator = np.random.default_rng(0)
    extreme = done = 0
    while done < resamples:
        count = min(resamples - done, max(1, _BATCH // len(values)))
        signs = generator.integers(0, 2, (count, len(values))) * 2 - 1
        extreme += int(np.sum(np.abs(signs @ values) >= observed))
        done += count
    # The observed signs are one of the combinations.
    return (extreme + 1) / (resamples + 1)


def holm(ps: Sequence[float]) -> tuple[float, ...]:
    """``ps`` of several tests, adjusted for comparison with the level one by one (Holm 1979)."""
    adjusted, worst = [0.0] * len(ps), 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=lambda one: ps[one])):
        worst = max(worst, min(1.0, ps[index] * (len(ps) - rank)))
        adjusted[index] = worst
    return tuple(adjusted)


# --- MUSHRA ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Rating:
    """One listener's rating of one condition on one sentence, 0 to 100."""

    listener: str
    sentence: Hashable
    condition: str
    score: float


@dataclass(frozen=True)
class ConditionSummary:
    condition: str
    median: float
    lower_quartile: float
    upper_quartile: float
    mean: MeanInterval


@dataclass(frozen=True)
class PairedDifference:
    """Difference of the ratings of ``condition`` and ``than``, by the same listeners on the same sentences."""

    condition: str
    than: str
    difference: MeanInterval
    p: float
    """:func:`paired_p` of the differences."""


@dataclass(frozen=True)
class Screening:
    """Whether a listener recognised the hidden reference and the mid anchor."""

    listener: str
    items: int
    reference_missed: int
    """Items with the hidden reference rated below 90."""
    anchor_missed: int
    """Items with the mid anchor rated above 90, without :func:`indistinct_sentences`."""

    @property
    def excluded(self) -> bool:
        """Whether either was missed in more than 15 % of the items."""
        return max(self.reference_missed, self.anchor_missed) > SCREENED_SHARE * self.items


def screened(ratings: Sequence[Rating], reference: str, mid_anchor: str) -> tuple[Screening, ...]:
    """Post-screening of every listener (BS.1534-3, 4.1.2), ordered by name; ``reference`` and ``mid_anchor``: the
    conditions of the hidden reference and the 7 kHz anchor."""
    indistinct = indistinct_sentences(ratings, mid_anchor)

    def screening(listener: str) -> Screening:
        own = [one for one in ratings if one.listener == listener]
        hidden = [one.score < REFERENCE_FLOOR for one in own if one.condition == reference]
        anchors = [one for one in own if one.condition == mid_anchor and one.sentence not in indistinct]
        return Screening(listener, len(hidden), sum(hidden), sum(one.score > ANCHOR_CEILING for one in anchors))

    return tuple(screening(listener) for listener in sorted({one.listener for one in ratings}))


def indistinct_sentences(ratings: Sequence[Rating], mid_anchor: str) -> frozenset[Hashable]:
    """Sentences that exclude nobody: more than 25 % of the listeners rated their mid anchor above 90."""
    by_sentence: dict[Hashable, dict[str, bool]] = {}
    for one in ratings:
        if one.condition == mid_anchor:
            missed = by_sentence.setdefault(one.sentence, {})
            missed[one.listener] = missed.get(one.listener, False) or one.score > ANCHOR_CEILING
    return frozenset(
        sentence
        for sentence, missed in by_sentence.items()
        if len(missed) >= FEWEST_TO_BLAME_THE_SENTENCE and sum(missed.values()) > INDISTINCT_SHARE * len(missed)
    )


def summaries(ratings: Sequence[Rating]) -> tuple[ConditionSummary, ...]:
    """Median, quartiles and mean of every condition, in the order of their first rating."""
    made = []
    for condition in dict.fromkeys(one.condition for one in ratings):
        own = [one for one in ratings if one.condition == condition]
        lower, median, upper = map(float, np.percentile([one.score for one in own], (25, 50, 75)))
        mean = clustered([one.score for one in own], [one.listener for one in own], [one.sentence for one in own])
        made.append(ConditionSummary(condition, median, lower, upper, mean))
    return tuple(made)


def paired(ratings: Sequence[Rating], condition: str, than: str) -> PairedDifference | None:
    """Difference of the ratings of ``condition`` and ``than``; ``None`` if no listener rated both on one sentence."""
    one, other = _by_place(ratings, condition), _by_place(ratings, than)
    places = [place for place in one if place in other]
    if not places:
        return None
    differences = [one[place] - other[place] for place in places]
    interval = clustered(differences, [place[0] for place in places], [place[1] for place in places])
    return PairedDifference(condition, than, interval, paired_p(differences))


def _by_place(ratings: Sequence[Rating], condition: str) -> Mapping[tuple[str, Hashable], float]:
    scores: dict[tuple[str, Hashable], list[float]] = {}
    for one in ratings:
        if one.condition == condition:
            scores.setdefault((one.listener, one.sentence), []).append(one.score)
    return {place: float(np.mean(values)) for place, values in scores.items()}
