"""The dual block cache on a random transformer: what is computed, for which branches, and what that costs.

What it gives: ``test_cache_dit``.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from paretone.sampling.flow import sampling_grid
from paretone.techniques.dual_block_cache.cache import DualBlockCache
from paretone.techniques.dual_block_cache.rule import Rule
from tests.engine.sampling.evaluated import DIT, FRAMES, LAYERS, begun, states

ALWAYS = Rule(residual_diff_threshold=1.0, max_warmup_steps=1, max_continuous_cached_steps=-1)


def test_a_threshold_of_nothing_reuses_nothing() -> None:
    run, cache, counts = begun(), DualBlockCache(DIT, Rule(residual_diff_threshold=0.0)), DIT.operations(FRAMES, True)
    for step, state in enumerate(states()):
        assert torch.allclose(cache.velocities(state, step, run), DIT.velocity(state, step, run), atol=1e-5)
        assert cache.operations(step, counts) == counts.evaluation
    assert cache.reused == ((), ())


@pytest.mark.parametrize("rule", [ALWAYS, replace(ALWAYS, Fn_compute_blocks=2, Bn_compute_blocks=1)])
def test_operations_are_those_that_torch_counts(rule: Rule) -> None:
    """Of every evaluation, whether none, one or both branches reuse."""
    run, cache, counts = begun(), DualBlockCache(DIT, rule), DIT.operations(FRAMES, True)
    shares = []
    for step, state in enumerate(states()):
        if step == 2:  # From here on one branch computes: forced, as no threshold parts the two for certain.
            cache._branches[1].decisions.reuses = lambda step, change: False
        # The counter does not know the fused attention kernels of a CPU.
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            cache.velocities(state, step, run)
        spent = cache.operations(step, counts)
        assert spent == pytest.approx(counter.get_total_flops(), rel=1e-6)
        shares.append(spent / counts.evaluation)
    assert shares[0] == 1 > shares[2] == shares[3] > shares[1]


def test_one_branch_that_computes_gets_what_it_gets_alone() -> None:
    """The rows of a branch do not depend on whether the other is computed with it, masked or not."""
    generator = torch.Generator().manual_seed(0)
    prompt, ids = torch.randn(2, FRAMES, 20, generator=generator), torch.tensor([[1, 2, 3], [4, 5, 6]])
    run = DIT.begin(prompt, ids, sampling_grid(4, "uniform")[:-1], True, [FRAMES, FRAMES - 3])
    cache = DualBlockCache(DIT, ALWAYS)
    first, second = torch.randn(2, 2, FRAMES, 20, generator=generator)
    cache.velocities(first, 0, run)
    cache._branches[1].decisions.reuses = lambda step, change: False
    found = cache.velocities(second, 1, run)
    whole = DIT.velocity(second, 1, run)
    assert torch.allclose(found[2:], whole[2:], atol=1e-5)
    assert (found[:2] - whole[:2]).abs().max() > 1e-3


def test_branches_that_end_leave_the_first_ones_memory() -> None:
    both, alone, counts = begun(), begun(guided=False), DIT.operations(FRAMES, False)
    cache = DualBlockCache(DIT, ALWAYS)
    for step, state in enumerate(states()):
        assert len(cache.velocities(state, step, both if step < 2 else alone)) == (2 if step < 2 else 1)
    assert cache.reused == ((1, 2, 3), (1,))
    layer = counts.attention + counts.feed_forward
    assert cache.operations(3, counts) == pytest.approx(counts.fixed + layer)
    assert LAYERS * layer + counts.fixed == counts.evaluation
