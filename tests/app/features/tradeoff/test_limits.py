"""The method of limits: from steps after which a listener hears otherwise to a place on the X axis."""

from __future__ import annotations

import pytest

from paretone.measure.estimates import Estimate
from paretone_app.features.tradeoff.scene import Crossing, Filter, PlotOptions, Pool, Scene, in_words, limit, scene
from paretone_app.results.points import STUDY, Point


def shown(x: str, values: tuple[float, ...], **options: bool) -> Scene:
    points = [
        Point(str(at), STUDY, f"setting {at}", "A study", "F5 mini", ("steps",), figures={
            x: Estimate(value, value, value, 3, 3),
            "log_mel_distance": Estimate(0.1 * at, 0.1 * at, 0.1 * at, 3, 3),
        })
        for at, value in enumerate(values)
    ]  # fmt: skip
    return scene(Pool(points), Filter(), PlotOptions(x=x, y="log_mel_distance", **options))


def test_a_difference_begins_halfway_between_the_points_of_each_step() -> None:
    speed_ups = shown("speed_up", (1.0, 2.0, 4.0, 8.0))
    found = limit([Crossing("1", "2", True), Crossing("2", "1", False), Crossing("2", "3", True)], speed_ups)
    assert found is not None and found.crossings == 3
    assert found.low == pytest.approx(8**0.5) and found.high == pytest.approx(32**0.5)
    assert found.value == pytest.approx((8 * 32**0.5) ** (1 / 3)), "speed-ups are ratios"
    words = in_words(found, speed_ups)
    assert words.startswith("Difference heard from 3.56×") and "3 marks, 2.83 to 5.66" in words
    assert "not blind" in words


def test_where_values_are_not_above_0_they_are_halved_as_they_are() -> None:
    found = limit([Crossing("0", "1", True)], shown("log_mel_distance", (0.0, 0.1)))
    assert found is not None and found.value == pytest.approx(0.05)
    assert "(1 mark)" in in_words(found, shown("log_mel_distance", (0.0, 0.1)))


def test_steps_to_points_that_are_not_shown_do_not_count() -> None:
    here = shown("speed_up", (1.0, 2.0))
    assert limit([], here) is None and limit([Crossing("1", "9", True)], here) is None
    assert limit([Crossing("1", "9", True), Crossing("0", "1", True)], here).crossings == 1
