"""The official release as the engine uses it, from its folder to audio.

Its parts are small and have random weights, in the official layout: what they say is noise, but every step is real.
"""

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from paretone.models import load_model
from paretone.models.base import Synthesis, Voice
from paretone.models.cosyvoice2.adapter import CosySpeech
from paretone.models.cosyvoice2.language_model import STOPS, LanguageModel, PromptIds
from paretone.models.files.checkpoints import fingerprint
from paretone.models.networks.causal import CausalConfig
from paretone.sampling.autoregressive import decode
from paretone.sampling.tokens import Greedy, Uniforms
from paretone.setting.setting import Setting
from paretone.setting.take import Measurements
from paretone.speaking import synthesise
from tests.engine.models import official
from tests.engine.models.cosyvoice2.small_release import CODES, EAGER_END, QWEN2, language_weights, write_release
from tests.engine.models.official import load, refused, released, used
from tests.engine.recorder import collected
from tests.engine.speaking import stream

MODEL = "CosyVoice2-0.5B"
TEXT = "Rain comes tomorrow."
setting = partial(official.setting, MODEL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released(tmp_path_factory, MODEL, write_release)


@pytest.fixture(scope="module")
def model(folder: Path) -> CosySpeech:
    return load(MODEL, folder)


def speak(model: CosySpeech, voice: Voice, text: str = TEXT, of: Setting | None = None) -> Synthesis:
    return synthesise(model, text, voice, of or setting())


def speech_tokens(said: Synthesis) -> tuple[int, ...]:
    assert said.trace.decoding is not None
    return said.trace.decoding.tokens


def assert_streamed(model: CosySpeech, voice: Voice, setting: Callable[..., Setting]) -> Measurements:
    """It speaks while it decodes, and sounds as at once."""
    pieces, said = collected(stream(model, TEXT, voice, setting()))
    # 24 kHz; one token is 40 ms.
    tokens = speech_tokens(said)
    assert len(said.samples) == 960 * len(tokens) and set(tokens) <= set(range(CODES))
    assert len(pieces) > 1 and np.array_equal(np.concatenate([one.samples for one in pieces]), said.samples)
    assert np.abs(said.samples).max() > 0 and said.measurements.flow_seconds > 0
    pieces, at_once = collected(stream(model, TEXT, voice, setting(stream=False)))
    assert len(pieces) == 1 and speech_tokens(at_once) == tokens
    np.testing.assert_allclose(said.samples, at_once.samples, atol=1e-4)
    assert said.measurements.tokens == len(tokens)
    return said.measurements


@pytest.mark.slow
def test_it_speaks_while_it_decodes_and_sounds_as_at_once(model: CosySpeech, voice: Voice) -> None:
    measured = assert_streamed(model, voice, setting)
    assert measured.first_audio_seconds < measured.seconds and measured.vocoder_seconds > 0
    assert measured.flow_seconds + measured.vocoder_seconds == pytest.approx(measured.decoder_seconds)


@pytest.mark.slow
def test_lengths_follow_from_the_text_alone(folder: Path, voice: Voice, tmp_path: Path) -> None:
    root = Path(shutil.copytree(folder, tmp_path / MODEL))
    model = load(MODEL, root)
    text_tokens = len(model.tokenizer.encode("Go."))
    assert len(speech_tokens(speak(model, voice, "Go."))) == 2 * text_tokens
    torch.save(language_weights(end=-100.0), root / "llm.pt")
    endless = speak(load(MODEL, root), voice, "Go.")
    assert len(speech_tokens(endless)) <= 20 * text_tokens
    assert any("did not end by itself" in note or "stopped" in note for note in endless.notes)


@pytest.mark.slow
def test_other_modes_need_no_transcript(model: CosySpeech, voice: Voice) -> None:
    untold = replace(voice, transcript="")
    spoken = {}
    for options in ({"mode": "cross_lingual"}, {"mode": "instruct", "instruction": "Softly."}):
        spoken[options["mode"]] = speech_tokens(speak(model, untold, "Go on.", setting(**options)))
    assert all(spoken.values())


@pytest.mark.slow
def test_speed_shortens(model: CosySpeech, voice: Voice) -> None:
    plain, fast = speak(model, voice, "Go on."), speak(model, voice, "Go on.", setting(speed=2.0))
    assert speech_tokens(fast) == speech_tokens(plain)
    assert len(fast.samples) == len(plain.samples) // 2


def assert_drafts_and_students(
    root: Path, weights: dict[str, Tensor], student: dict[str, Tensor], voice: Voice, of: Setting
) -> None:
    """A draft of the first layer and a ``student`` of two, of the release with ``weights`` in ``root``, are used."""
    base = fingerprint(root / "llm.pt")
    own = {name: value.clone() for name, value in weights.items() if name.startswith("llm.model.model.layers.0.")}
    drafted = own | {"llm_decoder.weight": weights["llm_decoder.weight"].clone()}
    del student["llm.model.lm_head.weight"]
    for kind, tensors, about in (
        ("draft", drafted, {"trained": "[0]", "head": "true"}),
        ("student", student, {"stage": "recovered", "minutes": "1"}),
    ):
        (root / f"{kind}s").mkdir()
        about = {"kind": kind, "base": base, "retained": "[0, 2]"} | about
        save_file(tensors, root / f"{kind}s" / "one.safetensors", about)
    model = load_model(of.model, folder=str(root), device="cpu")
    assert len(model.info.drafts) == len(model.info.students) == 1
    plain = speak(model, voice, "Go on.", of)
    drafted = speak(model, voice, "Go on.", of.with_technique(used("speculative", tolerance=0.0)))
    assert drafted.measurements.tokens > 0
    assert any(cycle.drafted for cycle in drafted.trace.decoding.cycles)
    pruned = speak(model, voice, "Go on.", of.with_technique(used("spade", depth=2)))
    assert pruned.measurements.ops_ratio < plain.measurements.ops_ratio


@pytest.mark.slow
def test_drafts_and_students_of_the_release_are_used(folder: Path, voice: Voice, tmp_path: Path) -> None:
    root = Path(shutil.copytree(folder, tmp_path / MODEL))
    assert_drafts_and_students(root, language_weights(), language_weights(layers=2), voice, setting())


def test_what_is_missing_or_of_another_model_is_named(folder: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(folder, tmp_path / MODEL))
    (root / "flow.pt").unlink()
    (root / "CosyVoice-BlankEN" / "merges.txt").unlink()
    refused(MODEL, root, r"it lacks flow\.pt, CosyVoice-BlankEN/merges\.txt")
    for name in ("flow.pt", "CosyVoice-BlankEN/merges.txt"):
        shutil.copy(folder / name, root / name)
    path = root / "CosyVoice-BlankEN" / "config.json"
    path.write_text(path.read_text().replace('"qwen2"', '"gpt2"'))
    refused(MODEL, root, r"config\.json has model_type .*; only 'qwen2' is supported")


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("llm.pt", {"llm_decoder.weight": None}, r"1 weight missing: llm_decoder\.weight"),
        ("llm.pt", {"llm_decoder.bias": torch.full((CODES + 3,), torch.nan)}, r"not numbers in llm_decoder\.bias"),
        ("flow.pt", {"encoder_proj.bias": None}, r"flow\.pt .*1 weight missing: encoder_proj\.bias"),
        ("hift.pt", {"generator.conv_post.bias": torch.zeros(3)}, r"hift\.pt .*conv_post\.bias is 3 instead of 18"),
    ],
)
def test_weights_that_do_not_fit_are_named(folder: Path, tmp_path: Path, name: str, change: dict, words: str) -> None:
    root = Path(shutil.copytree(folder, tmp_path / MODEL))
    weights = torch.load(root / name, weights_only=True) | change
    torch.save({key: value for key, value in weights.items() if value is not None}, root / name)
    refused(MODEL, root, words)


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_without_the_packages_the_extra_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    refused(MODEL, folder, rf"{package}, .* pip install 'paretone\[cosyvoice\]")


IDS = (5, 6, 7)


@pytest.mark.parametrize("eager", range(STOPS))
def test_no_stop_id_ends_speech_before_the_least_length(eager: int) -> None:
    weights = language_weights(end=0.0)
    weights["llm_decoder.bias"][CODES + eager] = EAGER_END
    model = LanguageModel.from_official(weights, CausalConfig.read(QWEN2), "llm.pt")
    request = model.request(PromptIds(), IDS)
    assert request.minimum == 2 * len(IDS)
    ours, official = (
        list(decode(model.tokens, one, Greedy(), Uniforms(0))) for one in (request, replace(request, masked_stops=1))
    )
    assert ours[-1].stopped and sum(len(one.tokens) for one in ours) == request.minimum
    # The official code masks the first alone: another ends speech at once.
    assert official[-1].stopped and sum(len(one.tokens) for one in official) == (0 if eager else request.minimum)
