"""What passes in the bench, and what it compares with. The bench itself runs on trained weights."""

from __future__ import annotations

import pytest

from paretone import bench
from paretone.errors import PlainError
from paretone.models.base import IntervalWeights
from paretone.models.catalogue import entry
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting
from paretone.techniques import foreseen
from paretone.techniques.average_velocity.bench import (
    _rivals,
    few,
)


def test_rivals_and_few_evaluations_start_from_the_baseline() -> None:
    baseline = Setting("f5-mini", entry("f5-mini").options_with(steps=32, guidance=1.0, spacing="uniform"), seed=4)
    found = dict(_rivals(baseline))
    assert {title: foreseen(one).options["steps"] for title, one in found.items()} == {
        "Euler, 1 step": 1,
        "Euler, 2 steps": 2,
        "Euler, 4 steps": 4,
        "step pruning, 5 steps": 5,
        "step pruning, 7 steps": 7,
        "CFG-free, 1 evaluation": 1,
        "CFG-free, 2 evaluations": 2,
        "CFG-free, 4 evaluations": 4,
    }
    assert {one.seed for one in found.values()} == {4}
    weights = IntervalWeights("w", "a" * 64, 4, -1.0, Values(guidance=1.0), "displacement")
    (used,) = few(baseline, 2, weights).techniques
    assert (used.knobs["evaluations"], used.artefact) == (2, weights.fingerprint)


def test_the_spread_needs_four_seeds() -> None:
    with pytest.raises(PlainError, match="--seeds: must be a whole number from 4"):
        bench.main(["few-evaluations", "--seeds", "3"])
