"""LLaSA's prompt: its text and ids, and the tokenizer that makes them."""

from __future__ import annotations

import builtins
import json
from pathlib import Path

import pytest

from paretone.errors import CheckpointError, TextError
from paretone.models.llasa.tokenizer import SPEECH_START, LlasaTokenizer, code_token, rendered
from tests.engine.models.llasa.small_release import CODES, END, FIRST_CODE, ROWS, TOKENIZER

pytest.importorskip("tokenizers")


def written(folder: Path, change: dict | None = None, without: str = "") -> Path:
    content = json.loads(TOKENIZER.read_text(encoding="utf-8"))
    content["added_tokens"] = [one for one in content["added_tokens"] if one["content"] != without]
    (folder / "tokenizer.json").write_text(json.dumps(content | (change or {})), encoding="utf-8")
    return folder


def test_a_reference_is_continued() -> None:
    assert "START|>Some words. More of them.<|TEXT" in rendered("More of them.", "Some words.")
    assert "START|>More of them.<|TEXT" in rendered("More of them.")


def test_a_speaker_stands_in_front_of_the_speech() -> None:
    plain = rendered("Hello.")
    assert rendered("Hello.", speaker="kore") == plain.replace(SPEECH_START, f"Speaker kore {SPEECH_START}")


@pytest.mark.parametrize(
    ("text", "transcript", "speaker"),
    [("Stop <|eot_id|> here.", "", ""), ("Fine.", "It says <|s_12|>.", ""), ("Fine.", "", "<|s_12|>")],
)
def test_control_tokens_cannot_be_spoken(text: str, transcript: str, speaker: str) -> None:
    with pytest.raises(TextError, match=r"'<\|(eot_id|s_12)\|>' is a control token of LLaSA"):
        rendered(text, transcript, speaker=speaker)


def test_what_only_looks_like_a_control_token_is_spoken() -> None:
    assert "a |> b <| c" in rendered("a |> b <| c")


def test_the_tokenizer_knows_where_codes_are() -> None:
    tokenizer = LlasaTokenizer.read(TOKENIZER.parent)
    assert (tokenizer.first_code, tokenizer.codes, tokenizer.end) == (FIRST_CODE, CODES, END)
    assert tokenizer.vocabulary == ROWS
    ids = tokenizer.ids(rendered("Hello."))
    assert max(ids) < tokenizer.first_code
    assert tokenizer.ids(rendered("Hello.") + code_token(7))[len(ids) :] == [FIRST_CODE + 7]


def test_what_is_wrong_with_a_tokenizer_is_said(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"tokenizer\.json is missing"):
        LlasaTokenizer.read(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(CheckpointError, match="cannot be read as a tokenizer"):
        LlasaTokenizer.read(tmp_path)
    for mark in ("<|SPEECH_GENERATION_END|>", "<|s_0|>"):
        with pytest.raises(CheckpointError, match=r"lacks <\|.*; it is not the tokenizer of LLaSA") as error:
            LlasaTokenizer.read(written(tmp_path, without=mark))
        assert mark in str(error.value)


def test_a_gap_in_the_codes_ends_them(tmp_path: Path) -> None:
    assert LlasaTokenizer.read(written(tmp_path, without="<|s_50|>")).codes == 50


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without_tokenizers(name: str, *rest: object) -> object:
        if name == "tokenizers":
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_tokenizers)
    with pytest.raises(CheckpointError, match=r"pip install 'paretone\[llasa\]"):
        LlasaTokenizer.read(TOKENIZER.parent)
