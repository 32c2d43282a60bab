"""Optimisers: Muon, learning rates, and learners that hold averages."""

import copy
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from paretone.errors import TrainingError
from paretone.models.f5.dit import DiT
from paretone.training import features, flow_matching
from paretone.training import learner as learning
from paretone.training.flow_matching import FlowMatchingOptions, draw_problem
from paretone.training.learner import LayerMatrices, Learner, LearningOptions, Muon, MuonAndAdamW, Rates
from paretone.training.session import Diverged
from paretone.training.spoken_tokens import VOCABULARY
from tests.engine.training import toy_model
from tests.engine.training.learning import same_weights
from tests.engine.training.toy_corpus import Clip, toy_clip
from tests.tools.recipes.natural_f5 import aligned_example, predicted_velocity
from tests.tools.recipes.natural_megatts3 import NO_PHONE, NO_TONE, LatentFlowOptions, draw_latent_problem

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
    assert list(optimisers.parts) == [learning.OTHERS]
    moved = optimisers.parts[learning.OTHERS].param_groups[0]["params"]
    assert [id(one) for one in moved] == [id(one) for one in network.parameters()]
    network.layers[1]["inner"].weight.requires_grad_(False)
    matrices, others = LAYERS.split(network)
    assert [id(one) for one in matrices] == [id(network.layers[0]["inner"].weight)]
    assert len(matrices) + len(others) == len(list(network.parameters())) - 1


def test_both_learn_at_scaled_rates(network: Network):
    before = copy.deepcopy(network)
    optimisers = MuonAndAdamW(network, LAYERS, RATES)
    _learn(network, optimisers, 1, scale=0.0)
    assert same_weights(network, before)
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
        learning.MATRICES: Muon(matrices, lr=RATES.matrices),
        learning.OTHERS: torch.optim.AdamW(others, lr=RATES.others, betas=(0.9, 0.98), weight_decay=0.0),
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
    matrices = torch.randn(3, 16, 48, generator=_generator()) * torch.tensor([0.01, 1, 50])[:, None, None]
    values = torch.linalg.svdvals(learning.orthogonalised(matrices))
    assert 0.3 < values.min() < values.max() < 1.3
    matrix = torch.randn(1, 8, 24, generator=torch.Generator().manual_seed(1))
    left, _, right = torch.linalg.svd(matrix[0], full_matrices=False)
    assert (torch.diag(left.T @ learning.orthogonalised(matrix)[0] @ right.T) > 0.3).all()


@pytest.mark.parametrize("shape", [(24, 8), (8, 24)])
def test_least_squares_are_solved(shape: tuple[int, int]):
    generator = torch.Generator().manual_seed(2)
    wanted = torch.randn(shape, generator=generator)
    weights = nn.Parameter(torch.zeros(shape))
    optimiser = Muon([weights], lr=0.05, weight_decay=0.0)
    first = None
    for step in range(300):
        optimiser.param_groups[0]["lr"] = 0.05 * (1 - step / 300)
        loss = ((weights - wanted) @ torch.randn(shape[1], 32, generator=generator)).square().mean()
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
    seen = torch.randn(32, 4, generator=torch.Generator().manual_seed(number))
    one.optimisers.start(scale=0.5)
    return one.follow((one.model(seen) - seen.sum(1, keepdim=True)).square().mean(), number)


def weights(model: nn.Module) -> torch.Tensor:
    return torch.cat([one.detach().flatten() for one in model.parameters()])


def test_the_loss_goes_down_and_one_that_is_not_finite_changes_nothing() -> None:
    one = learner()
    losses = [learn(one, number) for number in range(1, 80)]
    assert sum(losses[-10:]) < sum(losses[:10]) and one.steps == 79
    apart, moved = (weights(one.average.module) - weights(model) for model in (one.model, shared_network()))
    assert 0 < apart.norm() < moved.norm()
    one = learner()
    before = weights(one.model)
    one.optimisers.start(1.0)
    with pytest.raises(Diverged, match="step 7"):
        one.follow(one.model(torch.full((1, 4), float("nan"))).sum(), 7)
    assert torch.equal(weights(one.model), before) and one.steps == 0


# --- Flow matching ----------------------------------------------------------------------------------------------------
SMALL = replace(toy_model.SMALL, text_num_embeds=len(VOCABULARY.phones))


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def collate(items: Sequence[Sequence[Clip]]) -> flow_matching.SpeechBatch:
    return features.collate([[aligned_example(one) for one in item] for item in items])


@pytest.fixture
def batch():
    clips = [toy_clip("anna", seed, 30 + 7 * seed) for seed in range(4)]
    return collate([[clips[0]], [clips[1], clips[2]], [clips[3]], [clips[2], clips[0]]])


def test_problems_lie_on_the_straight_path_in_padded_batches(batch):
    assert batch.lengths.tolist() == [30, 81, 51, 74] and batch.joins.tolist() == [0, 37, 0, 44]
    assert (batch.ids == -1).sum() == (~batch.mask).sum() and not batch.mel[~batch.mask].any()
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
    assert 0.65 < shares.min() <= shares.max() <= 1 and 0.82 < shares.mean() < 0.88


def test_conditions_are_dropped_as_often_as_asked(batch):
    problems = [draw_problem(batch, FlowMatchingOptions(), _generator(seed)) for seed in range(600)]
    assert 0.11 < np.mean([one.drops_text for one in problems]) < 0.19
    mute = [not one.condition.any() for one in problems]
    assert 0.34 < np.mean(mute) < 0.46
    assert all(silent for one, silent in zip(problems, mute, strict=True) if one.drops_text)
    for one, silent in zip(problems, mute, strict=True):
        assert silent or torch.equal(one.condition, batch.mel.masked_fill(one.span[..., None], 0))


def test_the_training_forward_pass_is_that_of_sampling():
    torch.manual_seed(0)
    model = DiT(SMALL).eval()
    clip, prompt = toy_clip("anna", 1, 40), toy_clip("anna", 2, 25)
    batch = collate([[prompt, clip]])
    with torch.no_grad():
        for time in (0.05, 0.4, 0.9):
            problem = flow_matching.synthesis_problem(batch, time, _generator())
            run = model.begin(problem.condition, batch.ids, np.array([time], np.float32), guided=True)
            conditional, unconditional = model.velocity(problem.noised, 0, run)
            ours = predicted_velocity(model, batch.ids, problem)[0]
            torch.testing.assert_close(ours, conditional, atol=2e-5, rtol=1e-4)
            dropped = replace(problem, drops_text=True, condition=torch.zeros_like(problem.condition))
            without = predicted_velocity(model, batch.ids, dropped)[0]
            torch.testing.assert_close(without, unconditional, atol=2e-5, rtol=1e-4)


def test_the_error_counts_the_span_only():
    velocity, target = torch.zeros(1, 4, 2), torch.ones(1, 4, 2)
    target[0, 1] = 3
    span = torch.tensor([[False, True, True, False]])
    assert float(flow_matching.span_error(velocity, target, span)) == pytest.approx((9 + 1) / 2)


FULL = LatentFlowOptions(drop_prompt=0, drop_both=0)


def latent_batch(items: int = 200) -> flow_matching.LatentBatch:
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
    return flow_matching.LatentBatch(latents, phones, torch.where(phones > 0, 3, 0), places, lengths, joins)


def test_the_latent_path_runs_from_noise_outside_the_prompt():
    given = latent_batch()
    problem = draw_latent_problem(given, FULL, torch.Generator().manual_seed(1))
    arrived = problem.noised + (1 - problem.times[:, None, None]) * problem.target
    free = ~problem.prompt
    torch.testing.assert_close(arrived[free], given.latents[free], atol=1e-5, rtol=0)
    assert not problem.noised[problem.prompt].any()
    assert torch.equal(problem.span, given.mask & free)
    assert 0 <= problem.times.min() < 0.02 and 0.97 < problem.times.max() <= 1
    ends = problem.prompt.sum(1)
    assert (ends[::2] == 7).all()
    single = ends[1::2]
    assert 0.4 < float((single == 0).float().mean()) < 0.75
    assert int(single.max()) <= 10
    assert torch.equal(problem.condition[problem.prompt], given.latents[problem.prompt])
    assert not problem.condition[~problem.prompt].any()
    tuned = flow_matching.draw_latent_problem(given, torch.Generator().manual_seed(1))
    assert (tuned.prompt[::2].sum(1) == 7).all() and 5 < tuned.prompt[1::2].sum(1).float().mul(2).mean() < 14
    assert torch.equal(tuned.condition, given.latents.masked_fill(~tuned.prompt[..., None], 0))
    as_ever = draw_latent_problem(given, LatentFlowOptions(0.0, 0.0, 0.0), torch.Generator().manual_seed(1))
    assert torch.equal(tuned.noised, as_ever.noised), "a seed gives the run that it always gave"


def test_branches_know_what_they_should():
    given = latent_batch(2000)
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
