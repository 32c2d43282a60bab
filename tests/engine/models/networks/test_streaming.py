"""Convolutional decoders give the same piece by piece as at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from paretone.models.catalogue import entry
from paretone.models.families.token_decoder import TokenDecoder, streaming_difference
from paretone.models.minis.lm_mini import GatheringDecoder, LmMiniFolder
from paretone.models.minis.natural_coding import NOBODY, NaturalCoding
from paretone.models.minis.natural_decoder import HOP
from paretone.models.minis.natural_vocoder import LatentVocoder
from paretone.models.networks.streaming import StreamedBlocks, StreamedConvolution, StreamedOverlapAdd
from paretone.models.networks.vocos import ConvNeXtBlock, InverseTransform, VocosConfig

PIECES = (1, 2, 5, 8, 1000)
Decoders = Callable[[], GatheringDecoder]


def in_pieces(values: torch.Tensor, size: int) -> list[torch.Tensor]:
    return list(values.split(size, dim=2))


@pytest.mark.parametrize("size", PIECES)
@pytest.mark.parametrize("length", [1, 4, 23])
@torch.inference_mode()
def test_a_convolution(size: int, length: int) -> None:
    torch.manual_seed(1)
    convolution, x = nn.Conv1d(3, 4, 7, padding=3), torch.randn(1, 3, length)
    streamed = StreamedConvolution(convolution)
    pieces = [streamed.push(piece) for piece in in_pieces(x, size)]
    assert torch.allclose(torch.cat([*pieces, streamed.finish()], 2), convolution(x), atol=1e-6)


def test_a_convolution_that_changes_the_length_is_refused() -> None:
    with pytest.raises(ValueError, match="keep the length"):
        StreamedConvolution(nn.Conv1d(3, 3, 7))


@pytest.mark.parametrize("size", PIECES)
@pytest.mark.parametrize("length", [1, 10, 31])
@torch.inference_mode()
def test_blocks(size: int, length: int) -> None:
    torch.manual_seed(1)
    blocks, x = nn.Sequential(*(ConvNeXtBlock(6, 8) for _ in range(3))), torch.randn(1, 6, length)
    streamed = StreamedBlocks(blocks)
    pieces = [streamed.push(piece) for piece in in_pieces(x, size)]
    assert torch.allclose(torch.cat([*pieces, streamed.finish()], 2), blocks(x), atol=1e-5)
    assert streamed.reach == 9


@pytest.mark.parametrize("size", PIECES)
@pytest.mark.parametrize("length", [2, 3, 9, 40])
@torch.inference_mode()
def test_the_inverse_transform(size: int, length: int) -> None:
    torch.manual_seed(1)
    transform = InverseTransform(VocosConfig(window=64, hop=16))
    spectrum = torch.randn(1, 33, length, dtype=torch.complex64)
    spectrum[:, [0, -1]] = spectrum[:, [0, -1]].real.to(spectrum.dtype)
    streamed = StreamedOverlapAdd(transform.window, 16)
    pieces = [streamed.push(piece) for piece in in_pieces(spectrum, size)]
    joined = torch.cat([*pieces, streamed.finish()])
    assert len(joined) == (length - 1) * 16
    assert torch.allclose(joined, transform(spectrum)[0], atol=1e-5)


@pytest.fixture(scope="module")
def make_decoder() -> Decoders:
    """Decoders of the bundled model."""
    folder, vocoder = entry("lm-mini").folder, LatentVocoder.load(entry("lm-mini").vocoder_folder)
    coding = NaturalCoding(LmMiniFolder(folder).tokenizer(torch.device("cpu")), vocoder)
    return lambda: GatheringDecoder(coding.stream(NOBODY), coding.device)


def spoken(decoder: TokenDecoder, tokens: list[int], size: int) -> list[np.ndarray]:
    pieces = [decoder.push(tokens[start : start + size]) for start in range(0, len(tokens), size)]
    return [*pieces, decoder.finish()]


@pytest.mark.parametrize(("length", "size"), [(1, 1), (7, 3), (8, 8), (24, 1), (26, 5), (61, 1), (90, 4), (61, 61)])
def test_streamed_tokens_equal_all_at_once(make_decoder: Decoders, length: int, size: int) -> None:
    tokens = np.random.default_rng(length).integers(0, 4096, length).tolist()
    decoder = make_decoder()
    streamed, whole = np.concatenate(spoken(decoder, tokens, size)), decoder.whole(tokens)
    difference = streaming_difference(streamed, whole.samples)
    assert difference.samples == 0
    assert length == 1 or difference.level <= -60, (
        "the pitch is added up over all pieces, in other sums than of the whole"
    )
    assert np.abs(decoder.mel - whole.mel).max() <= 0.05
    assert length == 1 or np.abs(whole.samples).max() > 0.01


def test_audio_comes_long_before_the_last_token(make_decoder: Decoders) -> None:
    pieces = spoken(make_decoder(), [5] * 90, 1)
    first = next(number for number, piece in enumerate(pieces) if len(piece))
    assert first < 35
    assert sum(map(len, pieces[:-1])) > 50 * 2 * HOP


def test_no_token_is_no_audio(make_decoder: Decoders) -> None:
    decoder = make_decoder()
    assert len(decoder.finish()) == 0 == len(decoder.whole([]).samples)


def test_the_difference_of_two_recordings() -> None:
    whole = np.array([0.5, -0.5, 0.5, -0.5], np.float32)
    found = streaming_difference(whole[:3] + np.float32(0.05), whole)
    assert found.samples == 1
    assert found.largest == pytest.approx(0.05, abs=1e-6)
    assert found.level == pytest.approx(-20, abs=0.01)
    assert "-20 dB" in found.sentence
    assert streaming_difference(whole, whole).level == -np.inf
