from __future__ import annotations

import numpy as np
import pytest

from paretone.models.megatts3.phones import (
    ENGLISH_TONE,
    FIRST_CHINESE,
    LAST_CHINESE,
    PHONES,
    TONES_OF_CHINESE,
    UNKNOWN,
    durations_of_phones,
    frames_of_phones,
    joined,
    separated,
    tones_for_speech,
)


def test_every_chinese_phone_with_every_tone_has_a_token_of_its_own() -> None:
    pairs = [(phone, tone) for phone in range(FIRST_CHINESE, LAST_CHINESE + 1) for tone in TONES_OF_CHINESE]
    tokens = [joined(*pair) for pair in pairs]
    assert tokens == list(range(201, 789))
    assert [separated(token) for token in tokens] == pairs


@pytest.mark.parametrize("phone", [101, 145, 173, 0])
def test_other_phones_are_their_own_tokens_with_the_english_tone(phone: int) -> None:
    assert separated(joined(phone, 17)) == (phone, ENGLISH_TONE)


@pytest.mark.parametrize("token", [174, 199, 789, 6799, -5])
def test_tokens_that_are_no_phone_are_unknown(token: int) -> None:
    assert separated(token) == (UNKNOWN, ENGLISH_TONE)
    assert PHONES[UNKNOWN] == "<UNK>"


def test_tones_that_are_not_chinese_are_the_english_one() -> None:
    assert tones_for_speech([0, 3, 4, 5, 10, 11, 15, 16]) == [0, 3, 4, 3, 3, 11, 15, 3]


def test_frames_and_durations_are_inverse() -> None:
    durations = [3, 0, 2, 1, 0]
    frames = frames_of_phones(durations)
    assert frames.tolist() == [1, 1, 1, 3, 3, 4]
    assert durations_of_phones(frames, 5).tolist() == durations
    assert durations_of_phones(np.array([0, 1, 0]), 2).tolist() == [1, 0]
