"""The first-block cache and the change meter against whole evaluations of a random transformer."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.sampling.actions import SkipAction
from engine.sampling.caching import ChangeMeter, FirstBlockCache, Planned, Whole, relative_change
from engine.sampling.flow import sampling_grid
from engine.sampling.skipping import SkipPlan
from tests.engine.models.f5.plain_dit import small_dit

STEPS, FRAMES, LAYERS = 4, 11, 4
DIT = small_dit(depth=LAYERS)


def begun(guided: bool = True):
    prompt = torch.randn(1, FRAMES, 20, generator=torch.Generator().manual_seed(0))
    return DIT.begin(prompt, torch.tensor([[1, 2, 3]]), sampling_grid(STEPS, "uniform")[:-1], guided)


def states() -> list[Tensor]:
    """States that hardly differ at the second, and much at the third."""
    first, other = torch.randn(2, 1, FRAMES, 20, generator=torch.Generator().manual_seed(1))
    return [first, first + 0.01 * other, first + 5 * other, first + 5.01 * other]


def test_a_threshold_of_nothing_skips_nothing() -> None:
    run, cache, counts = begun(), FirstBlockCache(DIT, 0.0), DIT.operations(FRAMES, True)
    for step, state in enumerate(states()):
        assert torch.allclose(cache.velocities(state, step, run), DIT.velocity(state, step, run), atol=1e-5)
        assert cache.operations(step, counts) == counts.evaluation


def test_what_hardly_changes_is_replaced_by_the_last_residual(monkeypatch: pytest.MonkeyPatch) -> None:
    run, cache, counts = begun(), FirstBlockCache(DIT, 1e9), DIT.operations(FRAMES, True)
    computed: list[int] = []
    layer = type(DIT).layer

    def counting(self, index: int, *others, **more):
        computed.append(index)
        return layer(self, index, *others, **more)

    monkeypatch.setattr(type(DIT), "layer", counting)
    found = []
    for step, state in enumerate(states()[:2]):
        cache.velocities(state, step, run)
        found.append(list(computed))
        computed.clear()
    assert found == [list(range(LAYERS)), [0]]
    skipped = counts.branches * (counts.fixed + counts.attention + counts.feed_forward)
    assert [cache.operations(step, counts) for step in range(2)] == [counts.evaluation, skipped]


def test_the_skipped_velocity_is_by_definition() -> None:
    run, cache = begun(), FirstBlockCache(DIT, 1e9)
    first, second = states()[:2]

    def passed(state: Tensor, step: int, last: int) -> tuple[Tensor, Tensor]:
        entered = hidden = DIT.enter(state, run)
        for index in range(last):
            hidden = DIT.layer(index, hidden, step, run)
        return entered, hidden

    cache.velocities(first, 0, run)
    residual = passed(first, 0, LAYERS)[1] - passed(first, 0, 1)[1]
    entered, hidden = passed(second, 1, 1)
    expected = DIT.project(DIT.leave(hidden + residual, entered, 1, run))
    assert torch.allclose(cache.velocities(second, 1, run), expected, atol=1e-5)


def test_changes_add_up_and_other_branches_start_anew() -> None:
    run, counts = begun(), DIT.operations(FRAMES, True)
    still = states()[0]
    meter = FirstBlockCache(DIT, float("inf"))
    meter.velocities(still, 0, run)
    meter.velocities(still, 1, run)
    once = meter._change
    adding = FirstBlockCache(DIT, once * 1.5)
    for step in range(3):
        adding.velocities(still, step, run)
    assert adding.operations(1, counts) < counts.evaluation == adding.operations(2, counts)
    alone = begun(guided=False)
    adding.velocities(still, 3, alone)
    assert adding.operations(3, counts) == counts.evaluation


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
