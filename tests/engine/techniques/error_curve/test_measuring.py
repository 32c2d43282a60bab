"""The change meter against what the modules of a random transformer return."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from paretone.sampling.flow import relative_change
from paretone.techniques.error_curve.measuring import ChangeMeter
from tests.engine.sampling.evaluated import DIT, LAYERS, STEPS, begun, states


def test_the_meter_measures_what_modules_return() -> None:
    run, meter = begun(), ChangeMeter(DIT)
    outputs: list[dict[tuple[str, int], Tensor]] = []
    for step, state in enumerate(states()):
        seen: dict[tuple[str, int], Tensor] = {}
        plain = DIT.velocity(
            state, step, run, probe=lambda layer, name, value, to=seen: to.update({(name, layer): value})
        )
        assert torch.equal(meter.velocities(state, step, run), plain)
        outputs.append(seen)
    for kind in ("attention", "feed_forward"):
        assert meter.changes[kind][0] == float("inf")
        for step in range(1, STEPS):
            each = [relative_change(outputs[step - 1][kind, one], outputs[step][kind, one]) for one in range(LAYERS)]
            assert meter.changes[kind][step] == pytest.approx(sum(each) / LAYERS)
    meter.velocities(states()[0], 3, begun(guided=False))
    assert meter.changes["attention"][-1] == float("inf")
