"""The ratio of operations that a take says, against a counter of what torch computes, with the bundled models."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from paretone.models import load_model
from paretone.models.catalogue import entry, voice
from paretone.models.families.evaluations import Evaluations
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import synthesise
from tests.workload import workload

TEXT = "The quick brown fox jumps."


def packed_product(x: torch.Size, packed: object, weight: torch.Size, *more: object, **named: object) -> int:
    """Operations of the product with packed weights that the library MKL computes, which torch's counter leaves out: a
    sixth of F5 mini's, so that what is never skipped counts for more."""
    return 2 * math.prod(x) * weight[0]


def counter() -> FlopCounterMode:
    known = {torch.ops.mkl._mkl_linear: packed_product} if torch.backends.mkl.is_available() else {}
    return FlopCounterMode(display=False, custom_mapping=known)


@pytest.mark.parametrize("model", ["f5-mini", "megatts3-mini"])
def test_the_ratio_is_that_of_a_counter_over_all_evaluations(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    speech = load_model(model, device="cpu")
    whole = Setting(model, entry(model).options_with(steps=workload(16, 8)), seed=1)
    evaluate, counted = Evaluations.__call__, [0]

    def counting(self: Evaluations, state: torch.Tensor, evaluation: int) -> torch.Tensor:
        with sdpa_kernel(SDPBackend.MATH), counter() as found:
            velocity = evaluate(self, state, evaluation)
        counted[0] += found.get_total_flops()
        return velocity

    monkeypatch.setattr(Evaluations, "__call__", counting)

    def spoken(setting: Setting) -> tuple[int, float]:
        counted[0] = 0
        made = synthesise(speech, TEXT, voice("", model), setting)
        return counted[0], made.measurements.ops_ratio

    everything, _ = spoken(whole)
    for threshold in workload((0.1, 0.3, 1.0, 20.0), (0.3, 20.0)):
        cached = whole.with_technique(UsedTechnique("first_block", Values({"threshold": threshold})))
        operations, ratio = spoken(cached)
        assert ratio == pytest.approx(operations / everything, rel=2e-3)
        assert ratio <= 1
    assert ratio < 1, "the last threshold leaves something out"
