"""``paretone tokens``: a text as ids for exports, and the sound of tokens that these give."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from paretone.models.catalogue import voice
from paretone.speaking import synthesise
from paretone.techniques import resolve
from tests.engine.command_line import Console, Outcome
from tests.engine.small_language import CODES, write_model
from tests.engine.speaking import TEXT, load, setting

soundfile = pytest.importorskip("soundfile")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "model")


@pytest.fixture
def tokens(root: Path, console: Console) -> Callable[..., Outcome]:
    return partial(console, "tokens", "--folder", root, "--device", "cpu")


def test_a_text_as_ids(root: Path, tmp_path: Path, tokens: Callable[..., Outcome]) -> None:
    out = tmp_path / "prompts.json"
    said = tokens("--text", TEXT, "--speed", "2", "--temperature", "0.7", "--out", out, "--json").data
    content = json.loads(out.read_text())
    model = load(root)
    expected = model.official_prompts(TEXT, voice("", "lm-mini"), resolve(model.info, setting()))
    assert [prompt["ids"] for prompt in content["prompts"]] == [list(one.ids) for one in expected]
    assert content["prompts"][0]["text"] == expected[0].text and said["prompts"] == [len(expected[0].ids)]
    assert content["sampling"]["temperature"] == 0.7 and content["vocabulary"]["codes"] == CODES


def test_tokens_are_heard_as_in_synthesis(root: Path, tmp_path: Path, tokens: Callable[..., Outcome]) -> None:
    model = load(root)
    spoken = synthesise(model, TEXT, voice("", "lm-mini"), setting())
    assert spoken.trace.decoding is not None
    given = {"text": TEXT, "voice": voice("", "lm-mini").id, "tokens": list(spoken.trace.decoding.tokens)}
    (tmp_path / "tokens.json").write_text(json.dumps(given))
    out = tmp_path / "speech.wav"
    assert tokens("--tokens", tmp_path / "tokens.json", "--speed", "2", "--out", out).code == 0
    heard, rate = soundfile.read(out, dtype="float32")
    assert rate == model.info.sample_rate
    assert len(heard) == len(spoken.samples) and np.abs(heard - spoken.samples).max() < 1e-3


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "cannot be read as JSON"),
        ('{"text": "A", "tokens": [1, true]}', "should hold"),
        ('{"text": "A", "tokens": []}', "1 to 100000 can be heard"),
        (json.dumps({"text": TEXT, "tokens": [CODES]}), f"from 0 to {CODES - 1}"),
    ],
)
def test_what_cannot_sound_is_said(tmp_path: Path, content: str, reason: str, tokens: Callable[..., Outcome]) -> None:
    (tmp_path / "tokens.json").write_text(content)
    said = tokens("--tokens", tmp_path / "tokens.json", "--out", tmp_path / "speech.wav")
    assert said.code == 2 and reason in said.err
    assert not (tmp_path / "speech.wav").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--tokens", "none.json"], "There is no file"),
        ([], "nothing to encode"),
        (["--model", "f5-mini", "--text", TEXT], "choose a speech language model"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path: Path, arguments: list[str], words: str, console: Console) -> None:
    assert words in console.refusal("tokens", *arguments, "--out", str(tmp_path / "made"), code=2)
