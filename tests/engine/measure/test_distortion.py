"""Mel-cepstral distortion is the distance in dB that its definition says."""

from __future__ import annotations

import numpy as np
import pytest

from paretone.errors import SettingError
from paretone.measure.fidelity import mel_cepstral_distortion

BANDS = 100


def ripple(degree: int, size: float) -> np.ndarray:
    return size * np.cos(np.pi * degree * (np.arange(BANDS) + 0.5) / BANDS)


def test_an_envelope_that_is_off_by_a_ripple_is_off_by_its_root_mean_square_in_decibels() -> None:
    mel = np.random.default_rng(0).standard_normal((30, BANDS))
    moved = mel + ripple(3, 0.2) + ripple(7, 0.1)
    decibels = 20 / np.log(10) * np.sqrt(np.mean((ripple(3, 0.2) + ripple(7, 0.1)) ** 2))
    assert mel_cepstral_distortion(mel, moved) == pytest.approx(decibels, rel=1e-9)
    assert mel_cepstral_distortion(mel, mel) == 0.0


def test_neither_level_nor_detail_counts() -> None:
    mel = np.random.default_rng(0).standard_normal((30, BANDS))
    assert mel_cepstral_distortion(mel, mel + 0.5) == pytest.approx(0.0, abs=1e-9)
    assert mel_cepstral_distortion(mel, mel + ripple(14, 1.0)) == pytest.approx(0.0, abs=1e-9)
    assert mel_cepstral_distortion(mel, mel + ripple(13, 1.0)) > 6


def test_frames_are_averaged() -> None:
    mel = np.zeros((4, BANDS))
    moved = mel.copy()
    moved[0] += ripple(1, 0.4)
    whole = mel_cepstral_distortion(mel[:1], moved[:1])
    assert mel_cepstral_distortion(mel, moved) == pytest.approx(whole / 4)


def test_takes_of_another_length_are_refused() -> None:
    with pytest.raises(SettingError, match=r"5 and 9 frames, .*compares takes of the same text"):
        mel_cepstral_distortion(np.zeros((5, BANDS)), np.zeros((9, BANDS)))
