"""The statistics against published values, against simulation, and against their own definitions."""

from __future__ import annotations

import subprocess
import sys
from math import comb

import numpy as np
import pytest

from paretone.listening import statistics
from paretone.listening.statistics import Rating

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
def test_abx_agrees_with_the_published_table(
    trials: int, hits: int, p: float, strict: int | None, at_75: float, at_90: float
) -> None:
    assert statistics.needed(trials) == hits
    assert statistics.at_least(hits, trials) == pytest.approx(p, abs=0.0005)
    assert statistics.needed(trials, 0.01) == strict
    assert statistics.power(trials, 0.75) == pytest.approx(at_75, abs=0.005)
    assert statistics.power(trials, 0.90) == pytest.approx(at_90, abs=0.005)


@pytest.mark.parametrize("trials", [row[0] for row in PUBLISHED])
def test_listeners_who_guess_pass_at_most_as_often_as_the_level_says(trials: int) -> None:
    hits = np.random.default_rng(trials).binomial(trials, 0.5, LISTENERS)
    exact = statistics.at_least(statistics.needed(trials), trials)
    rate = np.mean(hits >= statistics.needed(trials))
    # The exact rate is below the level; what is simulated scatters around it by three standard errors at most.
    assert exact <= statistics.LEVEL
    assert rate == pytest.approx(exact, abs=3 * (exact * (1 - exact) / LISTENERS) ** 0.5)


@pytest.mark.parametrize(("trials", "rate"), [(row[0], rate) for row in PUBLISHED for rate in (0.75, 0.9)])
def test_listeners_who_hear_something_pass_as_often_as_the_power_says(trials: int, rate: float) -> None:
    hits = np.random.default_rng([trials, round(100 * rate)]).binomial(trials, rate, LISTENERS)
    power = statistics.power(trials, rate)
    assert np.mean(hits >= statistics.needed(trials)) == pytest.approx(power, abs=0.016)


def test_stopping_when_it_looks_good_makes_listeners_who_guess_pass_three_times_too_often() -> None:
    # Exactly 14.54 %; the 14.4 % that are quoted elsewhere were simulated, with a standard error of 0.35 %.
    assert statistics.peeking_rate(5, 40) == pytest.approx(0.144, abs=0.002)
    answers = np.random.default_rng(7).random((LISTENERS, 40)) < 0.5
    hits = answers.cumsum(1)
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


def test_impossible_counts_are_refused() -> None:
    for hits, trials in ((-1, 5), (6, 5)):
        with pytest.raises(ValueError, match="cannot be"):
            statistics.at_least(hits, trials)


def test_the_sign_test_drops_ties_and_reports_them() -> None:
    found = statistics.sign_test([2, 1, 3, 1, 1, 1, -1, 0, 0])
    assert (found.better, found.worse, found.ties) == (6, 1, 2)
    assert found.p == pytest.approx(2 * (comb(7, 6) + comb(7, 7)) / 2**7)
    assert statistics.sign_test([0, 0]).p == 1.0
    assert statistics.sign_test([1, -1]).p == 1.0


def test_the_order_bias_is_two_sided() -> None:
    assert statistics.order_bias(9, 1) == statistics.order_bias(1, 9) == pytest.approx(22 / 1024)
    assert statistics.order_bias(0, 0) == 1.0


def _crossed(generator: np.random.Generator, listeners: int, sentences: int, truth: float) -> tuple[list, list, list]:
    bias, difficulty = generator.normal(0, 1, listeners), generator.normal(0, 1, sentences)
    places = [(one, other) for one in range(listeners) for other in range(sentences)]
    values = [truth + bias[one] + difficulty[other] + generator.normal(0, 0.5) for one, other in places]
    return values, [one for one, _ in places], [other for _, other in places]


def test_the_clustered_interval_covers_other_listeners_and_sentences_where_plain_resampling_does_not() -> None:
    generator = np.random.default_rng(3)
    covered = plain = 0
    for run in range(200):
        values, listeners, sentences = _crossed(generator, 12, 12, 0.4)
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


def test_holm_adjusts_by_rank() -> None:
    assert statistics.holm([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.06, 0.06))
    assert statistics.holm([0.6, 0.7]) == (1.0, 1.0)
    assert statistics.holm([]) == ()


def _panel() -> list[Rating]:
    """Three listeners on ten items; "deaf" takes the mid anchor for the reference every second time."""
    ratings = []
    for item in range(10):
        for name, (hidden, fast, anchor) in {
            "good": (100, 80, 60),
            "deaf": (85 if item % 2 else 100, 80, 95 if item % 2 else 60),
            "fair": (89 if item == 0 else 95, 70, 50),
        }.items():
            ratings += [
                Rating(name, item, "reference", hidden),
                Rating(name, item, "fast", fast),
                Rating(name, item, "anchor70", anchor),
            ]
    return ratings


def test_post_screening_leaves_out_who_misses_more_than_fifteen_percent() -> None:
    found = {one.listener: one for one in statistics.screened(_panel(), "reference", "anchor70")}
    assert {name: one.excluded for name, one in found.items()} == {"good": False, "deaf": True, "fair": False}
    assert (found["deaf"].reference_missed, found["deaf"].anchor_missed, found["deaf"].items) == (5, 5, 10)
    assert found["fair"].reference_missed == 1, "one of ten is within 15 %"


def _rated(anchors: dict[str, int], item: object = 0) -> list[Rating]:
    rated = [Rating(name, item, "anchor70", score) for name, score in anchors.items()]
    return rated + [Rating(name, item, "reference", 100) for name in anchors]


def test_an_anchor_that_too_many_take_for_the_reference_excludes_nobody() -> None:
    """BS.1534-3, 4.1.2: more than a quarter of the assessors above 90 is the sentence's fault."""
    quarter = _rated({"a": 95, "b": 60, "c": 60, "d": 60})
    assert statistics.indistinct_sentences(quarter, "anchor70") == frozenset()
    assert [one.excluded for one in statistics.screened(quarter, "reference", "anchor70")] == [
        True,
        False,
        False,
        False,
    ]
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
    assert difference.p < 0.001
    assert statistics.paired(ratings, "fast", "nothing") is None


def test_neither_qt_nor_torch_is_needed() -> None:
    code = "import sys, paretone.listening.statistics; print(any(one in sys.modules for one in ('torch', 'PySide6')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
