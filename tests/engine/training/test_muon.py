from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from paretone.training.optimisers import Muon, orthogonalised


def test_singular_values_come_near_one():
    matrices = (
        torch.randn(3, 16, 48, generator=torch.Generator().manual_seed(0)) * torch.tensor([0.01, 1, 50])[:, None, None]
    )
    values = torch.linalg.svdvals(orthogonalised(matrices))
    assert values.min() > 0.3
    assert values.max() < 1.3


def test_half_precision_comes_as_near():
    matrices = torch.randn(3, 16, 48, generator=torch.Generator().manual_seed(0))
    exact, rounded = orthogonalised(matrices), orthogonalised(matrices.bfloat16()).float()
    assert torch.linalg.matrix_norm(exact - rounded).max() < 0.05 * torch.linalg.matrix_norm(exact).min()


def test_the_directions_of_the_matrix_are_kept():
    matrix = torch.randn(1, 8, 24, generator=torch.Generator().manual_seed(1))
    left, _, right = torch.linalg.svd(matrix[0], full_matrices=False)
    agreement = torch.diag(left.T @ orthogonalised(matrix)[0] @ right.T)
    assert (agreement > 0.3).all()


@pytest.mark.parametrize("shape", [(24, 8), (8, 24), (16, 16)])
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


def test_matrices_of_one_shape_are_updated_as_if_alone():
    generator = torch.Generator().manual_seed(3)
    values, gradients = torch.randn(2, 4, 6, generator=generator), torch.randn(2, 4, 6, generator=generator)
    together = [nn.Parameter(value.clone()) for value in values]
    alone = [nn.Parameter(value.clone()) for value in values]
    for parameter, gradient in zip(together + alone, [*gradients, *gradients], strict=True):
        parameter.grad = gradient.clone()
    Muon(together).step()
    for parameter in alone:
        Muon([parameter]).step()
    for one, other in zip(together, alone, strict=True):
        torch.testing.assert_close(one, other)


def test_momentum_survives_saving():
    weights = nn.Parameter(torch.ones(3, 5))
    optimiser = Muon([weights])
    weights.grad = torch.arange(15.0).view(3, 5)
    optimiser.step()
    twin = nn.Parameter(weights.detach().clone())
    restored = Muon([twin])
    restored.load_state_dict(copy.deepcopy(optimiser.state_dict()))
    twin.grad = weights.grad = torch.linspace(1, 2, 15).view(3, 5)
    optimiser.step()
    restored.step()
    assert torch.equal(weights, twin)


def test_a_closure_computes_the_gradients_and_gives_the_loss():
    weights = nn.Parameter(torch.ones(2, 3))
    twin = nn.Parameter(torch.ones(2, 3))

    def closure() -> float:
        loss = weights.square().sum()
        loss.backward()
        return loss.item()

    assert Muon([weights]).step(closure) == 6.0
    twin.grad = torch.full((2, 3), 2.0)
    assert Muon([twin]).step() is None
    assert torch.equal(weights, twin)


def test_vectors_are_refused():
    with pytest.raises(ValueError, match="matrices"):
        Muon([nn.Parameter(torch.zeros(4))])
