"""CosyVoice 2's HiFT vocoder against the official class."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from paretone.models.cosyvoice2.config import HiftConfig
from paretone.models.cosyvoice2.hift import PLAIN_CONVOLUTIONS, Hift, Progress
from paretone.models.networks.layers import PARAMETRISED, stored_shapes
from tests.engine.models.cosyvoice2.small_release import NoNoise
from tests.parity.fixtures import Fixture, assert_close, fixtures, full_precision
from tests.parity.test_parity_keys import released

TOLERANCE = 1e-4


def hift_config(said: dict) -> HiftConfig:
    return HiftConfig(
        bands=said["in_channels"],
        channels=said["base_channels"],
        pitch_channels=said["f0_cond_channels"],
        upsampling=tuple(said["upsample_rates"]),
        upsampling_kernels=tuple(said["upsample_kernel_sizes"]),
        kernels=tuple(said["resblock_kernel_sizes"]),
        source_kernels=tuple(said["source_resblock_kernel_sizes"]),
        dilations=tuple(said["resblock_dilations"]),
        window=said["istft"]["n_fft"],
        hop=said["istft"]["hop_len"],
        harmonics=said["nb_harmonics"],
        sample_rate=said["sampling_rate"],
        float32_phases=True,
    )


def build(fixture: Fixture) -> Hift:
    vocoder = Hift(hift_config(fixture.description["config"]))
    vocoder.load_official(fixture.weights, fixture.name)
    return vocoder.eval().requires_grad_(False)


def is_hift(description: dict) -> bool:
    return "f0_cond_channels" in description.get("config", {})


class Recorded:
    """The noise that upstream drew."""

    def __init__(self, noise: Tensor) -> None:
        self._noise = noise

    def draw(self, frames: int) -> Tensor:
        return self._noise


vocoders = pytest.mark.parametrize("fixture", fixtures("ar", is_hift))


@vocoders
def test_parity_cosyvoice2_hift_pitch_and_source(fixture: Fixture) -> None:
    full_precision()
    vocoder, mel = build(fixture), fixture["mel"]
    assert_close(vocoder.f0_predictor(mel, Progress(last=True)), fixture["f0"], TOLERANCE, "f0")
    quiet = vocoder.source(mel, NoNoise(vocoder.config), Progress(last=True))
    assert_close(quiet, fixture["zero.source"], TOLERANCE, "zero.source")
    noisy = vocoder.source(mel, Recorded(fixture["noise.sine_noise"]), Progress(last=True))
    assert_close(noisy, fixture["noise.source"], TOLERANCE, "noise.source")
    assert_close(
        vocoder.source_spectrum(fixture["zero.source"], Progress(last=True)),
        fixture["zero.source_stft"],
        TOLERANCE,
        "zero.source_stft",
    )


@vocoders
def test_parity_cosyvoice2_hift_layers(fixture: Fixture) -> None:
    full_precision()
    vocoder = build(fixture)
    hidden = vocoder.conv_pre(fixture["mel"], Progress(last=True))
    assert_close(hidden, fixture["conv_pre"], TOLERANCE, "conv_pre")
    raised = vocoder.ups[0](torch.nn.functional.leaky_relu(hidden, 0.1), Progress(last=True))
    assert_close(raised, fixture["zero.up0"], TOLERANCE, "zero.up0")
    seen = []
    vocoder.conv_post.register_forward_hook(lambda layer, given, found: seen.append(found))
    vocoder.decode(fixture["mel"], fixture["zero.source"], Progress(last=True))
    assert_close(seen[0], fixture["zero.conv_post"], TOLERANCE, "zero.conv_post")


@vocoders
def test_parity_cosyvoice2_hift_speech(fixture: Fixture) -> None:
    full_precision()
    vocoder, mel = build(fixture), fixture["mel"]
    cached = fixture["zero.source"].clone()
    cached[..., : fixture["cache.cache_source"].shape[-1]] = fixture["cache.cache_source"]
    cases = {
        "zero": (mel, fixture["zero.source"]),
        "noise": (mel, fixture["noise.source"]),
        "cache": (mel, cached),
        "decode_only": (mel, fixture["decode_only.source"]),
        "loud": (4 * mel, 60 * fixture["decode_only.source"]),
    }
    for name, (frames, source) in cases.items():
        assert_close(vocoder.decode(frames, source, Progress(last=True)), fixture[f"{name}.speech"], TOLERANCE, name)


def test_parity_cosyvoice2_hift_names_and_shapes() -> None:
    with torch.device("meta"):
        vocoder = Hift()
    assert stored_shapes(vocoder, PARAMETRISED, PLAIN_CONVOLUTIONS) == released("CosyVoice2_hift")
