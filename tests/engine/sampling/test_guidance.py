"""Guidance turns the velocities of several branches into one."""

from __future__ import annotations

import pytest
import torch

from paretone.sampling.guidance import branch_weights, guided_velocity, needed_branches, three_branch_velocity

VELOCITIES = torch.randn(6, 5, 3, generator=torch.Generator().manual_seed(1))
"""Three branches of two items."""


@pytest.mark.parametrize(("intelligibility", "similarity"), [(1.6, 2.5), (1.4, 3.0), (2.0, 3.0), (0.5, 0.25)])
def test_three_branches_are_combined_by_the_official_formula(intelligibility: float, similarity: float) -> None:
    speaker, text, nothing = VELOCITIES.chunk(3)
    official = nothing + intelligibility * (text - nothing) + similarity * (speaker - text)
    assert needed_branches(intelligibility, similarity) == (0, 1, 2)
    found = three_branch_velocity(VELOCITIES, intelligibility, similarity)
    assert torch.allclose(found, official, rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("intelligibility", "similarity", "branches"),
    [(1.0, 1.0, (0,)), (1.0, 2.5, (0, 1)), (2.0, 2.0, (0, 2)), (1.6, 0.0, (1, 2)), (1.0, 0.0, (1,)), (0.0, 0.0, (2,))],
)
def test_branches_without_weight_are_left_out(
    intelligibility: float, similarity: float, branches: tuple[int, ...]
) -> None:
    assert needed_branches(intelligibility, similarity) == branches
    rows = VELOCITIES.chunk(3)
    speaker, text, nothing = rows
    official = nothing + intelligibility * (text - nothing) + similarity * (speaker - text)
    found = three_branch_velocity(torch.cat([rows[branch] for branch in branches]), intelligibility, similarity)
    assert torch.allclose(found, official, rtol=0, atol=2e-6)


def test_one_branch_is_followed_as_it_is() -> None:
    speaker = VELOCITIES[:2]
    assert torch.equal(three_branch_velocity(speaker, 1.0, 1.0), speaker)
    assert torch.equal(guided_velocity(speaker, 0.0), speaker)


@pytest.mark.parametrize("intelligibility", [0.0, 1.0, 1.6, 2.5])
@pytest.mark.parametrize("similarity", [0.0, 1.0, 1.6, 2.5])
def test_weights_add_up_to_one(intelligibility: float, similarity: float) -> None:
    assert sum(branch_weights(intelligibility, similarity)) == pytest.approx(1)
