"""Each saving over the official code, which computes some things repeatedly, changes nothing (1e-5)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from paretone.sampling.flow import OvershootNoise, integrate, overshoot_steps, sampling_grid
from paretone.sampling.guidance import needed_branches, three_branch_velocity
from tests.engine.models.blockwise import prepare
from tests.engine.models.megatts3.plain_dit import (
    SMALL,
    Inputs,
    plain_text,
    plain_velocity,
    random_inputs,
    small_mega_dit,
)

TOLERANCE = 1e-5
ALL_BRANCHES = 0, 1, 2


@pytest.fixture
def inputs() -> Inputs:
    return random_inputs()


def largest(found: Tensor, expected: Tensor) -> float:
    assert found.shape == expected.shape
    return (found - expected).abs().max().item()


@pytest.mark.parametrize("prepared", ["plain", "fused", "by blocks"])
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


def test_modulation_is_tabulated_once_for_a_schedule(inputs: Inputs) -> None:
    model, calls = small_mega_dit(), []
    model.f5_time_embed.register_forward_hook(lambda *_: calls.append(1))
    times = sampling_grid(16)[:-1]
    run = model.begin(*inputs.conditions, times)
    other = random_inputs(frames=12)
    model.begin(*other.conditions, times, branches=(0,))
    assert len(calls) == 1, "a second passage on the same schedule computes nothing again"
    for evaluation, time in enumerate(times):
        vector = model.f5_time_embed(torch.tensor([float(time)]))
        for index, layer in enumerate(model.encoder.layers):
            expected = layer.attention_norm.linear(torch.nn.functional.silu(vector))[0]
            assert largest(run.modulations[evaluation, index].flatten(), expected) < TOLERANCE


def test_constant_part_of_the_input_is_computed_once(inputs: Inputs) -> None:
    model, calls = small_mega_dit(), []
    for module in (model.prenet, model.ling_pre_net[0], model.ctx_mask_proj):
        module.register_forward_hook(lambda *_: calls.append(1))
    times = sampling_grid(4)
    run = model.begin(*inputs.conditions, times[:-1])
    begun = len(calls)
    mask = inputs.is_prompt[..., None].float()
    text = plain_text(model, inputs.phones, inputs.tones, inputs)
    share = model.prenet(model.local_cond_project(torch.cat([inputs.context, model.ctx_mask_proj(mask)], dim=-1)))
    expected = model.x_prenet(inputs.state * (1 - mask)) + share + text
    calls.clear()
    integrate(lambda x, step: model.velocity(x, step, run).chunk(3)[0], inputs.state, times)
    assert begun and not calls, "no evaluation computes any of it again"
    assert largest(model.enter(inputs.state, run)[:1], expected) < TOLERANCE


@pytest.mark.parametrize(
    ("branches", "texts"), [((0,), 1), ((0, 1), 1), ((0, 2), 2), ((0, 1, 2), 2)], ids=lambda value: str(value)
)
def test_the_phone_encoding_is_shared_by_the_branches_that_know_the_text(
    inputs: Inputs, branches: tuple[int, ...], texts: int
) -> None:
    model, rows = small_mega_dit(), []
    model.ph_encoder.register_forward_hook(lambda module, given, value: rows.append(len(value)))
    run = model.begin(*inputs.conditions, np.array([0.25], np.float32), branches)
    assert rows == [texts]
    expected = torch.cat([plain_velocity(model, inputs, 0.25, branch) for branch in branches])
    assert largest(model.velocity(inputs.state, 0, run), expected) < TOLERANCE


@pytest.mark.parametrize(
    ("guidance", "branches"), [((1.0, 1.0), (0,)), ((2.0, 2.0), (0, 2)), ((1.0, 3.0), (0, 1)), ((1.6, 2.5), (0, 1, 2))]
)
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
    hidden = model.enter(inputs.state, run)
    constant, before = run.constant.clone(), hidden.clone()
    model.layer(0, hidden, 0, run)
    assert torch.equal(hidden, before)
    model.velocity(inputs.state, 0, run)
    assert torch.equal(run.constant, constant)


def test_fusing_keeps_the_official_weights() -> None:
    model = small_mega_dit()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.fuse()
    after = model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_attention_maps_are_those_of_the_attention(inputs: Inputs) -> None:
    model = small_mega_dit()
    run = model.begin(*inputs.conditions, sampling_grid(4)[:-1])
    seen: dict[str, Tensor] = {}
    model.layer(0, model.enter(inputs.state, run), 0, run, probe=lambda layer, name, value: seen.update({name: value}))
    attention = model.encoder.layers[0].attention
    query, key, _ = attention.queries_keys_values(seen["attention_input"], run.rotary)
    expected = (query @ key.transpose(2, 3) / (SMALL.dim // SMALL.heads) ** 0.5).softmax(-1).mean(1)
    assert largest(model.attention_maps(0, seen["attention_input"], run, 512), expected) < TOLERANCE
    unsplit = model.attention_map_inputs(0, seen["attention_input"])
    assert torch.equal(unsplit[0], attention.wq(seen["attention_input"]))
    assert torch.equal(unsplit[1], attention.wk(seen["attention_input"]))


@pytest.mark.parametrize("branches", [(0,), (0, 1, 2)], ids=["one", "three"])
def test_operations_are_those_of_the_matrix_products(inputs: Inputs, branches: tuple[int, ...]) -> None:
    model = small_mega_dit()
    run = model.begin(*inputs.conditions, np.array([0.5], np.float32), branches)
    # The counter does not know the fused attention kernels of a CPU.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model.velocity(inputs.state, 0, run)
    counted = model.operations(inputs.frames, len(branches))
    assert counted.evaluation == pytest.approx(counter.get_total_flops(), rel=1e-6)
