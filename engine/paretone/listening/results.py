"""Results of listening tests. Only complete sessions count; see :func:`trials.complete_sessions`.

:func:`scores` is for the trade-off view: one figure with its interval per condition and method.
``ListeningScore.setting`` is :func:`paretone_app.listening.stimuli.setting_key` of the condition: the fingerprint of
its setting with the seed 0, because a test plays one setting with many seeds. Studies prepare strategy tables
automatically and know settings without them: ``ListeningScore.candidate`` is the studies' key, without artefacts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import numpy as np

from paretone.errors import PlainError, SettingError
from paretone.figures.svg import escape
from paretone.listening import statistics, trials
from paretone.listening.trials import ABX, CCR, MOS, MUSHRA, RANKING, STAIRCASE, ConditionRecord, TrialRecord
from paretone.measure.metrics import HIGHER, JUDGED, LOWER, NEITHER, Metric, metric
from paretone.setting.setting import Setting
from paretone.studies.results import Results, SettingResult
from paretone.studies.wording import figure_text, setting_title


@dataclass(frozen=True)
class ListeningScore:
    """Score of one condition in one method, with a 95 % interval.

    ``abx``: share of right answers against the unaccelerated output, 0.5 if no difference is heard. ``ccr``: quality
    relative to the unaccelerated output, -3 to 3 (CMOS). ``preference``: likewise, -1 to 1. ``mushra``: mean rating, 0
    to 100, by listeners who passed post-screening. ``naturalness_mos``, ``similarity_mos``: mean opinion, 1 to 5.
    """

    setting: str
    method: str
    mean: float
    low: float
    high: float
    n: int
    candidate: str = ""
    """:attr:`paretone.studies.study.Candidate.key` of the setting; ``""`` if unknown."""


@dataclass(frozen=True)
class AbxResult:
    titles: tuple[str, str]
    hits: int
    trials: int
    p: float
    """Exact probability of at least this many hits by guessing."""
    needed: int | None
    """Hits needed to pass at the 5 % level."""
    rate: statistics.MeanInterval
    """Rate of right answers: exact for one listener, otherwise bootstrapped over listeners and sentences."""
    smallest_detectable: float | None
    """True rate that such a test detects with 80 % probability."""
    listeners: int

    @property
    def heard(self) -> bool:
        """Whether guessing explains the hits with a probability of at most 5 %."""
        return self.p <= statistics.LEVEL


@dataclass(frozen=True)
class PreferenceResult:
    """Preference between two conditions; above 0 for the second."""

    titles: tuple[str, str]
    graded: bool
    mean: statistics.MeanInterval
    sign: statistics.SignTest
    first: int
    """Votes for the sound heard first."""
    second: int
    order_p: float
    """p value of the order bias, without repeats."""
    repeats: int
    consistent: int
    """Repeats without a contradiction, that is, opposite votes."""
    listeners: int


@dataclass(frozen=True)
class MushraResult:
    """Ratings of all conditions compared with one reference."""

    reference: str
    summaries: tuple[statistics.ConditionSummary, ...]
    """By title, hidden reference first and anchors last; from listeners who passed post-screening."""
    differences: tuple[statistics.PairedDifference, ...]
    """Difference of each setting from the hidden reference, with p values adjusted by Holm's method."""
    screenings: tuple[statistics.Screening, ...]
    pages: int
    indistinct: int
    """Sentences whose mid anchor excludes no listener; see :func:`statistics.indistinct_sentences`."""


@dataclass(frozen=True)
class StaircaseResult:
    """Threshold along a row of settings at which a difference from the reference was heard."""

    reference: str
    titles: tuple[str, ...]
    """Titles of the row, closest to the reference first."""
    scale: tuple[float, ...]
    """log2 of the speed-up of each."""
    right: tuple[tuple[int, int], ...]
    """Right answers and trials of each place, over all listeners."""
    noticeable: tuple[tuple[str, statistics.Noticeable], ...]
    """By listener, in :attr:`scale`'s unit: the point where the difference is heard every second time."""

    @property
    def median(self) -> statistics.Noticeable:
        """That of the median listener, or of the more sensitive of the two in the middle."""
        ordered = sorted((one for _, one in self.noticeable), key=lambda one: one.value)
        return ordered[(len(ordered) - 1) // 2]


@dataclass(frozen=True)
class RankingResult:
    ranked: tuple[tuple[str, statistics.Ranked], ...]
    """Titles, the most preferred first, with their strengths."""
    comparisons: int
    ties: int
    first: int
    """Wins of the sound heard first."""
    second: int
    order_p: float
    """Probability of an imbalance at least this large by chance."""
    listeners: int


@dataclass(frozen=True)
class MosResult:
    summaries: tuple[statistics.ConditionSummary, ...]
    """By title, the unaccelerated setting first."""
    differences: tuple[statistics.PairedDifference, ...]
    """Of each setting from the first, on the same sentences, with p values adjusted by Holm's method."""
    votes: int
    listeners: int


Result = AbxResult | PreferenceResult | MushraResult | StaircaseResult | RankingResult | MosResult


def comparisons(found: Sequence[TrialRecord]) -> tuple[tuple[TrialRecord, ...], ...]:
    """Trials of complete sessions, grouped by question: the same method and pair, or MUSHRA with the same reference."""
    together: dict[tuple, list[TrialRecord]] = {}
    for session in trials.complete_sessions(found):
        for one in session:
            keys = [condition.key for condition in one.conditions]
            together.setdefault((one.method, *(keys[:1] if one.method == MUSHRA else keys)), []).append(one)
    return tuple(map(tuple, together.values()))


def result(found: Sequence[TrialRecord]) -> Result:
    """Result of the valid ``found`` trials, which all ask the same question."""
    of: dict[str, Callable[[Sequence[TrialRecord]], Result]] = dict.fromkeys(MOS, _mos)
    of |= {ABX: _abx, STAIRCASE: _staircase, RANKING: _ranking, MUSHRA: _mushra}
    return of.get(found[0].method, _preference)(found)


def _listeners(found: Sequence[TrialRecord]) -> list[str]:
    return [one.listener for one in found]


def _people(found: Sequence[TrialRecord]) -> int:
    return len(set(_listeners(found)))


def _titles(found: Sequence[TrialRecord]) -> tuple[str, str]:
    return found[-1].conditions[0].title, found[-1].conditions[1].title


def _abx(found: Sequence[TrialRecord]) -> AbxResult:
    right = [float(one.answer["said"] == one.order[2]) for one in found]
    hits, count = round(sum(right)), len(right)
    if _people(found) == 1:
        rate = statistics.MeanInterval(hits / count, *statistics.exact_interval(hits, count), count)
    else:
        rate = statistics.clustered(right, _listeners(found), [one.item.text for one in found])
    return AbxResult(
        _titles(found),
        hits,
        count,
        statistics.at_least(hits, count),
        statistics.needed(count),
        rate,
        statistics.smallest_detectable(count),
        _people(found),
    )


def _playing_order(found: Sequence[TrialRecord]) -> tuple[int, int, float]:
    """Votes for the sound heard first and for the other, and the p value of this order bias, for balanced orders."""
    first, second = sum(one.answer["vote"] < 0 for one in found), sum(one.answer["vote"] > 0 for one in found)
    return first, second, statistics.split_p(first, second)


def vote_for_second_condition(trial: TrialRecord) -> int:
    """Vote for the second *condition* over the first, independent of the playing order."""
    return trial.answer["vote"] * (1 if trial.order == (0, 1) else -1)


def _preference(found: Sequence[TrialRecord]) -> PreferenceResult:
    asked = [one for one in found if not one.repeat]
    votes = [vote_for_second_condition(one) for one in asked]
    earlier = {(one.session, one.item, one.order): vote_for_second_condition(one) for one in asked}
    again = [
        (earlier[one.session, one.item, one.order[::-1]], vote_for_second_condition(one))
        for one in found
        if one.repeat and (one.session, one.item, one.order[::-1]) in earlier
    ]
    return PreferenceResult(
        _titles(found),
        found[0].method == CCR,
        statistics.clustered(votes, _listeners(asked), [one.item.text for one in asked]),
        statistics.sign_test(votes),
        *_playing_order(asked),
        len(again),
        sum(one * other >= 0 for one, other in again),
        _people(found),
    )


def _staircase(found: Sequence[TrialRecord]) -> StaircaseResult:
    last = found[-1]
    scale = tuple(map(float, last.answer["scale"]))
    given = [
        (one.listener, statistics.Answer(max(one.order) - 1, one.order[1 + one.answer["said"]] > 0)) for one in found
    ]
    places = [[one.right for _, one in given if one.place == place] for place in range(len(scale))]
    return StaircaseResult(
        last.conditions[0].title,
        tuple(one.title for one in last.conditions[1:]),
        scale,
        tuple((sum(there), len(there)) for there in places),
        tuple(
            (listener, statistics.noticeable([one for own, one in given if own == listener], scale))
            for listener in dict.fromkeys(_listeners(found))
        ),
    )


def _ranking(found: Sequence[TrialRecord]) -> RankingResult:
    compared = []
    for one in found:
        before, after = one.order
        vote = one.answer["vote"]
        compared.append(
            statistics.Preferred(after, before) if vote > 0 else statistics.Preferred(before, after, tie=vote == 0)
        )
    conditions = found[-1].conditions
    return RankingResult(
        tuple((conditions[one.number].title, one) for one in statistics.ranking(len(conditions), compared)),
        len(found),
        sum(one.tie for one in compared),
        *_playing_order(found),
        _people(found),
    )


def _rating(one: TrialRecord, condition: str, score: float) -> statistics.Rating:
    return statistics.Rating(one.listener, (one.item.text, one.item.voice, one.item.seed), condition, score)


def _opinions(found: Sequence[TrialRecord]) -> list[statistics.Rating]:
    keys = [one.key for one in found[0].conditions]
    made = [_rating(one, keys[one.order[-1]], one.answer["vote"]) for one in found]
    return sorted(made, key=lambda one: keys.index(one.condition))


def _ratings(found: Sequence[TrialRecord]) -> list[statistics.Rating]:
    return [
        _rating(one, condition.key, score)
        for one in found
        for condition, score in zip(one.conditions, one.answer["ratings"], strict=True)
    ]


def _rated(
    ratings: Sequence[statistics.Rating], compared: Sequence[str], reference: str, titles: Mapping[str, str]
) -> tuple[tuple[statistics.ConditionSummary, ...], tuple[statistics.PairedDifference, ...]]:
    """Summaries of all conditions, and differences of those ``compared`` from the reference, with p values adjusted by
    Holm's method."""
    differences = [one for key in compared if (one := statistics.paired(ratings, key, reference)) is not None]
    adjusted = statistics.holm([one.p for one in differences])
    return (
        tuple(replace(one, condition=titles[one.condition]) for one in statistics.summaries(ratings)),
        tuple(
            statistics.PairedDifference(titles[one.condition], titles[one.than], one.difference, p)
            for one, p in zip(differences, adjusted, strict=True)
        ),
    )


def _mos(found: Sequence[TrialRecord]) -> MosResult:
    votes = _opinions(found)
    titles = {one.key: one.title for one in found[-1].conditions}
    first, *others = dict.fromkeys(one.condition for one in votes)
    return MosResult(*_rated(votes, others, first, titles), len(votes), _people(found))


def _accepted(found: Sequence[TrialRecord]) -> tuple[list[statistics.Rating], tuple[statistics.Screening, ...]]:
    """Ratings of listeners who passed post-screening, and all screenings."""
    ratings = _ratings(found)
    screenings = statistics.screened(ratings, found[0].conditions[0].key, trials.MID)
    excluded = {one.listener for one in screenings if one.excluded}
    return [one for one in ratings if one.listener not in excluded], screenings


def _mushra(found: Sequence[TrialRecord]) -> MushraResult:
    accepted, screenings = _accepted(found)
    titles = {condition.key: condition.title for one in found for condition in one.conditions}
    reference = found[0].conditions[0].key
    # Anchors last, even if a setting joined later.
    keys = sorted(titles, key=lambda key: key in trials.CUTOFFS)
    settings = [key for key in keys if key != reference and key not in trials.CUTOFFS]
    return MushraResult(
        titles[reference],
        *_rated(
            sorted(accepted, key=lambda one: keys.index(one.condition)),
            settings,
            reference,
            titles | {reference: "Hidden reference"},
        ),
        screenings,
        len(found),
        len(statistics.indistinct_sentences(_ratings(found), trials.MID)),
    )


def scores(folder: Path | None = None) -> tuple[ListeningScore, ...]:
    """Score of every condition in every method, from the trials in ``folder`` (default: the user's).

    Pairs count if exactly one side is unaccelerated; the accelerated side gets the score. Raises :class:`PlainError` if
    the folder cannot be read.
    """
    found: list[ListeningScore] = []
    for comparison in comparisons(trials.read(folder).trials):
        if comparison[0].method == MUSHRA:
            found += _rated_scores(comparison, _accepted(comparison)[0])
        elif comparison[0].method in MOS:
            found += _rated_scores(comparison, _opinions(comparison))
        elif comparison[0].method not in (STAIRCASE, RANKING):  # They judge several settings together.
            found += _pair_scores(comparison)
    return tuple(found)


@dataclass(frozen=True)
class HeardFrom:
    """Speed-up on a row of settings from which a difference from the reference was heard, with its 95 % interval. Ends
    beyond the played row are infinite (above) or 0 (below)."""

    candidates: frozenset[str]
    """:attr:`paretone.studies.study.Candidate.key` of reference and row."""
    value: float
    low: float
    high: float


def heard_from(folder: Path | None = None) -> tuple[HeardFrom, ...]:
    """Result of every staircase's row, from the trials in ``folder`` (default: the user's). Raises :class:`PlainError`
    if the folder cannot be read."""
    found = []
    for comparison in comparisons(trials.read(folder).trials):
        if comparison[0].method == STAIRCASE:
            one = _staircase(comparison)
            keys = frozenset(map(_candidate, comparison[-1].conditions)) - {""}
            ends = (one.median.value, one.median.low, one.median.high)
            found.append(HeardFrom(keys, *(_speed_up(value, one.scale) for value in ends)))
    return tuple(found)


def _speed_up(value: float, scale: Sequence[float]) -> float:
    if value > scale[-1]:
        return math.inf
    return 0.0 if value < scale[0] else 2.0**value


def _rated_scores(found: Sequence[TrialRecord], accepted: Sequence[statistics.Rating]) -> list[ListeningScore]:
    records = {condition.key: condition for one in found for condition in one.conditions}
    return [
        ListeningScore(one.condition, found[0].method, *(*astuple(one.mean), _candidate(records[one.condition])))
        for one in statistics.summaries(accepted)
        if one.condition not in trials.CUTOFFS
    ]


def _pair_scores(found: Sequence[TrialRecord]) -> list[ListeningScore]:
    first, second = found[0].conditions
    if first.accelerated == second.accelerated:
        return []
    is_abx = found[0].method == ABX
    interval = _abx(found).rate if is_abx else _preference(found).mean
    mean, low, high = interval.mean, interval.low, interval.high
    if first.accelerated and not is_abx:
        mean, low, high = -mean, -high, -low
    judged = first if first.accelerated else second
    return [ListeningScore(judged.key, found[0].method, mean, low, high, interval.n, _candidate(judged))]


def _candidate(condition: ConditionRecord) -> str:
    try:
        return Setting.from_json(condition.setting).bare.fingerprint
    except SettingError:
        return ""


def listened(folder: Path | None = None) -> tuple[ListeningScore, ...]:
    """Scores of all settings that studies may have, from the trials in ``folder`` (default: the user's); empty if they
    cannot be read, which the lab reports."""
    try:
        found = scores(folder)
    except PlainError:
        return ()
    return tuple(one for one in found if one.candidate)


# --- Agreement of judges with listeners -------------------------------------------------------------------------------
# Predictions for a study's settings, compared with the results of blind tests.
FEWEST = 4
"""Minimum number of settings for a rank correlation: of three, one in six orders agrees by chance."""
METHODS = {
    "mushra": ("MUSHRA (0 to 100)", HIGHER),
    "abx": ("ABX, share of right answers (0.5: no difference heard)", LOWER),
    "ccr": ("CMOS against the baseline (-3 to 3)", HIGHER),
    "preference": ("preference over the baseline (-1 to 1)", HIGHER),
    "naturalness_mos": ("MOS of naturalness (1 to 5)", HIGHER),
    "similarity_mos": ("MOS of similarity to the voice (1 to 5)", HIGHER),
}
"""Methods of listening tests: titles and better ends."""


@dataclass(frozen=True)
class Agreement:
    """Agreement of a metric's order of settings with the listeners'."""

    metric: str
    method: str
    correlation: float
    """Spearman's rank correlation, signed so that 1 is full agreement."""
    settings: int


def agreements(results: Results, listened: Sequence[ListeningScore]) -> tuple[Agreement, ...]:
    """Rank correlation of every judged metric with every method, over four or more differing settings known to both."""
    found = []
    for method, (_, better) in METHODS.items():
        heard = {one.candidate: one.mean for one in listened if one.method == method}
        for one in _predicted(results):
            pairs = [
                (setting.figures[one.name].value, heard[setting.key])
                for setting in results.settings
                if one.name in setting.figures and setting.key in heard
            ]
            if len(pairs) < FEWEST:
                continue
            said, told = (np.array(column) for column in zip(*pairs, strict=True))
            value = rank_correlation(said, told)
            if value is not None:
                found.append(Agreement(one.name, method, value if one.better == better else -value, len(pairs)))
    return tuple(found)


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float | None:
    """Spearman's rank correlation of two columns (n,), with mean ranks for ties; ``None`` if a column is constant."""
    one, other = _ranks(first), _ranks(second)
    if not one.std() or not other.std():
        return None
    return float(np.corrcoef(one, other)[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place]


def _predicted(results: Results) -> list[Metric]:
    known = {name for one in results.settings for name in one.figures}
    return [one for one in JUDGED if one.name in known and one.better != NEITHER]


def agreement_page(results: Results, listened: Sequence[ListeningScore]) -> list[str]:
    """Section of a report as HTML; empty if no setting of the study has listening results."""
    settings = {one.key: one for one in results.settings}
    shown = [one for one in listened if one.candidate in settings and one.method in METHODS]
    if not shown:
        return []
    predicted = _predicted(results)
    parts = ["<h2>Predictions and listeners</h2>"]
    for method, (title, _) in METHODS.items():
        mine = [one for one in shown if one.method == method]
        if mine:
            heads = "".join(f"<th>{escape(one.label)}</th>" for one in predicted)
            rows = "".join(_row(settings[one.candidate], one, predicted) for one in mine)
            head = f"<tr><th></th><th>Setting</th><th>{escape(title)}</th><th>Answers</th>{heads}</tr>"
            parts.append(f'<div class="wide"><table>{head}{rows}</table></div>')
    lines = [
        f"{metric(one.metric).title} and {METHODS[one.method][0].partition(' (')[0]} order {one.settings} settings "
        f"with a rank correlation of {one.correlation:.2f} (1: alike; 0: unrelated)."
        for one in agreements(results, shown)
    ]
    if not lines:
        lines = [f"A rank correlation takes {FEWEST} settings or more that were both judged and listened to."]
    lines.append("With few settings this is uncertain; where listeners and a judge differ, believe the listeners.")
    return [*parts, *(f"<p>{escape(line)}</p>" for line in lines)]


def _row(setting: SettingResult, one: ListeningScore, predicted: Sequence[Metric]) -> str:
    cells = "".join(f"<td>{escape(figure_text(each, setting.figures.get(each.name)))}</td>" for each in predicted)
    heard = f"{one.mean:.3g} ({one.low:.3g}–{one.high:.3g})"
    return f"<tr><td></td><td>{escape(setting_title(setting))}</td><td>{heard}</td><td>{one.n}</td>{cells}</tr>"
