"""Decoding token by token."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch

from paretone.errors import Cancelled
from paretone.models.families.token_model import TokenModel
from paretone.sampling.autoregressive import Cycle, Request, decode
from paretone.sampling.tokens import Greedy, Nucleus, Uniforms
from tests.engine.models.small_causal import small_model

PROMPT = [3, 1, 4, 1, 5]
NEVER, ALWAYS = -50.0, 50.0


def request_of(model: TokenModel, minimum: int = 0, maximum: int = 12, **changes: object) -> Request:
    """Positions begin again at the prompt's last element, as with ``lm-mini``."""
    embedded = model.embed([PROMPT])
    positions = torch.tensor([*range(len(PROMPT) - 1), 0])
    return replace(Request(embedded, positions, 1, minimum, maximum), **changes)


def tokens_of(cycles: list[Cycle]) -> list[int]:
    return [token for cycle in cycles for token in cycle.tokens]


def test_tokens_stand_at_the_positions_asked_for() -> None:
    """The same as reading everything anew for every token, without a cache."""
    model = small_model(stop_score=NEVER)
    found = tokens_of(list(decode(model.optimised(), request_of(model), Greedy(), Uniforms(0))))
    expected: list[int] = []
    positions = torch.tensor([*range(len(PROMPT) - 1), 0, *range(1, 13)])
    while len(expected) < 12:
        x = model.embed([PROMPT + expected])
        hidden = model.transformer(x, positions=positions[: x.shape[1]])
        expected.append(int(model.logits(hidden[0, -1]).argmax()))
    assert found == expected
    counted_on = request_of(model, positions=torch.arange(len(PROMPT)), first_position=len(PROMPT))
    assert found != tokens_of(list(decode(model, counted_on, Greedy(), Uniforms(0))))


def test_a_stop_ends_it_and_is_no_token() -> None:
    model = small_model(stop_score=ALWAYS)
    cycles = list(decode(model, request_of(model, minimum=4), Greedy(), Uniforms(0)))
    assert [cycle.stopped for cycle in cycles] == [False] * 4 + [True]
    assert cycles[-1].tokens == ()
    assert all(0 <= token < model.codes for token in tokens_of(cycles))


def test_a_stop_at_once_leaves_nothing() -> None:
    model = small_model(stop_score=ALWAYS)
    (only,) = decode(model, request_of(model), Greedy(), Uniforms(0))
    assert only.stopped and only.tokens == () and only.outcome == "decoded"


def test_fewer_stop_ids_can_be_masked() -> None:
    """The official CosyVoice masks the first alone: another ends speech before the least length."""
    model = small_model(stop_score=ALWAYS)
    cycles = list(decode(model, request_of(model, minimum=4, masked_stops=1), Greedy(), Uniforms(0)))
    assert len(cycles) == 1 and cycles[0].stopped


@pytest.mark.parametrize("maximum", [0, 1, 5])
def test_the_greatest_length_ends_it_without_a_stop(maximum: int) -> None:
    model = small_model(stop_score=NEVER)
    cycles = list(decode(model, request_of(model, maximum=maximum), Nucleus(), Uniforms(0)))
    assert len(tokens_of(cycles)) == len(cycles) == maximum
    assert not any(cycle.stopped for cycle in cycles)


def test_speech_of_a_known_length_stops_after_it() -> None:
    model = small_model(stop_score=NEVER)
    cycles = list(decode(model, request_of(model, maximum=9, length=5), Nucleus(), Uniforms(0)))
    assert len(tokens_of(cycles)) == 5 and [cycle.stopped for cycle in cycles] == [False] * 5 + [True]
    free = list(decode(model, request_of(model, maximum=9), Nucleus(), Uniforms(0)))
    assert tokens_of(free)[:5] == tokens_of(cycles) and len(tokens_of(free)) == 9


def test_seeds_repeat() -> None:
    model = small_model().optimised()
    first, again, other = (
        tokens_of(list(decode(model, request_of(model, 8), Nucleus(), Uniforms(seed)))) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_a_prompt_of_one_element() -> None:
    model = small_model(stop_score=NEVER)
    request = Request(model.embed([[2]]), torch.tensor([0]), 1, 0, 3)
    assert len(tokens_of(list(decode(model, request, Greedy(), Uniforms(0))))) == 3


def test_it_can_be_stopped_between_tokens() -> None:
    calls = itertools.count()

    def check() -> None:
        if next(calls) == 3:
            raise Cancelled

    model, found = small_model(stop_score=NEVER), []
    with pytest.raises(Cancelled):
        found.extend(decode(model, request_of(model), Greedy(), Uniforms(0), check))
    assert next(calls) == 4


def test_inference_mode_does_not_leak_to_the_caller() -> None:
    model = small_model(stop_score=NEVER)
    for _ in decode(model, request_of(model, maximum=2), Greedy(), Uniforms(0)):
        assert not torch.is_inference_mode_enabled()
