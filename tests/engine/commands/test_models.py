"""``paretone models``: what one model has, and hints that name what to type."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paretone.models import catalogue
from paretone.setting.knobs import Number
from paretone.techniques import applying_to
from tests.engine.command_line import Console
from tests.engine.small_language import write_model


@pytest.fixture
def paretone(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Console:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    return Console(capsys)


@pytest.mark.parametrize("model", [one.id for one in catalogue.models()])
def test_a_model_lists_what_it_has(paretone: Console, model: str) -> None:
    chosen = catalogue.entry(model)
    data, text = paretone("models", model, "--json").data, paretone("models", model).out
    usual = chosen.options_with()
    assert {one["name"]: one["default"] for one in data["options"]} == {
        one.name: usual[one.name] for one in chosen.options
    }
    for knob, one in zip(chosen.options, data["options"], strict=True):
        assert f"--{knob.name.replace('_', '-')} " in text
        if isinstance(knob, Number):
            assert (one["minimum"], one["maximum"]) == (knob.minimum, knob.maximum)
            assert f"{knob.minimum:g} to {knob.maximum:g}" in text
    techniques = applying_to(chosen.family, chosen.options, chosen.mel_steps)
    assert [one["name"] for one in data["techniques"]] == [one.name for one in techniques]
    for technique in techniques:
        (knobs,) = [block for block in text.split("\n\n") if block.startswith(f"{technique.name} ")] or [""]
        assert all(f"\n:{knob.name} " in knobs for knob in technique.knobs)
    assert [one["id"] for one in data["voices"]] == [one.id for one in catalogue.voices(model)]
    assert data["available"] == chosen.bundled
    assert (f"paretone download {model}" in text) == bool(catalogue.entry(model).release)
    if chosen.voices.latents:
        assert "put name.wav and name.npy into" in text


def test_defaults_are_the_models_own(paretone: Console) -> None:
    said = paretone("models", "f5-mini").out
    (steps,) = [line.split()[:2] for line in said.splitlines() if line.startswith("--steps ")]
    assert steps == ["--steps", "12"]
    assert "There is no model named" in paretone("models", "f6").err
    only = paretone("models", "f5-mini", "--techniques", "--json").data
    assert set(only) == {"id", "techniques"}
    (reducing,) = [one for one in only["techniques"] if one["name"] == "ditreducio"]
    assert reducing["published"][2]["knobs"].items() >= {"threshold": 0.1, "metric": "relative"}.items()
    assert re.search(r"ditreducio --as T2 +table 1, F5-TTS .*threshold=0.1 .*steps=32", said)


@pytest.mark.parametrize(
    ("technique", "command"),
    [
        ("spade", "paretone train spade --model lm-mini --folder {} --depth 6 --minutes 60 --work runs/student"),
        ("spade:recovery=none;depth=2", "paretone measure-layers --model lm-mini --folder {}"),
        ("speculative", "paretone train draft --model lm-mini --folder {} --minutes 60 --work runs/draft"),
    ],
)
def test_what_is_not_prepared_names_its_command(
    paretone: Console, tmp_path: Path, technique: str, command: str
) -> None:
    root = write_model(tmp_path / "model")
    speak = ["speak", "--model", "lm-mini", "--folder", root, "--text", "Rice.", "--out", tmp_path / "o.wav"]
    if technique == "spade":
        technique = "spade:depth=2"
        command = command.replace("--depth 6", "--depth 2")
    said = paretone(*speak, "--technique", technique)
    assert said.code == 2
    assert said.err.splitlines()[-1].endswith(f" Type: {command.format(root)}")


def test_a_missing_file_names_the_command_that_writes_it(paretone: Console, tmp_path: Path) -> None:
    speak = ["speak", "--model", "f5-mini", "--text", "Rice.", "--out", tmp_path / "o.wav", "--technique", "ditreducio"]
    said = paretone(*speak)
    assert said.err.splitlines()[-1].endswith("Type: paretone calibrate --model f5-mini --table table.json")
    said = paretone(*speak, "--as", "T2")
    assert said.err.splitlines()[-1].endswith("Type: paretone calibrate --model f5-mini --table table.json --as T2")
    strange = paretone("speak", "--model", "f5-mini", "--text", "Rice.", "--out", tmp_path / "o.wav", "--top-k", 3)
    assert strange.err.strip().endswith("Type: paretone models f5-mini")
