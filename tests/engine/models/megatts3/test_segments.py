from __future__ import annotations

import numpy as np
import pytest

from paretone.measure.loudness import integrated_loudness
from paretone.models.megatts3.segments import hann_fade, level_matched, segment_fader

RATE = 24000


@pytest.fixture
def speech() -> np.ndarray:
    """Noise whose level rises and falls about four times a second."""
    samples = np.random.default_rng(0).standard_normal(3 * RATE) * 0.05
    return (samples * (1 + np.sin(np.arange(len(samples)) * 2 * np.pi * 4 / RATE))).astype(np.float32)


@pytest.mark.parametrize("lufs", [-40.0, -30.0, -26.0])
def test_a_segment_becomes_as_loud_as_the_prompt_by_the_official_meter(speech: np.ndarray, lufs: float) -> None:
    import pyloudnorm  # Here, for it brings scipy.

    matched = level_matched(speech, lufs, RATE)
    assert matched.dtype == np.float32
    assert integrated_loudness(matched, RATE).lufs == pytest.approx(lufs, abs=1e-3)
    assert pyloudnorm.Meter(RATE).integrated_loudness(matched.astype(float)) == pytest.approx(lufs, abs=0.1)


def test_what_would_clip_is_lowered(speech: np.ndarray) -> None:
    assert np.abs(level_matched(speech, -3.0, RATE)).max() == pytest.approx(0.95)


def test_silence_stays_silent() -> None:
    silence = np.zeros(RATE, np.float32)
    assert np.array_equal(level_matched(silence, -20.0, RATE), silence)
    assert np.array_equal(level_matched(silence + 0.1, -np.inf, RATE), silence + np.float32(0.1))


def test_segments_fade_over_160_milliseconds() -> None:
    fader = segment_fader(RATE)
    assert fader.fade == 3840
    ones = np.ones(RATE, np.float32)
    joined = np.concatenate([fader.push(ones), fader.push(ones), fader.finish()])
    assert len(joined) == 2 * RATE - 3840
    assert joined == pytest.approx(1.0, abs=1e-3)


def test_short_segments_fade_over_what_they_have() -> None:
    fader = segment_fader(RATE)
    joined = np.concatenate(
        [fader.push(np.ones(RATE, np.float32)), fader.push(np.ones(100, np.float32)), fader.finish()]
    )
    assert len(joined) == RATE
    falling, rising = hann_fade(100)
    assert falling[0] > 0.99
    assert rising[0] == 0
