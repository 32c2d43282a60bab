"""The transformer of MegaTTS 3: configuration, exact savings, training, phones."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.errors import CheckpointError
from paretone.models.megatts3.config import OPTIONS, DiTConfig
from paretone.models.megatts3.dit import MegaDiT
from paretone.models.megatts3.phones import PhoneEncoder, RelativeAttention
from paretone.sampling.flow import OvershootNoise, integrate, overshoot_steps, sampling_grid
from paretone.sampling.guidance import needed_branches, three_branch_velocity
from paretone.setting.knobs import defaults
from tests.engine.models.f5.plain_dit import counted, prepare, require_own_maps
from tests.engine.models.megatts3.plain_dit import SMALL, Inputs, plain_velocity, random_inputs, small_mega_dit
from tests.workload import workload

TOLERANCE = 1e-5
ALL_BRANCHES = 0, 1, 2


@pytest.fixture
def inputs() -> Inputs:
    return random_inputs()


def largest(found: Tensor, expected: Tensor) -> float:
    assert found.shape == expected.shape
    return (found - expected).abs().max().item()


@pytest.mark.parametrize("prepared", workload(["plain", "fused", "by blocks"], ["plain", "by blocks"]))
def test_three_branches_in_one_pass_equal_three_plain_passes(
    inputs: Inputs, prepared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small_mega_dit()
    prepare(model, prepared, monkeypatch)
    times = sampling_grid(5, "uniform")[:-1]
    run = model.begin(*inputs.conditions, times)
    assert run.branches == 3
    for evaluation, time in enumerate(times):
        expected = torch.cat([plain_velocity(model, inputs, float(time), branch) for branch in ALL_BRANCHES])
        assert largest(model.velocity(inputs.state, evaluation, run), expected) < TOLERANCE


@pytest.mark.parametrize(("guidance", "branches"), [((1.0, 1.0), (0,)), ((2.0, 2.0), (0, 2)), ((1.0, 3.0), (0, 1))])
def test_branches_that_do_not_count_are_not_run(
    inputs: Inputs, guidance: tuple[float, float], branches: tuple[int, ...]
) -> None:
    """A whole run of the branches that are needed is the run of all three, combined by the official formula."""
    intelligibility, similarity = guidance
    assert needed_branches(*guidance) == branches
    model, times = small_mega_dit(), sampling_grid(8, "uniform")
    noise = OvershootNoise.draw(tuple(inputs.state.shape), 8, seed=4)
    follow = overshoot_steps(times, noise.steps)
    needed, every = (model.begin(*inputs.conditions, times[:-1], some) for some in (branches, ALL_BRANCHES))

    def official(x: Tensor, step: int) -> Tensor:
        speaker, text, nothing = model.velocity(x, step, every).chunk(3)
        return nothing + intelligibility * (text - nothing) + similarity * (speaker - text)

    def ours(x: Tensor, step: int) -> Tensor:
        velocities = model.velocity(x, step, needed)
        assert len(velocities) == len(branches)
        return three_branch_velocity(velocities, *guidance)

    found, expected = (integrate(one, noise.initial, times, follow=follow) for one in (ours, official))
    assert largest(found, expected) < TOLERANCE


def test_layers_leave_their_input_alone_unless_told(inputs: Inputs) -> None:
    model = small_mega_dit()
    run = model.begin(*inputs.conditions, sampling_grid(4)[:-1])
    hidden = model.enter(inputs.state, 0, run)
    constant, before = run.constant.clone(), hidden.clone()
    model.layer(0, hidden, 0, run)
    assert torch.equal(hidden, before)
    model.velocity(inputs.state, 0, run)
    assert torch.equal(run.constant, constant)


def test_attention_maps_are_those_of_the_attention(inputs: Inputs) -> None:
    model = small_mega_dit()
    given, _ = require_own_maps(model, 0, inputs.state, model.begin(*inputs.conditions, sampling_grid(4)[:-1]))
    attention, unsplit = model.encoder.layers[0].attention, model.attention_map_inputs(0, given)
    assert torch.equal(unsplit[0], attention.wq(given)) and torch.equal(unsplit[1], attention.wk(given))


@pytest.mark.parametrize("branches", [(0,), (0, 1, 2)], ids=["one", "three"])
def test_operations_are_those_of_the_matrix_products(inputs: Inputs, branches: tuple[int, ...]) -> None:
    model = small_mega_dit()
    run = model.begin(*inputs.conditions, np.array([0.5], np.float32), branches)
    spent = counted(lambda: model.velocity(inputs.state, 0, run))
    assert model.operations(inputs.frames, len(branches)).evaluation == pytest.approx(spent, rel=1e-6)


# --- Configuration ----------------------------------------------------------------------------------------------------
def shapes_of(config: DiTConfig) -> dict[str, tuple[int, ...]]:
    with torch.device("meta"):
        model = MegaDiT(config)
    return {name: tuple(value.shape) for name, value in model.state_dict().items()}


@pytest.mark.parametrize("changes", [{}, {"layers": 12, "phone_layers": 1, "phone_window": 2, "phone_kernel": 5}])
def test_shapes_tell_every_size_but_the_heads(changes: dict) -> None:
    config = replace(SMALL, **changes)
    assert DiTConfig.from_shapes(shapes_of(config), "x", heads=config.heads) == config


@pytest.mark.parametrize("name", ["x_prenet.weight", "tone_embed.weight"])
def test_a_missing_weight_is_named(name: str) -> None:
    shapes = shapes_of(SMALL)
    del shapes[name]
    with pytest.raises(CheckpointError, match=f"model.ckpt lacks the weight {name}"):
        DiTConfig.from_shapes(shapes, "model.ckpt")


def test_options_are_the_official_defaults_and_say_what_shapes_the_trajectory() -> None:
    options = defaults(OPTIONS)
    assert (options["steps"], options["sway"], options["spacing"]) == (32, -1.0, "uniform")
    assert (options["intelligibility"], options["similarity"], options["overshoot"]) == (1.6, 2.5, 3.0)
    shaping = {knob.name for knob in OPTIONS if knob.trajectory}
    assert shaping == {"steps", "spacing", "sway", "intelligibility", "similarity", "overshoot"}


# --- Training ---------------------------------------------------------------------------------------------------------
TIMES = torch.tensor([0.1, 0.6, 0.9])


def batch(items: list[Inputs]) -> tuple[tuple[Tensor, ...], Tensor]:
    """Items of several lengths, padded at the end, and their mask. The padding holds numbers that must not matter."""
    frames, phones = max(one.frames for one in items), max(one.phones.shape[1] for one in items)

    def padded(name: str, length: int, value: float = 0) -> Tensor:
        rows = [getattr(one, name)[0] for one in items]
        return torch.stack([F.pad(row, [0, 0] * (row.ndim - 1) + [0, length - len(row)], value=value) for row in rows])

    mask = torch.arange(frames)[None] < torch.tensor([one.frames for one in items])[:, None]
    known = padded("state", frames, 7.0), padded("context", frames), padded("is_prompt", frames)
    return (*known, padded("phones", phones), padded("tones", phones), padded("mel2ph", 4 * frames)), mask


@pytest.mark.parametrize("branch", [0, 2])
def test_every_item_of_a_batch_has_the_velocity_it_has_alone(branch: int) -> None:
    model = small_mega_dit()
    items = [random_inputs(20, 11, seed=1), random_inputs(13, 4, 0, seed=2), random_inputs(9, 7, 3, seed=3)]
    (state, context, is_prompt, phones, tones, mel2ph), mask = batch(items)
    if branch > 0:
        context = torch.zeros_like(context)
    if branch == 2:
        phones, tones = model.unknown(phones, tones)
    found = model.follow(
        state, is_prompt, model.conditions(context, is_prompt, phones, tones, mel2ph, mask), TIMES, mask
    )
    for row, (item, time) in enumerate(zip(items, TIMES.tolist(), strict=True)):
        expected = plain_velocity(model, item, time, branch)
        assert (found[row : row + 1, : item.frames] - expected).abs().max().item() < TOLERANCE


def test_gradients_reach_every_parameter() -> None:
    model: MegaDiT = small_mega_dit().train().requires_grad_(True)
    (state, *conditions), mask = batch([random_inputs(20, 11, seed=1), random_inputs(13, 4, seed=2)])
    velocities = model.follow(state, conditions[1], model.conditions(*conditions, mask), TIMES[:2], mask)
    velocities[mask].square().mean().backward()
    # A phone's attention does not change when all keys do by the same, so their bias has no gradient but rounding.
    without = [
        name
        for name, parameter in model.named_parameters()
        if not name.endswith("conv_k.bias") and (parameter.grad is None or parameter.grad.abs().max() < 1e-9)
    ]
    assert not without


# --- The phone encoder ------------------------------------------------------------------------------------------------
def plain_attention(attention: RelativeAttention, x: Tensor) -> Tensor:
    """(phones, width) to the same, one pair of phones after the other."""
    query, key, value = (
        (x @ projection.weight[..., 0].T + projection.bias).chunk(attention.heads, dim=-1)
        for projection in (attention.conv_q, attention.conv_k, attention.conv_v)
    )
    outputs = []
    for head in range(attention.heads):
        rows = []
        for place, asking in enumerate(query[head]):
            scores, values = [], []
            for other, answering in enumerate(key[head]):
                distance = other - place
                near = abs(distance) <= attention.window
                place_key, place_value = (
                    table[0, distance + attention.window] if near else torch.zeros_like(asking)
                    for table in (attention.emb_rel_k, attention.emb_rel_v)
                )
                scores.append(asking @ (answering + place_key) / math.sqrt(len(asking)))
                values.append(value[head][other] + place_value)
            rows.append(torch.stack(scores).softmax(0) @ torch.stack(values))
        outputs.append(torch.stack(rows))
    return torch.cat(outputs, dim=-1) @ attention.conv_o.weight[..., 0].T + attention.conv_o.bias


@pytest.mark.parametrize("phones", [1, 11])
def test_attention_adds_a_vector_for_every_distance(phones: int) -> None:
    torch.manual_seed(2)
    model = PhoneEncoder(entries=30, width=32, layers=2, heads=2, ffn=48, kernel=3, window=4)
    attention = model.eval().requires_grad_(False).encoder.attn_layers[0]
    x = torch.randn(phones, 32, generator=torch.Generator().manual_seed(1))
    found = attention(x[None], torch.ones(1, phones, 1))[0]
    assert (found - plain_attention(attention, x)).abs().max().item() < TOLERANCE
