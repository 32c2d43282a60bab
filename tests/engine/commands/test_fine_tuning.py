"""What commands that fine-tune make of their options, and what they say at the end."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from paretone.commands import train
from paretone.errors import TextError
from paretone.setting.knobs import Values
from paretone.techniques.resolving import known
from paretone.training.forms import usual_sentences
from paretone.training.requests import FineTuningRequest, Trained


def options(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    train.add_speech(parser)
    train.add_training(parser, "usual", "none")
    return parser.parse_args([*given, "--work", "runs", "--steps", "3"])


def request(*given: str) -> FineTuningRequest:
    return FineTuningRequest(**train.fine_tuning_request(options(*given)))


def test_without_speech_a_request_names_none() -> None:
    made = request()
    assert (made.sentences, made.texts, made.manifest, made.names_speech) == (0, (), "", False)
    assert (made.model, made.work, made.steps, made.frames, made.seed) == ("f5-mini", "runs", 3, 1800, 1)


def test_without_speech_a_released_model_says_as_many_sentences_as_the_window_proposes() -> None:
    model = ("--model", "F5TTS_v1_Base")
    assert request(*model).sentences == usual_sentences(known("F5TTS_v1_Base"))["sentences"] == 200
    assert request(*model, "--manifest", "data.csv").sentences == request(*model, "--sentences", "0").sentences == 0
    assert usual_sentences(known("f5-mini"))["sentences"] == 0


def test_what_the_model_is_to_say_is_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("One.\n\nTwo.\nThree.\n", encoding="utf-8")
    file = str(tmp_path / "texts.txt")
    made = request("--texts", file)
    assert made.texts == ("One.", "Two.", "Three.") and made.sentences == 3, "each once in every voice"
    assert request("--texts", file, "--sentences", "7").sentences == 7
    assert request("--sentences", "7").names_speech and request("--sentences", "7").texts == ()
    with pytest.raises(TextError):
        request("--texts", str(tmp_path / "none.txt"))


def test_one_process_of_many_speaks() -> None:
    given = options()
    given.json = True
    trained = Trained("w.safetensors", "It learnt.", Values(), 3, 1.0, {"left": 0.5})
    said = train.result(given, trained, "Wrote it.", {"method": "displacement"})
    assert said.data == {
        "checkpoint": "w.safetensors",
        "method": "displacement",
        "steps": 3,
        "seconds": 1.0,
        "validation": {"left": 0.5},
    }
    other = Trained("w.safetensors", "", Values(), 3, 1.0, {}, is_first=False)
    assert train.result(given, other, "Wrote it.").data == {} and not given.json
