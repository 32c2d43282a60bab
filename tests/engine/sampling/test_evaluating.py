"""Evaluations by a plan against whole ones of a random transformer."""

from __future__ import annotations

import pytest

from paretone.sampling.actions import SkipAction
from paretone.sampling.flow import Planned, Whole
from paretone.sampling.skipping import SkipPlan
from tests.engine.sampling.evaluated import DIT, FRAMES, LAYERS, begun, states


def test_a_schedule_by_module_skips_that_module_everywhere() -> None:
    run, counts = begun(), DIT.operations(FRAMES, True)
    none, reuse = SkipAction.NONE, SkipAction.TS
    planned = Planned(DIT, SkipPlan.by_module((none, reuse), (none, none), LAYERS), LAYERS)
    whole = Whole(DIT)
    for step in range(2):
        planned.velocities(states()[0], step, run)
        whole.velocities(states()[0], step, run)
    saved = counts.branches * LAYERS * counts.attention
    assert planned.operations(0, counts) == whole.operations(0, counts) == counts.evaluation
    assert planned.operations(1, counts) == pytest.approx(counts.evaluation - saved)
