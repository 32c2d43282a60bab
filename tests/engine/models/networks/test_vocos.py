from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
import yaml

from engine.errors import CheckpointError
from engine.models.networks.vocos import Vocos, VocosConfig

SMALL = VocosConfig(bands=20, width=16, inner_width=24, layers=2, window=64, hop=16)


def write(folder: Path, config: VocosConfig = SMALL, **changes: object) -> Vocos:
    """An official folder with random weights."""
    parts = {
        "feature_extractor": {"init_args": {"sample_rate": config.sample_rate, "padding": "center"}},
        "backbone": {
            "init_args": {
                "input_channels": config.bands,
                "dim": config.width,
                "intermediate_dim": config.inner_width,
                "num_layers": config.layers,
            }
        },
        "head": {
            "init_args": {"dim": config.width, "n_fft": config.window, "hop_length": config.hop, "padding": "center"}
        },
    }
    parts["head"]["init_args"].update(changes)
    (folder / "config.yaml").write_text(yaml.safe_dump(parts))
    torch.manual_seed(1)
    model = Vocos(config).eval()
    weights = model.state_dict() | {"feature_extractor.mel_spec.spectrogram.window": torch.zeros(64)}
    torch.save(weights, folder / "pytorch_model.bin")
    return model


def test_loads_an_official_folder_and_leaves_the_feature_extractor_out(tmp_path: Path) -> None:
    model = write(tmp_path)
    mel = torch.randn(2, 20, 9)
    loaded = Vocos.load(tmp_path)
    assert loaded.config == SMALL
    assert torch.equal(loaded.decode(mel), model.decode(mel))
    assert loaded.decode(mel).shape == (2, 8 * 16)


def test_magnitudes_are_clipped() -> None:
    model = Vocos(SMALL).eval()
    model.head.out.weight.data.zero_()
    model.head.out.bias.data[33:] = torch.linspace(0, 10, 33)
    audio = []
    for log_magnitude in (1.0, math.log(100.0), 50.0):
        model.head.out.bias.data[:33] = log_magnitude
        audio.append(model.decode(torch.zeros(1, 20, 9)))
    torch.testing.assert_close(audio[2], audio[1])
    assert audio[0].abs().max() < audio[1].abs().max()


def test_half_precision_mel_is_decoded_in_full_precision(tmp_path: Path) -> None:
    write(tmp_path)
    assert Vocos.load(tmp_path).decode(torch.randn(1, 20, 9).half()).dtype == torch.float32


def test_a_folder_without_configuration_or_weights_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config\.yaml is missing"):
        Vocos.load(tmp_path)
    write(tmp_path)
    (tmp_path / "pytorch_model.bin").unlink()
    with pytest.raises(CheckpointError, match=r"holds no Vocos weights"):
        Vocos.load(tmp_path)


@pytest.mark.parametrize("text", ["", "[1, 2]", "head: {}", "a: b: c", "backbone: {init_args: 3}"])
def test_an_unreadable_configuration_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(CheckpointError, match=r"config\.yaml"):
        Vocos.load(tmp_path)


def test_other_padding_is_refused(tmp_path: Path) -> None:
    write(tmp_path, padding="same")
    with pytest.raises(CheckpointError, match="'same' is not supported"):
        Vocos.load(tmp_path)


def test_weights_of_other_sizes_name_the_keys(tmp_path: Path) -> None:
    write(tmp_path)
    text = (tmp_path / "config.yaml").read_text().replace("num_layers: 2", "num_layers: 3")
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(CheckpointError, match=r"9 weights missing: backbone\.convnext\.2"):
        Vocos.load(tmp_path)
