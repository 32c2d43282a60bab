from __future__ import annotations

import torch

from paretone.models.megatts3.phone_table import NO_PHONE, NO_TONE
from paretone.training.flow_matching import (
    LatentBatch,
    LatentFlowOptions,
    draw_latent_problem,
    latent_synthesis_problem,
)

FULL = LatentFlowOptions(drop_prompt=0, drop_both=0)


def batch(items: int = 200) -> LatentBatch:
    """Joined items in the even rows; 20 latents, of which the last 4 are padding in every third row."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.full((items,), 20)
    lengths[::3] = 16
    latents = torch.randn(items, 20, 6, generator=generator)
    latents[::3, 16:] = 0
    phones = torch.full((items, 5), 110)
    phones[::3, 4:] = 0
    joins = torch.zeros(items, dtype=torch.long)
    joins[::2] = 7
    places = torch.ones(items, 80, dtype=torch.long)
    return LatentBatch(latents, phones, torch.where(phones > 0, 3, 0), places, lengths, joins)


def test_the_path_runs_from_noise_to_the_latents_outside_the_prompt():
    given = batch()
    problem = draw_latent_problem(given, FULL, torch.Generator().manual_seed(1))
    weights = problem.times[:, None, None]
    arrived = problem.noised + (1 - weights) * problem.target
    free = ~problem.prompt
    torch.testing.assert_close(arrived[free], given.latents[free], atol=1e-5, rtol=0)
    assert not problem.noised[problem.prompt].any()
    assert torch.equal(problem.span, given.mask & free)
    assert 0 <= float(problem.times.min()) < 0.02
    assert 0.97 < float(problem.times.max()) <= 1


def test_joined_items_are_prompted_by_their_first_clip_and_single_ones_by_their_beginning_or_not():
    given = batch()
    problem = draw_latent_problem(given, FULL, torch.Generator().manual_seed(1))
    ends = problem.prompt.sum(1)
    assert (ends[::2] == 7).all()
    single = ends[1::2]
    assert 0.4 < float((single == 0).float().mean()) < 0.75
    assert int(single.max()) <= 10
    assert torch.equal(problem.condition[problem.prompt], given.latents[problem.prompt])
    assert not problem.condition[~problem.prompt].any()


def test_branches_know_what_they_should():
    given = batch(2000)
    options = LatentFlowOptions(drop_prompt=0.3, drop_both=0.2)
    problem = draw_latent_problem(given, options, torch.Generator().manual_seed(1))
    textless = (problem.phones == NO_PHONE).any(1)
    mute = ~problem.condition[::2].flatten(1).any(1)
    assert 0.16 < float(textless.float().mean()) < 0.24
    assert 0.45 < float(mute.float().mean()) < 0.55
    assert mute[textless[::2]].all()
    # What is left out is told nothing else: places, prompt marks and padding stay.
    assert torch.equal(problem.phones == 0, given.phones == 0)
    assert torch.equal(problem.tones == NO_TONE, problem.phones == NO_PHONE)
    assert (problem.prompt[::2].sum(1) == 7).all()
    assert torch.equal(problem.phones_of_frames, given.phones_of_frames)


def test_validation_knows_everything_and_repeats_itself():
    given = batch(6)
    first, second = (latent_synthesis_problem(given, 0.4, torch.Generator().manual_seed(2)) for _ in range(2))
    assert torch.equal(first.noised, second.noised)
    assert (first.times == 0.4).all()
    assert torch.equal(first.phones, given.phones)
    assert first.prompt.sum(1).tolist() == given.joins.tolist()
