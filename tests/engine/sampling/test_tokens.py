"""Samplers: the distributions they give, and draws from them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from paretone.sampling.tokens import Greedy, Nucleus, RepetitionAware, TokenSampler, Uniforms, draw

IDS = 40
SAMPLERS = [
    Greedy(),
    Nucleus(),
    Nucleus(0.7, top_k=6),
    Nucleus(1.3, top_p=0.7),
    Nucleus(0.8, 25, 0.9, 1.2, prompt=(3, 4)),
    RepetitionAware(),
    RepetitionAware("2025"),
    RepetitionAware(window=6, threshold=0.3),
]


def scores(rows: int, seed: int = 0) -> Tensor:
    return 2 * torch.randn(rows, IDS, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_rows_have_their_own_histories(sampler: TokenSampler) -> None:
    logits, history = scores(5), [int(one) for one in scores(1, 3)[0].topk(20).indices] * 2
    together = sampler.probabilities(logits, history)
    assert together.shape == logits.shape
    torch.testing.assert_close(together.sum(-1), torch.ones(5))
    assert (together >= 0).all()
    for row in range(5):
        alone = sampler.probabilities(logits[row : row + 1], history[: len(history) - 4 + row])
        torch.testing.assert_close(together[row : row + 1], alone)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_what_may_not_come_never_does(sampler: TokenSampler) -> None:
    logits, history = scores(3), [5, 6, 5]
    logits[:2, 7:9] = -math.inf
    found = sampler.probabilities(logits, history)
    assert not found[:2, 7:9].any()
    assert found.isfinite().all()


def test_greedy_takes_the_first_of_equals() -> None:
    logits = torch.zeros(1, IDS)
    logits[0, [4, 9]] = 3.0
    assert Greedy().probabilities(logits, []).nonzero().tolist() == [[0, 4]]


def test_top_k_and_top_p_cut_after_the_temperature() -> None:
    logits = torch.tensor([[0.5, 0.25, 0.125, 0.125]]).log()
    found = Nucleus(top_k=3).probabilities(logits, [])
    assert (found > 0).sum() == 3
    torch.testing.assert_close(found[0, :2], torch.tensor([0.5, 0.25]) / 0.875)
    # The id with which the sum passes top_p stays.
    found = Nucleus(top_p=0.6).probabilities(logits, [])
    torch.testing.assert_close(found[0], torch.tensor([2 / 3, 1 / 3, 0, 0]))
    # At half the temperature the first makes up 0.25 / 0.34375 of all.
    found = Nucleus(0.5, top_p=0.7).probabilities(logits, [])
    torch.testing.assert_close(found[0], torch.tensor([1.0, 0, 0, 0]))


def test_a_repeated_id_that_is_certain_comes_again() -> None:
    logits = torch.full((1, IDS), -math.inf)
    logits[0, 3] = 0.0
    for variant in ("2026", "2025"):
        found = RepetitionAware(variant).probabilities(logits, [3])
        assert found[0, 3] == 1 and found.sum() == 1


def test_a_nearly_certain_id_is_replaced_by_the_others() -> None:
    """If one id has all but 10⁻⁷, the others' shares are still exact."""
    logits = torch.zeros(1, IDS)
    logits[0, 3] = 20.0
    found = RepetitionAware().probabilities(logits, [3])
    others = torch.full((IDS,), 1 / (IDS - 1))
    others[3] = 0.0
    torch.testing.assert_close(found[0], others)


def test_what_leaves_the_window_counts_no_longer() -> None:
    logits, sampler = scores(1), RepetitionAware(window=3, threshold=0.3)
    likeliest, *others = logits[0].topk(IDS).indices.tolist()
    assert sampler.probabilities(logits, [likeliest, *others[-2:]])[0, likeliest] == 0
    fresh = sampler.probabilities(logits, [])
    assert torch.equal(sampler.probabilities(logits, [likeliest, *others[-3:]]), fresh)


def test_draws_follow_the_probabilities() -> None:
    probabilities = torch.tensor([0.0, 0.5, 0.0, 0.25, 0.25, 0.0])
    drawn = [draw(probabilities, uniform) for uniform in (0.0, 0.4999, 0.5, 0.7499, 0.75, 1 - 2.0**-24)]
    assert drawn == [1, 1, 3, 3, 4, 4]
    # They need not add up to one.
    assert [draw(3 * probabilities, uniform) for uniform in (0.4999, 0.5, 1 - 2.0**-24)] == [1, 3, 4]


def test_the_last_uniform_draws_an_id_that_is_possible() -> None:
    """Rounding never leads beyond the last one."""
    for seed in range(200):
        probabilities = scores(1, seed)[0].softmax(-1) * (0.5 + seed / 100)
        probabilities[-3:] = 0.0
        assert draw(probabilities, 1 - 2.0**-24) < IDS - 3
        assert draw(probabilities, 0.0) == 0


def test_uniforms_are_repeatable_and_exact_in_float32() -> None:
    first, again, other = Uniforms(7), Uniforms(7), Uniforms(8)
    values = [first() for _ in range(2000)]
    assert values == [again() for _ in range(2000)]
    assert values != [other() for _ in range(2000)]
    assert torch.tensor(values).tolist() == values
    assert min(values) >= 0 and max(values) < 1
    assert abs(sum(values) / 2000 - 0.5) < 0.02
