from __future__ import annotations

import math

import pytest
import torch

from paretone.audio.mel import (
    BIGVGAN,
    STYLES,
    VOCOS,
    MelFrontEnd,
    resample_prompt,
)
from paretone.errors import AudioError


def tone(frequency: float, seconds: float = 0.5) -> torch.Tensor:
    return torch.sin(2 * math.pi * frequency * torch.arange(int(seconds * 24000)) / 24000)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("samples", [6000, 6143, 6144, 6145])
def test_frame_count_is_as_announced(style: str, samples: int) -> None:
    front_end = MelFrontEnd(style)
    assert front_end(torch.randn(samples)).shape == (1, front_end.frames(samples), 100)


@pytest.mark.parametrize("style", STYLES)
def test_a_batch_gives_what_its_items_give(style: str) -> None:
    batch = torch.randn(3, 4000)
    together = MelFrontEnd(style)(batch)
    for item, frames in zip(batch, together, strict=True):
        torch.testing.assert_close(frames[None], MelFrontEnd(style)(item), atol=1e-6, rtol=0)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("frequency", [300.0, 1500.0, 6000.0])
def test_a_tone_is_loudest_in_the_band_that_covers_it(style: str, frequency: float) -> None:
    front_end = MelFrontEnd(style)
    loudest = front_end(tone(frequency))[0, 20].argmax()
    nearest_bin = round(frequency * 1024 / 24000)
    assert front_end.filterbank()[nearest_bin, loudest] > 0


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
    torch.testing.assert_close(
        resample_prompt(samples, rate, 24000), by_definition(samples, rate, 24000), atol=2e-5, rtol=0
    )


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
