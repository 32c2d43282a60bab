"""Step pruning: the grid in force, in words, and what is said of grids that are not what they may be taken for."""

from __future__ import annotations

import pytest

from paretone.models.f5.config import OPTIONS as F5_OPTIONS
from paretone.models.megatts3.config import OPTIONS as MEGA_OPTIONS
from paretone.setting.knobs import Values, checked
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import options_in_force, steps
from paretone.techniques.steps import TECHNIQUE


def knobs(**values: object) -> Values:
    return checked(TECHNIQUE.knobs, values, TECHNIQUE.title)


def remarks(options: tuple = F5_OPTIONS, given: dict | None = None, **values: object) -> str:
    return " ".join(steps.remarks(checked(options, given or {}, "a model"), knobs(**values)))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "7 steps at 0 2 4 6 8 16 24 32 of 32 (EPSS), bent by a sway of -1"),
        ({"steps": 9}, "9 steps evenly spaced, bent by a sway of -1"),
        ({"steps": 16, "spacing": "uniform", "sway": 0.0}, "16 steps evenly spaced"),
        ({"steps": 1, "sway": 0.0}, "1 step evenly spaced"),
    ],
)
def test_the_grid_in_force_is_said(values: dict, words: str) -> None:
    assert TECHNIQUE.describe(knobs(**values)) == words


def test_only_the_grid_is_changed() -> None:
    options = checked(F5_OPTIONS, {"guidance": 1.5}, "a model")
    setting = Setting("f5-mini", options, (UsedTechnique("steps", knobs(steps=12, sway=-0.5)),))
    changed = options_in_force(setting)
    assert dict(changed) == {**options, "steps": 12, "spacing": "epss", "sway": -0.5}


def test_what_is_as_published_needs_no_remark() -> None:
    assert remarks() == ""
    assert remarks(steps=9, spacing="uniform", sway=0.3) == ""


def test_grids_that_are_not_what_they_may_be_taken_for() -> None:
    assert "5, 6, 7, 10, 12, 16 steps only, so these 9 are evenly spaced" in remarks(steps=9)
    assert "16 steps are not evenly spaced" in remarks(steps=16)
    assert "tuned for a sway of -1, not of 0" in remarks(sway=0.0)
    assert "tuned for the Euler solver" in remarks(given={"solver": "midpoint"})
    assert "overshoot" in remarks(MEGA_OPTIONS)
    assert remarks(MEGA_OPTIONS, {"overshoot": 0.0}) == ""
