"""Times of a plan: those of its options, placed ones, with a halved first step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paretone.models.f5.config import OPTIONS
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values, checked
from paretone.setting.plan import FlowPlan, MaskedPlan
from paretone_app.state.selection import option_times, plan_times


def test_times() -> None:
    options = checked(OPTIONS, {"steps": 4, "spacing": "uniform", "sway": 0.0}, "it")
    compatibility = Compatibility("f5-mini", "0" * 64, "", options)
    plan = FlowPlan(options, options, "0" * 64, compatibility)
    assert plan_times(plan) == option_times(options) == (0.0, 0.25, 0.5, 0.75, 1.0)
    placed = replace(plan, times=(0.0, 0.5, 1.0))
    assert plan_times(placed) == (0.0, 0.5, 1.0)
    assert plan_times(replace(placed, halves_first=True)) == pytest.approx((0.0, 0.25, 0.5, 1.0))
    assert plan_times(MaskedPlan(options, options, "0" * 64, compatibility)) == ()
    assert option_times(Values(temperature=1.0)) == option_times(options.replace(sway=9.0)) == ()
