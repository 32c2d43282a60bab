"""MegaTTS 3's WavVAE decoder against the official code, and the official names of both halves."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from paretone.models.megatts3.wavvae import Encoder, WavVAE, WavVAEConfig
from paretone.models.networks.layers import load_normalised, stored_shapes
from tests.parity.fixtures import Fixture, assert_close, fixtures, full_precision
from tests.parity.test_parity_keys import released

TOLERANCE = 1e-5


def build(fixture: Fixture) -> WavVAE:
    said = fixture.description["config"]
    config = WavVAEConfig(width=2 * said["half"], channels=said["ngf"], ratios=tuple(said["ratios"]))
    model = WavVAE(config)
    load_normalised(model, fixture.weights, fixture.name)
    return model.eval().requires_grad_(False)


def is_wavvae(description: dict) -> bool:
    return "lat_up" in description.get("config", {})


@pytest.mark.parametrize("fixture", fixtures("dit", is_wavvae))
def test_parity_wavvae_every_stage(fixture: Fixture) -> None:
    full_precision()
    model = build(fixture)
    with torch.inference_mode():
        frames = model.latent_upsampler(model.proj_to_decoder(fixture["latent"]).transpose(1, 2))
        assert_close(frames, fixture["latent_up"], TOLERANCE, "latent_up")
        stages: dict[str, Tensor] = {}
        for number, layer in enumerate(model.decoder.model_up):
            frames = layer(frames)
            stages[f"up{number}"] = frames
    compared = [name for name in fixture.names if name in stages]
    assert compared
    for name in compared:
        assert_close(stages[name], fixture[name], TOLERANCE, name)
    assert_close(model.decode(fixture["latent"])[:, None], fixture["wav"], TOLERANCE, "wav")


def test_parity_wavvae_names_and_shapes_of_both_halves() -> None:
    with torch.device("meta"):
        model = WavVAE(WavVAEConfig(), Encoder())
    assert stored_shapes(model) == released("MegaTTS3_wavvae")


def test_parity_wavvae_decoder_alone_has_226_million_parameters() -> None:
    with torch.device("meta"):
        model = WavVAE(WavVAEConfig())
    assert round(sum(torch.Size(shape).numel() for shape in stored_shapes(model).values()) / 1e6, 2) == 226.08


def test_parity_wavvae_config_of_the_release(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "audio_sample_rate: 24000\nhop_size: 240\nwin_size: 1200\nfft_size: 1200\nvae_stride: 4\nframes_multiple: 8\n"
        "melgan_config:\n  frame_shift: 240\n  use_tanh: true\n  num_band: 1\n  up_sample: [5, 4, 4, 3]\n"
    )
    shapes = {"proj_to_decoder.bias": (320,), "decoder.model_up.12.weight_v": (1, 128, 7)}
    weights = {name: torch.empty(shape, device="meta") for name, shape in shapes.items()}
    assert WavVAEConfig.read(path, weights) == WavVAEConfig()
