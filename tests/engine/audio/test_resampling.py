from __future__ import annotations

import numpy as np
import pytest

from paretone.audio.resampling import Resampler, resample

RATES = [(24000, 48000), (24000, 44100), (16000, 48000), (44100, 48000), (48000, 24000), (48000, 44100), (22050, 16000)]


@pytest.mark.parametrize(("source", "target"), RATES)
@pytest.mark.parametrize("share", [0.01, 0.3, 0.8])
def test_a_sine_below_the_lower_nyquist_frequency_stays_that_sine(source: int, target: int, share: float) -> None:
    frequency = share * min(source, target) / 2
    converted = resample(np.sin(2 * np.pi * frequency * np.arange(source) / source), source, target)
    assert len(converted) == target
    expected = np.sin(2 * np.pi * frequency * np.arange(target) / target)
    middle = slice(target // 8, -target // 8)
    assert np.abs(converted - expected)[middle].max() < 2e-6


@pytest.mark.parametrize(("source", "target"), [(48000, 24000), (44100, 16000)])
def test_what_the_target_cannot_hold_is_removed(source: int, target: int) -> None:
    above = np.sin(2 * np.pi * 0.51 * target * np.arange(source) / source)
    middle = resample(above, source, target)[target // 8 : -target // 8]
    assert np.abs(middle).max() < 3e-7, "130 dB down"


@pytest.mark.parametrize(("source", "target"), [*RATES, (24000, 24000)])
def test_pieces_give_the_same_bits_as_the_whole(source: int, target: int) -> None:
    draw = np.random.default_rng(source + target)
    samples = draw.standard_normal(15000).astype(np.float32)
    converter = Resampler(source, target)
    pieces, at = [], 0
    while at < len(samples):
        size = int(draw.integers(0, 900))
        pieces.append(converter.push(samples[at : at + size]))
        at += size
    pieces.append(converter.finish())
    np.testing.assert_array_equal(np.concatenate(pieces), resample(samples, source, target))


@pytest.mark.parametrize("length", [0, 1, 2, 50])
def test_short_inputs_have_the_right_length(length: int) -> None:
    assert len(resample(np.ones(length), 24000, 44100)) == -(-length * 147 // 80)
