"""The bench of DiTReducio's rivals searches knobs and compares distances."""

from __future__ import annotations

import numpy as np
import pytest

from paretone.measure.verdicts import Way
from paretone.setting.knobs import checked
from paretone.setting.setting import Setting
from paretone.techniques import technique
from paretone.techniques.ditreducio.rivals_bench import (
    COUNTED_RIVALS,
    FOR_END,
    SEARCHED,
    TABLES,
    Contender,
    Rival,
    _threshold_for,
    compared,
)

WAY = Setting("f5-mini")


def contender(technique: str, target: float = 0.5) -> Contender:
    return Contender(technique, target, "", Way(f"{technique} at {target:g}", WAY))


def test_the_best_rival_at_half_counts() -> None:
    contenders = [
        contender(TABLES["reuse"]),
        contender("one"),
        contender("two"),
        contender("three"),
        contender("one", 0.7),
    ]
    shares = {one.way.title: one.target for one in contenders} | {"three at 0.5": 0.6}
    distances = {
        "DiTReducio at 0.5": np.array([0.2, 0.4]),
        "one at 0.5": np.array([0.2, 0.2]),
        "two at 0.5": np.array([0.05, 0.1]),
        "three at 0.5": np.array([0.01, 0.01]),
        "one at 0.7": np.array([0.01, 0.01]),
    }
    found = compared(contenders, shares, distances)
    assert found is not None
    low, middle, high = found
    assert low == pytest.approx(4) and middle == pytest.approx(4) and high == pytest.approx(4)


def test_other_forms_of_ditreducio_are_no_rivals() -> None:
    names = (TABLES["reuse"], TABLES["forecast"], FOR_END, "one")
    contenders = [contender(name) for name in names]
    shares = {one.way.title: one.target for one in contenders}
    distances = {f"{name} at 0.5": np.array([at + 1.0]) for at, name in enumerate(names)}
    for at, name in enumerate(names[:-1]):
        found = compared(contenders, shares, distances, name)
        assert found is not None and found[1] == pytest.approx((at + 1) / len(names))


def test_nothing_is_compared_that_missed_its_share() -> None:
    contenders = [contender(TABLES["reuse"]), contender("one")]
    distances = {one.way.title: np.array([0.1]) for one in contenders}
    for missed in contenders:
        shares = {one.way.title: 0.5 for one in contenders} | {missed.way.title: 0.8}
        assert compared(contenders, shares, distances) is None


def test_the_threshold_is_the_nearest_on_the_way() -> None:
    asked: list[float] = []

    def share(threshold: float) -> float:
        asked.append(threshold)
        return 1 - round(threshold, 1) / 2

    found = _threshold_for(0.7, share, 0.0, 2.0, trials=8)
    assert share(found) == min((share(one) for one in asked[:8]), key=lambda one: abs(one - 0.7)) == 0.7
    assert len(asked[:8]) == 8


@pytest.mark.parametrize("rival", [*SEARCHED, *COUNTED_RIVALS], ids=lambda one: one.title)
def test_a_rival_is_its_technique_with_the_knob_at_a_value(rival: Rival) -> None:
    value = 5 if rival in COUNTED_RIVALS else 0.3
    used = rival.setting(WAY, value).technique(rival.technique)
    assert used.knobs[rival.knob] == value
    assert checked(technique(rival.technique).knobs, used.knobs, rival.title)
