"""Publication-grade judges on networks of a few weights. Their published weights cannot be had here: what is tested is
that files in the published layout are read strictly, and that what is computed is what the definitions say."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch

from paretone.errors import AudioError, CheckpointError, PlainError, SettingError
from paretone.measure.evaluation import published
from paretone.measure.evaluation.judges import JUDGES, WordJudge, judge_named
from paretone.measure.evaluation.transcripts import CHINESE, SEED_TTS_EN, counted, normaliser_of
from paretone.measure.metrics import METRICS, metric
from paretone.models.base import Voice

RATE = 24_000
SMALL: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
SMALL |= {"conv_dim": (16, 16), "conv_kernel": (10, 8), "conv_stride": (5, 4), "num_feat_extract_layers": 2}
SMALL |= {"num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}
SMALL |= {"num_buckets": 32, "max_bucket_distance": 80}
WAVLM = {**SMALL, "feat_extract_norm": "layer", "do_stable_layer_norm": True}
HEAD = {"channels": 16, "pooled": 24, "size": 8}
LISTENER = {"listener": 4, "hidden": 8, "projected": 12}


def spelt_as_published(weights: dict[str, torch.Tensor], inner: str, prefix: str, norm: str) -> dict[str, torch.Tensor]:
    """The weights of a small network under the names that its checkpoint would have."""
    spelt = {
        "feature_projection.layer_norm": "layer_norm",
        "feature_projection.projection": "post_extract_proj",
        "pos_conv_embed.conv.parametrizations.weight.original0": "pos_conv.0.weight_g",
        "pos_conv_embed.conv.parametrizations.weight.original1": "pos_conv.0.weight_v",
        "pos_conv_embed.conv": "pos_conv.0",
        "attention.rel_attn_embed": "self_attn.relative_attention_bias",
        "attention.gru_rel_pos_const": "self_attn.grep_a",
        "attention.gru_rel_pos_linear": "self_attn.grep_linear",
        ".attention.": ".self_attn.",
        "feed_forward.intermediate_dense": "fc1",
        "feed_forward.output_dense": "fc2",
        "masked_spec_embed": "mask_emb",
    }
    found = {}
    for name, value in weights.items():
        if not name.startswith(inner):
            found[name] = value
            continue
        short = name[len(inner) :]
        for ours, theirs in spelt.items():
            short = short.replace(ours, theirs)
        parts = short.split(".")
        if parts[0] == "encoder" and parts[1] == "layers" and parts[3] == "layer_norm":
            parts[3] = "self_attn_layer_norm"
        if parts[0] == "feature_extractor":
            parts[3] = {"conv": "0", "layer_norm": norm}[parts[3]]
        found[prefix + ".".join(parts)] = value
    return found


def noise(seconds: float = 1.0, seed: int = 0) -> np.ndarray:
    return (0.1 * np.random.default_rng(seed).standard_normal(round(seconds * RATE))).astype(np.float32)


def randomised(network: torch.nn.Module) -> torch.nn.Module:
    """Buffers too, so that running statistics count."""
    torch.manual_seed(0)
    for value in (*network.parameters(), *network.buffers()):
        if value.is_floating_point():
            value.data = torch.rand_like(value) * 0.2 + 0.05
    return network.eval()


Speakers = tuple[published.SpeakerNetwork, Path]


@pytest.fixture
def speakers(tmp_path: Path) -> Speakers:
    network = randomised(published.SpeakerNetwork(WAVLM, **HEAD))
    weights = spelt_as_published(network.state_dict(), "wavlm.", "feature_extract.model.", "2.1")
    weights["loss_calculator.projection.weight"] = torch.zeros(5994, 8)
    path = tmp_path / published.SPEAKER_FILE
    torch.save({"model": weights}, path)
    return network, path


def test_the_speaker_network_is_read_from_the_published_layout(speakers: Speakers) -> None:
    network, path = speakers
    read = published.read_speaker_network(path, WAVLM, **HEAD)
    samples = torch.randn(1, 8000)
    with torch.inference_mode():
        assert torch.equal(read(samples), network(samples))
    names = set(torch.load(path, weights_only=True)["model"])
    assert "feature_extract.model.encoder.layers.1.self_attn.grep_a" in names
    assert "layer2.Res2Conv1dReluBn.bns.6.running_mean" in names
    assert "layer3.SE_Connect.linear2.bias" in names


def test_the_speaker_network_weighs_what_s3prl_hands_over() -> None:
    """The input of every layer, then the output after the last norm: s3prl's hooks collect these, and UniSpeech's
    weights were trained on them. The sound is brought to zero mean and unit variance first."""
    network = randomised(published.SpeakerNetwork(WAVLM, **HEAD))
    samples = torch.randn(1, 8000)
    layers, seen = network.wavlm.encoder.layers, []
    hooks = [one.register_forward_pre_hook(lambda _, given: seen.append(given[0])) for one in layers]
    hooks.append(network.wavlm.encoder.layer_norm.register_forward_hook(lambda _, given, made: seen.append(made)))
    weighed: list[torch.Tensor] = []
    hooks.append(network.layer1.register_forward_pre_hook(lambda _, given: weighed.append(given[0])))
    with torch.inference_mode():
        embedded = network(samples)
        for hook in hooks:
            hook.remove()
        assert len(seen) == WAVLM["num_hidden_layers"] + 1 == len(network.feature_weight)
        shares = torch.softmax(network.feature_weight, 0)
        expected = sum(share * state for share, state in zip(shares, seen, strict=True)).transpose(1, 2) + 1e-6
        assert torch.allclose(weighed[0], torch.nn.functional.instance_norm(expected), atol=1e-4)
        assert torch.allclose(embedded, network(5 * samples + 1), rtol=1e-4)


def test_speaker_weights_are_read_strictly(speakers: Speakers) -> None:
    _, path = speakers
    weights = torch.load(path, weights_only=True)["model"]
    torch.save({"model": {name: value for name, value in weights.items() if name != "linear.bias"}}, path)
    with pytest.raises(CheckpointError, match=r"linear\.bias"):
        published.read_speaker_network(path, WAVLM, **HEAD)
    torch.save({"model": {**weights, "feature_extract.model.quantizer.vars": torch.zeros(1)}}, path)
    with pytest.raises(CheckpointError, match=r"a weight that is not in WavLM: quantizer\.vars"):
        published.read_speaker_network(path, WAVLM, **HEAD)
    path.write_bytes(b"")
    with pytest.raises(CheckpointError, match="is empty"):
        published.read_speaker_network(path, WAVLM, **HEAD)


def test_similarity_is_the_cosine_to_the_voices_own_recording(speakers: Speakers, tmp_path: Path) -> None:
    judge = published.SimilarityJudge(speakers[0], "cpu")
    soundfile.write(tmp_path / "voice.wav", noise(seed=1), RATE, subtype="FLOAT")
    voice = Voice("v", "V", str(tmp_path / "voice.wav"), "")
    same = judge.hear("text", voice, noise(seed=1), RATE).figures["similarity"]
    other = judge.hear("text", voice, 3 * noise(seed=2)[:9000], RATE).figures["similarity"]
    assert same == pytest.approx(1.0, abs=1e-5)
    assert -1 <= other < same
    with pytest.raises(AudioError, match="There is no recording"):
        judge.hear("text", Voice("w", "W", str(tmp_path / "nowhere.wav"), ""), noise(), RATE)


def test_naturalness_is_read_from_the_published_layout(tmp_path: Path) -> None:
    network = randomised(published.UtmosNetwork(SMALL, **LISTENER))
    weights = spelt_as_published(network.state_dict(), "wav2vec2.", "wav2vec2.", "2")
    weights.setdefault("wav2vec2.mask_emb", torch.zeros(32))
    path = tmp_path / published.UTMOS_FILE
    torch.save(weights, path)
    assert "wav2vec2.encoder.layers.0.self_attn_layer_norm.weight" in weights
    read = published.read_utmos_network(path, SMALL, **LISTENER)
    judge = published.UtmosJudge(read, "cpu")
    assert np.isfinite(judge.hear("text", Voice("v", "V", "", ""), noise(), RATE).figures["utmos"])
    # A head that says 0.25 at every frame means 3.5.
    with torch.no_grad():
        read.projection[2].weight.zero_()
        read.projection[2].bias.fill_(0.25)
    assert judge.hear("text", Voice("v", "V", "", ""), noise(), RATE).figures["utmos"] == pytest.approx(3.5)
    torch.save({name: value for name, value in weights.items() if "blstm" not in name}, path)
    with pytest.raises(CheckpointError, match="blstm"):
        published.read_utmos_network(path, SMALL, **LISTENER)


def test_the_large_network_has_the_published_shapes() -> None:
    """As far as they are known without the file: without drawing a billion numbers."""
    with torch.device("meta"):
        large = published.SpeakerNetwork(published.LARGE)
    shapes = {name: tuple(value.shape) for name, value in large.state_dict().items()}
    assert shapes["feature_weight"] == (25,)
    assert shapes["layer1.conv.weight"] == (512, 1024, 5)
    assert shapes["linear.bias"] == (256,)
    assert shapes["wavlm.encoder.layers.0.attention.rel_attn_embed.weight"] == (320, 16)
    assert shapes["wavlm.encoder.layers.0.attention.gru_rel_pos_linear.weight"] == (8, 64)
    assert shapes["wavlm.encoder.pos_conv_embed.conv.parametrizations.weight.original1"] == (1024, 64, 128)
    assert sum(name.startswith("wavlm.encoder.layers.") and name.endswith("fc1.weight") for name in shapes) == 0
    with torch.device("meta"):
        natural = published.UtmosNetwork({})
    assert tuple(natural.blstm.weight_ih_l0.shape) == (2048, 1024)


# --- Whisper ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's 5 o'clock, isn't it?", "it's 5 o'clock isn't it"),
        ("Mother-in-law.", "motherinlaw"),
        ("你好，世界。", "你好世界"),
    ],
)
def test_texts_are_normalised_as_seed_tts_does(text: str, expected: str) -> None:
    assert SEED_TTS_EN.apply(text) == expected


@pytest.mark.parametrize(
    ("text", "alike"),
    [
        ("今天是2024年5月10日。", "今天是二零二四年五月十日"),
        ("一共１２个，占35%！", "一共十二个占百分之三十五"),
        ("漢字", "汉字"),
        ("3.14", "三点一四"),
        ("100000008", "一亿零八"),
        ("0571", "零五七一"),
        ("OK 吗？", "ok吗"),
    ],
)
def test_chinese_is_normalised_alike_on_both_sides(text: str, alike: str) -> None:
    pytest.importorskip("zhconv")
    assert CHINESE.apply(text) == CHINESE.apply(alike)
    assert "".join(CHINESE.apply(alike).split()).replace("两", "二") == alike.replace("两", "二"), "spoken forms stay"


def test_chinese_is_judged_by_characters() -> None:
    pytest.importorskip("zhconv")
    verdict = counted("whisper", "今天天气很好。", "今天天汽好")
    assert verdict.figures == {"character_edits": 2.0, "characters": 6.0}
    values = {name: metric(name).verdict(verdict.figures) for name in judge_named("whisper").metrics}
    assert values["whisper_character_error_rate"] == pytest.approx(1 / 3)
    assert values["whisper_word_error_rate"] is None and values["whisper_failed_takes"] == 0.0
    assert counted("whisper", "Five words.", "Five").figures == {"edits": 1.0, "words": 2.0}
    assert normaliser_of("Today", "words").id == "paretone-words 1"
    assert normaliser_of("今天").id == "paretone-zh 1" and normaliser_of("Today").id == "seed-tts-eval-en 1"


@pytest.mark.filterwarnings("ignore")  # librosa's, on import
@pytest.mark.parametrize("seconds", [2.0, 11.5])
def test_dnsmos_scores_as_its_package_does(seconds: float) -> None:
    pytest.importorskip("onnxruntime")
    package = pytest.importorskip("speechmos.dnsmos")
    times = np.arange(round(seconds * 16_000)) / 16_000
    voiced = sum(np.sin(2 * np.pi * 140 * k * times) / k for k in range(1, 20)) * (np.sin(6 * times) > 0)
    heard = (0.1 * voiced + 0.003 * np.random.default_rng(0).standard_normal(len(times))).astype(np.float32)
    found = judge_named("dnsmos").ready([]).hear("", Voice("v", "V", "", ""), heard, 16_000).figures
    theirs = package.run(heard, 16_000)
    names = {"overall": "ovrl_mos", "signal": "sig_mos", "background": "bak_mos", "p808": "p808_mos"}
    assert found == pytest.approx({one: float(theirs[other]) for one, other in names.items()}, abs=1e-3)


@pytest.fixture(scope="module")
def tiny_whisper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Whisper of a few thousand random weights, with a byte-level vocabulary and the special tokens that it takes."""
    import transformers
    from tokenizers import pre_tokenizers

    folder = tmp_path_factory.mktemp("whisper")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>"]
    vocabulary = {letter: number for number, letter in enumerate([*letters, *special])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    tokenizer = transformers.WhisperTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
    tokenizer.add_special_tokens({"additional_special_tokens": special[1:]})
    tokenizer.save_pretrained(folder)
    transformers.WhisperFeatureExtractor(feature_size=16).save_pretrained(folder)
    end, start, english, transcribe, plain = (vocabulary[one] for one in special)
    ends = {"eos_token_id": end, "pad_token_id": end, "decoder_start_token_id": start}
    widths = dict.fromkeys(("num_mel_bins", "d_model", "encoder_ffn_dim", "decoder_ffn_dim"), 16)
    config = transformers.WhisperConfig(
        vocab_size=len(vocabulary),
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        max_target_positions=24,
        bos_token_id=end,
        **widths,
        **ends,
    )
    torch.manual_seed(0)
    model = transformers.WhisperForConditionalGeneration(config)
    model.generation_config = transformers.GenerationConfig(
        is_multilingual=True,
        lang_to_id={"<|en|>": english},
        task_to_id={"transcribe": transcribe},
        no_timestamps_token_id=plain,
        max_length=12,
        **ends,
    )
    model.save_pretrained(folder)
    return folder


def test_whisper_is_loaded_and_heard(tiny_whisper: Path) -> None:
    judge = published.WhisperJudge(["One."], tiny_whisper, "cpu")
    verdict = judge.hear("One, two.", Voice("v", "V", "", ""), noise(), RATE)
    assert (verdict.judge, verdict.figures["words"]) == ("whisper", 2.0) and verdict.figures["edits"] >= 1
    with pytest.raises(AudioError, match="Whisper hears 30 s at once"):
        judge.hear("One.", Voice("v", "V", "", ""), np.zeros(31 * RATE, np.float32), RATE)


# --- All of them ------------------------------------------------------------------------------------------------------
def test_judges_say_what_they_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    for one in JUDGES:
        assert judge_named(one.name) is one
        assert all(metric(name) in METRICS for name in one.metrics)
        assert one.metrics
        if one.files and all(map(find_spec, one.packages)):
            assert one.files[0] in one.problem() and str(one.folder) in one.problem()
            with pytest.raises(PlainError, match="lacks"):
                one.ready(["One."])
    monkeypatch.setattr("paretone.measure.evaluation.judges.find_spec", lambda name: None)
    assert JUDGES[0].problem().endswith("run: pip install 'paretone[judge]'")
    assert judge_named("naturalness").problem().endswith("run: pip install --no-deps distillmos==0.9.1")
    assert judge_named("melody").problem() == ""
    with pytest.raises(SettingError, match="There is no judge named 'ear'"):
        judge_named("ear")


def test_a_judge_in_its_folder_is_ready(tmp_path: Path, tiny_whisper: Path) -> None:
    kind = judge_named("whisper")
    kind.folder.mkdir(parents=True)
    for path in tiny_whisper.iterdir():
        (kind.folder / path.name).write_bytes(path.read_bytes())
    assert kind.problem() == ""
    assert isinstance(kind.ready([]), published.WhisperJudge)


def test_the_offline_judge_hears_silence_as_nothing() -> None:
    verdict = WordJudge(["One two three."]).hear("One two three.", Voice("v", "V", "", ""), 0.001 * noise(), RATE)
    assert verdict.figures["words"] == 3.0 and verdict.figures["edits"] >= 1
