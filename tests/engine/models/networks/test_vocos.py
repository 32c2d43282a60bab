from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from paretone.errors import CheckpointError
from paretone.models.networks.vocos import Vocos
from tests.engine.small_vocos import SMALL, write_vocos


def test_loads_an_official_folder_and_leaves_the_feature_extractor_out(tmp_path: Path) -> None:
    model = write_vocos(tmp_path)
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
    write_vocos(tmp_path)
    assert Vocos.load(tmp_path).decode(torch.randn(1, 20, 9).half()).dtype == torch.float32


def test_a_folder_without_configuration_or_weights_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config\.yaml is missing"):
        Vocos.load(tmp_path)
    write_vocos(tmp_path)
    (tmp_path / "pytorch_model.bin").unlink()
    with pytest.raises(CheckpointError, match=r"holds no Vocos weights"):
        Vocos.load(tmp_path)


@pytest.mark.parametrize("text", ["", "[1, 2]", "head: {}", "a: b: c", "backbone: {init_args: 3}"])
def test_an_unreadable_configuration_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(CheckpointError, match=r"config\.yaml"):
        Vocos.load(tmp_path)


def test_other_padding_is_refused(tmp_path: Path) -> None:
    write_vocos(tmp_path, padding="same")
    with pytest.raises(CheckpointError, match="padding 'same'; only 'center' is supported"):
        Vocos.load(tmp_path)


def test_weights_of_other_sizes_name_the_keys(tmp_path: Path) -> None:
    write_vocos(tmp_path)
    text = (tmp_path / "config.yaml").read_text().replace("num_layers: 2", "num_layers: 3")
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(CheckpointError, match=r"9 weights missing: backbone\.convnext\.2"):
        Vocos.load(tmp_path)
