from __future__ import annotations

import torch
from torch import nn

from paretone.models.networks.shapes import uninitialised, without_weights


def test_modules_have_their_shapes_and_no_values():
    with without_weights():
        module = nn.Sequential(nn.Embedding(5, 8), nn.Linear(8, 3), nn.Conv1d(3, 4, 3), nn.LayerNorm(4))
    assert [tuple(one.shape) for one in module.parameters()] == [(5, 8), (3, 8), (3,), (4, 3, 3), (4,), (4,), (4,)]
    assert all(one.is_meta for one in module.parameters())


def test_modules_made_later_are_initialised_again():
    with without_weights():
        nn.Linear(2, 2)
    torch.manual_seed(0)
    assert not nn.Linear(64, 64).weight.is_meta
    assert 0.05 < float(nn.Linear(64, 64).weight.detach().abs().mean()) < 0.07


def test_weights_that_will_be_read_are_not_drawn():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    with uninitialised():
        module = nn.Sequential(nn.Embedding(5, 8), nn.Linear(8, 3), nn.Conv1d(3, 4, 3), nn.LSTM(4, 2))
        angles = torch.arange(3) * 0.5
    assert torch.equal(torch.get_rng_state(), before), "no number was drawn"
    assert not any(one.is_meta for one in module.parameters())
    assert angles.tolist() == [0.0, 0.5, 1.0], "what is computed within is"
    nn.Linear(2, 2)
    assert not torch.equal(torch.get_rng_state(), before)
