"""F5-TTS's backbones: exact savings, layers, and the flat transformer of E2-TTS."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from paretone.models.f5.config import BackboneConfig
from paretone.models.f5.dit import DiT
from paretone.models.f5.layers import GELU_PIECE, F5FeedForward, TextEmbedding
from paretone.models.f5.unett import UNetT
from paretone.models.networks.layers import rotate
from paretone.sampling.actions import SkipAction
from paretone.sampling.flow import integrate, sampling_grid
from paretone.sampling.guidance import guided_velocity
from paretone.sampling.skipping import LayerMemory
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values
from paretone.techniques.ditreducio.evaluating import skip_plan
from paretone.techniques.ditreducio.table import StrategyTable
from tests.engine.models.f5.plain_dit import plain_attention, plain_velocity, prepare, small_dit

TOLERANCE = 1e-5
FRAMES = 37
ARCHITECTURES = [
    {},
    {"text_mask_padding": False, "pe_attn_head": 1},
    {"qk_norm": "rms_norm", "long_skip_connection": True},
    {"text_embedding_average_upsampling": True},
]


@pytest.fixture
def inputs() -> tuple[Tensor, Tensor, Tensor]:
    """State, prompt (zero after frame 12) and ids."""
    generator = torch.Generator().manual_seed(3)
    state, prompt = torch.randn(2, 1, FRAMES, 20, generator=generator)
    prompt[:, 12:] = 0
    return state, prompt, torch.randint(0, 20, (1, 15), generator=generator)


@pytest.mark.parametrize("changes", ARCHITECTURES, ids=["v1", "v0", "qk-norm-long-skip", "average-upsampling"])
@pytest.mark.parametrize("prepared", ["plain", "fused", "by blocks"])
def test_both_branches_in_one_pass_equal_two_plain_passes(
    inputs, changes: dict, prepared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, prompt, ids = inputs
    dit = small_dit(**changes)
    prepare(dit, prepared, monkeypatch)
    times = sampling_grid(7)[:-1]
    run = dit.begin(prompt, ids, times, guided=True)
    for evaluation, time in enumerate(times):
        expected = [plain_velocity(dit, state, prompt, ids, float(time), drop) for drop in (False, True)]
        assert torch.allclose(dit.velocity(state, evaluation, run), torch.cat(expected), atol=TOLERANCE, rtol=0)


def test_modulation_is_tabulated_once_for_a_schedule(inputs) -> None:
    _, prompt, ids = inputs
    dit = small_dit()
    calls = []
    dit.time_embed.register_forward_hook(lambda *_: calls.append(1))
    times = sampling_grid(16)[:-1]
    run = dit.begin(prompt, ids, times, guided=True)
    dit.begin(prompt[:, :20], ids, times, guided=False)
    assert len(calls) == 1, "a second passage on the same schedule computes nothing again"
    dit.begin(prompt, ids, sampling_grid(8)[:-1], guided=True)
    assert len(calls) == 2
    for evaluation, time in enumerate(times):
        vector = dit.time_embed(torch.tensor([float(time)]))
        for layer, block in enumerate(dit.transformer_blocks):
            expected = block.attn_norm.linear(torch.nn.functional.silu(vector))[0]
            assert torch.allclose(run.modulations[evaluation, layer].flatten(), expected, atol=TOLERANCE, rtol=0)


def test_constant_part_of_the_input_is_computed_once(inputs) -> None:
    state, prompt, ids = inputs
    dit = small_dit()
    run = dit.begin(prompt, ids, sampling_grid(4)[:-1], guided=True)
    texts = [dit.text_embed(ids, FRAMES, drop) for drop in (False, True)]
    rows = [torch.cat([state, given, text], -1) for given, text in zip((prompt, 0 * prompt), texts, strict=True)]
    projected = dit.input_embed.proj(torch.cat(rows))
    convolved = dit.input_embed.conv_pos_embed.conv1d(projected.transpose(1, 2)).transpose(1, 2)
    assert torch.allclose(dit.enter(state, run), convolved + projected, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize(("guidance", "calls"), [(2.0, 2), (0.0, 1)])
def test_text_is_embedded_once_a_run_even_without_guidance(inputs, guidance: float, calls: int) -> None:
    state, prompt, ids = inputs
    dit = small_dit()
    counted = []
    dit.text_embed.register_forward_hook(lambda *_: counted.append(1))
    times = sampling_grid(6)
    run = dit.begin(prompt, ids, times[:-1], guided=guidance > 0)
    integrate(lambda x, index: guided_velocity(dit.velocity(x, index, run), guidance), state, times)
    assert len(counted) == calls


@pytest.mark.parametrize("heads", [None, 1])
def test_rotations_from_the_table_equal_sines_and_cosines(heads: int | None) -> None:
    dit = small_dit(pe_attn_head=heads)
    attention = dit.transformer_blocks[0].attn
    x = torch.randn(1, FRAMES, 64, generator=torch.Generator().manual_seed(1))
    table = dit.rotary_embed.table(FRAMES)
    assert torch.allclose(attention(x, table), plain_attention(attention, x), atol=TOLERANCE, rtol=0)
    # A rotation by position 0 is none, and lengths are kept.
    rotated = rotate(x.unflatten(-1, (2, 32)), table, None)
    assert torch.allclose(rotated[:, 0], x.unflatten(-1, (2, 32))[:, 0])
    assert torch.allclose(rotated.norm(dim=-1), x.unflatten(-1, (2, 32)).norm(dim=-1), atol=1e-5)


def test_no_state_but_the_newest_is_kept() -> None:
    alive: list[weakref.ref] = []
    most = 0

    def on_step(step: int, state: Tensor) -> None:
        nonlocal most
        alive.append(weakref.ref(state))
        gc.collect()
        most = max(most, sum(one() is not None for one in alive))

    integrate(lambda x, index: -x, torch.randn(1, 8, 4), sampling_grid(20), on_step=on_step)
    assert len(alive) == 20
    assert most <= 2


def test_layers_leave_their_input_alone_unless_told(inputs) -> None:
    state, prompt, ids = inputs
    dit = small_dit()
    run = dit.begin(prompt, ids, sampling_grid(4)[:-1], guided=True)
    hidden = dit.enter(state, run)
    before = hidden.clone()
    dit.layer(0, hidden, 0, run)
    assert torch.equal(hidden, before)
    dit.layer(0, hidden, 0, run, in_place=True)
    assert not torch.equal(hidden, before)


def test_fusing_keeps_the_official_weights() -> None:
    dit = small_dit()
    before = {name: value.clone() for name, value in dit.state_dict().items()}
    dit.fuse()
    after = dit.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert after["transformer_blocks.0.attn.to_q.weight"].untyped_storage().data_ptr() == (
        after["transformer_blocks.0.attn.to_v.weight"].untyped_storage().data_ptr()
    ), "the fused weights must not be held twice"


def test_attention_maps_are_those_of_the_attention(inputs) -> None:
    state, prompt, ids = inputs
    dit = small_dit()
    run = dit.begin(prompt, ids, sampling_grid(4)[:-1], guided=True)
    seen: dict[str, Tensor] = {}

    def probe(layer: int, name: str, value: Tensor) -> None:
        seen[name] = value

    dit.layer(1, dit.enter(state, run), 0, run, probe=probe)
    attention = dit.transformer_blocks[1].attn
    query, key, _ = attention.queries_keys_values(seen["attention_input"], run.rotary)
    expected = (query @ key.transpose(2, 3) / 32**0.5).softmax(-1).mean(1)
    assert torch.allclose(dit.attention_maps(1, seen["attention_input"], run, 512), expected, atol=1e-6)
    pooled = dit.attention_maps(1, seen["attention_input"], run, 10)
    assert pooled.shape == (2, 10, 10)
    assert torch.allclose(pooled.sum(-1), torch.ones(2, 10), atol=1e-5)
    assert torch.allclose(pooled[:, 0, 0], expected[:, :4, :4].sum(-1).mean(-1), atol=1e-6)


def test_operations_are_those_of_the_matrix_products(inputs) -> None:
    state, prompt, ids = inputs
    dit: DiT = small_dit()
    run = dit.begin(prompt, ids, np.array([0.5], np.float32), guided=True)
    # The counter does not know the fused attention kernels of a CPU.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        dit.velocity(state, 0, run)
    counted = dit.operations(FRAMES, guided=True)
    assert counted.evaluation == pytest.approx(counter.get_total_flops(), rel=1e-6)


# --- Layers -----------------------------------------------------------------------------------------------------------
FEW_FRAMES = 41


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("average_upsampling", [False, True])
@pytest.mark.parametrize("mask_padding", [False, True])
@pytest.mark.parametrize("durations", [None, (FEW_FRAMES, 30)])
def test_text_without_its_padding_is_the_text(
    drop: bool, average_upsampling: bool, mask_padding: bool, durations: tuple[int, int] | None
) -> None:
    """Ids that are padded to the whole length leave nothing out."""
    torch.manual_seed(0)
    module = TextEmbedding(9, 16, 3, mask_padding or average_upsampling, average_upsampling).requires_grad_(False)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    ids = torch.randint(0, 9, (2, 13))
    ids[1, 7:] = -1
    mask = None if durations is None else torch.arange(FEW_FRAMES) < torch.tensor(durations)[:, None]
    whole = module(F.pad(ids, (0, FEW_FRAMES - ids.shape[1]), value=-1), FEW_FRAMES, drop, mask)
    short = module(ids, FEW_FRAMES, drop, mask)
    assert whole.abs().max() > 0.1
    assert torch.allclose(short, whole, atol=1e-5, rtol=0)


def test_gelu_is_torchs_and_has_its_gradient() -> None:
    x = torch.randn(GELU_PIECE // 16 + 3, 20) * 5
    x[0, :4] = torch.tensor([1e4, -1e4, 1e20, -1e20])
    expected = F.gelu(x, approximate="tanh")
    assert torch.allclose(F5FeedForward.activation(x.clone()), expected, atol=1e-6, rtol=1e-6)
    assert F5FeedForward.activation(x.clone().fill_(float("nan"))).isnan().all()
    left, right = (x[1:].clone().requires_grad_() for _ in range(2))
    F5FeedForward.activation(left).sum().backward()
    F.gelu(right, approximate="tanh").sum().backward()
    assert torch.equal(left.grad, right.grad)


# --- E2-TTS's flat transformer ----------------------------------------------------------------------------------------
CONFIG = BackboneConfig("UNetT", 64, 4, 1, ff_mult=2, pe_attn_head=1, text_num_embeds=9)
FLAT_FRAMES = 17


@pytest.fixture
def backbone() -> UNetT:
    torch.manual_seed(2)
    model = UNetT(CONFIG).eval().requires_grad_(False)
    for one in model.parameters():
        one.normal_(std=0.3)
    return model


def prompt(batch: int = 1) -> torch.Tensor:
    torch.manual_seed(3)
    mel = torch.randn(batch, FLAT_FRAMES, 100)
    mel[:, 6:] = 0
    return mel


IDS = torch.tensor([[1, 2, 3, 4]])
TIMES = np.array([0.3, 0.3, 0.7], np.float32)


def table(*steps: SkipAction) -> StrategyTable:
    compatibility = Compatibility("m", "", "v", Values(steps=len(steps)))
    return StrategyTable(compatibility, (steps,) * CONFIG.depth)


def test_without_guidance_it_gives_the_conditional_rows(backbone: UNetT) -> None:
    x = torch.randn(1, FLAT_FRAMES, 100)
    both = backbone.velocity(x, 2, backbone.begin(prompt(), IDS, TIMES, guided=True))
    one = backbone.velocity(x, 2, backbone.begin(prompt(), IDS, TIMES, guided=False))
    torch.testing.assert_close(one, both[:1], atol=3e-5, rtol=0)
    assert (both[0] - both[1]).abs().max() > 1e-3


def test_time_text_and_prompt_all_matter(backbone: UNetT) -> None:
    x = torch.randn(1, FLAT_FRAMES, 100)
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
    x = torch.randn(1, FLAT_FRAMES, 100)
    run = backbone.begin(prompt(), IDS, TIMES, guided=True)
    before = backbone.velocity(x, 0, run)
    backbone.fuse()
    torch.testing.assert_close(backbone.velocity(x, 0, run), before, atol=3e-5, rtol=0)


def test_padded_frames_of_a_batch_keep_their_attention_output_at_zero(backbone: UNetT) -> None:
    run = backbone.begin(prompt(2), IDS.expand(2, -1), TIMES, guided=True, durations=[FLAT_FRAMES, 11])
    seen = {}
    x = torch.randn(2, FLAT_FRAMES, 100)
    backbone.velocity(x, 0, run, probe=lambda index, name, value: seen.update({(index, name): value.clone()}))
    attention = seen[0, "attention"]
    assert attention.shape == (4, FLAT_FRAMES + 1, 64)
    assert (attention[[1, 3], 12:] == 0).all()
    assert (attention[[1, 3], :12].abs().sum(-1) > 0).all()
    assert (attention[[0, 2]].abs().sum(-1) > 0).all()


def test_a_table_that_computes_everything_changes_nothing(backbone: UNetT) -> None:
    x = torch.randn(1, FLAT_FRAMES, 100)
    run = backbone.begin(prompt(), IDS, TIMES, guided=True)
    plan = skip_plan(table(SkipAction.NONE, SkipAction.NONE, SkipAction.NONE))
    memory = [LayerMemory() for _ in range(CONFIG.depth)]
    for step in range(3):
        assert torch.equal(backbone.velocity(x, step, run, plan.at(step), memory), backbone.velocity(x, step, run))


@pytest.mark.parametrize("skip", [SkipAction.TS, SkipAction.BS])
def test_skipping_a_step_that_repeats_is_exact(backbone: UNetT, skip: SkipAction) -> None:
    x = torch.randn(1, FLAT_FRAMES, 100)
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
        backbone.velocity(torch.randn(1, FLAT_FRAMES, 100), 0, run)
    announced = backbone.operations(FLAT_FRAMES, guided)
    assert announced.branches == 1 + guided
    assert counter.get_total_flops() == pytest.approx(announced.evaluation, rel=1e-3)
