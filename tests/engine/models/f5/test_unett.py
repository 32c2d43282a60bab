from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from paretone.models.f5.config import BackboneConfig
from paretone.models.f5.unett import UNetT
from paretone.sampling.actions import SkipAction
from paretone.sampling.skipping import LayerMemory
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values
from paretone.techniques.ditreducio.evaluating import skip_plan
from paretone.techniques.ditreducio.table import StrategyTable

CONFIG = BackboneConfig("UNetT", 64, 4, 1, ff_mult=2, pe_attn_head=1, text_num_embeds=9)
FRAMES = 17


@pytest.fixture
def backbone() -> UNetT:
    torch.manual_seed(2)
    model = UNetT(CONFIG).eval().requires_grad_(False)
    for one in model.parameters():
        one.normal_(std=0.3)
    return model


def prompt(batch: int = 1) -> torch.Tensor:
    torch.manual_seed(3)
    mel = torch.randn(batch, FRAMES, 100)
    mel[:, 6:] = 0
    return mel


IDS = torch.tensor([[1, 2, 3, 4]])
TIMES = np.array([0.3, 0.3, 0.7], np.float32)


def table(*steps: SkipAction) -> StrategyTable:
    compatibility = Compatibility("m", "", "v", Values(steps=len(steps)))
    return StrategyTable(compatibility, (steps,) * CONFIG.depth)


def test_without_guidance_it_gives_the_conditional_rows(backbone: UNetT) -> None:
    x = torch.randn(1, FRAMES, 100)
    both = backbone.velocity(x, 2, backbone.begin(prompt(), IDS, TIMES, guided=True))
    one = backbone.velocity(x, 2, backbone.begin(prompt(), IDS, TIMES, guided=False))
    torch.testing.assert_close(one, both[:1], atol=3e-5, rtol=0)
    assert (both[0] - both[1]).abs().max() > 1e-3


def test_time_text_and_prompt_all_matter(backbone: UNetT) -> None:
    x = torch.randn(1, FRAMES, 100)
    run = backbone.begin(prompt(), IDS, TIMES, guided=False)
    base = backbone.velocity(x, 0, run)
    assert torch.equal(backbone.velocity(x, 1, run), base)
    others = [
        backbone.velocity(x, 2, run),
        backbone.velocity(x, 0, backbone.begin(prompt(), IDS.flip(1), TIMES, guided=False)),
        backbone.velocity(x, 0, backbone.begin(2 * prompt(), IDS, TIMES, guided=False)),
    ]
    assert all((other - base).abs().max() > 1e-3 for other in others)


def test_fused_projections_change_nothing(backbone: UNetT) -> None:
    x = torch.randn(1, FRAMES, 100)
    run = backbone.begin(prompt(), IDS, TIMES, guided=True)
    before = backbone.velocity(x, 0, run)
    backbone.fuse()
    torch.testing.assert_close(backbone.velocity(x, 0, run), before, atol=3e-5, rtol=0)


def test_padded_frames_of_a_batch_keep_their_attention_output_at_zero(backbone: UNetT) -> None:
    run = backbone.begin(prompt(2), IDS.expand(2, -1), TIMES, guided=True, durations=[FRAMES, 11])
    seen = {}
    x = torch.randn(2, FRAMES, 100)
    backbone.velocity(x, 0, run, probe=lambda index, name, value: seen.update({(index, name): value.clone()}))
    attention = seen[0, "attention"]
    assert attention.shape == (4, FRAMES + 1, 64)
    assert (attention[[1, 3], 12:] == 0).all()
    assert (attention[[1, 3], :12].abs().sum(-1) > 0).all()
    assert (attention[[0, 2]].abs().sum(-1) > 0).all()


def test_a_table_that_computes_everything_changes_nothing(backbone: UNetT) -> None:
    x = torch.randn(1, FRAMES, 100)
    run = backbone.begin(prompt(), IDS, TIMES, guided=True)
    plan = skip_plan(table(SkipAction.NONE, SkipAction.NONE, SkipAction.NONE))
    memory = [LayerMemory() for _ in range(CONFIG.depth)]
    for step in range(3):
        assert torch.equal(backbone.velocity(x, step, run, plan.at(step), memory), backbone.velocity(x, step, run))


@pytest.mark.parametrize("skip", [SkipAction.TS, SkipAction.BS])
def test_skipping_a_step_that_repeats_is_exact(backbone: UNetT, skip: SkipAction) -> None:
    x = torch.randn(1, FRAMES, 100)
    run = backbone.begin(prompt(), IDS, TIMES, guided=True)
    plan = skip_plan(table(SkipAction.NONE, skip, skip))
    memory = [LayerMemory() for _ in range(CONFIG.depth)]
    computed = backbone.velocity(x, 0, run, plan.at(0), memory)
    torch.testing.assert_close(backbone.velocity(x, 1, run, plan.at(1), memory), computed, atol=1e-4, rtol=0)
    skipped = backbone.velocity(x, 2, run, plan.at(2), memory)  # another time: the first layers' input has changed
    assert (skipped - backbone.velocity(x, 2, run)).abs().max() > 1e-2


@pytest.mark.parametrize("guided", [False, True])
@pytest.mark.parametrize("depth", [2, 4])
def test_operations_are_those_that_torch_counts(guided: bool, depth: int) -> None:
    backbone = UNetT(replace(CONFIG, depth=depth)).eval()
    run = backbone.begin(prompt(), IDS, TIMES, guided)
    counter = FlopCounterMode(display=False)
    with sdpa_kernel(SDPBackend.MATH), counter, torch.inference_mode():  # fused attention is not counted
        backbone.velocity(torch.randn(1, FRAMES, 100), 0, run)
    announced = backbone.operations(FRAMES, guided)
    assert announced.branches == 1 + guided
    assert counter.get_total_flops() == pytest.approx(announced.evaluation, rel=1e-3)
