"""The bundled masked model's additions to its family, on a small one with its layout, voices and vocoder."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from paretone.errors import CheckpointError
from paretone.models import load_model
from paretone.models.catalogue import entry, voice
from paretone.models.minis.natural_decoder import HOP, LATENT
from paretone.models.minis.natural_vocoder import LatentVocoder
from paretone.models.minis.omni_mini import Layout, OmniMiniFolder, OmniMiniSpeech, ResidualGridDecoder
from paretone.models.minis.speaking import NOBODY, NaturalCoding
from paretone.models.networks.quantised_mel import ResidualCodec, ResidualCodecConfig, read_quantised_mel
from tests.engine.awake import awake
from tests.engine.small_language import write_codec
from tests.engine.small_omni_mini import CODEC, LAYOUT, write_model
from tests.parity.fixtures import SHIPPED
from tests.tools.recipes.natural_codecs import CODEC as SHIPPED_CODEC

LAYER = re.compile(r"llm\.layers\.(\d+)\.")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("masked") / "model")


@pytest.fixture(scope="module")
def model(root: Path) -> OmniMiniSpeech:
    return load_model("omni-mini", folder=str(root), device="cpu")


def test_a_frame_stands_where_its_phones_do(model: OmniMiniSpeech) -> None:
    speaker, options = voice("", "omni-mini"), entry("omni-mini").options_with(steps=4)
    prompt = model.prompt(speaker, options, lambda: None)
    (passage,) = model.passages("Rice is often served.", speaker, prompt, options).passages
    request = model.request(passage, prompt, options)
    frames = request.reference.shape[1] + request.frames
    assert len(request.text) == frames
    assert request.positions.tolist() == [*range(frames), *range(frames)]


@pytest.mark.parametrize(
    ("file", "change", "problem"),
    [
        ("layout.json", {"text_tokens": 1600}, "1600 text tokens of 2 phones, where 99 phones make 9801"),
        ("config.json", {"model_type": "qwen3"}, "only 'omnivoice' is supported"),
        ("codec/config.json", {"strides": 4}, "has an unknown entry 'strides'"),
    ],
)
def test_a_folder_with_a_mistake_is_refused(tmp_path: Path, file: str, change: dict[str, object], problem: str) -> None:
    folder = write_model(tmp_path / "model")
    (folder / file).write_text(json.dumps({**json.loads((folder / file).read_text()), **change}))
    with pytest.raises(CheckpointError, match=problem):
        load_model("omni-mini", folder=str(folder), device="cpu")


def test_a_codec_of_another_model_is_refused(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    write_codec(folder / "codec", awake(ResidualCodec(replace(CODEC, codebooks=2))))
    with pytest.raises(CheckpointError, match="has 2 codebooks of 12 codes, but the model speaks 3 of 12"):
        load_model("omni-mini", folder=str(folder), device="cpu")


def test_the_bundled_weights_have_the_names_of_the_release() -> None:
    released = json.loads((SHIPPED / "keys" / "OmniVoice.json").read_text(encoding="utf-8"))["tensors"]
    folder = OmniMiniFolder(entry("omni-mini").folder)
    with safe_open(folder.weights_path, framework="pt") as file:
        ours = set(file.keys())
    layers = range(folder.config().transformer.layers)
    assert ours == {name for name in released if not (found := LAYER.match(name)) or int(found[1]) in layers}
    assert sum(file.stat().st_size for file in folder.root.rglob("*") if file.is_file()) < 30e6
    assert folder.codec().config == SHIPPED_CODEC


def test_text_tokens_name_the_phones_of_both_halves() -> None:
    layout = Layout(LAYOUT.vocabulary)
    frames = np.array([1, 1, 1, 2, 2, 3, 3, 3, 4])
    assert layout.text(frames, 4).tolist() == [1 * 99 + 2, 3 * 99 + 3]
    assert layout.text(frames[:3], 4).tolist() == []


@pytest.fixture(scope="module")
def codec() -> ResidualCodec:
    torch.manual_seed(4)
    codec = ResidualCodec(ResidualCodecConfig(bands=LATENT)).eval()
    codec.quantiser.codebooks.normal_()
    return codec


@torch.inference_mode()
def test_the_first_sound_comes_within_a_second_of_codes(codec: ResidualCodec) -> None:
    coding = NaturalCoding(codec, LatentVocoder.load(entry("omni-mini").vocoder_folder))
    codes, streamed = torch.randint(128, (8, 20)), ResidualGridDecoder(coding.stream(NOBODY), 8, torch.device("cpu"))
    pieces = [streamed.push(frame) for frame in codes.split(1, dim=1)]
    assert len(pieces[0]) == 0
    assert len(pieces[-1]) == 4 * HOP


def test_codes_are_the_nearest_entries_one_residual_after_another(codec: ResidualCodec) -> None:
    left = torch.randn(1, 6, 24)
    codes = codec.quantiser.codes(left)
    for number, codebook in enumerate(codec.quantiser.codebooks):
        assert torch.equal(codes[0, :, number], (left[0, :, None] - codebook).norm(dim=-1).argmin(1))
        left = left - codebook[codes[..., number]]


def test_a_codec_is_read_as_it_was_written(tmp_path: Path) -> None:
    codec = awake(ResidualCodec(CODEC))
    write_codec(tmp_path, codec)
    loaded = read_quantised_mel(tmp_path, ResidualCodec)
    assert loaded.config == CODEC
    assert all(torch.equal(value, codec.state_dict()[name]) for name, value in loaded.state_dict().items())
