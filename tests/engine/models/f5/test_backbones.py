"""F5-TTS's backbones: exact savings, layers, and the flat transformer of E2-TTS."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.models.f5.config import BackboneConfig
from paretone.models.f5.dit import DiT
from paretone.models.f5.layers import GELU_PIECE, F5FeedForward, TextEmbedding
from paretone.models.f5.unett import UNetT
from paretone.sampling.actions import SkipAction
from paretone.sampling.flow import sampling_grid
from paretone.sampling.skipping import LayerMemory
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values
from paretone.techniques.ditreducio.evaluating import skip_plan
from paretone.techniques.ditreducio.table import StrategyTable
from tests.engine.models.f5.plain_dit import counted, plain_velocity, prepare, require_own_maps, small_dit
from tests.workload import crossed

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


@pytest.mark.parametrize(("changes", "prepared"), crossed(ARCHITECTURES, ["by blocks", "plain", "fused"]))
def test_both_branches_in_one_pass_equal_two_plain_passes(
    inputs, changes: dict, prepared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, prompt, ids = inputs
    dit = small_dit(**changes)
    prepare(dit, prepared, monkeypatch)
    times = sampling_grid(3)[:-1]
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


def test_layers_leave_their_input_alone_unless_told(inputs) -> None:
    state, prompt, ids = inputs
    dit = small_dit()
    run = dit.begin(prompt, ids, sampling_grid(4)[:-1], guided=True)
    hidden = dit.enter(state, 0, run)
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
    given, expected = require_own_maps(dit, 1, state, run)
    pooled = dit.attention_maps(1, given, run, 10)
    assert pooled.shape == (2, 10, 10)
    assert torch.allclose(pooled.sum(-1), torch.ones(2, 10), atol=1e-5)
    assert torch.allclose(pooled[:, 0, 0], expected[:, :4, :4].sum(-1).mean(-1), atol=1e-6)


def test_operations_are_those_of_the_matrix_products(inputs) -> None:
    state, prompt, ids = inputs
    dit: DiT = small_dit()
    run = dit.begin(prompt, ids, np.array([0.5], np.float32), guided=True)
    spent = counted(lambda: dit.velocity(state, 0, run))
    assert dit.operations(FRAMES, guided=True).evaluation == pytest.approx(spent, rel=1e-6)


# --- Layers -----------------------------------------------------------------------------------------------------------
FEW_FRAMES = 41


@pytest.mark.parametrize(
    ("drop", "average_upsampling", "mask_padding", "durations"),
    [(False, False, True, None), (True, True, False, (FEW_FRAMES, 30)), (False, False, False, (FEW_FRAMES, 30))],
)
def test_text_without_its_padding_is_the_text(
    drop: bool, average_upsampling: bool, mask_padding: bool, durations: tuple[int, int] | None
) -> None:
    """Ids that are padded to the whole length leave nothing out."""
    torch.manual_seed(0)
    config = BackboneConfig("DiT", 64, 2, 1, text_dim=16, conv_layers=3, text_num_embeds=9)
    padded, averaged = mask_padding or average_upsampling, average_upsampling
    config = replace(config, text_mask_padding=padded, text_embedding_average_upsampling=averaged)
    module = TextEmbedding(config).requires_grad_(False)
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
    assert torch.allclose(F5FeedForward.activation(x.clone()), F.gelu(x, approximate="tanh"), atol=1e-6, rtol=1e-6)
    assert F5FeedForward.activation(x.clone().fill_(float("nan"))).isnan().all()
    left, right = (x[1:].clone().requires_grad_() for _ in range(2))
    F5FeedForward.activation(left).sum().backward()
    F.gelu(right, approximate="tanh").sum().backward()
    assert torch.equal(left.grad, right.grad)


# --- E2-TTS's flat transformer ----------------------------------------------------------------------------------------
CONFIG = BackboneConfig("UNetT", 64, 4, 1, ff_mult=2, pe_attn_head=1, text_num_embeds=9)
FLAT_FRAMES = 17


def prompt(batch: int = 1) -> torch.Tensor:
    torch.manual_seed(3)
    mel = torch.randn(batch, FLAT_FRAMES, 100)
    mel[:, 6:] = 0
    return mel


IDS = torch.tensor([[1, 2, 3, 4]])
TIMES = np.array([0.3, 0.3, 0.7], np.float32)


@pytest.mark.parametrize("skip", [SkipAction.TS, SkipAction.BS])
def test_skipping_a_step_that_repeats_is_exact(skip: SkipAction) -> None:
    torch.manual_seed(2)
    backbone = UNetT(CONFIG).eval().requires_grad_(False)
    for one in backbone.parameters():
        one.normal_(std=0.3)
    x = torch.randn(1, FLAT_FRAMES, 100)
    run = backbone.begin(prompt(), IDS, TIMES, guided=True)
    rows = ((SkipAction.NONE, skip, skip),) * CONFIG.depth
    plan = skip_plan(StrategyTable(Compatibility("m", "", "v", Values(steps=3)), rows))
    memory = [LayerMemory() for _ in range(CONFIG.depth)]
    computed = backbone.velocity(x, 0, run, plan.at(0), memory)
    torch.testing.assert_close(backbone.velocity(x, 1, run, plan.at(1), memory), computed, atol=1e-4, rtol=0)
    skipped = backbone.velocity(x, 2, run, plan.at(2), memory)  # another time: the first layers' input has changed
    assert (skipped - backbone.velocity(x, 2, run)).abs().max() > 1e-2


@pytest.mark.parametrize(("guided", "depth"), [(False, 2), (True, 4)])
def test_operations_are_those_that_torch_counts(guided: bool, depth: int) -> None:
    backbone = UNetT(replace(CONFIG, depth=depth)).eval()
    run = backbone.begin(prompt(), IDS, TIMES, guided)
    announced = backbone.operations(FLAT_FRAMES, guided)
    assert announced.branches == 1 + guided
    spent = counted(lambda: backbone.velocity(torch.randn(1, FLAT_FRAMES, 100), 0, run))
    assert announced.evaluation == pytest.approx(spent, rel=1e-3)
