from __future__ import annotations

import copy
from dataclasses import replace

import torch

from paretone.models.f5.dit import DiT
from paretone.training.flow_matching import FlowMatchingOptions, draw_problem, predicted_velocity
from paretone.training.recipes.natural_f5 import ARCHITECTURE, MelNormalisation, laid_out
from tests.engine.training.toy_natural import toy_natural_corpus

SMALL = replace(ARCHITECTURE, dim=64, depth=2, heads=2, dim_head=32, text_dim=32, conv_layers=1)


def test_folded_a_model_gives_of_plain_mels_what_it_gives_of_normalised_ones():
    torch.manual_seed(0)
    clips = toy_natural_corpus().training
    normalisation = MelNormalisation.of([clip.mel for clip in clips])
    model = DiT(SMALL).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    before = copy.deepcopy(model.state_dict())
    items = [clips[:2], clips[2:3]]
    batch = laid_out(items, [[torch.randint(9, (one.frames,)).numpy() for one in item] for item in items])
    problem = draw_problem(batch, FlowMatchingOptions(), torch.Generator().manual_seed(1))
    inside = normalisation.velocity(predicted_velocity(model, batch.ids, normalisation.problem(problem)))
    outside = predicted_velocity(normalisation.folded(model), batch.ids, problem)
    torch.testing.assert_close(outside[batch.mask], inside[batch.mask], atol=1e-3, rtol=1e-3)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    again = normalisation.unfolded(normalisation.folded(model)).state_dict()
    for name, value in before.items():
        torch.testing.assert_close(again[name], value, atol=1e-5, rtol=1e-4)


def test_in_the_middle_what_the_model_sees_has_mean_zero_and_variance_one():
    clips = toy_natural_corpus().training
    normalisation = MelNormalisation.of([clip.mel for clip in clips])
    mel = torch.cat([torch.from_numpy(clip.mel).float() for clip in clips])
    noised = 0.5 * mel + 0.5 * torch.randn(mel.shape, generator=torch.Generator().manual_seed(0))
    seen = (noised - normalisation.noised_mean) / normalisation.noised_deviation
    assert seen.mean(0).abs().max() < 0.1
    assert (seen.std(0) - 1).abs().max() < 0.1
