"""The fundamental frequency of what has one, and how far two melodies are apart."""

from __future__ import annotations

import numpy as np
import pytest

from paretone.errors import SettingError
from paretone.measure import pitch
from paretone.measure.pitch import fundamental, pitch_error

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
