"""Optimisers: Muon, learning rates, and learners that hold averages."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from paretone.errors import TrainingError
from paretone.training.learner import (
    MATRICES,
    OTHERS,
    LayerMatrices,
    Learner,
    LearningOptions,
    Muon,
    MuonAndAdamW,
    Rates,
    orthogonalised,
)
from paretone.training.session import Diverged

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


def test_matrices_are_apart_unless_they_have_no_rate(network: Network):
    optimisers = MuonAndAdamW(network, LAYERS, Rates(None, 1e-3))
    assert list(optimisers.parts) == [OTHERS]
    moved = optimisers.parts[OTHERS].param_groups[0]["params"]
    assert [id(one) for one in moved] == [id(one) for one in network.parameters()]
    network.layers[1]["inner"].weight.requires_grad_(False)
    matrices, others = LAYERS.split(network)
    assert [id(one) for one in matrices] == [id(network.layers[0]["inner"].weight)]
    assert len(matrices) + len(others) == len(list(network.parameters())) - 1


def test_both_learn_at_scaled_rates(network: Network):
    before = copy.deepcopy(network)
    optimisers = MuonAndAdamW(network, LAYERS, RATES)
    _learn(network, optimisers, 1, scale=0.0)
    for one, other in zip(network.parameters(), before.parameters(), strict=True):
        assert torch.equal(one, other)
    optimisers.start(0.5)
    assert [one.param_groups[0]["lr"] for one in optimisers.parts.values()] == [0.01, 5e-4]
    assert all(one.grad is None for one in network.parameters())
    before = copy.deepcopy(network)
    losses = _learn(network, MuonAndAdamW(network, LAYERS, RATES), 100)
    assert losses[-1] < losses[0] / 2
    for one, other in zip(network.parameters(), before.parameters(), strict=True):
        assert not torch.equal(one, other)


def test_rates_rise_stay_fall_and_are_scaled_as_asked():
    usual, lower = (LearningOptions(warm_up=10, hold=0.5, rate_scale=one) for one in (1.0, 0.25))
    places = ((1, 0.0), (10, 0.1), (50, 0.6), (90, 1.0))
    found = [usual.scale(step, progress) for step, progress in places]
    assert found[:2] == [0.1, 1.0] and 0.02 < found[2] < 1 and found[3] == pytest.approx(0.02)
    assert [lower.scale(step, progress) for step, progress in places] == pytest.approx([0.25 * one for one in found])


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


# --- Muon -------------------------------------------------------------------------------------------------------------
def test_singular_values_come_near_one():
    matrices = (
        torch.randn(3, 16, 48, generator=torch.Generator().manual_seed(0)) * torch.tensor([0.01, 1, 50])[:, None, None]
    )
    values = torch.linalg.svdvals(orthogonalised(matrices))
    assert values.min() > 0.3
    assert values.max() < 1.3
    matrix = torch.randn(1, 8, 24, generator=torch.Generator().manual_seed(1))
    left, _, right = torch.linalg.svd(matrix[0], full_matrices=False)
    agreement = torch.diag(left.T @ orthogonalised(matrix)[0] @ right.T)
    assert (agreement > 0.3).all()


@pytest.mark.parametrize("shape", [(24, 8), (8, 24)])
def test_least_squares_are_solved(shape: tuple[int, int]):
    generator = torch.Generator().manual_seed(2)
    wanted = torch.randn(shape, generator=generator)
    weights = nn.Parameter(torch.zeros(shape))
    optimiser = Muon([weights], lr=0.05, weight_decay=0.0)
    first = None
    for step in range(300):
        optimiser.param_groups[0]["lr"] = 0.05 * (1 - step / 300)
        inputs = torch.randn(shape[1], 32, generator=generator)
        loss = ((weights - wanted) @ inputs).square().mean()
        first = first or float(loss.detach())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert float(loss.detach()) < 0.1 * first


# --- A learner --------------------------------------------------------------------------------------------------------
SHARED = LayerMatrices("layers.")
OPTIONS = LearningOptions(average_decay=0.9)


def shared_network() -> nn.Sequential:
    torch.manual_seed(0)
    model = nn.Sequential()
    model.add_module("layers", nn.Sequential(nn.Linear(4, 6), nn.Tanh()))
    model.add_module("head", nn.Linear(6, 1))
    return model


def learner(options: LearningOptions = OPTIONS) -> Learner[nn.Sequential]:
    return Learner.by(shared_network(), SHARED, options)


def learn(one: Learner[nn.Sequential], number: int) -> float:
    generator = torch.Generator().manual_seed(number)
    seen = torch.randn(32, 4, generator=generator)
    one.start(scale=0.5)
    return one.follow((one.model(seen) - seen.sum(1, keepdim=True)).square().mean(), number)


def weights(model: nn.Module) -> torch.Tensor:
    return torch.cat([one.detach().flatten() for one in model.parameters()])


def test_the_loss_goes_down_and_one_that_is_not_finite_changes_nothing() -> None:
    one = learner()
    losses = [learn(one, number) for number in range(1, 80)]

    assert sum(losses[-10:]) < sum(losses[:10])
    assert one.steps == 79
    apart, moved = (weights(one.average.module) - weights(model) for model in (one.model, shared_network()))
    assert 0 < apart.norm() < moved.norm()
    one = learner()
    before = weights(one.model)
    one.start(1.0)
    with pytest.raises(Diverged, match="step 7"):
        one.follow(one.model(torch.full((1, 4), float("nan"))).sum(), 7)
    assert torch.equal(weights(one.model), before)
    assert one.steps == 0
