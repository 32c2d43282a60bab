"""The anchors' filters against the mask of BS.1534-3."""

from __future__ import annotations

import numpy as np
import pytest

from paretone.listening.anchors import CUTOFFS, LOW, MID, low_passed


def response(rate: int, cutoff: float) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies and gains in dB of the filter, measured with a pulse."""
    pulse = np.zeros(rate, np.float32)
    pulse[rate // 2] = 1
    spectrum = np.abs(np.fft.rfft(low_passed(pulse, rate, cutoff)))
    return np.fft.rfftfreq(rate, 1 / rate), 20 * np.log10(np.maximum(spectrum, 1e-9))


@pytest.mark.parametrize("rate", [16000, 24000, 44100, 48000])
@pytest.mark.parametrize("name", [LOW, MID])
def test_the_filters_meet_the_mask(rate: int, name: str) -> None:
    cutoff = CUTOFFS[name]
    frequencies, gains = response(rate, cutoff)
    assert np.abs(gains[frequencies <= cutoff]).max() <= 0.1
    assert gains[frequencies >= cutoff + 500].max() <= -25
    assert gains[frequencies >= cutoff + 1000].max(initial=-99) <= -50


def test_nothing_is_delayed_or_cut_off() -> None:
    time_axis = np.arange(24000) / 24000
    tone = np.sin(2 * np.pi * 1000 * time_axis).astype(np.float32)
    filtered = low_passed(tone, 24000, CUTOFFS[LOW])
    assert (len(filtered), filtered.dtype) == (len(tone), np.float32)
    np.testing.assert_allclose(filtered[500:-500], tone[500:-500], atol=0.012)
    assert np.argmax(np.correlate(filtered[1000:3000], tone[990:3010], "valid")) == 10


def test_where_there_is_nothing_to_take_away_nothing_changes() -> None:
    noise = np.random.default_rng(0).standard_normal(800).astype(np.float32)
    np.testing.assert_array_equal(low_passed(noise, 8000, CUTOFFS[MID]), noise)
