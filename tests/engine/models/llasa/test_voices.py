"""From a recording to XCodec2's codes, with the encoder that ``transformers`` runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from paretone.audio.recording import read_recording
from paretone.errors import CheckpointError
from paretone.models import catalogue, load_model
from paretone.models.base import Voice
from paretone.models.files.shards import WEIGHTS
from paretone.models.llasa import codec_encoder
from paretone.models.llasa.codec_encoder import VoiceEncoder
from paretone.models.llasa.voices import VoiceReader
from paretone.models.llasa.xcodec2 import CODES
from paretone.paths import data_folder
from paretone.setting.setting import Setting
from paretone.speaking import make_ready, synthesise
from tests.engine.models.llasa.small_release import (
    CONFIG,
    FIRST_CODE,
    TOKENIZER,
    write_converted_codec,
    write_language_model,
    write_recording,
)
from tests.packages import needs

pytestmark = needs("transformers")
HOP = 320


@pytest.fixture(scope="module")
def codec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_converted_codec(tmp_path_factory.mktemp("models") / "xcodec2")


@pytest.fixture
def samples(tmp_path: Path) -> np.ndarray:
    return read_recording(write_recording(tmp_path / "voice.wav", 0.7)).samples


def test_codes_are_those_of_the_official_pipeline(codec: Path, samples: np.ndarray, tmp_path: Path) -> None:
    import transformers

    found = VoiceEncoder(codec, tmp_path / "kept")(samples)
    # Padding and features as in the original release: a whole code of silence where nothing is left over, and
    # w2v-bert's own feature extractor on the recording with half a code of silence on both sides.
    model = transformers.Xcodec2Model.from_pretrained(codec).eval()
    padded = np.pad(samples, (0, HOP - len(samples) % HOP))
    extractor = transformers.SeamlessM4TFeatureExtractor()
    features = extractor(np.pad(padded, (160, 160)), sampling_rate=16000, return_tensors="pt")
    assert features["attention_mask"].all() and features["input_features"].shape == (1, len(padded) // HOP, 160)
    with torch.inference_mode():
        official = model.encode(torch.from_numpy(padded)[None, None], features["input_features"]).audio_codes
    assert found == tuple(official[0, 0].tolist())
    assert len(found) == len(samples) // HOP + 1 and len(set(found)) > 5
    assert max(found) < CODES


def test_a_voice_is_encoded_once(
    codec: Path, samples: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    first = VoiceEncoder(codec, tmp_path)(samples, said.append)
    monkeypatch.setattr(codec_encoder, "load_encoder", lambda shards: pytest.fail("The encoder was loaded again."))
    assert VoiceEncoder(codec, tmp_path)(samples, said.append) == first
    assert said == ["Encoding the voice …"]
    with pytest.raises(pytest.fail.Exception):
        VoiceEncoder(codec, tmp_path)(samples * 0.5)
    for kept in tmp_path.glob("*.npy"):
        kept.write_bytes(b"damaged")
    with pytest.raises(pytest.fail.Exception):
        VoiceEncoder(codec, tmp_path)(samples)


def test_the_encoder_of_several_recordings_is_loaded_once(
    codec: Path, samples: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[object] = []
    load = codec_encoder.load_encoder
    monkeypatch.setattr(codec_encoder, "load_encoder", lambda shards: loaded.append(load(shards)) or loaded[-1])
    alone = [VoiceEncoder(codec, tmp_path / "alone")(one) for one in (samples, samples[:8000])]
    assert len(loaded) == 2
    encoder = VoiceEncoder(codec, tmp_path / "several", several=True)
    assert [encoder(one) for one in (samples, samples[:8000])] == alone
    assert len(loaded) == 3
    encoder.rest()
    encoder(samples * 0.5)
    assert len(loaded) == 4


def test_the_encoder_is_read_strictly(codec: Path, samples: np.ndarray, tmp_path: Path) -> None:
    weights = load_file(codec / WEIGHTS)
    (tmp_path / "config.json").write_bytes((codec / "config.json").read_bytes())
    lacking = {name: value for name, value in weights.items() if name != "acoustic_encoder.conv2.bias"}
    save_file(lacking, tmp_path / WEIGHTS, metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"these weights are missing: acoustic_encoder\.conv2\.bias"):
        VoiceEncoder(tmp_path, tmp_path)(samples)
    save_file(weights | {"tail.bias": torch.zeros(2)}, tmp_path / WEIGHTS, metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"these weights are unknown: tail\.bias"):
        VoiceEncoder(tmp_path, tmp_path)(samples)


def test_a_missing_package_is_named(
    codec: Path, samples: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transformers

    monkeypatch.setattr(transformers, "Xcodec2Model", None)
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(CheckpointError, match=r"transformers, 5\.13 or later.*pip install 'paretone\[llasa\]"):
        VoiceEncoder(codec, tmp_path)(samples)


def test_a_transcript_that_does_not_fit_is_noted(codec: Path, tmp_path: Path) -> None:
    audio = write_recording(tmp_path / "voice.wav", 1.0)

    def notes(transcript: str) -> str:
        return " ".join(reader(Voice("own", "Own", str(audio), transcript)).notes)

    reader = VoiceReader(VoiceEncoder(codec, tmp_path), CODES)
    assert "is too" not in notes("Sixteen letters.")
    assert "The transcript of voice.wav is too long for its 1.0 s" in notes("Far too many words. " * 5)
    assert "is too short" in notes("Hm.")
    assert len(reader(Voice("own", "Own", str(audio), "Far too many words. " * 5)).notes) == 1, "once"


def test_codes_that_the_language_model_lacks_are_refused(codec: Path, tmp_path: Path) -> None:
    reader = VoiceReader(VoiceEncoder(codec, tmp_path), 96)
    audio = write_recording(tmp_path / "voice.wav", 0.7)
    with pytest.raises(CheckpointError, match="the language model knows 96 of them: they do not belong together"):
        reader(Voice("own", "Own", str(audio), "It says this."))


def with_all_codes(folder: Path) -> Path:
    """The small release with as many codes as XCodec2 has."""
    write_language_model(folder)
    content = json.loads(TOKENIZER.read_text(encoding="utf-8"))
    like = content["added_tokens"][-1]
    kept = [one for one in content["added_tokens"] if one["id"] < FIRST_CODE]
    codes = [like | {"id": FIRST_CODE + code, "content": f"<|s_{code}|>"} for code in range(CODES)]
    (folder / "tokenizer.json").write_text(json.dumps(content | {"added_tokens": kept + codes}))
    weights = load_file(folder / WEIGHTS)
    more = torch.randn(FIRST_CODE + CODES, CONFIG["hidden_size"]) * 0.3
    save_file(weights | {"model.embed_tokens.weight": more.bfloat16()}, folder / WEIGHTS)
    (folder / "config.json").write_text(json.dumps(CONFIG | {"vocab_size": len(more)}))
    return folder


@pytest.mark.slow
def test_it_continues_a_voice(codec: Path, tmp_path: Path) -> None:
    (tmp_path / "xcodec2").symlink_to(codec)
    model = load_model("Llasa-1B", folder=str(with_all_codes(tmp_path / "Llasa-1B")), device="cpu")
    options = catalogue.entry("Llasa-1B").options_with(stream_codes=20)
    voice = Voice("own", "Own", str(write_recording(tmp_path / "own.wav", 1.5)), "It says just this.")
    make_ready(model, Setting("Llasa-1B", options), voice)
    assert len(list((data_folder() / "cache" / "xcodec2").glob("*.npy"))) == 1

    def speak(who: Voice, **changes: object) -> tuple[np.ndarray, int]:
        setting = Setting("Llasa-1B", options.replace(**changes), seed=1)
        spoken = synthesise(model, "A short sentence.", who, setting)
        return spoken.samples, spoken.measurements.tokens

    samples, tokens = speak(voice)
    assert len(samples) == tokens * HOP > 20 * HOP  # Nothing of the reference is heard.
    alone, _ = speak(voice, clone=False)
    assert not np.array_equal(samples[:HOP], alone[:HOP])
    shipped = catalogue.voice("", "Llasa-1B")
    assert len(speak(shipped)[0]) > 0
