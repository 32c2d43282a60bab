"""The release as the engine uses it, from the folder to audio.

Sizes are small and weights are random: what it says is noise, but every step is real.
"""

import hashlib
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from paretone.errors import AudioError, CheckpointError, TextError
from paretone.models import catalogue
from paretone.models.base import DraftWeights, StudentWeights, Synthesis, Voice
from paretone.models.families.language_network import LanguageNetwork, drafting
from paretone.models.families.passages import TokenPassage
from paretone.models.families.voices import spoken_bytes
from paretone.models.files.checkpoints import WEIGHTS
from paretone.models.files.releases import INDEX
from paretone.models.llasa import adapter
from paretone.models.llasa.adapter import LlasaSpeech
from paretone.models.llasa.checkpoint import EMBEDDING, HEAD, TEXTS, LlasaFolder, optimised
from paretone.models.llasa.config import FIRST_CODES
from paretone.models.llasa.tokenizer import LlasaTokenizer, code_token, rendered
from paretone.models.llasa.voices import LlasaPrompt
from paretone.models.llasa.xcodec2 import Window
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from paretone.sampling.tokens import Nucleus, TokenSampler
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import make_ready, synthesise
from tests.engine.models import official
from tests.engine.models.llasa.small_release import (
    CODES,
    CONFIG,
    END,
    FIRST_CODE,
    LOCAL,
    ROWS,
    TOKENIZER,
    language_weights,
    student_tensors,
    write_language_model,
    write_release,
)
from tests.engine.models.official import load, refused, used, write_noise
from tests.engine.recorder import collected
from tests.engine.speaking import stream

pytest.importorskip("tokenizers")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> LlasaFolder:
    return LlasaFolder.read(write_language_model(tmp_path_factory.mktemp("models") / "Llasa-1B"))


@pytest.fixture(scope="module")
def network(checkpoint: LlasaFolder) -> LanguageNetwork:
    return checkpoint.plain()


def some_hidden(count: int = 50) -> torch.Tensor:
    return torch.randn(count, CONFIG["hidden_size"], generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("tied", [True, False])
def test_rows_that_speak_give_what_the_whole_head_gives_masked(tmp_path: Path, tied: bool) -> None:
    place = write_language_model(tmp_path, tied)
    weights = {name: value.float() for name, value in load_file(place / WEIGHTS).items()}
    tokens = LlasaFolder.read(place).plain().tokens
    whole = some_hidden() @ weights[EMBEDDING if tied else HEAD].T
    others = torch.ones(ROWS, dtype=torch.bool)
    others[LOCAL] = False
    masked = whole.masked_fill(others, -torch.inf)
    found = tokens.logits(some_hidden())
    assert torch.allclose(found, masked[:, LOCAL], atol=1e-5)
    sampler = Nucleus(0.8, 50)
    expected = sampler.probabilities(masked, range(50))
    assert expected[:, others].count_nonzero() == 0
    assert torch.allclose(sampler.probabilities(found, range(50)), expected[:, LOCAL], atol=1e-6)
    assert (tokens.embedding == weights[EMBEDDING][LOCAL]).all()


def test_a_prompt_is_embedded_and_continued_as_by_the_whole_model(
    checkpoint: LlasaFolder, network: LanguageNetwork
) -> None:
    weights = {name: value.float() for name, value in language_weights().items()}
    whole = CausalTransformer(CausalConfig.read(CONFIG))
    whole.load_state_dict({name.removeprefix("model."): value for name, value in weights.items() if name != EMBEDDING})
    ids, codes = checkpoint.tokenizer.ids("<|begin_of_text|>Some text.<|SPEECH_GENERATION_START|>"), [4, 90, 4]
    official = weights[EMBEDDING][[*ids, *(FIRST_CODE + code for code in codes)]]
    embedded = torch.cat([network.tables[TEXTS][ids], network.tokens.embed(codes)])
    assert (embedded == official).all()
    with torch.inference_mode():
        expected = (whole(official[None]) @ weights[EMBEDDING].T)[..., LOCAL]
        found = network.tokens.logits(network.tokens.transformer(embedded[None]))
        fused = optimised(network).tokens
        quick = fused.logits(fused.transformer(embedded[None]))
    assert (found - expected).abs().max() < 1e-4 and (quick - expected).abs().max() < 1e-4


def test_weights_stay_bfloat16_where_that_is_asked_for(checkpoint: LlasaFolder) -> None:
    wide = checkpoint.plain()
    narrow = optimised(LlasaFolder.read(checkpoint.shards.folder, torch.bfloat16).plain())
    assert narrow.tokens.head.dtype == narrow.tables[TEXTS].dtype == torch.bfloat16
    ids = torch.arange(20)
    with torch.inference_mode():
        expected = wide.tokens.logits(wide.tokens.transformer(wide.tokens.embed(ids)[None]))
        cache = narrow.tokens.cache(20)
        found = narrow.tokens.logits(narrow.tokens.transformer(narrow.tokens.embed(ids)[None], cache))
    assert (found.float() - expected).abs().max() < 0.05 * expected.abs().max()


# --- Students and drafts ---------------------------------------------------------------------------------------------
def test_a_student_has_its_own_layers_and_head(
    checkpoint: LlasaFolder, network: LanguageNetwork, tmp_path: Path
) -> None:
    path = tmp_path / "student.safetensors"
    save_file(student_tensors((0, 2)), path)
    student = checkpoint.student(StudentWeights(str(path), "0" * 64, (0, 2), "recovered", 5.0)).tokens
    pruned = network.tokens.kept((0, 2))
    embedded = network.tokens.embed(torch.arange(12))[None]
    with torch.inference_mode():
        expected = 2 * pruned.logits(pruned.transformer(embedded))
        found = student.logits(student.transformer(embedded))
    assert (found - expected).abs().max() < 0.01 * expected.abs().max()
    with pytest.raises(CheckpointError, match=r"unexpected: model\.layers\.1"):
        checkpoint.student(StudentWeights(str(path), "0" * 64, (0,), "recovered", 5.0))


def test_a_draft_is_the_targets_layers_with_some_of_its_own(
    checkpoint: LlasaFolder, network: LanguageNetwork, tmp_path: Path
) -> None:
    path = tmp_path / "draft.safetensors"
    trained = {name: value * 1.5 for name, value in language_weights().items() if name.startswith("model.layers.0.")}
    head = student_tensors((0,))[HEAD]
    save_file(trained | {HEAD: head}, path)
    weights = DraftWeights(str(path), "0" * 64, (0, 2), (0,), True)
    found = checkpoint.draft(weights)
    assert list(found.layers) == [0] and found.head.shape == (CODES + 1, CONFIG["hidden_size"])
    for one in (network, LlasaFolder.read(checkpoint.shards.folder, torch.bfloat16).plain()):
        own = optimised(one)
        draft = drafting(own, weights, found).tokens
        with torch.inference_mode():
            logits = draft.logits(draft.transformer(own.tokens.embed(torch.arange(5))[None], draft.cache(5)))
        assert logits.shape == (1, 5, CODES + 1) and logits.isfinite().all()
    save_file(trained | {"vocoder.bias": head}, path)
    with pytest.raises(CheckpointError, match=r"holds vocoder\.bias, which drafts do not have"):
        checkpoint.draft(weights)


MODEL = "Llasa-1B"
TEXT = "A short sentence."
HOP = 320


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_release(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def model(folder: Path) -> LlasaSpeech:
    return load(MODEL, folder)


def setting(seed: int = 1, **changes: object) -> Setting:
    return official.setting(MODEL, seed=seed, **({"clone": False} | changes))


def own(path: Path, transcript: str = "It says this.") -> Voice:
    return Voice("own", "Own", str(path), transcript)


NOBODY = Voice("none", "None", "", "")


@pytest.fixture(autouse=True)
def soon_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random weights end when they like, or not at all."""
    monkeypatch.setattr(adapter, "CONTEXT", 300)


def tokens_of(spoken: Synthesis) -> list[int]:
    return [token for passage in spoken.trace.decoding.passages for cycle in passage for token in cycle.tokens]


def speak(model: LlasaSpeech, text: str = TEXT, of: Setting | None = None, who: Voice = NOBODY) -> Synthesis:
    return synthesise(model, text, who, of or setting())


def test_it_speaks(model: LlasaSpeech) -> None:
    spoken = speak(model)
    decoding = spoken.trace.decoding
    assert spoken.sample_rate == 16000 == model.info.sample_rate
    assert spoken.samples.dtype == np.float32 and np.abs(spoken.samples).max() > 0.01
    tokens = tokens_of(spoken)
    assert len(spoken.samples) == len(tokens) * HOP == spoken.measurements.tokens * HOP
    assert max(tokens) < CODES == decoding.codes
    assert model.info.layers == 3 and model.info.family == "language" and model.info.licence == "CC-BY-NC-4.0"
    stored = sum(one.numel() for one in load_file(model.info.checkpoint).values())
    assert model.info.parameters == pytest.approx(stored, abs=64)


def test_equal_seeds_speak_alike_and_others_do_not(model: LlasaSpeech) -> None:
    first, again, other = speak(model), speak(model), speak(model, of=setting(2))
    assert np.array_equal(first.samples, again.samples)
    assert not np.array_equal(first.samples[:HOP], other.samples[:HOP])


def test_the_release_s_own_sampling_is_the_default(model: LlasaSpeech) -> None:
    prompt = LlasaPrompt("Said.", (3, 5))

    def sampler(**changes: object) -> TokenSampler:
        return model.token_sampler(TokenPassage(TEXT, 1, ()), prompt, setting(**changes).options)

    assert sampler() == Nucleus(0.8, 50, 1.0, 1.0, (3, 5))
    advised = sampler(temperature=0.9, top_p=0.95, repetition_penalty=1.2, top_k=20)
    assert advised == Nucleus(0.9, 20, 0.95, 1.2, (3, 5))
    assert sampler(temperature=0.0, repetition_penalty=1.2) == Nucleus(1.0, 1, 1.0, 1.2, (3, 5))


def test_it_streams_and_says_what_streaming_costs(model: LlasaSpeech, monkeypatch: pytest.MonkeyPatch) -> None:
    # The likeliest codes of random weights go round and round: as many come as may.
    heard, spoken = collected(stream(model, TEXT, NOBODY, setting(temperature=0.0, stream_codes=30)))
    pieces = [one.samples for one in heard]
    assert len(pieces) >= 3 and len(pieces[0]) == FIRST_CODES * HOP and len(pieces[1]) == 30 * HOP
    assert np.array_equal(np.concatenate(pieces), spoken.samples)
    assert any("differs from audio decoded at once" in note for note in spoken.notes)
    assert -60 < spoken.measurements.streaming_difference < 10
    assert any("was stopped after" in note for note in spoken.notes)
    assert 0 < spoken.measurements.first_audio_seconds < spoken.measurements.seconds
    monkeypatch.setattr(adapter, "Window", lambda *sizes: Window(*sizes, first=500))
    at_once = speak(model, of=setting(temperature=0.0, stream_codes=500))
    assert tokens_of(at_once) == tokens_of(spoken)
    assert len(at_once.samples) == len(spoken.samples) and not np.array_equal(at_once.samples, spoken.samples)
    assert not any("differs from audio decoded at once" in note for note in at_once.notes)
    assert at_once.measurements.streaming_difference is None


def test_long_texts_are_spoken_in_passages(model: LlasaSpeech) -> None:
    text = "This is one of several sentences that take a while to be said aloud. " * 2
    _, prepared = model.prepare(text, NOBODY, setting().options, lambda: None)
    texts = [one.text for one in prepared.passages]
    assert len(texts) > 1 and " ".join(texts) == text.strip()


def test_numbers_take_longer_than_they_look() -> None:
    assert spoken_bytes("1984") == len("nineteen eighty four") > spoken_bytes("year") == 4 < spoken_bytes("三年") == 6
    assert spoken_bytes("$1.50") > 4 * len("$1.50")


# --- Voices ----------------------------------------------------------------------------------------------------------
def test_voices_need_a_transcript_and_an_encoder(model: LlasaSpeech, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    recording, cloning = write_noise(tmp_path / "own.wav", 1.3, 16000), setting(clone=True)
    with pytest.raises(TextError, match="has no transcript"):
        speak(model, of=cloning, who=own(recording, " "))
    with pytest.raises(CheckpointError, match=r"can only decode here: .* HKUSTAudio/xcodec2-hf"):
        speak(model, of=cloning, who=own(recording))
    with pytest.raises(AudioError, match="lasts 21 s, but LLaSA has room for 20 s"):
        speak(model, of=cloning, who=own(write_noise(tmp_path / "long.wav", 21, 16000)))
    with pytest.raises(AudioError, match="There is no recording"):
        make_ready(model, cloning, own(tmp_path / "none.wav"))
    make_ready(model, setting(), own(tmp_path / "none.wav"))  # Nobody asks for that voice.


# --- Reading ---------------------------------------------------------------------------------------------------------
def test_shards_and_untied_heads_are_read(folder: Path, model: LlasaSpeech, tmp_path: Path) -> None:
    write_release(tmp_path)
    sharded = load(MODEL, write_language_model(tmp_path / "Llasa-3B", shards=3))
    assert np.array_equal(speak(sharded).samples, speak(model).samples)
    assert sharded.info.checkpoint == str(tmp_path / "Llasa-3B")
    assert sharded.info.fingerprint != model.info.fingerprint and len(sharded.info.fingerprint) == 64
    for part in sorted((tmp_path / "Llasa-3B").glob("*.safetensors")):  # As trainers have saved them before.
        torch.save(load_file(part), part.with_name(f"pytorch_{part.stem}.bin"))
        part.unlink()
    index = tmp_path / "Llasa-3B" / INDEX
    listed = index.read_text().replace("model-", "pytorch_model-").replace(".safetensors", ".bin")
    index.rename(index.with_name("pytorch_model.bin.index.json")).write_text(listed)
    assert torch.equal(LlasaFolder.read(index.parent).plain().tokens.head, LlasaFolder.read(folder).plain().tokens.head)
    untied = load(MODEL, write_language_model(tmp_path / "Llasa-8B", tied=False))
    assert not np.array_equal(speak(untied).samples[:HOP], speak(model).samples[:HOP])


def test_it_is_strict_about_names_and_shapes(tmp_path: Path) -> None:
    place = write_release(tmp_path)
    whole, layer, more = load_file(place / WEIGHTS), "model.layers.1.mlp.up_proj.weight", "model.layers.3.mlp.up_proj"
    norm = whole["model.norm.weight"]
    for weights, said in (
        (whole | {"model.layers.0.self_attn.q_proj.lora_A.default.weight": norm.clone()}, "merge it first"),
        ({name: value for name, value in whole.items() if name != layer}, f"1 weight missing: {layer}"),
        (whole | {f"{more}.weight": norm.clone()}, f"1 weight unexpected: {more}.weight"),
        (whole | {"model.norm.weight": norm[:32].clone()}, "model.norm.weight is 32 instead of 64"),
    ):
        save_file(weights, place / WEIGHTS)
        assert said in refused(MODEL, place)
    (place / WEIGHTS).write_bytes((place / WEIGHTS).read_bytes()[:-100])
    assert "is damaged or not complete" in refused(MODEL, place)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    place = write_release(tmp_path / "a")
    for name in ("tokenizer.json", "config.json"):
        content = (place / name).read_bytes()
        (place / name).unlink()
        assert f"{place / name} is missing; it belongs in the folder of LLaSA's" in refused(MODEL, place)
        assert catalogue.id_of(str(place)) == MODEL, "by the names of its weights"
        (place / name).write_bytes(content)
    (place / WEIGHTS).unlink()
    assert f"holds no weights; put {WEIGHTS} there" in refused(MODEL, place)
    sharded = write_release(tmp_path / "b", shards=2)
    (sharded / "model-00002-of-00002.safetensors").unlink()
    assert "lacks model-00002-of-00002.safetensors" in refused(MODEL, sharded)
    (sharded / INDEX).write_text('{"weight_map": {"a": "../b.safetensors"}}')
    assert "is not a list of shards" in refused(MODEL, sharded)
    assert f"is a file, but LLaSA 1B is a folder of files; choose its folder, {sharded}." in refused(
        MODEL, sharded / INDEX
    )


@pytest.mark.parametrize(
    ("name", "holder", "before"),
    [
        ("pytorch_model.bin", "", ""),
        ("tuned.safetensors", "", "module."),
        (WEIGHTS, "", "module._orig_mod."),
        ("last.pt", "state_dict", "module."),
        ("last.ckpt", "model", "_orig_mod."),
    ],
)
def test_a_fine_tune_as_other_trainings_save_it(tmp_path: Path, name: str, holder: str, before: str) -> None:
    place = write_release(tmp_path)
    usual = LlasaFolder.read(place).plain().tokens.head
    weights = {f"{before}{key}": value for key, value in load_file(place / WEIGHTS).items()}
    (place / WEIGHTS).unlink()
    if name.endswith(".safetensors"):
        save_file(weights, place / name)
    else:
        torch.save({holder: weights, "step": 3} if holder else weights, place / name)
    torch.save({"state": {}}, place / "optimizer.pt")
    torch.save({}, place / "training_args.bin")
    folder = LlasaFolder.read(place)
    assert torch.equal(folder.plain().tokens.head, usual) and folder.shards.where == str(place / name)
    if name != WEIGHTS:
        shutil.copy(place / name, place / f"other{Path(name).suffix}")
        assert "holds several files of weights" in refused(MODEL, place)


def test_another_models_configuration_is_refused(tmp_path: Path) -> None:
    place = write_release(tmp_path)
    config = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(json.dumps(config | {"vocab_size": 300}))
    assert "its model knows 300 tokens, but its tokenizer 394" in refused(MODEL, place)
    (place / "config.json").write_text(json.dumps(config | {"model_type": "mistral"}))
    assert "only 'llama' is supported" in refused(MODEL, place)
    (place / "config.json").write_text("[")
    assert "cannot be read as a configuration" in refused(MODEL, place)


# --- Drafts and students ---------------------------------------------------------------------------------------------
def test_drafts_and_students_of_this_checkpoint_are_found_and_used(tmp_path: Path) -> None:
    place = write_release(tmp_path, tied=False)
    layers = {"base": hashlib.sha256((place / WEIGHTS).read_bytes()).hexdigest(), "retained": "[0, 2]"}
    trained = {name: value for name, value in load_file(place / WEIGHTS).items() if name.startswith("model.layers.0.")}
    for name, tensors, said in (
        ("drafts", trained, {"kind": "draft", "trained": "[0]", "head": "false"} | layers),
        ("students", student_tensors((0, 2)), {"kind": "student", "stage": "recovered", "minutes": "5"} | layers),
        ("students", student_tensors((0,)), {"kind": "student", "base": "0" * 64, "retained": "[0]"}),
    ):
        (place / name).mkdir(exist_ok=True)
        save_file(tensors, place / name / f"{len(tensors)}.safetensors", metadata=said)
    model = load(MODEL, place)
    assert len(model.info.drafts) == len(model.info.students) == len(model.info.foreign) == 1
    plain = setting(temperature=0.0)
    knobs = Values(tolerance=0.0, draft_length=3, adaptive=False)
    speculative = plain.with_technique(UsedTechnique("speculative", knobs))
    alone, drafted = speak(model, of=plain), speak(model, of=speculative)
    assert tokens_of(drafted) == tokens_of(alone) and len(set(tokens_of(alone))) > 1
    assert any(cycle.drafted for cycle in drafted.trace.decoding.passages[0])
    shallow = speak(model, of=plain.with_technique(used("spade", depth=2)))
    assert tokens_of(shallow) != tokens_of(alone) and shallow.measurements.ops_ratio < 1


@pytest.mark.parametrize(
    ("text", "transcript", "speaker"), [("Stop <|eot_id|> here.", "", ""), ("Fine.", "It says <|s_12|>.", "")]
)
def test_control_tokens_cannot_be_spoken(text: str, transcript: str, speaker: str) -> None:
    with pytest.raises(TextError, match=r"'<\|(eot_id|s_12)\|>' is a control token of LLaSA"):
        rendered(text, transcript, speaker=speaker)


def test_the_tokenizer_knows_where_codes_are() -> None:
    tokenizer = LlasaTokenizer.read(TOKENIZER.parent)
    assert (tokenizer.first_code, tokenizer.codes, tokenizer.end) == (FIRST_CODE, CODES, END)
    assert tokenizer.vocabulary == ROWS
    ids = tokenizer.ids(rendered("Hello."))
    assert max(ids) < tokenizer.first_code
    assert tokenizer.ids(rendered("Hello.") + code_token(7))[len(ids) :] == [FIRST_CODE + 7]


def test_what_is_wrong_with_a_tokenizer_is_said(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(CheckpointError, match="cannot be read as a tokenizer"):
        LlasaTokenizer.read(tmp_path)
    whole = json.loads(TOKENIZER.read_text(encoding="utf-8"))
    for mark in ("<|SPEECH_GENERATION_END|>", "<|s_0|>"):
        kept = [one for one in whole["added_tokens"] if one["content"] != mark]
        (tmp_path / "tokenizer.json").write_text(json.dumps(whole | {"added_tokens": kept}), encoding="utf-8")
        with pytest.raises(CheckpointError, match=r"lacks <\|.*; it is not the tokenizer of LLaSA") as error:
            LlasaTokenizer.read(tmp_path)
        assert mark in str(error.value)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(CheckpointError, match=r"pip install 'paretone\[llasa\]"):
        LlasaTokenizer.read(TOKENIZER.parent)
