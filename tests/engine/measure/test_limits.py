"""Limits judged by intervals: what passes, what fails, and how many more sentences would decide the rest."""

from __future__ import annotations

import math

import numpy as np
import pytest

from paretone.measure.estimates import FAILS, PASSES, UNDECIDED, UNKNOWN, Judgement, Margin, advice, margin

SENTENCES = np.linspace(-1, 1, 20)
"""How far each of twenty sentences lies from the mean."""


@pytest.mark.parametrize(
    ("lost", "scatter", "verdict"),
    [
        (0.0, 0.1, PASSES),
        (0.1, 0.1, PASSES),
        (0.14, 0.1, UNDECIDED),
        (0.16, 0.1, UNDECIDED),
        (0.3, 0.1, FAILS),
        (0.1, 1.0, UNDECIDED),
    ],
)
def test_a_figure_passes_or_fails_with_its_whole_interval(lost: float, scatter: float, verdict: str) -> None:
    baseline = np.full(20, 4.0)
    assert margin(baseline - lost + scatter * SENTENCES, baseline, -0.15).verdict == verdict


def test_sentences_are_paired_with_the_baselines() -> None:
    baseline = 4 + SENTENCES
    found = margin(baseline - 0.1, baseline, -0.15)
    assert (found.low, found.high) == pytest.approx((0.05, 0.05))


def test_a_share_is_held_against_the_baselines_figure() -> None:
    baseline = np.full(20, 0.08)
    assert margin(0.9 * baseline, baseline, 0.85, share=True).value == pytest.approx(0.05 * 0.08)
    assert margin(0.8 * baseline, baseline, 0.85, share=True).verdict == FAILS


def test_few_words_without_an_error_decide_nothing() -> None:
    """Three errors in a hundred are compatible with none in a hundred words."""
    none = np.full(10, 10j)
    assert margin(none, none, 0.01, above=True, statistic="rate").verdict == UNDECIDED
    assert margin(50 * none, 50 * none, 0.01, above=True, statistic="rate").verdict == PASSES
    wrong = np.full(10, 1 + 10j)
    assert margin(wrong, none, 0.01, above=True, statistic="rate").verdict == FAILS
    assert margin(wrong, None, 0.5, above=True, statistic="rate").verdict == PASSES


def test_one_sentence_and_none_decide_nothing() -> None:
    assert margin(np.array([9.0]), np.array([1.0]), 0.0).verdict == UNDECIDED
    assert margin(np.array([np.nan, np.nan]), np.array([1.0, 1.0]), 0.0) is UNKNOWN
    assert UNKNOWN.verdict == UNDECIDED and UNKNOWN.more is None


def test_sentences_with_half_a_figure_are_left_out() -> None:
    one, baseline = np.array([1.0, np.nan, 3.0, 4.0]), np.array([1.0, 2.0, np.nan, 4.0])
    assert margin(one, baseline, -0.5).sentences == 2


def test_as_many_more_sentences_as_advised_decide() -> None:
    """Sentences that scatter as those so far, and as many as the advice asks for."""
    baseline = np.zeros(20)
    found = margin(baseline + 0.1 + SENTENCES, baseline, 0.0)
    assert found.verdict == UNDECIDED
    assert found.more is not None
    times = math.ceil((20 + found.more) / 20)
    again = np.tile(0.1 + SENTENCES, times)
    assert margin(again, np.zeros(len(again)), 0.0).low > -0.02
    assert 100 < found.more < 200, "the interval is 0.26 wide to one side, and has to become 0.1"


def test_one_failure_decides_and_one_doubt_leaves_open() -> None:
    passing, failing, open_ = Margin(1, 0.5, 1.5, 9), Margin(-1, -1.5, -0.5, 9), Margin(1, -1, 3, 9)
    assert Judgement({"words": passing}).words == "passes"
    assert Judgement({"words": passing, "naturalness": failing, "range": open_}).words == "fails by the naturalness"
    undecided = Judgement({"words": passing, "range": open_, "spread": Margin(1, -2, 4, 9)})
    assert undecided.words == "undecided by the range and spread: 72 more sentences would decide"
    assert (undecided.verdict, undecided.more) == (UNDECIDED, 72)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (1, "1 more sentence would decide"),
        (None, "more sentences would decide"),
        (5000, "it lies so near the limit that more than 1,000 more sentences would have to decide"),
    ],
)
def test_the_advice_is_a_sentence(more: int | None, said: str) -> None:
    assert advice(more) == said
