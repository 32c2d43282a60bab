from __future__ import annotations

import numpy as np
import pytest

from paretone.audio.spectrogram import BANDS, FLOOR, HOP, RATE, frequency_band, log_mel


@pytest.mark.parametrize("rate", [24000, 48000, 16000])
@pytest.mark.parametrize("frequency", [440.0, 1000.0, 3000.0, 6500.0])
def test_a_sine_is_brightest_in_its_own_band(rate: int, frequency: float) -> None:
    mel = log_mel(0.5 * np.sin(2 * np.pi * frequency * np.arange(rate) / rate), rate)
    assert mel.shape == (RATE // HOP + 1, BANDS)
    brightest = mel[10:-10].mean(axis=0).argmax()
    assert abs(brightest - frequency_band(frequency)) <= 1


def test_a_click_is_in_the_frame_centred_on_it() -> None:
    samples = np.zeros(RATE)
    samples[40 * HOP] = 1.0
    assert log_mel(samples, RATE).sum(axis=1).argmax() == 40


def test_twice_the_amplitude_is_six_decibels() -> None:
    noise = np.random.default_rng(0).standard_normal(RATE)
    np.testing.assert_allclose(log_mel(2 * noise, RATE) - log_mel(noise, RATE), np.log(2), atol=1e-5)


def test_silence_short_and_empty_takes() -> None:
    np.testing.assert_allclose(log_mel(np.zeros(5000), RATE), np.log(FLOOR))
    assert log_mel(np.zeros(10), RATE).shape == (1, BANDS)
    assert log_mel(np.zeros(0), RATE).shape == (0, BANDS)
