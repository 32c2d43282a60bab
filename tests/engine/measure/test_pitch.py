"""The fundamental frequency of what has one, how far two melodies are apart, and how lively and varied they are."""

from __future__ import annotations

import numpy as np
import pytest

from paretone.errors import SettingError
from paretone.measure import pitch
from paretone.measure.pitch import FEWEST, diversity, fundamental, log_pitch, mean_pitch, pitch_error, pitch_range

RATE = 24_000


def voiced(hertz: float | np.ndarray, seconds: float = 1.0, partials: int = 10) -> np.ndarray:
    """A tone with overtones, as a voice has."""
    phase = 2 * np.pi * np.cumsum(np.broadcast_to(hertz, round(seconds * RATE))) / RATE
    return 0.1 * sum(np.sin(k * phase) / k for k in range(1, partials + 1))


@pytest.mark.parametrize("hertz", [70.0, 110.0, 196.0, 311.0, 466.0])
def test_steady_tones(hertz: float) -> None:
    found = fundamental(voiced(hertz), RATE)
    assert len(found) == pytest.approx(95, abs=2)
    assert np.allclose(found, hertz, rtol=1e-3)


def test_a_glide_is_followed() -> None:
    hertz = np.linspace(100, 200, RATE)
    found = fundamental(voiced(hertz), RATE)
    centres = hertz[(np.arange(len(found)) * 240 + 600).clip(max=RATE - 1)]
    assert np.abs(12 * np.log2(found / centres)).max() < 0.6


def test_noise_and_silence_are_unvoiced() -> None:
    noise = 0.1 * np.random.default_rng(0).standard_normal(RATE)
    assert not fundamental(noise, RATE).any()
    assert not fundamental(np.zeros(RATE), RATE).any()
    hum = np.concatenate([voiced(120), 1e-4 * voiced(50)])
    assert not fundamental(hum, RATE)[-80:].any()


def test_long_recordings_are_worked_on_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = np.concatenate([voiced(130), np.zeros(RATE), voiced(90)])
    whole = fundamental(samples, RATE)
    monkeypatch.setattr(pitch, "BLOCK", 7)
    assert np.allclose(fundamental(samples, RATE), whole)


def test_a_semitone_is_a_semitone() -> None:
    found = pitch_error(voiced(120), voiced(120 * 2 ** (1 / 12)), RATE)
    assert found.semitones == pytest.approx(1.0, abs=0.01)
    assert found.voicing == 0.0
    assert pitch_error(voiced(120), voiced(120), RATE).semitones == 0.0


def test_voicing_that_differs_is_counted_apart() -> None:
    mute = np.concatenate([voiced(120, 0.5), np.zeros(RATE // 2)])
    found = pitch_error(voiced(120), mute, RATE)
    assert found.voicing == pytest.approx(0.5, abs=0.05)
    assert found.semitones == pytest.approx(0.0, abs=0.2)
    assert pitch_error(voiced(120), np.zeros(RATE), RATE).semitones is None


def test_what_cannot_be_compared_says_why() -> None:
    with pytest.raises(SettingError, match=r"1\.00 s and 0\.90 s"):
        pitch_error(voiced(120), voiced(120, 0.9), RATE)
    with pytest.raises(SettingError, match="measuring pitch needs"):
        fundamental(np.zeros(100), RATE)


def voice(pitch: np.ndarray) -> np.ndarray:
    """A pulse-like voice that follows ``pitch`` in Hz, sample by sample."""
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    return 0.1 * sum(np.sin(number * phase) / number for number in range(1, 12))


def glide(low: float, high: float, seconds: float = 1.0) -> np.ndarray:
    return voice(np.exp(np.linspace(np.log(low), np.log(high), round(seconds * RATE))))


def test_the_range_of_a_glide_is_that_of_even_steps_on_the_logarithm() -> None:
    width = np.log(200 / 140)
    assert pitch_range(log_pitch(glide(140, 200), RATE)) == pytest.approx(width / np.sqrt(12), rel=0.05)
    assert pitch_range(log_pitch(glide(150, 150), RATE)) == pytest.approx(0.0, abs=1e-3)
    assert mean_pitch(log_pitch(glide(150, 150), RATE)) == pytest.approx(150, abs=0.5)
    assert np.isnan(mean_pitch(np.zeros(50))), "nothing is voiced"


def test_level_and_silence_around_change_no_range() -> None:
    samples = glide(140, 200)
    expected = pitch_range(log_pitch(samples, RATE))
    assert pitch_range(log_pitch(0.01 * samples, RATE)) == pytest.approx(expected, abs=1e-6)
    assert pitch_range(log_pitch(np.r_[np.zeros(RATE // 2), samples, np.zeros(RATE)], RATE)) == pytest.approx(
        expected, abs=0.006
    )


def test_octave_errors_do_not_count() -> None:
    jump = np.r_[np.full(RATE, 150.0), np.full(RATE // 10, 75.0)]
    assert pitch_range(log_pitch(voice(jump), RATE)) < 0.02


def test_noise_silence_and_single_periods_have_no_range() -> None:
    noise = np.random.default_rng(0).standard_normal(RATE)
    for samples in (noise, np.zeros(RATE), np.zeros(10), np.zeros(0)):
        assert pitch_range(log_pitch(samples, RATE)) is None


def test_diversity_is_the_deviation_over_the_takes() -> None:
    curve = log_pitch(glide(140, 200), RATE)
    assert diversity([curve, curve + 0.1]) == pytest.approx(0.1 / np.sqrt(2), abs=1e-9)
    unvoiced = curve.copy()
    unvoiced[::2] = 0.0
    assert diversity([unvoiced, curve + 0.1]) == pytest.approx(0.1 / np.sqrt(2), abs=1e-9)


def test_takes_of_other_length_are_brought_to_one() -> None:
    slow, quick = (log_pitch(glide(140, 200, seconds), RATE) for seconds in (1.5, 1.0))
    late = np.r_[np.zeros(30), quick]
    assert diversity([slow, late]) < 0.01
    assert diversity([slow, slow[::-1]]) > 0.05


def test_diversity_takes_two_voiced_takes() -> None:
    curve = log_pitch(glide(140, 200), RATE)
    assert diversity([]) is None
    assert diversity([curve]) is None
    assert diversity([curve, np.zeros(len(curve))]) is None
    assert diversity([curve, np.zeros(0)]) is None
    assert diversity([curve[: FEWEST - 5], curve[: FEWEST - 5]]) is None
