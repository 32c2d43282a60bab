"""The codec: speech as codes, and voices from recordings."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional

from paretone.audio.recording import read_recording
from paretone.errors import CheckpointError
from paretone.models import catalogue, load_model
from paretone.models.base import Voice
from paretone.models.files.checkpoints import WEIGHTS
from paretone.models.llasa import voices
from paretone.models.llasa.checkpoint import load_decoder
from paretone.models.llasa.voices import VoiceEncoder
from paretone.models.llasa.xcodec2 import (
    DIMENSIONS,
    FADE_CODES,
    LEVELS,
    REACH,
    CodecAttention,
    Window,
    WindowedDecoder,
    XCodec2Config,
    XCodec2Decoder,
)
from paretone.paths import data_folder
from paretone.setting.setting import Setting
from paretone.speaking import make_ready, synthesise
from tests.engine.models.llasa.small_release import (
    CONFIG,
    FIRST_CODE,
    TOKENIZER,
    write_converted_codec,
    write_language_model,
    write_original_codec,
)
from tests.engine.models.official import write_noise
from tests.packages import needs

pytestmark = needs("transformers")
HOP = 320
CODES = LEVELS**DIMENSIONS


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> XCodec2Decoder:
    return load_decoder(write_original_codec(tmp_path_factory.mktemp("models") / "xcodec2"))


def some_codes(count: int, seed: int = 0) -> list[int]:
    return np.random.default_rng(seed).integers(0, CODES, count).tolist()


def rotated_attention(attention: CodecAttention, x: Tensor) -> Tensor:
    """As in the official package: rotary embedding of the axis that is the heads', not time's."""
    query, key, value = attention.c_attn(x).unflatten(2, (3, attention.heads, -1)).permute(2, 0, 3, 1, 4)
    width = query.shape[-1]
    angles = torch.outer(torch.arange(attention.heads).float(), 10000.0 ** -(torch.arange(0, width, 2) / width))
    turns = torch.polar(torch.ones_like(angles), angles)[:, None]

    def turned(rows: Tensor) -> Tensor:
        pairs = torch.view_as_complex(rows.unflatten(3, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * turns).flatten(3)

    mixed = functional.scaled_dot_product_attention(turned(query), turned(key), value)
    return attention.c_proj(mixed.transpose(1, 2).flatten(2))


def test_the_rotary_embedding_that_is_left_out_does_nothing() -> None:
    torch.manual_seed(0)
    attention = CodecAttention(64, 4)
    x = torch.randn(2, 30, 64)
    assert (rotated_attention(attention, x) - attention(x)).abs().max() < 1e-6


def test_all_of_the_converted_release_decodes_as_transformers_does(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    folder = write_converted_codec(tmp_path / "xcodec2")
    official = transformers.Xcodec2Model.from_pretrained(folder).eval()
    codes = torch.tensor([some_codes(40), some_codes(40, 1)])
    with torch.inference_mode():
        expected = official.decode(audio_codes=codes[:, None]).audio_values[:, 0]
    found = load_decoder(folder).decode(codes)
    assert expected.abs().max() > 0.01
    assert (found - expected).abs().max() < 1e-6 * max(1, expected.abs().max().item())


def test_a_code_reaches_no_further_by_convolutions_than_is_said() -> None:
    config = XCodec2Config(width=32, latent=8, layers=0, heads=1, feed_forward=8)
    torch.manual_seed(0)
    decoder = XCodec2Decoder(config)
    for module in decoder.modules():  # Without what looks at the whole clip, only the reach of convolutions is left.
        for name, child in list(module.named_children()):
            if isinstance(child, torch.nn.GroupNorm):
                setattr(module, name, torch.nn.Identity())
    codes = torch.tensor([some_codes(60)])
    other = codes.clone()
    other[0, 30] = (other[0, 30] + 4321) % CODES
    changed = (decoder.decode(codes) != decoder.decode(other))[0].nonzero()[:, 0] // HOP
    assert changed.min() == 30 - REACH and changed.max() == 30 + REACH


# --- Reading ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("generator.backbone.embed.bias", None, r"1 weight missing: generator\.backbone\.embed\.bias"),
        ("fc_post_a.bias", torch.zeros(3), r"fc_post_a\.bias is 3 instead of 64"),
        ("generator.tail", torch.zeros(3), r"unexpected: generator\.tail"),
        ("decoder.bias", torch.zeros(3), r"is not XCodec2: it holds decoder\.bias"),
        ("fc_post_a.weight", None, r"lacks the weight fc_post_a\.weight"),
        ("fc_post_a.bias", torch.full((64,), torch.nan), r"values that are not numbers in fc_post_a\.bias"),
    ],
)
def test_it_is_strict_about_names_and_shapes(tmp_path: Path, name: str, value: Tensor | None, words: str) -> None:
    path = write_original_codec(tmp_path) / WEIGHTS
    weights = load_file(path) | {name: value}
    save_file({name: one for name, one in weights.items() if one is not None}, path)
    with pytest.raises(CheckpointError, match=words):
        load_decoder(tmp_path)
    with pytest.raises(CheckpointError, match="is missing: LLaSA's speech is decoded by XCodec2"):
        load_decoder(tmp_path / "nowhere")


def test_the_converted_release_lacks_nothing(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    folder = write_converted_codec(tmp_path / "xcodec2")
    path = folder / WEIGHTS
    weights = load_file(path)
    whole = dict(weights)
    del weights["acoustic_decoder.layers.1.self_attn.k_proj.weight"]
    save_file(weights, path)
    with pytest.raises(CheckpointError, match=r"lacks k_proj, which belongs next to .*transformers\.1\.att\.c_attn"):
        load_decoder(folder)
    save_file(whole, path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_attention_heads": "four"}))
    with pytest.raises(CheckpointError, match="num_attention_heads should be a positive whole number, not 'four'"):
        load_decoder(folder)


# --- Streaming -------------------------------------------------------------------------------------------------------
def streamed(decoder: XCodec2Decoder, codes: list[int], pieces: list[int], **how: object) -> np.ndarray:
    windows = WindowedDecoder(decoder, **how)
    audio = [windows.push(piece.tolist()) for piece in torch.tensor(codes).split(pieces)]
    return np.concatenate([*audio, windows.finish()])


def test_what_is_heard_does_not_depend_on_how_codes_come_in(decoder: XCodec2Decoder) -> None:
    codes = some_codes(150)
    at_once = streamed(decoder, codes, [150])
    assert len(at_once) == 150 * HOP
    for pieces in ([1] * 150, [64, 1, 85]):
        assert np.array_equal(streamed(decoder, codes, pieces), at_once)


def test_a_window_is_decoded_once_its_codes_and_those_after_it_are_there(decoder: XCodec2Decoder) -> None:
    windows = WindowedDecoder(decoder, window=Window(20, 40, first=10))
    assert len(windows.push(some_codes(10 + REACH - 1))) == 0
    assert len(windows.push([5])) == 10 * HOP
    assert len(windows.push(some_codes(19))) == 0
    assert len(windows.push([5])) == 20 * HOP
    assert len(windows.push(some_codes(20))) == 20 * HOP
    assert len(windows.finish()) == REACH * HOP
    assert len(windows.finish()) == 0


def test_speech_of_one_window_is_what_is_decoded_at_once(decoder: XCodec2Decoder) -> None:
    codes, reference = some_codes(30), some_codes(25, 3)
    windows = WindowedDecoder(decoder, reference)
    assert np.array_equal(streamed(decoder, codes, [30], reference=reference), windows.whole(codes).samples)
    assert len(windows.whole(codes).samples) == 30 * HOP
    plain = WindowedDecoder(decoder).whole(codes).samples
    assert np.abs(plain - windows.whole(codes).samples).max() > 1e-4  # The reference is heard in what follows it.


def test_windows_fade_into_one_another(decoder: XCodec2Decoder) -> None:
    codes, fade = some_codes(100), FADE_CODES * HOP
    windows = WindowedDecoder(decoder, window=Window(40, 40, first=40))
    assert len(windows.push(codes[:60])) == 40 * HOP
    before = decoder.decode(torch.tensor([codes[: 40 + REACH]])).numpy()[0, 40 * HOP :]
    after = decoder.decode(torch.tensor([codes[: 80 + REACH]])).numpy()[0, 40 * HOP : 80 * HOP]
    found = windows.push(codes[60:])
    assert FADE_CODES < REACH and found[0] == before[0]
    assert np.array_equal(found[fade:], after[fade:])
    middle = slice(fade // 2 - 1, fade // 2 + 1)
    assert found[middle] == pytest.approx((before[middle] + after[middle]) / 2, abs=0.01)


@pytest.fixture(scope="module")
def codec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_converted_codec(tmp_path_factory.mktemp("models") / "xcodec2")


@pytest.fixture
def samples(tmp_path: Path) -> np.ndarray:
    return read_recording(write_noise(tmp_path / "voice.wav", 0.7, 16000)).samples


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
    monkeypatch.setattr(voices, "load_encoder", lambda shards: pytest.fail("The encoder was loaded again."))
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
    load = voices.load_encoder
    monkeypatch.setattr(voices, "load_encoder", lambda shards: loaded.append(load(shards)) or loaded[-1])
    encoder = VoiceEncoder(codec, tmp_path / "several", several=True)
    assert encoder(samples) != encoder(samples[:8000])
    assert len(loaded) == 1


def test_the_encoder_is_read_strictly(codec: Path, samples: np.ndarray, tmp_path: Path) -> None:
    weights = load_file(codec / WEIGHTS)
    (tmp_path / "config.json").write_bytes((codec / "config.json").read_bytes())
    lacking = {name: value for name, value in weights.items() if name != "acoustic_encoder.conv2.bias"}
    save_file(lacking, tmp_path / WEIGHTS, metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"these weights are missing: acoustic_encoder\.conv2\.bias"):
        VoiceEncoder(tmp_path, tmp_path)(samples)


def test_it_continues_a_voice(codec: Path, tmp_path: Path) -> None:
    """The model is the small release with as many codes as XCodec2 has."""
    (tmp_path / "xcodec2").symlink_to(codec)
    folder = tmp_path / "Llasa-1B"
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
    model = load_model("Llasa-1B", folder=str(folder), device="cpu")
    options = catalogue.entry("Llasa-1B").options_with(stream_codes=20)
    voice = Voice("own", "Own", str(write_noise(tmp_path / "own.wav", 1.5, 16000)), "It says just this.")
    make_ready(model, Setting("Llasa-1B", options), voice)
    assert len(list((data_folder() / "cache" / "xcodec2").glob("*.npy"))) == 1

    def speak(who: Voice, **changes: object) -> tuple[np.ndarray, int]:
        setting = Setting("Llasa-1B", options.replace(**changes), seed=1)
        spoken = synthesise(model, "A short sentence.", who, setting)
        return spoken.samples, spoken.measurements.tokens

    samples, tokens = speak(voice)
    assert len(samples) == tokens * HOP > 20 * HOP  # Nothing of the reference is heard.
