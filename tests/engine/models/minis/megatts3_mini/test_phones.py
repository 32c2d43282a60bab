from __future__ import annotations

import numpy as np
import pytest

from engine.errors import TextError
from engine.front_end.phones import CONSONANTS, PAUSE, VOWELS
from engine.models.megatts3.phone_table import ENGLISH, SILENCE
from engine.models.minis.megatts3_mini.phones import phone_ids, phones_of_frames


def test_numbers_are_the_official_ones():
    assert phone_ids(["aa", "zh", PAUSE]).tolist() == [101, 144, 145]
    assert len(ENGLISH) == 44
    assert list(ENGLISH) == sorted(ENGLISH)
    assert set(ENGLISH) > VOWELS | CONSONANTS
    assert set(ENGLISH) - VOWELS - CONSONANTS == {"ehr", "iyr", "oh", "uwr"}


def test_every_phone_has_a_number_of_its_own():
    numbers = phone_ids([*sorted(VOWELS | CONSONANTS), PAUSE])
    assert len(set(numbers.tolist())) == 41
    assert numbers.max() == SILENCE


def test_what_is_no_phone_is_named():
    with pytest.raises(TextError, match="'axr'"):
        phone_ids(["aa", "axr"])


def test_frames_get_the_phone_at_their_middle_counted_from_one():
    phones = [("s", 0.0, 0.2), ("iy", 0.2, 0.5), (PAUSE, 0.5, 0.55)]
    places = phones_of_frames(phones, 8, rate=100, hop=10)
    assert places.tolist() == [1, 1, 2, 2, 2, 3, 3, 3]  # The sixth frame's middle is the pause's end.
    assert places.dtype == np.int64
