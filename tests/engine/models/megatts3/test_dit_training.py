"""The forward of training: its velocities are those of sampling, batches change nothing, and everything can learn."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.models.megatts3.dit import MegaDiT
from tests.engine.models.megatts3.plain_dit import Inputs, plain_velocity, random_inputs, small_mega_dit

TOLERANCE = 1e-5
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


@pytest.mark.parametrize("branch", [0, 1, 2])
def test_every_item_of_a_batch_has_the_velocity_it_has_alone(branch: int) -> None:
    model = small_mega_dit()
    items = [random_inputs(20, 11, seed=1), random_inputs(13, 4, 0, seed=2), random_inputs(9, 7, 3, seed=3)]
    (state, context, is_prompt, phones, tones, mel2ph), mask = batch(items)
    if branch > 0:
        context = torch.zeros_like(context)
    if branch == 2:
        phones, tones = model.unknown(phones, tones)
    found = model(state, context, is_prompt, phones, tones, mel2ph, TIMES, mask)
    for row, (item, time) in enumerate(zip(items, TIMES.tolist(), strict=True)):
        expected = plain_velocity(model, item, time, branch)
        assert (found[row : row + 1, : item.frames] - expected).abs().max().item() < TOLERANCE


def test_a_batch_can_be_sampled_as_well() -> None:
    model = small_mega_dit()
    items = [random_inputs(20, 11, seed=1), random_inputs(13, 4, 0, seed=2)]
    (state, *conditions), mask = batch(items)
    times = TIMES[:2].numpy()
    run = model.begin(*conditions, times, mask=mask)
    rows = model.velocity(state, 1, run).unflatten(0, (3, 2))
    for branch in range(3):
        for row, item in enumerate(items):
            expected = plain_velocity(model, item, float(times[1]), branch)
            assert (rows[branch, row : row + 1, : item.frames] - expected).abs().max().item() < TOLERANCE


def test_gradients_reach_every_parameter() -> None:
    model: MegaDiT = small_mega_dit().train().requires_grad_(True)
    (state, *conditions), mask = batch([random_inputs(20, 11, seed=1), random_inputs(13, 4, seed=2)])
    velocities = model(state, *conditions, TIMES[:2], mask)
    velocities[mask].square().mean().backward()
    # A phone's attention does not change when all keys do by the same, so their bias has no gradient but rounding.
    without = [
        name
        for name, parameter in model.named_parameters()
        if not name.endswith("conv_k.bias") and (parameter.grad is None or parameter.grad.abs().max() < 1e-9)
    ]
    assert not without


def test_training_in_half_precision_stays_near() -> None:
    model = small_mega_dit()
    (state, *conditions), mask = batch([random_inputs(20, 11, seed=1), random_inputs(13, 4, seed=2)])
    expected = model(state, *conditions, TIMES[:2], mask)
    with torch.autocast("cpu", torch.bfloat16):
        found = model(state, *conditions, TIMES[:2], mask)
    relative = (found.float() - expected)[mask].norm() / expected[mask].norm()
    assert 0 < relative.item() < 0.05
