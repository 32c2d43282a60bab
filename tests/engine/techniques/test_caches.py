"""Caches of evaluations: the first-block cache, the change meter of error curves, and the dual block cache."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from paretone.errors import SettingError
from paretone.models import load_model
from paretone.models.catalogue import entry, voice
from paretone.models.families.evaluations import Evaluations
from paretone.models.kernels import products
from paretone.sampling.flow import relative_change, sampling_grid
from paretone.setting.knobs import Values, defaults
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import synthesise
from paretone.techniques import dual_block_cache, resolve
from paretone.techniques.dual_block_cache import STATIC, Decisions, Rule, read_mask
from paretone.techniques.dual_block_cache.cache import DualBlockCache
from paretone.techniques.error_curve.measuring import ChangeMeter
from paretone.techniques.first_block.cache import FirstBlockCache
from tests import official
from tests.engine.sampling.evaluated import DIT, FRAMES, LAYERS, STEPS, begun, states
from tests.engine.techniques.test_resolving import info, setting
from tests.workload import only_in_full

FREE = {"residual_diff_threshold": 0.5, "max_warmup_steps": 1, "max_continuous_cached_steps": -1}
STATIC_MASK = {"steps_computation_mask": read_mask("1101"), "steps_computation_policy": STATIC}
LITTLE, MUCH = 0.25, 0.75
ALWAYS = Rule(residual_diff_threshold=1.0, max_warmup_steps=1, max_continuous_cached_steps=-1)
PACKAGES = ("cache-dit==1.5.3", "diffusers==0.42.1", "pillow==13.0.0", "importlib_metadata==10.2.0", "zipp==4.1.2")
MODULE = "tests.peers.cache_dit"


def test_a_threshold_of_nothing_skips_nothing_and_operations_are_those_that_torch_counts() -> None:
    for cache in (FirstBlockCache(DIT, 0.0), whole := DualBlockCache(DIT, Rule(residual_diff_threshold=0.0))):
        run, counts = begun(), DIT.operations(FRAMES, True)
        for step, state in enumerate(states()):
            assert torch.allclose(cache.velocities(state, step, run), DIT.velocity(state, step, run), atol=1e-5)
            assert cache.operations(step, counts) == counts.evaluation
    assert whole.reused == ((), ())
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
        entered = hidden = DIT.enter(state, step, run)
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
    entered = [DIT.enter(still, step, run) for step in range(2)]
    added = [DIT.layer(0, one, step, run) - one for step, one in enumerate(entered)]
    adding = FirstBlockCache(DIT, relative_change(*added) * 1.5)
    for step in range(3):
        adding.velocities(still, step, run)
    assert adding.operations(1, counts) < counts.evaluation == adding.operations(2, counts)
    adding.velocities(still, 3, begun(guided=False))
    assert adding.operations(3, counts) == counts.evaluation


@only_in_full("peers")
@pytest.mark.parametrize("model", ["f5-mini", "megatts3-mini"])
def test_the_ratio_is_that_of_a_counter_over_all_evaluations(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Products with packed weights, which torch's counter does not know, stay plain.
    monkeypatch.setattr(products, "NARROWEST", 1 << 20)
    speech = load_model(model, device="cpu")
    whole = Setting(model, entry(model).options_with(steps=16), seed=1)
    evaluate, counted = Evaluations.__call__, [0]

    def counting(self: Evaluations, state: torch.Tensor, evaluation: int) -> torch.Tensor:
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as found:
            velocity = evaluate(self, state, evaluation)
        counted[0] += found.get_total_flops()
        return velocity

    monkeypatch.setattr(Evaluations, "__call__", counting)

    def spoken(setting: Setting) -> tuple[int, float]:
        counted[0] = 0
        made = synthesise(speech, "The quick brown fox jumps.", voice("", model), setting)
        return counted[0], made.measurements.ops_ratio

    everything, _ = spoken(whole)
    for threshold in (0.1, 0.3, 1.0, 20.0):
        cached = whole.with_technique(UsedTechnique("first_block", Values({"threshold": threshold})))
        operations, ratio = spoken(cached)
        assert ratio == pytest.approx(operations / everything, rel=2e-3) and ratio <= 1
    assert ratio < 1, "the last threshold leaves something out"


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


# --- The dual block cache ---------------------------------------------------------------------------------------------
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
        ("xxxxxx", STATIC_MASK | {"max_cached_steps": 1, "max_continuous_cached_steps": 1}, [2, 4, 5, 6]),
    ],
)
def test_decisions(changes: str, fields: dict[str, object], expected: list[int]) -> None:
    """The steps that are reused if what the first blocks add changes (little: ``.``, much: ``x``) after the first."""
    decisions = Decisions(Rule(**{**FREE, **fields}))
    decisions.reuses(0, None)
    for step, one in enumerate(changes, start=1):
        decisions.reuses(step, lambda change=LITTLE if one == "." else MUCH: change)
    assert decisions.reused == expected


def used(**knobs: object) -> UsedTechnique:
    return UsedTechnique(dual_block_cache.NAME, Values(knobs))


def test_knobs_are_the_fields_and_their_defaults() -> None:
    assert Rule.of(defaults(dual_block_cache.KNOBS)) == Rule()
    plan = resolve(info(), setting(used(Fn_compute_blocks=2, steps_computation_mask="1, 0" + ", 1" * 30)))
    rule = dict(plan.evaluator.arguments)["rule"]
    assert (rule.Fn_compute_blocks, rule.steps_computation_mask[:3]) == (2, (True, False, True))
    assert not plan.notes
    assert "has 3 of 16 steps" in resolve(info(), setting(used(steps_computation_mask="110"), steps=16)).notes[0]
    knobs = defaults(dual_block_cache.KNOBS).replace(
        Fn_compute_blocks=8, Bn_compute_blocks=1, taylorseer_order=2, steps_computation_mask="10"
    )
    words = "F8B1, threshold 0.12, warm-up 4, continuous 2, dynamic mask, Taylor order 2"
    assert dual_block_cache.describe(knobs) == words, "as cache-dit says it"
    for wrong, said in (
        ({"Fn_compute_blocks": 500, "Bn_compute_blocks": 500}, "none is left to reuse"),
        ({"steps_computation_mask": "0110", "steps_computation_policy": STATIC}, "must begin with 1"),
        ({"steps_computation_mask": "yes"}, "one digit per step"),
    ):
        with pytest.raises(SettingError, match=said):
            resolve(info(), setting(used(**wrong)))


@pytest.mark.parametrize("rule", [ALWAYS, replace(ALWAYS, Fn_compute_blocks=2, Bn_compute_blocks=1)])
def test_operations_are_those_that_torch_counts(rule: Rule) -> None:
    """Of every evaluation, whether none, one or both branches reuse."""
    both, alone, shares = begun(), begun(guided=False), []
    # A branch that joins later has nothing to reuse yet.
    for runs in (both, both), (alone, both):
        cache = DualBlockCache(DIT, rule)
        for step, (run, state) in enumerate(zip(runs, states(), strict=False)):
            # The counter does not know the fused attention kernels of a CPU.
            with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
                cache.velocities(state, step, run)
            counts = DIT.operations(FRAMES, run is both)
            spent = cache.operations(step, counts)
            assert spent == pytest.approx(counter.get_total_flops(), rel=1e-6)
            shares.append(spent / counts.evaluation)
    assert shares[0] == shares[2] == 1 > shares[3] > shares[1]


def test_branches_compute_and_remember_each_for_itself() -> None:
    """The rows of a branch do not depend on whether the other is computed with it, masked or not."""
    generator = torch.Generator().manual_seed(0)
    prompt, ids = torch.randn(2, FRAMES, 20, generator=generator), torch.tensor([[1, 2, 3], [4, 5, 6]])
    run, alone = (DIT.begin(prompt, ids, sampling_grid(4, "uniform")[:-1], guided) for guided in (True, False))
    run = replace(run, mask=torch.arange(FRAMES) < torch.tensor([FRAMES, FRAMES - 3] * 2)[:, None])
    cache = DualBlockCache(DIT, ALWAYS)
    first, second = torch.randn(2, 2, FRAMES, 20, generator=generator)
    cache.velocities(first, 0, alone)
    found = cache.velocities(second, 1, run)
    whole = DIT.velocity(second, 1, run)
    assert torch.allclose(found[2:], whole[2:], atol=1e-5) and (found[:2] - whole[:2]).abs().max() > 1e-3
    both, alone, counts = begun(), begun(guided=False), DIT.operations(FRAMES, False)
    cache = DualBlockCache(DIT, ALWAYS)
    for step, state in enumerate(states()):
        assert len(cache.velocities(state, step, both if step < 2 else alone)) == (2 if step < 2 else 1)
    assert cache.reused == ((1, 2, 3), (1,))
    layer = counts.attention + counts.feed_forward
    assert cache.operations(3, counts) == pytest.approx(counts.fixed + layer)
    assert LAYERS * layer + counts.fixed == counts.evaluation


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
