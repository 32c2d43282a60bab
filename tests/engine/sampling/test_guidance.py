"""Guidance: both branches, some of them, later ones from earlier, and less overshoot."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from paretone.sampling import guidance as guiding
from paretone.sampling.branch_guidance import BranchGuidance
from paretone.sampling.flow import OvershootNoise, integrate, overshoot_coefficients, overshoot_steps, sampling_grid
from paretone.sampling.guidance import ALL, NOTHING, TEXT_ALONE, Saturation, Strength, guided_velocity

TIMES = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
VELOCITIES = torch.randn(3, 7, 4, generator=torch.Generator().manual_seed(3))
"""Of all three branches."""
BRANCHES = torch.randn(6, 5, 3, generator=torch.Generator().manual_seed(1))
"""Three branches of two items."""
SOME = (1.0, 1.0, (0,)), (1.0, 2.5, (0, 1)), (2.0, 2.0, (0, 2)), (1.6, 0.0, (1, 2)), (1.0, 0.0, (1,)), (0.0, 0.0, (2,))
SHAPE = 1, 5, 3


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


def test_equal_strengths_are_plain_guidance_bit_for_bit() -> None:
    guidance = BranchGuidance(TIMES, whole(2.0, 2.0))
    assert guidance.needed(0) == (ALL, NOTHING), "the text alone is not computed"
    assert torch.equal(guidance.velocity(rows((ALL, NOTHING)), 0), guided_velocity(rows((ALL, NOTHING)), 2.0))


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
    of_voice = VELOCITIES[:1] + voice * (VELOCITIES[:1] - VELOCITIES[1:2])
    expected = guiding.three_branch_velocity(VELOCITIES, 1 + text, 1 + voice) if text else of_voice
    assert torch.allclose(found, expected, atol=1e-5)


def test_strengths_end_and_begin_with_time() -> None:
    strengths = Strength(2.0, 0.15, 1.0), Strength(2.0, 0.0, 0.35)
    guidance = BranchGuidance(TIMES, strengths)
    text, both, voice = (ALL, TEXT_ALONE, NOTHING), (ALL, NOTHING), (ALL, TEXT_ALONE)
    assert [guidance.needed(step) for step in range(6)] == [text, text, both, both, voice, voice]
    assert guiding.most_branches(strengths) == 3
    assert guiding.most_branches((Strength(2.0, 0.0, 0.5), Strength(2.0, 0.0, 0.5))) == 2


def test_what_does_not_change_is_computed_twice_and_then_reused() -> None:
    needed, found = run(BranchGuidance(TIMES, whole(2.0, 2.0), Saturation(0.1, reuse=True)), field(1.0))
    assert needed == [(0, 2), (0, 2), (0,), (0,), (0,), (0,)]
    expected = [guided_velocity(rows((0, 2), every), 2.0) for every in field(1.0)]
    assert all(torch.allclose(one, other) for one, other in zip(found, expected, strict=True))


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
    expected = [guiding.three_branch_velocity(every, 2.0, 3.0) for every in at]
    assert all(torch.allclose(one, other, atol=1e-4) for one, other in zip(found, expected, strict=True))


def test_guidance_ends_where_the_branches_point_the_same_way() -> None:
    at = field(0.2)
    needed, found = run(BranchGuidance(TIMES, whole(2.0, 2.0), Saturation(0.05, reuse=False)), at)
    # 1 − cosine is 2, 2, then 0 as soon as the effects are too small to turn the velocity.
    cosines = [torch.nn.functional.cosine_similarity(one[0].flatten(), one[2].flatten(), dim=0) for one in at]
    ends = next(step for step, cosine in enumerate(cosines) if 1 - cosine < 0.05)
    assert needed == [(0, 2)] * (ends + 1) + [(0,)] * (5 - ends) and 0 < ends < 5
    assert torch.equal(found[-1], at[-1][:1]), "the velocity of all conditions alone"


# --- All branches -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("intelligibility", "similarity", "branches"), [*SOME, (1.6, 2.5, (0, 1, 2))])
def test_branches_with_a_weight_are_combined_by_the_official_formula(intelligibility, similarity, branches) -> None:
    assert guiding.needed_branches(intelligibility, similarity) == branches
    rows = BRANCHES.chunk(3)
    speaker, text, nothing = rows
    official = nothing + intelligibility * (text - nothing) + similarity * (speaker - text)
    found = guiding.three_branch_velocity(torch.cat([rows[branch] for branch in branches]), intelligibility, similarity)
    assert torch.allclose(found, official, rtol=0, atol=2e-6)


# --- Overshoot --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("steps", [1, 7])
def test_without_overshoot_it_is_eulers_method(steps: int) -> None:
    times = sampling_grid(steps, "uniform", -1.0)
    noise = OvershootNoise.draw(SHAPE, steps, seed=1)
    follow = overshoot_steps(times, noise.steps, overshoot=0.0)
    ends = (integrate(lambda x, step: x.cos() + step, noise.initial, times, follow=one) for one in (follow, None))
    assert torch.allclose(*ends, rtol=0, atol=1e-5)


@pytest.mark.parametrize("overshoot", [0.5, 3.0])
def test_a_step_ends_as_noisy_as_its_time_demands(overshoot: float) -> None:
    """Of noise that the velocity would take away until time 1: what is left at t' has the strength 1 − t'."""
    for start, end in itertools.pairwise(sampling_grid(16, "uniform", -1.0).tolist()):
        length, scale, strength = overshoot_coefficients(start, end, overshoot)
        target = start + length
        assert target == pytest.approx(min(end + overshoot * (end - start), 1.0))
        assert scale * target == pytest.approx(end), "the speech in the state"
        assert math.hypot(scale * (1 - target), strength) == pytest.approx(1 - end, abs=1e-7), "the noise in it"


def test_a_step_is_the_same_every_time_and_the_last_adds_no_noise() -> None:
    times = sampling_grid(8, "uniform", -1.0)
    noise, again, longer = (OvershootNoise.draw(SHAPE, steps, seed=1) for steps in (8, 8, 32))
    assert torch.equal(noise.steps, again.steps) and torch.equal(noise.steps, longer.steps[:8])
    loud = noise.steps.clone()
    loud[-1] *= 1e6
    results = [overshoot_steps(times, one)(noise.initial, noise.initial, 7) for one in (noise.steps, loud)]
    assert torch.equal(*results)
    follow = overshoot_steps(times, noise.steps)
    state = noise.initial.clone()
    first, second = (follow(state, state, 3) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(state, noise.initial), "and leaves the state alone"
