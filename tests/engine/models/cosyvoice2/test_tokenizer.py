"""The text tokenizer: ids as transformers gives them with the official additions."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from paretone.errors import CheckpointError
from paretone.models.cosyvoice2.text import ADDED, END_OF_PROMPT, TextTokenizer
from tests.engine.models.cosyvoice2.small_tokenizer import SIZE, write_tokenizer

TEXTS = (
    "hello, the world's other 1234 things",
    "  two  blanks\n\nand lines ",
    "cafe\u0301 caf\u00e9 naïve",
    "你好，世界。こんにちは 안녕",
    f"Say it with a smile.{END_OF_PROMPT}Well [laughter] then <strong>now</strong>!",
    "[laughter][breath] [mn]<|im_start|>",
    "I'M they'LL",
    "",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("blank")
    write_tokenizer(folder)
    return folder


def test_added_tokens_follow_the_vocabulary_in_the_official_order(folder: Path) -> None:
    tokenizer = TextTokenizer.load(folder)
    assert tokenizer.size == SIZE + len(ADDED)
    assert [tokenizer.encode(token) for token in ADDED] == [[SIZE + number] for number in range(len(ADDED))]
    # With Qwen2's 151,643 entries: the ids of the release.
    assert 151643 + ADDED.index(END_OF_PROMPT) == 151646 and 151643 + ADDED.index("[mn]") == 151662


def test_ids_are_those_of_transformers(folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    official = transformers.Qwen2TokenizerFast.from_pretrained(folder)
    official.add_tokens(list(ADDED), special_tokens=True)
    tokenizer = TextTokenizer.load(folder)
    for text in TEXTS:
        assert tokenizer.encode(text) == official(text)["input_ids"], text
    assert tokenizer.count("hello") == 1


@pytest.mark.parametrize("name", ["vocab.json", "merges.txt"])
def test_what_is_missing_or_damaged_is_named(tmp_path: Path, name: str) -> None:
    pytest.importorskip("tokenizers")
    write_tokenizer(tmp_path)
    (tmp_path / name).write_text("{", encoding="utf-8")
    with pytest.raises(CheckpointError, match="cannot be read"):
        TextTokenizer.load(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(CheckpointError, match=rf"{name} is missing"):
        TextTokenizer.load(tmp_path)


def test_a_table_that_is_too_small_is_refused(folder: Path) -> None:
    tokenizer = TextTokenizer.load(folder)
    tokenizer.require_rows(tokenizer.size, "the table")
    with pytest.raises(CheckpointError, match="do not belong together"):
        tokenizer.require_rows(tokenizer.size - 1, "the table")


def test_without_the_package_the_extra_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(CheckpointError, match=r"pip install 'paretone\[cosyvoice\]"):
        TextTokenizer.load(folder)
