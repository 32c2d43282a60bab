"""The first-block cache against whole evaluations of a random transformer."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from paretone.techniques.first_block.cache import FirstBlockCache
from tests.engine.sampling.evaluated import DIT, FRAMES, LAYERS, begun, states


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


def test_operations_are_those_that_torch_counts() -> None:
    run, cache, counts = begun(), FirstBlockCache(DIT, 1e9), DIT.operations(FRAMES, True)
    for step, state in enumerate(states()[:2]):
        # The counter does not know the fused attention kernels of a CPU.
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            cache.velocities(state, step, run)
        assert cache.operations(step, counts) == pytest.approx(counter.get_total_flops(), rel=1e-6)


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
