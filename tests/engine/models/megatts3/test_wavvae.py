from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from paretone.errors import CheckpointError
from paretone.models.megatts3.wavvae import Encoder, PaddedConv1d, WavVAE, sampled_latents
from tests.engine.models.megatts3.small_release import WAVVAE_CONFIG, wavvae_weights, write_config


def load(folder: Path, weights: dict[str, Tensor], **entries: object) -> WavVAE:
    changed = {name: value for name, value in (WAVVAE_CONFIG | entries).items() if value is not None}
    write_config(folder / "config.yaml", changed)
    return WavVAE.from_official(folder / "config.yaml", weights, "decoder.ckpt")


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> WavVAE:
    """A decoder with weights large enough that what is far away is still heard."""
    weights = {name: value * 8 if name.endswith("weight_g") else value for name, value in wavvae_weights().items()}
    return load(tmp_path_factory.mktemp("wavvae"), weights)


@pytest.fixture(scope="module")
def latents() -> Tensor:
    return torch.randn((1, 24, 32), generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("prompt", [1, 6, 7, 11, 23])
def test_decoding_the_target_alone_equals_decoding_everything(decoder: WavVAE, latents: Tensor, prompt: int) -> None:
    whole = decoder.decode(latents)
    assert whole.shape == (1, 24 * 960)
    target = decoder.decode(latents, prompt)
    assert target.shape == (1, (24 - prompt) * 960)
    assert torch.allclose(target, whole[:, prompt * 960 :], atol=1e-5, rtol=0)


def test_the_margin_is_as_large_as_it_must_be(decoder: WavVAE, latents: Tensor) -> None:
    """Latents before the margin change nothing; its first latent does."""
    prompt = 12
    target = decoder.decode(latents)[:, prompt * 960 :]
    changes = []
    for place in (prompt - decoder.margin - 1, prompt - decoder.margin):
        other = latents.clone()
        other[:, place] += 5.0
        changes.append((decoder.decode(other)[:, prompt * 960 :] - target).abs().max().item())
    assert changes[0] == 0
    assert changes[1] > 0
    assert decoder.margin == 6


def test_less_is_computed_than_upstream_does(decoder: WavVAE, latents: Tensor) -> None:
    seen = []
    hook = decoder.decoder.register_forward_hook(lambda module, inputs, output: seen.append(output.shape[-1]))
    decoder.decode(latents, 20)
    hook.remove()
    assert seen == [(4 + decoder.margin) * 960]


def test_no_hop_size_is_an_error_and_not_four(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="lacks 'hop_size'"):
        load(tmp_path, wavvae_weights(), hop_size=None)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"hop_size": 4}, "should be the 960 samples"),
        ({"vae_stride": 8}, "should be the 960 samples"),
        ({"hop_size": "240"}, "hop_size should be a positive whole number, not '240'"),
        ({"melgan_config": {"use_tanh": False}}, "use_tanh"),
        ({"melgan_config": {"use_tanh": True, "num_band": 4}}, "num_band"),
        ({"melgan_config": 7}, "melgan_config"),
        ({"melgan_config": {}}, "lacks 'use_tanh'"),
    ],
)
def test_a_contradicting_configuration_is_named(tmp_path: Path, entries: dict, words: str) -> None:
    with pytest.raises(CheckpointError, match=words):
        load(tmp_path, wavvae_weights(), **entries)


def test_missing_unknown_and_misshapen_weights_are_named_as_the_file_has_them(tmp_path: Path) -> None:
    weights = wavvae_weights()
    del weights["decoder.model_up.2.upsample.3.weight_g"]
    weights["decoder.model_up.99.bias"] = torch.zeros(1)
    weights["decoder.model_up.1.bias"] = torch.zeros(3)
    with pytest.raises(CheckpointError) as raised:
        load(tmp_path, weights)
    for name in ("decoder.model_up.2.upsample.3.weight_g", "decoder.model_up.99.bias", "decoder.model_up.1.bias is 3"):
        assert name in str(raised.value)


def test_without_an_encoder_new_recordings_are_refused_with_what_to_do(decoder: WavVAE) -> None:
    with pytest.raises(CheckpointError, match=r"no encoder.*\.npy.*wavvae/model_only_last.ckpt"):
        decoder.encode(torch.zeros(1, 9600))


def test_a_file_with_both_halves_encodes_and_decodes(tmp_path: Path) -> None:
    model = load(tmp_path, wavvae_weights(encoder=True))
    samples = 0.1 * torch.randn((1, 10 * 960 + 1), generator=torch.Generator().manual_seed(0))
    encoded = model.encode(samples, torch.Generator().manual_seed(5))
    assert encoded.shape == (1, 11, 32)
    assert torch.equal(encoded, model.encode(samples, torch.Generator().manual_seed(5)))
    assert not torch.equal(encoded, model.encode(samples, torch.Generator().manual_seed(6)))
    assert model.decode(encoded, 4).shape == (1, 7 * 960)


def test_an_encoder_that_is_not_complete_is_named(tmp_path: Path) -> None:
    weights = wavvae_weights(encoder=True)
    del weights["encoder.encoder.model.16.lstm.bias_hh_l1"]
    with pytest.raises(CheckpointError, match=r"encoder\.encoder\.model\.16\.lstm\.bias_hh_l1"):
        load(tmp_path, weights)
    with pytest.raises(CheckpointError, match=r"not complete: it lacks proj_to_z\.weight"):
        load(tmp_path, {name: value for name, value in weights.items() if not name.startswith("proj_to_z")})


def test_latents_are_drawn_around_the_mean_with_a_bounded_deviation() -> None:
    mean = torch.randn((1, 3, 32), generator=torch.Generator().manual_seed(1))
    drawn = sampled_latents(torch.cat([mean, torch.full_like(mean, -100.0)], -1), torch.Generator().manual_seed(2))
    assert torch.allclose(drawn, mean, atol=1e-5)
    assert not torch.equal(drawn, mean)
    wide = sampled_latents(torch.cat([mean, torch.full_like(mean, 100.0)], -1), torch.Generator().manual_seed(2))
    noise = torch.randn((1, 32, 3), generator=torch.Generator().manual_seed(2)).transpose(1, 2)
    assert torch.allclose(wide, mean + noise * torch.exp(torch.tensor(10.0)), rtol=1e-5)


@pytest.mark.parametrize("samples", [1, 2, 3, 7, 8, 40])
@pytest.mark.parametrize(("kernel", "stride"), [(7, 1), (4, 2), (10, 5), (12, 6)])
def test_convolutions_of_the_encoder_round_up(samples: int, kernel: int, stride: int) -> None:
    convolution = PaddedConv1d(1, 1, kernel, stride)
    assert convolution(torch.ones(1, 1, samples)).shape[-1] == -(-samples // stride)


def test_edges_are_reflected_with_the_larger_half_on_the_left() -> None:
    """A kernel over ten samples with stride five: five are added, three before and two after."""
    convolution = PaddedConv1d(1, 1, 10, 5)
    with torch.no_grad():
        convolution.conv["conv"].weight.copy_(torch.arange(10.0).view(1, 1, 10))
        convolution.conv["conv"].bias.zero_()
        found = convolution(torch.arange(10.0).view(1, 1, 10))[0, 0]
    padded = torch.tensor([3.0, 2, 1, *range(10), 8, 7])
    expected = [sum(place * padded[start + place] for place in range(10)) for start in (0, 5)]
    assert found.tolist() == [value.item() for value in expected]


def test_encoder_hears_960_samples_a_latent() -> None:
    with torch.inference_mode():
        assert Encoder(4, 16)(torch.zeros(2, 960 * 3)).shape == (2, 16, 3)
