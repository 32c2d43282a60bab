"""Timbre distance is the distance in dB of long-term envelopes that its definition says."""

from __future__ import annotations

import numpy as np
import pytest

from paretone.errors import SettingError
from paretone.measure.fidelity import timbre_distance
from tests.engine.measure.test_distortion import BANDS, ripple


def test_an_average_envelope_that_is_off_by_a_ripple_is_off_by_its_root_mean_square_in_decibels() -> None:
    mel = np.random.default_rng(0).standard_normal((30, BANDS))
    moved = mel + ripple(3, 0.2) + ripple(7, 0.1)
    decibels = 20 / np.log(10) * np.sqrt(np.mean((ripple(3, 0.2) + ripple(7, 0.1)) ** 2))
    assert timbre_distance(mel, moved) == pytest.approx(decibels, rel=1e-9)
    assert timbre_distance(moved, mel) == pytest.approx(decibels, rel=1e-9)


def test_neither_level_nor_order_nor_length_counts() -> None:
    mel = np.random.default_rng(0).standard_normal((30, BANDS))
    others = (mel + 0.5, mel[::-1], np.concatenate([mel, mel]), mel + ripple(14, 1.0))
    assert all(timbre_distance(mel, other) == pytest.approx(0.0, abs=1e-9) for other in others)


def test_silence_does_not_count() -> None:
    mel = np.random.default_rng(0).standard_normal((30, BANDS))
    silence = np.full((50, BANDS), -11.0) + ripple(1, 2.0)
    assert timbre_distance(mel, np.concatenate([silence, mel, silence])) == pytest.approx(0.0, abs=1e-9)
    assert timbre_distance(mel, np.concatenate([silence + 8.0, mel])) > 1


@pytest.mark.parametrize(
    ("first", "second"), [((5, 100), (5, 80)), ((5,), (5,)), ((0, 100), (5, 100)), ((5, 100), (0, 100))]
)
def test_what_is_no_spectrogram_is_refused(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    with pytest.raises(SettingError, match="no timbres"):
        timbre_distance(np.zeros(first), np.zeros(second))
