"""The first-block cache and the change meter of error curves, against whole evaluations of a random transformer."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from paretone.models import load_model
from paretone.models.catalogue import entry, voice
from paretone.models.families.evaluations import Evaluations
from paretone.sampling.flow import relative_change
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import synthesise
from paretone.techniques.error_curve.measuring import ChangeMeter
from paretone.techniques.first_block.cache import FirstBlockCache
from tests.engine.sampling.evaluated import DIT, FRAMES, LAYERS, STEPS, begun, states
from tests.workload import only_in_full


def test_a_threshold_of_nothing_skips_nothing_and_operations_are_those_that_torch_counts() -> None:
    run, cache, counts = begun(), FirstBlockCache(DIT, 0.0), DIT.operations(FRAMES, True)
    for step, state in enumerate(states()):
        assert torch.allclose(cache.velocities(state, step, run), DIT.velocity(state, step, run), atol=1e-5)
        assert cache.operations(step, counts) == counts.evaluation
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


def packed_product(x: torch.Size, packed: object, weight: torch.Size, *more: object, **named: object) -> int:
    """Operations of the product with packed weights that the library MKL computes, which torch's counter leaves out: a
    sixth of F5 mini's, so that what is never skipped counts for more."""
    return 2 * math.prod(x) * weight[0]


def counter() -> FlopCounterMode:
    known = {torch.ops.mkl._mkl_linear: packed_product} if torch.backends.mkl.is_available() else {}
    return FlopCounterMode(display=False, custom_mapping=known)


@only_in_full("peers")
@pytest.mark.parametrize("model", ["f5-mini", "megatts3-mini"])
def test_the_ratio_is_that_of_a_counter_over_all_evaluations(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    speech = load_model(model, device="cpu")
    whole = Setting(model, entry(model).options_with(steps=16), seed=1)
    evaluate, counted = Evaluations.__call__, [0]

    def counting(self: Evaluations, state: torch.Tensor, evaluation: int) -> torch.Tensor:
        with sdpa_kernel(SDPBackend.MATH), counter() as found:
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
        assert ratio == pytest.approx(operations / everything, rel=2e-3)
        assert ratio <= 1
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
