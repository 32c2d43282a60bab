"""The statistics against published values, against simulation, and against their own definitions."""

from itertools import product
from math import comb

import numpy as np
import pytest

from paretone.listening import statistics

STRENGTHS = np.array([1.5, 0.5, 0.0, -0.5, -1.5])


def preferred(times: int, seed: int, strengths: np.ndarray = STRENGTHS) -> list[statistics.Preferred]:
    """All pairs, ``times`` times, as a listener of these strengths decides."""
    chance = np.random.default_rng(seed)
    made = []
    for round_ in range(times):
        for first, second in statistics.pairs(len(strengths), 100 * seed + round_):
            won = chance.random() < 1 / (1 + np.exp(strengths[second] - strengths[first]))
            made.append(statistics.Preferred(first, second) if won else statistics.Preferred(second, first))
    return made


def test_the_order_is_found_and_the_best_is_probable() -> None:
    found = statistics.ranking(5, preferred(20, seed=1))
    assert [one.number for one in found] == [0, 1, 2, 3, 4]
    assert found[0].best > 0.95 and found[-1].best < 0.01
    assert sum(one.best for one in found) == pytest.approx(1)
    assert np.mean([one.strength for one in found]) == pytest.approx(0, abs=1e-9)
    assert all(one.compared == 80 for one in found)


def test_intervals_hold_the_truth() -> None:
    found = [one for seed in range(60) for one in statistics.ranking(5, preferred(4, seed=seed))]
    assert np.mean([one.low <= STRENGTHS[one.number] <= one.high for one in found]) >= 0.93


def test_who_always_wins_stays_finite_and_uncertain() -> None:
    few = statistics.ranking(2, [statistics.Preferred(1, 0)] * 3)
    many = statistics.ranking(2, [statistics.Preferred(1, 0)] * 30)
    assert few[0].number == many[0].number == 1
    assert 0 < few[0].strength < many[0].strength < 5
    assert few[0].low < 0 < many[0].low


def test_nobody_is_ranked_without_comparisons_and_ties_say_equal() -> None:
    for comparisons in ([], [statistics.Preferred(0, 1, tie=True)] * 8):
        found = statistics.ranking(3, comparisons)
        assert all(one.strength == pytest.approx(0) and one.low < 0 < one.high for one in found)
    decided, open_ = statistics.ranking(3, [statistics.Preferred(0, 1, tie=True)] * 8)[0], statistics.ranking(3, [])[0]
    assert decided.high - decided.low < open_.high - open_.low


def test_pairs_are_all_pairs_either_way_round() -> None:
    found, other = statistics.pairs(6, seed=4), statistics.pairs(6, seed=5)
    assert len(found) == 15 and {frozenset(one) for one in found} == {frozenset(one) for one in other}
    assert found != other
    assert 7 <= sum(first < second for first, second in found) <= 8


@pytest.mark.parametrize("wrong", [statistics.Preferred(1, 1), statistics.Preferred(0, 3), statistics.Preferred(-1, 0)])
def test_what_cannot_be_compared_is_refused(wrong: statistics.Preferred) -> None:
    with pytest.raises(ValueError, match="cannot be compared"):
        statistics.ranking(3, [wrong])


SCALE = np.linspace(0.0, 3.0, 13)
"""log2 of speed-ups from 1 to 8."""


def listened(centre: float, width: float, seed: int) -> tuple[statistics.Staircase, statistics.Noticeable]:
    """The staircase of a listener with this psychometric function."""
    chance = np.random.default_rng(seed)
    stairs = statistics.Staircase(len(SCALE))
    for _ in range(statistics.TRIALS):
        stairs.answer(bool(chance.random() < statistics.right_share(SCALE[stairs.place], centre, width)))
    return stairs, statistics.noticeable(stairs.answers, SCALE)


def test_three_right_answers_lead_closer_and_a_wrong_one_away() -> None:
    stairs = statistics.Staircase(13)
    assert stairs.place == 12
    places = []
    for right in (True, True, True, True, True, True, False, True, True, True):
        stairs.answer(right)
        places.append(stairs.place)
    assert places == [12, 12, 8, 8, 8, 4, 6, 6, 6, 5], "steps of 4, 2 after the first turn, 1 after the second"


@pytest.mark.parametrize("hears", [True, False])
def test_it_stays_in_the_row_for_who_hears_everything_or_nothing(hears: bool) -> None:
    stairs = statistics.Staircase(13)
    chance = np.random.default_rng(1)
    for _ in range(statistics.TRIALS):
        stairs.answer(hears or bool(chance.random() < 0.5))
        assert 0 <= stairs.place <= 12
    found = statistics.noticeable(stairs.answers, SCALE)
    if hears:
        assert found.high < SCALE[2] and found.beyond < 0.001
    else:
        assert found.beyond > 0.5


@pytest.mark.parametrize(("centre", "width"), [(0.8, 0.1), (1.5, 0.25), (2.4, 0.15)])
def test_the_interval_holds_the_truth_of_nearly_all_listeners(centre: float, width: float) -> None:
    found = [listened(centre, width, seed)[1] for seed in range(200)]
    held = np.mean([one.low <= centre <= one.high for one in found])
    assert held >= 0.92, "95 % promised; 200 listeners are between 92 and 98 %"
    assert abs(np.median([one.value for one in found]) - centre) < 0.15
    assert np.median([one.high - one.low for one in found]) < 1.2, "narrower than half of the row"


def test_what_nobody_heard_lies_beyond_the_row() -> None:
    assert np.median([listened(9.0, 0.2, seed)[1].beyond for seed in range(100)]) > 0.9
    assert np.median([listened(1.0, 0.2, seed)[1].beyond for seed in range(100)]) < 0.01


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="two places or more"):
        statistics.Staircase(1)
    with pytest.raises(ValueError, match="no answers"):
        statistics.noticeable([], SCALE)
    with pytest.raises(ValueError, match="rises"):
        statistics.noticeable([statistics.Answer(0, True)], [1.0, 1.0])


PUBLISHED = (
    # Trials, hits for p <= .05 with the exact p, hits for p <= .01, power at true rates of 75 % and 90 %.
    (5, 5, 0.031, None, 0.24, 0.59),
    (8, 7, 0.035, 8, 0.37, 0.81),
    (10, 9, 0.011, 10, 0.24, 0.74),
    (12, 10, 0.019, 11, 0.39, 0.89),
    (16, 12, 0.038, 14, 0.63, 0.98),
    (20, 15, 0.021, 16, 0.62, 0.99),
    (25, 18, 0.022, 19, 0.73, 1.00),
    (40, 26, 0.040, 28, 0.95, 1.00),
)
LISTENERS = 10_000


@pytest.mark.parametrize(("trials", "hits", "p", "strict", "at_75", "at_90"), PUBLISHED)
def test_abx_is_as_published(trials: int, hits: int, p: float, strict: int | None, at_75: float, at_90: float) -> None:
    assert statistics.needed(trials) == hits
    assert statistics.at_least(hits, trials) == pytest.approx(p, abs=0.0005)
    assert statistics.needed(trials, 0.01) == strict
    assert statistics.power(trials, 0.75) == pytest.approx(at_75, abs=0.005)
    assert statistics.power(trials, 0.90) == pytest.approx(at_90, abs=0.005)


def test_stopping_when_it_looks_good_makes_listeners_who_guess_pass_three_times_too_often() -> None:
    # Exactly 14.54 %; the 14.4 % that are quoted elsewhere were simulated, with a standard error of 0.35 %.
    assert statistics.peeking_rate(5, 40) == pytest.approx(0.144, abs=0.002)
    hits = (np.random.default_rng(7).random((LISTENERS, 40)) < 0.5).cumsum(1)
    needed = np.array([statistics.needed(trials) or trials + 1 for trials in range(1, 41)])
    peeked = np.mean((hits >= needed)[:, 4:].any(1))
    assert peeked == pytest.approx(statistics.peeking_rate(5, 40), abs=0.011)
    assert peeked > 2.5 * statistics.LEVEL
    assert statistics.peeking_rate(16, 16) == statistics.at_least(12, 16)


def test_the_smallest_detectable_rate_is_where_the_power_is_reached() -> None:
    for trials, *_ in PUBLISHED:
        rate = statistics.smallest_detectable(trials)
        assert statistics.power(trials, rate) == pytest.approx(statistics.POWER, abs=1e-6)
    assert statistics.smallest_detectable(16) == pytest.approx(0.81, abs=0.01)
    assert statistics.smallest_detectable(4) is None, "four of four happen by chance once in sixteen"


def test_the_exact_interval_agrees_with_published_ones() -> None:
    # Clopper and Pearson's own example, and the rule of three's exact form.
    assert statistics.exact_interval(3, 10) == pytest.approx((0.0667, 0.6525), abs=5e-4)
    assert statistics.exact_interval(0, 10) == pytest.approx((0.0, 1 - 0.025**0.1), abs=1e-9)
    assert statistics.exact_interval(10, 10) == pytest.approx((0.025**0.1, 1.0), abs=1e-9)
    assert statistics.exact_interval(12, 16) == pytest.approx((0.4762, 0.9273), abs=5e-4)
    for hits, trials in ((-1, 5), (6, 5)):
        with pytest.raises(ValueError, match="cannot be"):
            statistics.at_least(hits, trials)


def test_the_sign_test_drops_ties_and_reports_them() -> None:
    found = statistics.sign_test([2, 1, 3, 1, 1, 1, -1, 0, 0])
    assert (found.better, found.worse, found.ties) == (6, 1, 2)
    assert found.p == pytest.approx(2 * (comb(7, 6) + comb(7, 7)) / 2**7)
    assert statistics.sign_test([0, 0]).p == 1.0 and statistics.sign_test([1, -1]).p == 1.0
    assert statistics.split_p(9, 1) == statistics.split_p(1, 9) == pytest.approx(22 / 1024)
    assert statistics.split_p(0, 0) == 1.0


def test_the_clustered_interval_covers_other_listeners_and_sentences_where_plain_resampling_does_not() -> None:
    generator = np.random.default_rng(3)
    covered = plain = 0
    for run in range(200):
        bias, difficulty = generator.normal(0, 1, 12), generator.normal(0, 1, 12)
        listeners, sentences = zip(*product(range(12), repeat=2), strict=True)
        places = zip(listeners, sentences, strict=True)
        values = [0.4 + bias[one] + difficulty[other] + generator.normal(0, 0.5) for one, other in places]
        interval = statistics.clustered(values, listeners, sentences, seed=run, resamples=500)
        covered += interval.low <= 0.4 <= interval.high
        half = 1.96 * np.std(values) / len(values) ** 0.5
        plain += abs(np.mean(values) - 0.4) <= half
    assert covered >= 176, "at least 88 % of the intervals hold"
    assert plain <= 140, "as if all answers were independent, most do not"


def test_one_listener_is_resampled_by_sentence_and_one_of_both_by_answer() -> None:
    values = [1.0, 1.0, 1.0, -1.0, -1.0, -1.0]
    by_sentence = statistics.clustered(values, ["l"] * 6, [1, 1, 1, 2, 2, 2])
    assert (by_sentence.mean, by_sentence.low, by_sentence.high, by_sentence.n) == (0.0, -1.0, 1.0, 6)
    by_answer = statistics.clustered(values, ["l"] * 6, ["s"] * 6)
    assert -1 < by_answer.low < 0 < by_answer.high < 1
    with pytest.raises(ValueError, match="no answers"):
        statistics.clustered([], [], [])


def test_equal_answers_give_a_point() -> None:
    interval = statistics.clustered([2.0] * 9, list("abc") * 3, [1] * 3 + [2] * 3 + [3] * 3)
    assert (interval.low, interval.mean, interval.high) == (2.0, 2.0, 2.0)


def test_the_paired_test_is_exact_for_few_and_close_to_it_for_many() -> None:
    assert statistics.paired_p([1, 2, 3, 4, 5]) == pytest.approx(2 / 32)
    assert statistics.paired_p([0, 0]) == 1.0
    generator = np.random.default_rng(5)
    rejected = sum(statistics.paired_p(generator.normal(0, 1, 20), resamples=400) <= 0.05 for _ in range(400))
    assert 8 <= rejected <= 34, "about 20 of 400 under the null hypothesis"
    assert statistics.paired_p(generator.normal(1, 1, 30)) < 0.01
    assert statistics.holm([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.06, 0.06))
    assert statistics.holm([0.6, 0.7]) == (1.0, 1.0) and statistics.holm([]) == ()


def _panel() -> list[statistics.Rating]:
    """Three listeners on ten items; "deaf" takes the mid anchor for the reference every second time."""
    ratings = []
    for item in range(10):
        for name, scores in {
            "good": (100, 80, 60),
            "deaf": (85 if item % 2 else 100, 80, 95 if item % 2 else 60),
            "fair": (89 if item == 0 else 95, 70, 50),
        }.items():
            rated = zip(("reference", "fast", "anchor70"), scores, strict=True)
            ratings += [statistics.Rating(name, item, *one) for one in rated]
    return ratings


def test_post_screening_leaves_out_who_misses_more_than_fifteen_percent() -> None:
    found = {one.listener: one for one in statistics.screened(_panel(), "reference", "anchor70")}
    assert {name: one.excluded for name, one in found.items()} == {"good": False, "deaf": True, "fair": False}
    assert (found["deaf"].reference_missed, found["deaf"].anchor_missed, found["deaf"].items) == (5, 5, 10)
    assert found["fair"].reference_missed == 1, "one of ten is within 15 %"


def _rated(anchors: dict[str, int], item: object = 0) -> list[statistics.Rating]:
    rated = [statistics.Rating(name, item, "anchor70", score) for name, score in anchors.items()]
    return rated + [statistics.Rating(name, item, "reference", 100) for name in anchors]


def test_an_anchor_that_too_many_take_for_the_reference_excludes_nobody() -> None:
    """BS.1534-3, 4.1.2: more than a quarter of the assessors above 90 is the sentence's fault."""
    quarter = _rated({"a": 95, "b": 60, "c": 60, "d": 60})
    assert statistics.indistinct_sentences(quarter, "anchor70") == frozenset()
    screened = statistics.screened(quarter, "reference", "anchor70")
    assert [one.excluded for one in screened] == [True, False, False, False]
    half = _rated({"a": 95, "b": 91, "c": 60, "d": 90})
    assert statistics.indistinct_sentences(half, "anchor70") == {0}
    found = statistics.screened([*half, *_rated(dict.fromkeys("abcd", 50), 1)], "reference", "anchor70")
    assert [(one.anchor_missed, one.items, one.excluded) for one in found] == [(0, 2, False)] * 4
    alone = _rated({"a": 95})
    assert statistics.screened(alone, "reference", "anchor70")[0].excluded, "one alone would always be too many"


def test_mushra_summaries_are_medians_with_quartiles_and_intervals() -> None:
    ratings = [one for one in _panel() if one.listener != "deaf"]
    found = {one.condition: one for one in statistics.summaries(ratings)}
    assert list(found) == ["reference", "fast", "anchor70"]
    fast = found["fast"]
    assert (fast.median, fast.lower_quartile, fast.upper_quartile) == (75.0, 70.0, 80.0)
    assert (fast.mean.mean, fast.mean.low, fast.mean.high, fast.mean.n) == (75.0, 70.0, 80.0, 20)
    difference = statistics.paired(ratings, "fast", "reference")
    assert difference.difference.mean == pytest.approx(75 - np.mean([100] * 10 + [89] + [95] * 9))
    assert difference.p < 0.001 and statistics.paired(ratings, "fast", "nothing") is None
