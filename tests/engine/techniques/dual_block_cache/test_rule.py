"""The dual block cache: the rule, and that caching changes what it should."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from paretone.errors import SettingError
from paretone.sampling.flow import sampling_grid
from paretone.setting.knobs import Values, defaults
from paretone.setting.setting import UsedTechnique
from paretone.techniques import dual_block_cache, resolve
from paretone.techniques.dual_block_cache import STATIC, Decisions, Rule, read_mask
from paretone.techniques.dual_block_cache.cache import DualBlockCache
from tests import official
from tests.engine.sampling.evaluated import DIT, FRAMES, LAYERS, begun, states
from tests.engine.techniques.test_resolving import info, setting
from tests.workload import only_in_full

FREE = {"residual_diff_threshold": 0.5, "max_warmup_steps": 1, "max_continuous_cached_steps": -1}
LITTLE, MUCH = 0.25, 0.75


def reused(changes: str, **fields: object) -> list[int]:
    """The steps that are reused if what the first blocks add changes (little: ``.``, much: ``x``) after the first."""
    decisions = Decisions(Rule(**{**FREE, **fields}))
    decisions.reuses(0, None)
    for step, one in enumerate(changes, start=1):
        decisions.reuses(step, lambda change=LITTLE if one == "." else MUCH: change)
    return decisions.reused


@pytest.mark.parametrize(
    ("changes", "fields", "expected"),
    [
        ("..x..", {}, [1, 2, 4, 5]),
        ("..x..", {"residual_diff_threshold": 0.0}, []),
        ("..x..", {"max_warmup_steps": 5, "warmup_interval": 2}, [1, 5]),
        ("..x..", {"max_cached_steps": 3}, [1, 2, 4]),
        ("......", {"max_continuous_cached_steps": 2}, [1, 2, 4, 5]),
        ("......", {"max_accumulated_residual_diff_threshold": 0.75}, [1, 2, 3]),
        ("x.....", {"max_accumulated_residual_diff_threshold": 0.76}, [2]),
        ("......", {"steps_computation_mask": read_mask("[1, 1, 0, 1, 0, 0, 1]")}, [2, 4, 5]),
        ("..x...", {"steps_computation_mask": read_mask("110"), "max_warmup_steps": 9}, [2, 4, 5, 6]),
        (
            "xxxxxx",
            {
                "steps_computation_mask": read_mask("1101"),
                "steps_computation_policy": STATIC,
                "max_cached_steps": 1,
                "max_continuous_cached_steps": 1,
            },
            [2, 4, 5, 6],
        ),
    ],
)
def test_decisions(changes: str, fields: dict[str, object], expected: list[int]) -> None:
    assert reused(changes, **fields) == expected


# --- Resolving --------------------------------------------------------------------------------------------------------
def used(**knobs: object) -> UsedTechnique:
    return UsedTechnique(dual_block_cache.NAME, Values(knobs))


def test_knobs_are_the_fields_and_their_defaults() -> None:
    assert Rule.of(defaults(dual_block_cache.KNOBS)) == Rule()
    plan = resolve(info(), setting(used(Fn_compute_blocks=2, steps_computation_mask="1, 0" + ", 1" * 30)))
    rule = dict(plan.evaluator.arguments)["rule"]
    assert (rule.Fn_compute_blocks, rule.steps_computation_mask[:3]) == (2, (True, False, True))
    assert not plan.notes
    assert "has 3 of 16 steps" in resolve(info(), setting(used(steps_computation_mask="110"), steps=16)).notes[0]


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"Fn_compute_blocks": 500, "Bn_compute_blocks": 500}, "none is left to reuse"),
        ({"steps_computation_mask": "0110", "steps_computation_policy": STATIC}, "must begin with 1"),
        ({"steps_computation_mask": "yes"}, "one digit per step"),
    ],
)
def test_what_cannot_work_is_refused(knobs: dict[str, object], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        resolve(info(), setting(used(**knobs)))


def test_the_description_is_that_of_cache_dit() -> None:
    knobs = defaults(dual_block_cache.KNOBS).replace(
        Fn_compute_blocks=8, Bn_compute_blocks=1, taylorseer_order=2, steps_computation_mask="10"
    )
    words = dual_block_cache.describe(knobs)
    assert words == "F8B1, threshold 0.12, warm-up 4, continuous 2, dynamic mask, Taylor order 2"


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


def test_branches_compute_and_remember_each_for_itself() -> None:
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
    both, alone, counts = begun(), begun(guided=False), DIT.operations(FRAMES, False)
    cache = DualBlockCache(DIT, ALWAYS)
    for step, state in enumerate(states()):
        assert len(cache.velocities(state, step, both if step < 2 else alone)) == (2 if step < 2 else 1)
    assert cache.reused == ((1, 2, 3), (1,))
    layer = counts.attention + counts.feed_forward
    assert cache.operations(3, counts) == pytest.approx(counts.fixed + layer)
    assert LAYERS * layer + counts.fixed == counts.evaluation


PACKAGES = ("cache-dit==1.5.3", "diffusers==0.42.1", "pillow==13.0.0", "importlib_metadata==10.2.0", "zipp==4.1.2")
MODULE = "tests.peers.cache_dit"


@only_in_full("peers")
def test_the_same_steps_are_reused_as_by_cache_dit_and_end_in_the_same_states() -> None:
    cases = official.run(MODULE, path=official.packages("cache-dit-1.5.3", *PACKAGES))
    assert len(cases) == 12
    assert {name: case["ours"] for name, case in cases.items()} == {name: one["theirs"] for name, one in cases.items()}
    decided = [branch for case in cases.values() for branch in case["ours"]]
    assert sum(map(bool, decided)) > len(decided) / 2, "in most cases something is reused"
    differing = [name for name, case in cases.items() if len({tuple(branch) for branch in case["ours"]}) > 1]
    assert len(differing) >= 3, "branches decide on their own"

    assert min(case["margin"] for case in cases.values()) > 1e-3, "decisions are not left to rounding"
    assert {name: case["difference"] for name, case in cases.items() if not case["difference"] < 1e-5} == {}
    assert min(case["moved"] for case in cases.values()) > 1e-3, "reusing has an effect on all of them"
