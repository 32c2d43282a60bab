"""The guard against speech that does not end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from paretone.sampling.autoregressive import Cycle
from paretone.sampling.runaway import RunawayGuard, guarded

RATE = 25.0


def speech(length: int) -> list[int]:
    """Tokens that come back, but not in the same order."""
    return [(place * place * 7 + place // 3) % 101 for place in range(length)]


@pytest.mark.parametrize("period", [1, 2, 7, 25])
def test_repetition_is_noticed_after_three_seconds(period: int) -> None:
    guard, beginning = RunawayGuard(RATE), speech(60)
    assert guard.observe(beginning) is None
    repeated = [200 + place % period for place in range(200)]
    found = next(guard.found for token in repeated if guard.observe([token]))
    assert found.kind == "repetition"
    assert found.seconds == pytest.approx((60 + 75) / RATE)
    assert "repeated itself" in str(found) and "5.4 s" in str(found)


def test_silence_of_two_seconds_is_none() -> None:
    guard = RunawayGuard(RATE, expected=150)
    assert guard.observe([*speech(50), *[7] * 50, *speech(50)]) is None


def test_a_refrain_is_none() -> None:
    """A second that comes twice, and a stretch longer than a second, are no run-away."""
    guard = RunawayGuard(RATE)
    assert guard.observe([*speech(25), *speech(25), *range(300, 330), *speech(90), *speech(90)]) is None


def test_far_too_long_speech_is_noticed() -> None:
    guard = RunawayGuard(RATE, expected=100)
    assert guard.observe(speech(300)) is None
    found = guard.observe(speech(400)[300:])
    assert found.kind == "length" and found.seconds == pytest.approx(301 / RATE)
    assert guard.observe([1, 1, 1]) == found


def test_short_texts_may_take_two_seconds_more() -> None:
    guard = RunawayGuard(RATE, expected=2)
    assert guard.observe(speech(52)) is None
    assert guard.observe([5]).kind == "length"


def test_a_guarded_decoding_ends_there_and_keeps_what_came() -> None:
    closed = []

    def decoding() -> Iterator[Cycle]:
        try:
            while True:
                yield Cycle((4, 4, 4))
        finally:
            closed.append(True)

    guard = RunawayGuard(RATE)
    tokens = [token for cycle in guarded(decoding(), guard) for token in cycle.tokens]
    assert len(tokens) == 75 and closed == [True]
    assert guard.found.kind == "repetition"


def test_a_decoding_that_ends_is_left_alone() -> None:
    cycles = [Cycle((1, 2)), Cycle((), stopped=True)]
    guard = RunawayGuard(RATE)
    assert list(guarded(iter(cycles), guard)) == cycles
    assert guard.found is None
