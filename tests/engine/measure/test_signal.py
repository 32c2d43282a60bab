"""Loudness, clipping and silence of a recording by itself."""

from __future__ import annotations

import numpy as np
import pytest

from paretone.measure.loudness import clipping, silence, with_signal_metrics
from paretone.setting.take import Metrics

RATE = 24_000


def tone(seconds: float, level: float = 0.5) -> np.ndarray:
    return (level * np.sin(2 * np.pi * 440 * np.arange(round(seconds * RATE)) / RATE)).astype(np.float32)


def test_clipping_is_the_share_of_samples_that_cannot_be_written_as_sixteen_bits() -> None:
    samples = np.zeros(1000, np.float32)
    samples[:3] = 1.0, -1.5, 32767 / 32768
    samples[3] = 32766 / 32768
    assert clipping(samples) == pytest.approx(0.003)
    assert clipping(np.zeros(0)) == 0.0


def test_silence_is_counted_in_frames_and_does_not_depend_on_the_level() -> None:
    half = np.concatenate([tone(1.0), np.zeros(RATE, np.float32)])
    assert silence(half, RATE) == pytest.approx(0.5, abs=0.02)
    assert silence(0.01 * half, RATE) == silence(half, RATE)
    assert silence(tone(1.0), RATE) == 0.0
    # 46 dB below the tone is silence, 34 dB is not.
    assert silence(np.concatenate([tone(1.0), tone(1.0, 0.0025)]), RATE) == pytest.approx(0.5, abs=0.02)
    assert silence(np.concatenate([tone(1.0), tone(1.0, 0.01)]), RATE) == 0.0


def test_nothing_at_all_is_silent() -> None:
    assert silence(np.zeros(RATE), RATE) == 1.0
    assert silence(np.zeros(5), RATE) == 1.0
    found = with_signal_metrics(np.zeros(RATE, np.float32), RATE)
    assert found == Metrics(clipping=0.0, silence=1.0)


def test_a_full_scale_tone_has_the_loudness_of_the_recommendation() -> None:
    samples = np.sin(2 * np.pi * 997 * np.arange(5 * RATE) / RATE)
    found = with_signal_metrics(samples, RATE, Metrics(pitch_error=0.25))
    assert found.loudness == pytest.approx(-3.01, abs=0.01)
    assert found.true_peak == pytest.approx(0.0, abs=0.05)
    assert found.pitch_error == 0.25
