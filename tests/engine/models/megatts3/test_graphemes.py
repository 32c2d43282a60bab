"""The grapheme model as ``transformers`` runs it: a small random one of the released kind, reading bytes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from paretone.errors import Cancelled, CheckpointError, TextError
from paretone.models.megatts3 import graphemes
from paretone.models.megatts3.graphemes import END, GraphemeModel
from paretone.models.megatts3.phones import separated
from tests.engine.models.megatts3.small_grapheme_model import FIRST, write_folder
from tests.packages import needs

pytestmark = [needs("transformers"), pytest.mark.slow]  # Importing transformers takes seconds.
TEXT = "Hello, 世界."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("g2p")
    write_folder(made)
    return made


@pytest.fixture
def model(folder: Path) -> GraphemeModel:
    return GraphemeModel.load(folder)


def end_soon(model: GraphemeModel, monkeypatch: pytest.MonkeyPatch, limit: int) -> list[int]:
    """Let no more than ``limit`` tokens be written; returns those of the likeliest, one evaluation of all for each."""
    monkeypatch.setattr(graphemes, "LONGEST", limit)
    found = model.prompt(TEXT)
    given = len(found)
    with torch.inference_mode():
        while len(found) < given + limit and found[-1] != FIRST + END:
            found.append(int(model._model(input_ids=torch.tensor([found])).logits[0, -1].argmax()))
    return [token - FIRST for token in found[given - 1 :]]


def test_the_prompt_is_text_between_its_marks_and_silence(model: GraphemeModel) -> None:
    prompt = model.prompt("ab")
    assert prompt[0] == 256
    assert prompt[-2:] == [257, FIRST + 145]
    assert len(prompt) == 5


def test_phones_are_those_of_the_likeliest_tokens(model: GraphemeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = end_soon(model, monkeypatch, 12)
    read = model(TEXT)
    assert not read.finished
    assert list(zip(read.phones, read.tones, strict=True)) == [separated(token) for token in expected]
    assert read.phones[0] == 145
    assert len(read.phones) == 13


def test_the_end_token_ends_and_is_no_phone(model: GraphemeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    written = end_soon(model, monkeypatch, 6)
    head = model._model.lm_head.weight
    with torch.no_grad():  # What was the fourth token is now less likely than the end.
        head[FIRST + END] = 2 * head[FIRST + written[4]]
    expected = end_soon(model, monkeypatch, 12)
    read = model(TEXT)
    assert expected[-1] == END
    assert read.finished
    assert list(read.phones) == [separated(token)[0] for token in expected[:-1]]


def test_reading_is_repeatable_and_can_be_cancelled(model: GraphemeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphemes, "LONGEST", 8)
    calls = []

    def check() -> None:
        calls.append(None)
        if len(calls) == 3:
            raise Cancelled

    assert model(TEXT) == model(TEXT)
    with pytest.raises(Cancelled):
        model(TEXT, check)
    assert len(calls) == 3


def test_no_phones_are_the_texts_fault(model: GraphemeModel) -> None:
    with torch.no_grad():
        model._model.lm_head.weight[FIRST:] = 0
        model._model.model.norm.weight.zero_()
        model._model.lm_head.weight[FIRST + END] = 0
    # All scores are equal now: the first token wins, which is no phone.
    with pytest.raises(TextError, match="found no phones"):
        model("?")


def test_without_transformers_the_extra_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(CheckpointError, match=r"paretone\[megatts3\]"):
        GraphemeModel.load(folder)


def test_folders_that_are_not_complete_or_of_another_model_are_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json is missing"):
        GraphemeModel.load(tmp_path)
    write_folder(tmp_path / "a", without="<Reserved_TTS_0>")
    with pytest.raises(CheckpointError, match="lacks <Reserved_TTS_0>"):
        GraphemeModel.load(tmp_path / "a")
    write_folder(tmp_path / "b", speech=700)
    with pytest.raises(CheckpointError, match="lacks the tokens of phones"):
        GraphemeModel.load(tmp_path / "b")
    weights = load_file(tmp_path / "b/model.safetensors")
    for changed, words in (
        (
            {name: value for name, value in weights.items() if name != "model.norm.weight"},
            r"missing: model\.norm\.weight",
        ),
        (weights | {"surplus": torch.zeros(1)}, "unknown: surplus"),
    ):
        save_file(changed, tmp_path / "b/model.safetensors", metadata={"format": "pt"})
        with pytest.raises(CheckpointError, match=words):
            GraphemeModel.load(tmp_path / "b")
    (tmp_path / "b/model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"no \.safetensors"):
        GraphemeModel.load(tmp_path / "b")
    (tmp_path / "b/model.safetensors").write_bytes(b"not weights")
    with pytest.raises(CheckpointError, match=r"model\.safetensors is damaged"):
        GraphemeModel.load(tmp_path / "b")
