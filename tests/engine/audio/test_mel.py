"""Mel front ends, spectrograms and resampling."""

import math

import numpy as np
import pytest
import torch

from paretone.audio.mel import BIGVGAN, STYLES, VOCOS, MelFrontEnd, resample_prompt
from paretone.audio.resampling import Resampler, resample
from paretone.audio.spectrogram import BANDS, FLOOR, HOP, RATE, frequency_band, log_mel
from paretone.errors import AudioError


@pytest.mark.parametrize("rate", [24000, 48000, 16000])
@pytest.mark.parametrize("frequency", [440.0, 1000.0, 3000.0, 6500.0])
def test_a_sine_is_brightest_in_its_own_band(rate: int, frequency: float) -> None:
    mel = log_mel(0.5 * np.sin(2 * np.pi * frequency * np.arange(rate) / rate), rate)
    assert mel.shape == (RATE // HOP + 1, BANDS)
    assert abs(mel[10:-10].mean(axis=0).argmax() - frequency_band(frequency)) <= 1


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


RATES = [(24000, 48000), (24000, 44100), (16000, 48000), (44100, 48000), (48000, 24000), (48000, 44100), (22050, 16000)]


@pytest.mark.parametrize(("source", "target"), RATES)
@pytest.mark.parametrize("share", [0.01, 0.3, 0.8])
def test_a_sine_below_the_lower_nyquist_frequency_stays_that_sine(source: int, target: int, share: float) -> None:
    frequency = share * min(source, target) / 2
    converted = resample(np.sin(2 * np.pi * frequency * np.arange(source) / source), source, target)
    assert len(converted) == target
    expected = np.sin(2 * np.pi * frequency * np.arange(target) / target)
    assert np.abs(converted - expected)[target // 8 : -target // 8].max() < 2e-6


@pytest.mark.parametrize(("source", "target"), [(48000, 24000), (44100, 16000)])
def test_what_the_target_cannot_hold_is_removed(source: int, target: int) -> None:
    above = np.sin(2 * np.pi * 0.51 * target * np.arange(source) / source)
    assert np.abs(resample(above, source, target)[target // 8 : -target // 8]).max() < 3e-7, "130 dB down"


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


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("samples", [6000, 6143, 6144, 6145])
def test_frame_count_is_as_announced(style: str, samples: int) -> None:
    front_end = MelFrontEnd(style)
    assert front_end(torch.randn(samples)).shape == (1, front_end.frames(samples), 100)


@pytest.mark.parametrize("style", STYLES)
def test_a_batch_gives_what_its_items_give(style: str) -> None:
    batch = torch.randn(3, 4000)
    for item, frames in zip(batch, MelFrontEnd(style)(batch), strict=True):
        torch.testing.assert_close(frames[None], MelFrontEnd(style)(item), atol=1e-6, rtol=0)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("frequency", [300.0, 1500.0, 6000.0])
def test_a_tone_is_loudest_in_the_band_that_covers_it(style: str, frequency: float) -> None:
    front_end = MelFrontEnd(style)
    loudest = front_end(torch.sin(2 * math.pi * frequency * torch.arange(12_000) / 24_000))[0, 20].argmax()
    assert front_end.filterbank()[round(frequency * 1024 / 24000), loudest] > 0


@pytest.mark.parametrize(("style", "samples"), [(VOCOS, 512), (BIGVGAN, 384), (VOCOS, 0)])
def test_too_few_samples_are_refused_in_words(style: str, samples: int) -> None:
    with pytest.raises(AudioError, match=f"{samples} samples"):
        MelFrontEnd(style)(torch.zeros(samples))


def test_what_inference_has_cached_can_be_trained_with() -> None:
    front_end = MelFrontEnd(window=512, hop=128, bands=20)  # sizes of its own, so that nothing is cached yet
    samples = torch.randn(1, 2048, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        front_end(samples)
    front_end(samples.requires_grad_()).sum().backward()
    assert samples.grad.abs().sum() > 0


def full_scale_noise(*shape: int) -> torch.Tensor:
    """The same every time: the official kernel is rounded in float32, so errors grow with the samples."""
    return 2 * torch.rand(*shape, generator=torch.Generator().manual_seed(0)) - 1


def by_definition(samples: torch.Tensor, rate: int, new_rate: int) -> torch.Tensor:
    """Each output sample as a weighted sum over all input samples, in double precision."""
    common = math.gcd(rate, new_rate)
    before, after = rate // common, new_rate // common
    cut_off = min(before, after) * 0.99
    outputs = torch.arange(math.ceil(new_rate * len(samples) / rate), dtype=torch.float64)
    inputs = torch.arange(len(samples), dtype=torch.float64)
    distance = (inputs[None] / before - outputs[:, None] / after) * cut_off
    window = torch.cos(distance.clamp(-6, 6) * math.pi / 12) ** 2
    weights = torch.sinc(distance) * window * (cut_off / before)
    return (weights @ samples.double()).float()


@pytest.mark.parametrize("rate", [8000, 16000, 22050, 44100, 48000])
def test_equals_the_windowed_sinc(rate: int) -> None:
    samples = full_scale_noise(1500)
    expected = by_definition(samples, rate, 24000)
    torch.testing.assert_close(resample_prompt(samples, rate, 24000), expected, atol=2e-5, rtol=0)


def test_the_same_rate_and_batches() -> None:
    samples = full_scale_noise(3, 700)
    assert resample_prompt(samples, 24000, 24000) is samples
    together = resample_prompt(samples, 16000, 24000)
    assert together.shape == (3, 1050)
    torch.testing.assert_close(together[1], resample_prompt(samples[1], 16000, 24000), atol=1e-6, rtol=0)


def test_impossible_rates_are_refused() -> None:
    with pytest.raises(AudioError, match="must be positive, not 0 Hz"):
        resample_prompt(torch.zeros(10), 0, 24000)
    with pytest.raises(AudioError, match="44101 : 24000 have too odd a ratio"):
        resample_prompt(torch.zeros(10), 44101, 24000)
