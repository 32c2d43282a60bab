from __future__ import annotations

import numpy as np
import pytest

from paretone.errors import SettingError
from paretone.measure.fidelity import log_mel_distance


def test_a_constant_factor_is_its_logarithm() -> None:
    mel = np.random.default_rng(0).standard_normal((50, 100)).astype(np.float32)
    assert log_mel_distance(mel, mel) == 0.0
    assert log_mel_distance(mel, mel + np.float32(np.log(1.1))) == pytest.approx(np.log(1.1), rel=1e-5)


def test_one_frame_more_is_left_out() -> None:
    mel = np.ones((50, 100))
    assert log_mel_distance(mel, np.concatenate([mel, 9 * mel[:1]])) == 0.0


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        ((50, 100), (52, 100), "50 and 52 frames"),
        ((50, 100), (50, 80), "cannot be compared"),
        ((50,), (50,), "cannot be compared"),
        ((0, 100), (0, 100), "0 and 0 frames"),
    ],
)
def test_what_cannot_be_compared_says_why(first: tuple[int, ...], second: tuple[int, ...], sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        log_mel_distance(np.zeros(first), np.zeros(second))


def test_values_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(SettingError, match="not numbers"):
        log_mel_distance(np.zeros((5, 100)), np.full((5, 100), np.nan))
