from __future__ import annotations

import math

import pytest
import torch

from paretone.audio.prompt_resampling import resample
from paretone.errors import AudioError


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
    torch.testing.assert_close(resample(samples, rate, 24000), by_definition(samples, rate, 24000), atol=2e-5, rtol=0)


@pytest.mark.parametrize("rate", [16000, 44100])
def test_a_tone_stays_a_tone(rate: int) -> None:
    seconds = torch.arange(rate // 2, dtype=torch.float64) / rate
    resampled = resample(torch.sin(2 * math.pi * 440 * seconds).float(), rate, 24000)
    expected = torch.sin(2 * math.pi * 440 * torch.arange(len(resampled), dtype=torch.float64) / 24000).float()
    torch.testing.assert_close(resampled[200:-200], expected[200:-200], atol=2e-3, rtol=0)


def test_the_same_rate_and_batches() -> None:
    samples = full_scale_noise(3, 700)
    assert resample(samples, 24000, 24000) is samples
    together = resample(samples, 16000, 24000)
    assert together.shape == (3, 1050)
    torch.testing.assert_close(together[1], resample(samples[1], 16000, 24000), atol=1e-6, rtol=0)


def test_impossible_rates_are_refused() -> None:
    with pytest.raises(AudioError, match="must be positive, not 0 Hz"):
        resample(torch.zeros(10), 0, 24000)
    with pytest.raises(AudioError, match="44101 : 24000 have too odd a ratio"):
        resample(torch.zeros(10), 44101, 24000)
