"""Vocoders whole and piece by piece, statistics of mels, sizes read from weights."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from paretone.errors import CheckpointError
from paretone.models.catalogue import entry
from paretone.models.families.passages import TokenDecoder, streaming_difference
from paretone.models.minis.lm_mini import GatheringDecoder, LmMiniFolder
from paretone.models.minis.natural_decoder import HOP
from paretone.models.minis.natural_vocoder import LatentVocoder
from paretone.models.minis.speaking import NOBODY, NaturalCoding
from paretone.models.networks import vocos
from paretone.models.networks.quantised_mel import MelStatistics
from paretone.models.networks.shapes import uninitialised
from paretone.models.networks.vocos import ConvNeXtBlock, InverseTransform, Vocos
from tests.engine.small_vocos import SMALL, write_vocos
from tests.workload import crossed


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


def test_a_folder_without_configuration_or_weights_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config\.yaml is missing"):
        Vocos.load(tmp_path)
    for text in ("", "a: b: c", "backbone: {init_args: 3}"):
        (tmp_path / "config.yaml").write_text(text)
        with pytest.raises(CheckpointError, match=r"config\.yaml"):
            Vocos.load(tmp_path)
    write_vocos(tmp_path)
    (tmp_path / "pytorch_model.bin").unlink()
    with pytest.raises(CheckpointError, match=r"holds no Vocos weights"):
        Vocos.load(tmp_path)


PIECES = (1, 5, 1000)


@pytest.mark.parametrize(("size", "length"), crossed(PIECES, [1, 10, 31]))
@torch.inference_mode()
def test_blocks(size: int, length: int) -> None:
    torch.manual_seed(1)
    blocks, x = nn.Sequential(*(ConvNeXtBlock(6, 8) for _ in range(3))), torch.randn(length, 6)
    streamed = vocos.StreamedBlocks(blocks)
    pieces = [streamed.push(piece) for piece in x.split(size)]
    joined = torch.cat([*pieces, streamed.push(x[:0], last=True)])
    assert torch.allclose(joined.mT[None], blocks(x.mT[None]), atol=1e-5)
    assert sum(map(len, pieces)) == max(length - 9, 0)


@pytest.mark.parametrize(("size", "length"), crossed(PIECES, [2, 3, 9, 40]))
@torch.inference_mode()
def test_the_inverse_transform(size: int, length: int) -> None:
    torch.manual_seed(1)
    transform = InverseTransform(64, 16)
    spectrum = torch.randn(1, 33, length, dtype=torch.complex64)
    spectrum[:, [0, -1]] = spectrum[:, [0, -1]].real.to(spectrum.dtype)
    streamed = vocos.StreamedOverlapAdd(transform.window, 16)
    pieces = spectrum[0].mT.split(size)
    joined = torch.cat([streamed.push(piece, last=number == len(pieces)) for number, piece in enumerate(pieces, 1)])
    assert len(joined) == (length - 1) * 16
    assert torch.allclose(joined, transform(spectrum)[0], atol=1e-5)


@pytest.fixture(scope="module")
def make_decoder() -> Callable[[], GatheringDecoder]:
    folder, vocoder = entry("lm-mini").folder, LatentVocoder.load(entry("lm-mini").vocoder_folder)
    coding = NaturalCoding(LmMiniFolder(folder).tokenizer(torch.device("cpu")), vocoder)
    return lambda: GatheringDecoder(coding.stream(NOBODY), coding.device)


def spoken(decoder: TokenDecoder, tokens: list[int], size: int) -> list[np.ndarray]:
    pieces = [decoder.push(tokens[start : start + size]) for start in range(0, len(tokens), size)]
    return [*pieces, decoder.finish()]


@pytest.mark.parametrize(("length", "size"), [(1, 1), (24, 1), (61, 5)])
def test_streamed_tokens_equal_all_at_once(make_decoder: Callable, length: int, size: int) -> None:
    tokens = np.random.default_rng(length).integers(0, 4096, length).tolist()
    decoder = make_decoder()
    streamed, whole = np.concatenate(spoken(decoder, tokens, size)), decoder.whole(tokens)
    difference = streaming_difference(streamed, whole.samples)
    assert len(streamed) == len(whole.samples)
    # The pitch is added up over all pieces, in other sums than of the whole.
    assert length == 1 or difference.level <= -60
    assert np.abs(decoder.mel - whole.mel).max() <= 0.05
    assert length == 1 or np.abs(whole.samples).max() > 0.01


def test_audio_comes_long_before_the_last_token(make_decoder: Callable) -> None:
    pieces = spoken(make_decoder(), [5] * 90, 1)
    assert any(map(len, pieces[:35]))
    assert sum(map(len, pieces[:-1])) > 50 * 2 * HOP


def test_the_difference_of_two_recordings() -> None:
    whole = np.array([0.5, -0.5, 0.5, -0.5], np.float32)
    found = streaming_difference(whole[:3] + np.float32(0.05), whole)
    assert found.largest == pytest.approx(0.05, abs=1e-6)
    assert found.level == pytest.approx(-20, abs=0.01)
    assert "-20 dB" in found.sentence
    assert streaming_difference(whole, whole).level == -np.inf


def test_normalised_mels_have_mean_zero_and_variance_one_and_come_back():
    statistics = MelStatistics(3)
    draw = torch.randn(400, 3, generator=torch.Generator().manual_seed(4))
    mel = torch.tensor([-3.0, 0.0, 2.0]) + torch.tensor([2.0, 0.5, 1.0]) * draw
    statistics.mel_mean.copy_(mel.mean(0))
    statistics.mel_scale.copy_(mel.std(0))
    normal = statistics.normalised(mel)
    torch.testing.assert_close(normal.mean(0), torch.zeros(3), atol=1e-4, rtol=0)
    torch.testing.assert_close(normal.std(0), torch.ones(3))
    torch.testing.assert_close(statistics.log_mel(normal), mel)


def test_weights_that_will_be_read_are_not_drawn():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    with uninitialised():
        module = nn.Sequential(nn.Embedding(5, 8), nn.Linear(8, 3), nn.Conv1d(3, 4, 3), nn.LSTM(4, 2))
        angles = torch.arange(3) * 0.5
    assert torch.equal(torch.get_rng_state(), before), "no number was drawn"
    assert not any(one.is_meta for one in module.parameters())
    assert angles.tolist() == [0.0, 0.5, 1.0], "what is computed within is"
    nn.Linear(2, 2)
    assert not torch.equal(torch.get_rng_state(), before)
