from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from paretone.errors import TrainingError
from paretone.training.optimisers import MATRICES, OTHERS, LayerMatrices, Muon, MuonAndAdamW, Rates

RATES = Rates(matrices=0.02, others=1e-3)
LAYERS = LayerMatrices("layers.", apart_from="gates")


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 6)
        self.layers = nn.ModuleList(
            nn.ModuleDict({"inner": nn.Linear(6, 6), "gates": nn.Linear(6, 6)}) for _ in range(2)
        )

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        result = self.embedding(ids)
        for layer in self.layers:
            result = result + layer["gates"](result).sigmoid() * layer["inner"](result)
        return result


@pytest.fixture
def network() -> Network:
    torch.manual_seed(0)
    return Network()


def _learn(network: Network, optimisers: MuonAndAdamW, steps: int, scale: float = 1.0) -> list[float]:
    ids, losses = torch.arange(5), []
    for _ in range(steps):
        optimisers.start(scale)
        loss = (network(ids) - 1).square().mean()
        loss.backward()
        optimisers.step()
        losses.append(float(loss.detach()))
    return losses


def test_the_matrices_of_the_layers_are_apart(network: Network):
    network.layers[1]["inner"].weight.requires_grad_(False)
    matrices, others = LAYERS.split(network)
    assert [id(one) for one in matrices] == [id(network.layers[0]["inner"].weight)]
    assert len(matrices) + len(others) == len(list(network.parameters())) - 1


def test_both_learn(network: Network):
    before = copy.deepcopy(network)
    losses = _learn(network, MuonAndAdamW(network, LAYERS, RATES), 100)
    assert losses[-1] < losses[0] / 2
    for one, other in zip(network.parameters(), before.parameters(), strict=True):
        assert not torch.equal(one, other)


def test_the_scale_is_of_both_rates(network: Network):
    before = copy.deepcopy(network)
    optimisers = MuonAndAdamW(network, LAYERS, RATES)
    _learn(network, optimisers, 1, scale=0.0)
    for one, other in zip(network.parameters(), before.parameters(), strict=True):
        assert torch.equal(one, other)
    optimisers.start(0.5)
    assert [one.param_groups[0]["lr"] for one in optimisers.parts.values()] == [0.01, 5e-4]
    assert all(one.grad is None for one in network.parameters())


def test_without_a_rate_for_the_matrices_adamw_moves_everything(network: Network):
    optimisers = MuonAndAdamW(network, LAYERS, Rates(None, 1e-3))
    assert list(optimisers.parts) == [OTHERS]
    moved = optimisers.parts[OTHERS].param_groups[0]["params"]
    assert [id(one) for one in moved] == [id(one) for one in network.parameters()]


def test_it_goes_on_where_it_stopped(network: Network):
    optimisers = MuonAndAdamW(network, LAYERS, RATES, half_precision=True)
    _learn(network, optimisers, 3)
    twin = copy.deepcopy(network)
    resumed = MuonAndAdamW(twin, LAYERS, RATES, half_precision=True)
    resumed.restore(copy.deepcopy(optimisers.state()))
    assert _learn(network, optimisers, 2) == _learn(twin, resumed, 2)


def test_checkpoints_that_two_separate_optimisers_wrote_are_read(network: Network):
    """So did the recipes before the two were one."""
    matrices, others = LAYERS.split(network)
    apart = {
        MATRICES: Muon(matrices, lr=RATES.matrices),
        OTHERS: torch.optim.AdamW(others, lr=RATES.others, betas=(0.9, 0.98), weight_decay=0.0),
    }
    together = MuonAndAdamW(network, LAYERS, RATES)
    together.parts.update(apart)
    _learn(network, together, 3)
    twin = copy.deepcopy(network)
    resumed = MuonAndAdamW(twin, LAYERS, RATES)
    resumed.restore({name: one.state_dict() for name, one in apart.items()})
    assert _learn(twin, resumed, 2) == pytest.approx(_learn(network, together, 2), rel=1e-4)


def test_the_state_of_other_optimisers_is_refused(network: Network):
    state = MuonAndAdamW(network, LAYERS, Rates(None, 1e-3)).state()
    with pytest.raises(TrainingError, match="trained with other optimisers; give the same rates"):
        MuonAndAdamW(network, LAYERS, RATES).restore(state)
