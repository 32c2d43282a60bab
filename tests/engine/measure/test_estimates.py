"""Estimates and shares with intervals, against what is known of them."""

import math
from dataclasses import replace

import numpy as np
import pytest

from paretone.measure import estimates
from paretone.measure.metrics import METRICS, figure_of, metric
from paretone.setting.setting import Setting
from paretone.setting.take import Measurements, Metrics, Take, repeated


def test_means_medians_and_rates() -> None:
    columns = np.array([[1.0, 5.0], [2.0, 5.0], [9.0, 5.0]])
    mean, constant = estimates.estimates(columns, "mean", [3, 6])
    assert (mean.value, mean.n, mean.clusters) == (4.0, 3, 3)
    assert 1.0 <= mean.low < mean.value < mean.high <= 9.0
    assert (constant.value, constant.low, constant.high, constant.n) == (5.0, 5.0, 5.0, 6)
    assert estimates.estimates(columns, "median", [3, 3])[0].value == 2.0
    (rate,) = estimates.estimates(np.array([[1 + 10j], [3 + 10j]]), "rate", [2])
    assert (rate.value, rate.low, rate.high) == (0.2, 0.1, 0.3)
    assert rate.words == 20 and mean.words == 0
    (alone,) = estimates.estimates(np.array([[7.0]]), "mean", [4])
    assert (alone.low, alone.value, alone.high, alone.clusters) == (7.0, 7.0, 7.0, 1)


def test_no_errors_have_no_interval_but_are_over_so_many_words() -> None:
    none, some = estimates.estimates(np.array([[10j, 1 + 10j], [8j, 8j]]), "rate", [2, 2])
    assert none.value == 0.0 and not none.spreads and none.over == "18 words"
    assert some.spreads and some.over == "", "its interval says it"
    assert estimates.estimates(np.array([[1j]]), "rate", [1])[0].over == "1 word"
    assert estimates.estimates(np.zeros((2, 1)), "mean", [2])[0].over == ""


def test_intervals_hold_the_truth_about_as_often_as_they_claim() -> None:
    found = estimates.estimates(np.random.default_rng(2).exponential(size=(30, 400)), "mean", [30] * 400)
    assert 0.88 < np.mean([one.low <= 1.0 <= one.high for one in found]) < 0.97


def test_the_tail_of_a_take_needs_repeats() -> None:
    runs = [Measurements(2.0, 4.0, 0.1 * place, backbone_seconds=1.0) for place in range(1, 11)]
    once = Take("t", "", "", "", Setting("f5-mini"), 1, np.zeros(1, np.float32), measurements=runs[0])
    assert figure_of(metric("first_audio_p90"), once) is None
    tail = figure_of(metric("first_audio_p90"), repeated(once, runs))
    assert tail is not None and tail.value == pytest.approx(0.91) and tail.n == 10
    assert figure_of(metric("backbone_time_factor"), once).value == 0.25
    assert figure_of(metric("backbone_time_factor"), replace(once, measurements=Measurements(2.0, 4.0))) is None


def test_metrics_of_a_take() -> None:
    measured = Measurements(seconds=2.0, audio_seconds=4.0, ops_ratio=0.25, peak_memory_bytes=2**21)
    heard = Metrics(loudness=-20.0, pitch_error=0.5)
    values = {one.name: one.of(measured, heard, 0.125) for one in METRICS if one.of is not None}
    assert values["real_time_factor"] == 0.5
    assert values["ops_ratio"] == 0.25
    assert values["peak_memory"] == 2.0
    assert values["log_mel_distance"] == 0.125
    assert values["pitch_error"] == 0.5
    assert values["mel_cepstral_distortion"] is None
    assert metric("pitch_error").label == "F0 error (semitones)"
    assert len({one.name for one in METRICS}) == len(METRICS)


def test_the_tail_is_that_of_all_runs_with_an_interval_over_runs_or_sentences() -> None:
    runs = list(np.random.default_rng(3).gamma(2.0, 0.1, 20))
    value, low, high = estimates.tail_interval(runs)
    assert value == pytest.approx(np.percentile(runs, 90)) and low < value < high
    assert low in runs and high in runs, "draws are runs"
    value_by_sentence, *ends = estimates.tail_interval(runs, [place // 5 for place in range(20)])
    assert value_by_sentence == value
    drawn = [np.concatenate([runs[5 * at : 5 * at + 5] for at in some]) for some in estimates.picks(4, 1000)]
    tails = [np.percentile(one, 90, method="inverted_cdf") for one in drawn]
    assert ends == pytest.approx(np.percentile(tails, (2.5, 97.5)).clip([-np.inf, value], [value, np.inf]))
    assert estimates.tail_interval(runs, [0] * 20) == (value, low, high), "one sentence: over its runs"


def test_a_mean_has_the_interval_of_the_normal_distribution() -> None:
    values = np.random.default_rng(3).normal(5.0, 2.0, 400)
    mean, low, high = estimates.bootstrap(lambda drawn: drawn.mean(1), values, draws=4000)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert mean == pytest.approx(values.mean())
    assert (low, high) == pytest.approx((mean - half, mean + half), abs=half / 10)


def test_wilson() -> None:
    # Newcombe (1998), table I, method 3.
    assert estimates.wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert estimates.wilson_interval(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert estimates.wilson_interval(0, 0) == (0.0, 1.0)


SENTENCES = np.linspace(-1, 1, 20)
"""How far each of twenty sentences lies from the mean."""


@pytest.mark.parametrize(
    ("lost", "scatter", "verdict"),
    [
        (0.0, 0.1, estimates.PASSES),
        (0.1, 0.1, estimates.PASSES),
        (0.14, 0.1, estimates.UNDECIDED),
        (0.16, 0.1, estimates.UNDECIDED),
        (0.3, 0.1, estimates.FAILS),
        (0.1, 1.0, estimates.UNDECIDED),
    ],
)
def test_a_figure_passes_or_fails_with_its_whole_interval(lost: float, scatter: float, verdict: str) -> None:
    baseline = np.full(20, 4.0)
    assert estimates.margin(baseline - lost + scatter * SENTENCES, baseline, -0.15).verdict == verdict


def test_sentences_are_paired_with_the_baselines() -> None:
    baseline = 4 + SENTENCES
    found = estimates.margin(baseline - 0.1, baseline, -0.15)
    assert (found.low, found.high) == pytest.approx((0.05, 0.05))


def test_a_share_is_held_against_the_baselines_figure() -> None:
    baseline = np.full(20, 0.08)
    assert estimates.margin(0.9 * baseline, baseline, 0.85, share=True).value == pytest.approx(0.05 * 0.08)
    assert estimates.margin(0.8 * baseline, baseline, 0.85, share=True).verdict == estimates.FAILS


def test_few_words_without_an_error_decide_nothing() -> None:
    """Three errors in a hundred are compatible with none in a hundred words."""
    none = np.full(10, 10j)
    assert estimates.margin(none, none, 0.01, above=True, statistic="rate").verdict == estimates.UNDECIDED
    assert estimates.margin(50 * none, 50 * none, 0.01, above=True, statistic="rate").verdict == estimates.PASSES
    wrong = np.full(10, 1 + 10j)
    assert estimates.margin(wrong, none, 0.01, above=True, statistic="rate").verdict == estimates.FAILS
    assert estimates.margin(wrong, None, 0.5, above=True, statistic="rate").verdict == estimates.PASSES


def test_one_sentence_and_none_decide_nothing() -> None:
    assert estimates.margin(np.array([9.0]), np.array([1.0]), 0.0).verdict == estimates.UNDECIDED
    assert estimates.margin(np.array([np.nan, np.nan]), np.array([1.0, 1.0]), 0.0) is estimates.UNKNOWN
    assert estimates.UNKNOWN.verdict == estimates.UNDECIDED and estimates.UNKNOWN.more is None


def test_as_many_more_sentences_as_advised_decide() -> None:
    """Sentences that scatter as those so far, and as many as the advice asks for."""
    baseline = np.zeros(20)
    found = estimates.margin(baseline + 0.1 + SENTENCES, baseline, 0.0)
    assert found.verdict == estimates.UNDECIDED and found.more is not None
    again = np.tile(0.1 + SENTENCES, math.ceil((20 + found.more) / 20))
    assert estimates.margin(again, np.zeros(len(again)), 0.0).low > -0.02
    assert 100 < found.more < 200, "the interval is 0.26 wide to one side, and has to become 0.1"


def test_one_failure_decides_and_one_doubt_leaves_open() -> None:
    passing, failing = estimates.Margin(1, 0.5, 1.5, 9), estimates.Margin(-1, -1.5, -0.5, 9)
    open_ = estimates.Margin(1, -1, 3, 9)
    assert estimates.Margins({"words": passing}).words == "passes"
    failed = estimates.Margins({"words": passing, "naturalness": failing, "range": open_})
    assert failed.words == "fails by the naturalness"
    undecided = estimates.Margins({"words": passing, "range": open_, "spread": estimates.Margin(1, -2, 4, 9)})
    assert undecided.words == "undecided by the range and spread: 72 more sentences would decide"
    assert (undecided.verdict, undecided.more) == (estimates.UNDECIDED, 72)
