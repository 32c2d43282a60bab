"""The common beginning of one voice's requests is read once, and gives the same bits as read anew."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from paretone.models.families.token_model import TokenModel
from paretone.sampling.autoregressive import Reader, Request, decode, places
from paretone.sampling.cache import MOST_KEPT, Prefixes
from paretone.sampling.tokens import Nucleus, Uniforms
from tests.engine.models.small_causal import small_model

VOICE, OTHER = [3, 1, 4], [2, 7, 1]


@pytest.fixture
def model() -> TokenModel:
    return small_model(stop_score=-50.0).optimised()


def request_of(model: TokenModel, voice: list[int], text: list[int], shared: int | None = None) -> Request:
    embedded = model.embed([[*voice, *text]])
    length = embedded.shape[1]
    return Request(embedded, torch.arange(length), length, 0, 12, shared=len(voice) if shared is None else shared)


def tokens_of(model: TokenModel, request: Request) -> list[int]:
    return [token for cycle in decode(model, request, Nucleus(), Uniforms(0)) for token in cycle.tokens]


def filled(model: TokenModel, request: Request) -> torch.Tensor:
    reader = Reader(model, request, places(request, request.maximum))
    reader.prefill()
    return reader.cache.kept()


def test_what_is_remembered_is_bit_for_bit_what_is_read(model: TokenModel) -> None:
    request = request_of(model, VOICE, [5, 2, 6])
    anew = filled(model, request)
    assert len(model.prefixes) == 1
    filled(model, request_of(model, OTHER, [1]))
    again = filled(model, request)
    assert len(model.prefixes) == 2
    assert torch.equal(again, anew)


def test_it_is_what_reading_all_at_once_gives(model: TokenModel) -> None:
    request = request_of(model, VOICE, [5, 2, 6])
    filled(model, request_of(model, VOICE, [1, 1]))
    whole = filled(model, replace(request, shared=0))
    assert len(model.prefixes) == 1
    torch.testing.assert_close(filled(model, request), whole)
    assert tokens_of(model, request) == tokens_of(model, replace(request, shared=0))


@pytest.mark.parametrize("shared", [5, 6, 50])
def test_all_of_the_prompt_may_be_shared(model: TokenModel, shared: int) -> None:
    """The last element is read with the first token: it is never remembered."""
    request = request_of(model, VOICE, [5, 2, 6], shared)
    expected = tokens_of(model, replace(request, shared=0))
    assert tokens_of(model, request) == tokens_of(model, request) == expected


def test_the_same_ids_elsewhere_are_another_beginning(model: TokenModel) -> None:
    request = request_of(model, VOICE, [5, 2, 6])
    filled(model, request)
    moved = replace(request, positions=request.positions + 3, first_position=9)
    torch.testing.assert_close(filled(model, moved), filled(model, replace(moved, shared=0)))
    assert len(model.prefixes) == 2


def test_few_are_kept_the_last_used_longest(model: TokenModel) -> None:
    request = request_of(model, VOICE, [5])
    for first in range(MOST_KEPT):
        filled(model, request)
        filled(model, request_of(model, [first, 8, 8], [5]))
    assert len(model.prefixes) == MOST_KEPT
    cache = model.cache(10)
    positions = torch.arange(3)
    assert model.prefixes.restore(cache, request.embedded[:, :3], positions) and cache.length == 3
    assert not model.prefixes.restore(model.cache(10), model.embed([[0, 8, 8]]), positions)


def test_models_that_learn_remember_nothing() -> None:
    plain = small_model(stop_score=-50.0)
    assert plain.prefixes is None
    request = request_of(plain, VOICE, [5])
    assert tokens_of(plain, request) == tokens_of(plain, replace(request, shared=0))


def test_nothing_is_remembered_of_nothing() -> None:
    assert not len(Prefixes())
