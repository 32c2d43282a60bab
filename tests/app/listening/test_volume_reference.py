"""Sounds to set the volume by: as loud as they should be, without a seam."""

from __future__ import annotations

import numpy as np
import pytest

from paretone.measure.loudness import integrated_loudness, true_peak
from paretone_app.listening import stimuli as calibration

RATE = 48000


@pytest.mark.parametrize("make", [calibration.noise, calibration.tone])
@pytest.mark.parametrize("target", [-35.0, -23.0, -16.0])
def test_they_are_as_loud_as_the_test(make, target: float) -> None:
    samples = make(RATE)
    heard = samples * np.float32(calibration.gain(samples, RATE, target))
    assert integrated_loudness(heard, RATE).lufs == pytest.approx(target, abs=0.05)
    assert true_peak(heard) < -1.0


@pytest.mark.parametrize("make", [calibration.noise, calibration.tone])
@pytest.mark.parametrize("rate", [16000, 44100, 48000])
def test_they_repeat_without_a_seam(make, rate: int) -> None:
    samples = make(rate)
    assert len(samples) == calibration.SECONDS * rate
    steps = np.abs(np.diff(samples))
    assert abs(samples[0] - samples[-1]) <= steps.max()
    twice = np.abs(np.fft.rfft(np.tile(samples, 2)))
    assert twice[1::2].max() < 1e-3 * twice.max(), "two in a row hold no new frequencies"


def test_the_noise_is_pink_between_its_limits() -> None:
    power = np.abs(np.fft.rfft(calibration.noise(RATE))) ** 2
    octaves = [power[low * calibration.SECONDS : 2 * low * calibration.SECONDS].sum() for low in (125, 250, 1000, 4000)]
    assert max(octaves) / min(octaves) == pytest.approx(1.0, abs=0.05)
    assert power[: 99 * calibration.SECONDS].sum() < 1e-6 * power.sum()
    assert power[8001 * calibration.SECONDS :].sum() < 1e-6 * power.sum()
