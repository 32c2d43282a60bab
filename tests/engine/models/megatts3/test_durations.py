from __future__ import annotations

import pytest
import torch

from paretone.models.megatts3.duration_model import Tempo, settled_durations
from paretone.models.megatts3.phones import phone_number

SPOKEN = phone_number("E0aa")
COMMA, STOP, SILENCE = phone_number("，"), phone_number("。"), phone_number("sil")


def settle(
    codes: list[int],
    phones: list[int],
    first: bool = False,
    last: bool = False,
    tempo: Tempo | None = None,
    seed: int = 0,
) -> list[int]:
    return settled_durations(codes, phones, 128, first, last, tempo, torch.Generator().manual_seed(seed))


def test_codes_are_durations_plus_one_and_the_sum_is_a_multiple_of_eight() -> None:
    assert settle([11, 6, 1], [SPOKEN] * 3) == [10, 5, 32 + 1]


def test_a_seam_is_longer_and_the_very_end_is_bounded() -> None:
    assert settle([9, 9], [SPOKEN] * 2) == [8, 8 + 32]
    assert settle([9, 9], [SPOKEN] * 2, last=True) == [8, 64]
    assert settle([9, 129], [SPOKEN] * 2, last=True) == [8, 127 + 1]


def test_pauses_have_a_least_length_and_the_first_silence_a_fixed_one() -> None:
    assert settle([5, 5, 5, 41], [SILENCE, COMMA, STOP, SPOKEN]) == [64, 32, 64, 40 + 32]
    assert settle([5, 5, 5, 41], [SILENCE, COMMA, STOP, SPOKEN], first=True) == [8, 32, 64, 72]
    assert settle([101, 41], [STOP, SPOKEN]) == [100, 40 + 32 + 4]


def test_stretching_comes_before_the_rules_of_pauses_and_rounds_half_to_even() -> None:
    assert settle([6, 4, 41], [SPOKEN, SPOKEN, SPOKEN], tempo=Tempo(0.5)) == [2, 2, 36]
    assert settle([65, 41], [STOP, SPOKEN], tempo=Tempo(0.5)) == [64, 40]
    assert settle([101, 17], [SPOKEN, SPOKEN], tempo=Tempo(2.0)) == [127, 96 + 1]


def test_no_disturbance_by_default_and_with_one_a_seed_repeats_it() -> None:
    codes, phones = [61] * 40, [SPOKEN] * 40
    assert settle(codes, phones, seed=1) == settle(codes, phones, seed=2)
    disturbed = settle(codes, phones, tempo=Tempo(disturbance=0.1), seed=1)
    assert disturbed == settle(codes, phones, tempo=Tempo(disturbance=0.1), seed=1)
    assert disturbed != settle(codes, phones, tempo=Tempo(disturbance=0.1), seed=2)
    inner = disturbed[:-1]
    assert 54 <= min(inner) < 60 < max(inner) <= 66


def test_phones_and_codes_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="zip"):
        settle([5, 5], [SPOKEN])
