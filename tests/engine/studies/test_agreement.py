"""Predictions beside what listeners found."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paretone.listening.results import ListeningScore, agreement_page, agreements, rank_correlation
from paretone.setting.setting import Setting
from paretone.studies.report import to_html
from paretone.studies.results import Results, SettingResult
from tests.engine.studies.test_curves import figure


def results() -> Results:
    settings = []
    for at, value in enumerate((4.2, 4.0, 3.5, 2.0)):
        figures = {"naturalness": figure(value), "speed_up": figure(1.0 + at)}
        one = SettingResult(f"key{at}", f"Setting {at}", "list", Setting("f5-mini"), "key0", figures, finished=6)
        settings.append(one)
    return Results(Path("nowhere"), "Four", "f5-mini", "0" * 12, "2001-01-01", "", {}, tuple(settings))


def heard(values: tuple[float, ...], method: str = "mushra") -> list[ListeningScore]:
    keyed = [(f"key{place}", value) for place, value in enumerate(values)]
    return [ListeningScore("", method, one, one - 5, one + 5, 20, candidate=key) for key, one in keyed]


def test_ranks_agree_whatever_the_scale() -> None:
    assert rank_correlation(np.array([1, 2, 3, 4]), np.array([10, 20, 300, 4000])) == pytest.approx(1.0)
    assert rank_correlation(np.array([1, 2, 3, 4]), np.array([4, 3, 2, 1])) == pytest.approx(-1.0)
    # By hand, ties at their mean rank: 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
    assert rank_correlation(np.array([1, 2, 2, 3]), np.array([1, 2, 3, 4])) == pytest.approx(4.5 / np.sqrt(4.5 * 5))
    assert rank_correlation(np.array([1, 1, 1]), np.array([1, 2, 3])) is None


def test_a_judge_that_orders_as_listeners_do_agrees_with_every_method() -> None:
    (mushra,) = agreements(results(), heard((90, 80, 50, 20)))
    assert (mushra.metric, mushra.method, mushra.settings) == ("naturalness", "mushra", 4)
    assert mushra.correlation == pytest.approx(1.0)
    # Of ABX, more right answers are worse.
    (abx,) = agreements(results(), heard((0.5, 0.6, 0.8, 1.0), "abx"))
    assert abx.correlation == pytest.approx(1.0)
    (other,) = agreements(results(), heard((20, 50, 80, 90)))
    assert other.correlation == pytest.approx(-1.0)


def test_the_report_has_them_where_there_are_any() -> None:
    assert "Predictions and listeners" not in to_html(results())
    assert agreement_page(results(), [replace(one, candidate="other") for one in heard((90, 80, 50, 20))]) == []
    assert "takes 4 settings or more" in "".join(agreement_page(results(), heard((90, 80, 50))))
    page = to_html(results(), heard((90, 80, 50, 20)))
    assert "Predictions and listeners" in page
    assert "Naturalness and MUSHRA order 4 settings with a rank correlation of 1.00" in page
    assert "speed" not in "".join(agreement_page(results(), heard((90, 80, 50, 20)))).lower()
