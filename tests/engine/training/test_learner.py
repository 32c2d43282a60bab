"""One update of a model by Muon and AdamW, and what a checkpoint holds."""

from __future__ import annotations

import io

import pytest
import torch
from torch import nn

from paretone.errors import TrainingError
from paretone.training.learner import Learner, LearningOptions
from paretone.training.optimisers import LayerMatrices
from paretone.training.session import Diverged

MATRICES = LayerMatrices("layers.")
OPTIONS = LearningOptions(average_decay=0.9)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    model = nn.Sequential()
    model.add_module("layers", nn.Sequential(nn.Linear(4, 6), nn.Tanh()))
    model.add_module("head", nn.Linear(6, 1))
    return model


def learner(options: LearningOptions = OPTIONS) -> Learner[nn.Sequential]:
    return Learner.by(network(), MATRICES, options)


def learn(one: Learner[nn.Sequential], number: int) -> float:
    generator = torch.Generator().manual_seed(number)
    seen = torch.randn(32, 4, generator=generator)
    one.start(scale=0.5)
    return one.follow((one.model(seen) - seen.sum(1, keepdim=True)).square().mean(), number)


def weights(model: nn.Module) -> torch.Tensor:
    return torch.cat([one.detach().flatten() for one in model.parameters()])


def test_the_loss_goes_down_and_the_average_follows() -> None:
    one = learner()
    losses = [learn(one, number) for number in range(1, 80)]

    assert sum(losses[-10:]) < sum(losses[:10])
    assert one.steps == 79
    apart, moved = (weights(one.average.module) - weights(model) for model in (one.model, network()))
    assert 0 < apart.norm() < moved.norm()


@pytest.mark.parametrize("options", [OPTIONS, LearningOptions(matrix_rate=None)], ids=["Muon and AdamW", "AdamW"])
def test_it_continues_from_its_state_as_if_never_stopped(options: LearningOptions) -> None:
    whole = learner(options)
    for number in range(1, 4):
        learn(whole, number)
    kept = io.BytesIO()
    torch.save(whole.state(), kept)
    kept.seek(0)
    resumed = learner(options)
    resumed.restore(torch.load(kept, weights_only=True))

    assert resumed.steps == 3
    assert learn(resumed, 4) == learn(whole, 4)
    assert torch.equal(weights(resumed.model), weights(whole.model))
    assert torch.equal(weights(resumed.average.module), weights(whole.average.module))


def test_the_state_of_other_optimisers_is_refused() -> None:
    with pytest.raises(TrainingError, match="other optimisers"):
        learner(LearningOptions(matrix_rate=None)).restore(learner().state())


def test_a_loss_that_is_not_finite_changes_nothing() -> None:
    one = learner()
    before = weights(one.model)
    one.start(1.0)
    with pytest.raises(Diverged, match="step 7"):
        one.follow(one.model(torch.full((1, 4), float("nan"))).sum(), 7)
    assert torch.equal(weights(one.model), before)
    assert one.steps == 0
