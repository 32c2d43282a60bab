"""Guidance that decides at every evaluation which branches run, on fields whose branches are known."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from paretone.sampling.branch_guidance import BranchGuidance
from paretone.sampling.guidance import (
    ALL,
    NOTHING,
    TEXT_ALONE,
    Effect,
    Saturation,
    Strength,
    StrengthGuidance,
    TwoWeightGuidance,
    branches_of,
    effects,
    guided_velocity,
    most_branches,
    three_branch_velocity,
)
from paretone.setting.knobs import Values

TIMES = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
VELOCITIES = torch.randn(3, 7, 4, generator=torch.Generator().manual_seed(3))
"""Of all three branches."""


def rows(needed: tuple[int, ...], every: Tensor = VELOCITIES) -> Tensor:
    return torch.cat([every[branch][None] for branch in needed])


def whole(voice: float, text: float) -> tuple[Strength, Strength]:
    return Strength(voice), Strength(text)


def field(growth: float) -> list[Tensor]:
    """Velocities at each time, whose effects are ``growth`` times as large at every evaluation."""
    voice, text = torch.ones(1, 7, 4), torch.full((1, 7, 4), -2.0)
    nothing = torch.full((1, 7, 4), 0.5)
    found = []
    for step in range(len(TIMES)):
        by_text = nothing + text * growth**step
        found.append(torch.cat([by_text + voice * growth**step, by_text, nothing]))
    return found


def run(guidance: BranchGuidance, at: list[Tensor]) -> tuple[list[tuple[int, ...]], list[Tensor]]:
    needed, found = [], []
    for step, every in enumerate(at):
        needed.append(guidance.needed(step))
        found.append(guidance.velocity(rows(needed[-1], every), step))
    return needed, found


@pytest.mark.parametrize("strength", [0.5, 2.0, 3.7])
def test_equal_strengths_are_plain_guidance_bit_for_bit(strength: float) -> None:
    guidance = BranchGuidance(TIMES, whole(strength, strength))
    assert guidance.needed(0) == (ALL, NOTHING), "the text alone is not computed"
    expected = guided_velocity(rows((ALL, NOTHING)), strength)
    assert torch.equal(guidance.velocity(rows((ALL, NOTHING)), 0), expected)


@pytest.mark.parametrize(
    ("voice", "text", "needed"),
    [
        (2.0, 1.0, (ALL, TEXT_ALONE, NOTHING)),
        (2.0, 0.0, (ALL, TEXT_ALONE)),
        (0.0, 2.0, (ALL, TEXT_ALONE, NOTHING)),
        (0.0, 0.0, (ALL,)),
    ],
)
def test_separate_strengths_are_those_of_megatts3(voice: float, text: float, needed: tuple[int, ...]) -> None:
    guidance = BranchGuidance(TIMES, whole(voice, text))
    assert guidance.needed(2) == needed
    found = guidance.velocity(rows(needed), 2)
    expected = (
        three_branch_velocity(VELOCITIES, 1 + text, 1 + voice)
        if text
        else VELOCITIES[:1] + voice * (VELOCITIES[:1] - VELOCITIES[1:2])
    )
    assert torch.allclose(found, expected, atol=1e-5)


def test_strengths_end_and_begin_with_time() -> None:
    strengths = Strength(2.0, 0.15, 1.0), Strength(2.0, 0.0, 0.35)
    guidance = BranchGuidance(TIMES, strengths)
    assert [guidance.needed(step) for step in range(6)] == [
        (ALL, TEXT_ALONE, NOTHING),  # 0.0: text only
        (ALL, TEXT_ALONE, NOTHING),
        (ALL, NOTHING),  # 0.15: both, equally
        (ALL, NOTHING),
        (ALL, TEXT_ALONE),  # 0.35: voice only
        (ALL, TEXT_ALONE),
    ]
    assert most_branches(strengths) == 3
    assert most_branches((Strength(2.0, 0.0, 0.5), Strength(2.0, 0.0, 0.5))) == 2


def test_neighbours_of_equal_strength_are_one_effect() -> None:
    assert effects(whole(2.0, 2.0), 0.0) == (Effect(0, 2, 2.0),)
    assert effects(whole(2.0, 1.0), 0.0) == (Effect(0, 1, 2.0), Effect(1, 2, 1.0))
    assert effects(whole(0.0, 1.0), 0.0) == (Effect(1, 2, 1.0),)
    assert branches_of(effects(whole(0.0, 1.0), 0.0)) == (0, 1, 2)


def test_models_give_their_strengths() -> None:
    assert StrengthGuidance().strengths(Values(guidance=2.0)) == whole(2.0, 2.0)
    assert StrengthGuidance().strengths(Values(guidance=1e-6)) == whole(0.0, 0.0)
    assert TwoWeightGuidance().strengths(Values(similarity=3.0, intelligibility=1.5)) == whole(2.0, 0.5)


def test_what_does_not_change_is_computed_twice_and_then_reused() -> None:
    needed, found = run(BranchGuidance(TIMES, whole(2.0, 2.0), Saturation(0.1, reuse=True)), field(1.0))
    assert needed == [(0, 2), (0, 2), (0,), (0,), (0,), (0,)]
    expected = [guided_velocity(rows((0, 2), every), 2.0) for every in field(1.0)]
    assert all(torch.allclose(one, other) for one, other in zip(found, expected, strict=True))


def test_what_keeps_changing_is_always_computed() -> None:
    needed, _ = run(BranchGuidance(TIMES, whole(2.0, 2.0), Saturation(0.49, reuse=True)), field(1.5))
    assert needed == [(0, 2)] * 6
    needed, _ = run(BranchGuidance(TIMES, whole(2.0, 2.0), Saturation(0.51, reuse=True)), field(1.5))
    # It changes by half from one to the next: once it may be reused, not twice, when it is found to have changed more.
    assert needed == [(0, 2), (0, 2), (0,), (0, 2), (0, 2), (0,)]


def test_a_reused_effect_is_computed_again_in_time() -> None:
    at = field(1.0)[:3] + [every.clone() for every in field(1.0)[3:]]
    for every in at[3:]:
        every[0] += 5.0  # From the fourth evaluation on, the branches differ by more.
    guidance = BranchGuidance(TIMES, whole(2.0, 2.0), Saturation(0.1, reuse=True, again=2))
    needed, found = run(guidance, at)
    assert needed == [(0, 2), (0, 2), (0,), (0, 2), (0, 2), (0,)], "it has changed, is watched, and saturates anew"
    assert torch.allclose(found[3], guided_velocity(rows((0, 2), at[3]), 2.0))


def test_change_is_foreseen_over_time_and_not_over_evaluations() -> None:
    """A dense beginning, where neighbours hardly differ, says nothing of the step after it."""
    times = [0.0, 0.001, 0.101, 0.102, 0.202, 0.203]
    nothing = torch.full((1, 7, 4), 0.5)
    at = [torch.cat([nothing + 1.0 + 4 * time, nothing, nothing]) for time in times]
    needed, _ = run(BranchGuidance(times, whole(2.0, 2.0), Saturation(0.1, reuse=True)), at)
    assert needed == [(0, 2), (0, 2), (0, 2), (0,), (0, 2), (0,)]


def test_of_three_branches_each_effect_saturates_by_itself() -> None:
    still, growing = field(1.0), field(2.0)
    # The voice's effect stays, the text's grows.
    at = []
    for one, other in zip(still, growing, strict=True):
        at.append(torch.cat([other[1:2] + (one[:1] - one[1:2]), other[1:]]))
    needed, found = run(BranchGuidance(TIMES, whole(2.0, 1.0), Saturation(0.1, reuse=True)), at)
    assert needed == [(0, 1, 2), (0, 1, 2), *[(0, 2)] * 4], "the text's branch follows from the voice's last effect"
    expected = [three_branch_velocity(every, 2.0, 3.0) for every in at]
    assert all(torch.allclose(one, other, atol=1e-4) for one, other in zip(found, expected, strict=True))


def test_guidance_ends_where_the_branches_point_the_same_way() -> None:
    at = field(0.2)
    needed, found = run(BranchGuidance(TIMES, whole(2.0, 2.0), Saturation(0.05, reuse=False)), at)
    # 1 − cosine is 2, 2, then 0 as soon as the effects are too small to turn the velocity.
    cosines = [torch.nn.functional.cosine_similarity(one[0].flatten(), one[2].flatten(), dim=0) for one in at]
    ends = next(step for step, cosine in enumerate(cosines) if 1 - cosine < 0.05)
    assert needed == [(0, 2)] * (ends + 1) + [(0,)] * (5 - ends)
    assert 0 < ends < 5
    assert torch.equal(found[-1], at[-1][:1]), "the velocity of all conditions alone"


def test_plain_combination_is_used_only_where_nothing_is_left_out() -> None:
    guidance = BranchGuidance(TIMES, whole(2.0, 2.0), Saturation(0.1, reuse=True))
    called = []

    def plain(given: Tensor) -> Tensor:
        called.append(len(given))
        return guided_velocity(given, 2.0)

    for step, every in enumerate(field(1.0)):
        guidance.velocity(rows(guidance.needed(step), every), step, plain)
    assert called == [2, 2]
