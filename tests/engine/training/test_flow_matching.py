from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from paretone.front_end.frame_phones import labels
from paretone.models.f5.dit import DiT
from paretone.training.flow_matching import (
    FlowMatchingOptions,
    SpeechBatch,
    draw_problem,
    predicted_velocity,
    span_error,
    synthesis_problem,
)
from paretone.training.recipes.natural_f5 import SMALL_F5, laid_out
from paretone.training.spoken_tokens import VOCABULARY
from tests.engine.training.toy_corpus import Clip, toy_clip

SMALL = replace(
    SMALL_F5,
    dim=64,
    depth=2,
    heads=2,
    dim_head=32,
    text_dim=32,
    conv_layers=1,
    text_num_embeds=len(VOCABULARY.phones),
)


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def collate(items: Sequence[Sequence[Clip]]) -> SpeechBatch:
    return laid_out(items, [[labels(one.phones, one.frames, VOCABULARY) for one in item] for item in items])


@pytest.fixture
def batch():
    clips = [toy_clip("anna", seed, 30 + 7 * seed) for seed in range(4)]
    return collate([[clips[0]], [clips[1], clips[2]], [clips[3]], [clips[2], clips[0]]])


def test_padding_and_joins(batch):
    assert batch.lengths.tolist() == [30, 81, 51, 74]
    assert batch.joins.tolist() == [0, 37, 0, 44]
    assert (batch.ids == -1).sum() == (~batch.mask).sum()
    assert not batch.mel[~batch.mask].any()


def test_problems_lie_on_the_straight_path(batch):
    for seed in range(20):
        problem = draw_problem(batch, FlowMatchingOptions(), _generator(seed))
        times = problem.times[:, None, None]
        torch.testing.assert_close(problem.noised + (1 - times) * problem.target, batch.mel, atol=1e-5, rtol=0)
        assert ((problem.times >= 0) & (problem.times <= 1)).all()


def test_spans_cover_seven_tenths_to_all_of_an_item_and_no_padding(batch):
    options = FlowMatchingOptions(whole_second_clip=0.0)
    shares = []
    for seed in range(200):
        problem = draw_problem(batch, options, _generator(seed))
        assert not (problem.span & ~problem.mask).any()
        assert ((problem.span[:, 1:] != problem.span[:, :-1]).sum(1) <= 2).all()
        shares.append(problem.span.sum(1) / batch.lengths)
    shares = torch.stack(shares)
    assert shares.min() > 0.65
    assert shares.max() <= 1
    assert 0.82 < shares.mean() < 0.88


def test_of_joined_items_often_exactly_the_second_clip_is_masked(batch):
    exact = [
        torch.stack([span.nonzero()[0, 0] == join for span, join in zip(problem.span, batch.joins, strict=True)])
        for seed in range(300)
        if (problem := draw_problem(batch, FlowMatchingOptions(), _generator(seed))) is not None
    ]
    share = torch.stack(exact).float().mean(0)[[1, 3]]
    assert ((share > 0.5) & (share < 0.72)).all()


def test_conditions_are_dropped_as_often_as_asked(batch):
    problems = [draw_problem(batch, FlowMatchingOptions(), _generator(seed)) for seed in range(600)]
    text = np.mean([one.drops_text for one in problems])
    audio = np.mean([one.drops_audio for one in problems])
    assert 0.11 < text < 0.19
    assert 0.34 < audio < 0.46
    assert all(one.drops_audio for one in problems if one.drops_text)
    assert not any(one.condition.any() for one in problems if one.drops_audio)
    for one in problems:
        if not one.drops_audio:
            assert torch.equal(one.condition, batch.mel.masked_fill(one.span[..., None], 0))


def test_times_lean_towards_the_noise():
    clips = [[toy_clip("bella", seed, 20)] for seed in range(32)]
    many = collate(clips)
    times = torch.cat([draw_problem(many, FlowMatchingOptions(), _generator(seed)).times for seed in range(60)])
    assert 0.40 < times.mean() < 0.46  # uniform has a mean of 1/2, the swayed half one of 1 − 2/π


def test_the_training_forward_pass_is_that_of_sampling():
    torch.manual_seed(0)
    model = DiT(SMALL).eval()
    clip, prompt = toy_clip("anna", 1, 40), toy_clip("anna", 2, 25)
    batch = collate([[prompt, clip]])
    with torch.no_grad():
        for time in (0.05, 0.4, 0.9):
            problem = synthesis_problem(batch, time, _generator())
            run = model.begin(problem.condition, batch.ids, np.array([time], np.float32), guided=True)
            conditional, unconditional = model.velocity(problem.noised, 0, run)
            ours = predicted_velocity(model, batch.ids, problem)[0]
            torch.testing.assert_close(ours, conditional, atol=2e-5, rtol=1e-4)
            dropped = replace(problem, drops_text=True, drops_audio=True, condition=torch.zeros_like(problem.condition))
            torch.testing.assert_close(
                predicted_velocity(model, batch.ids, dropped)[0], unconditional, atol=2e-5, rtol=1e-4
            )


def test_every_item_has_a_time_of_its_own():
    torch.manual_seed(0)
    model = DiT(SMALL).eval()
    clips = [[toy_clip("anna", seed, 40)] for seed in range(3)]
    batch = collate(clips)
    problem = replace(synthesis_problem(batch, 0.5, _generator()), times=torch.tensor([0.1, 0.5, 0.9]))
    with torch.no_grad():
        together = predicted_velocity(model, batch.ids, problem)
        for row in range(3):
            one = replace(
                problem,
                **{
                    name: getattr(problem, name)[row : row + 1]
                    for name in ("noised", "condition", "target", "times", "span", "mask")
                },
            )
            torch.testing.assert_close(
                predicted_velocity(model, batch.ids[row : row + 1], one)[0], together[row], atol=2e-5, rtol=1e-4
            )


def test_the_error_counts_the_span_only():
    velocity, target = torch.zeros(1, 4, 2), torch.ones(1, 4, 2)
    target[0, 1] = 3
    span = torch.tensor([[False, True, True, False]])
    assert float(span_error(velocity, target, span)) == pytest.approx((9 + 1) / 2)
