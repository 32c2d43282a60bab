"""The command line with a masked model: every command works, or says why not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import soundfile

from paretone.models.omnivoice.adapter import OmniVoiceSpeech
from tests.engine.models.omnivoice.small_release import LONG, TEXT, load, write_release

MODEL = ("--model", "OmniVoice")
QUICK = ("--no-clone", "--steps", "4")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> OmniVoiceSpeech:
    return load(write_release(tmp_path_factory.mktemp("omnivoice") / "model"))


def test_speaking(paretone: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    out = tmp_path / "speech.wav"
    speak = ("speak", *MODEL, *QUICK, "--text", TEXT, "--out", out)
    code, said, problem = paretone(*speak, "--guidance", "1.5", "--language", "English", "--json")
    assert code == 0, problem
    data = json.loads(said)
    assert data["evaluations"] == 4
    assert data["setting"]["options"]["guidance"] == 1.5
    assert soundfile.info(out).frames == data["samples"]
    assert paretone(*speak)[0] == 0


def test_techniques_by_name(paretone: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    speak = ("speak", *MODEL, *QUICK, "--text", LONG, "--out", tmp_path / "speech.wav", "--json", "--technique")
    blocks = "blockwise:block=16;first_block=16;first_steps=2;later_steps=2;adaptive=false"
    code, said, problem = paretone(*speak, blocks)
    assert code == 0, problem
    data = json.loads(said)
    assert data["evaluations"] > 6
    assert data["ops_ratio"] > 1
    assert data["first_audio_seconds"] < data["seconds"]
    code, said, _ = paretone(*speak, "guidance_stride:every=2")
    assert (code, json.loads(said)["ops_ratio"] < 1) == (0, True)
    assert paretone(*speak, "sentencewise")[0] == 0


def test_comparing(paretone: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    compare = ("compare", *MODEL, "--text", TEXT, "--repeats", "1", "--out", tmp_path / "both", "--json")
    quick = "clone=false,steps=4"
    code, said, problem = paretone(*compare, quick, f"{quick},technique=fewer_steps:steps=2")
    assert code == 0, problem
    data = json.loads(said)
    assert (data["a"]["evaluations"], data["b"]["evaluations"]) == (4, 2)
    assert len(data["files"]) == 2


def test_models_are_listed(paretone: Callable[..., tuple[int, str, str]]) -> None:
    code, said, _ = paretone("models", "--json")
    assert code == 0
    listed = next(one for one in json.loads(said)["models"] if one["id"] == "OmniVoice")
    assert (listed["family"], listed["licence"]) == ("masked", "CC-BY-NC-4.0")


SPEAK = ("speak", *MODEL, *QUICK, "--text", TEXT, "--out", "{place}/o.wav")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("calibrate", *MODEL, "--profile", "{place}/p.json"), 2, "Calibrating is for models that go from noise"),
        (("transfer", *MODEL, "--table", "{place}/official.json"), 2, "A strategy table is for models that go from"),
        (("view", "temporal-redundancy", *MODEL), 2, "OmniVoice belongs to"),
        ((*SPEAK, "--table", "{place}/official.json"), 2, "A strategy table is for models that go from"),
        ((*SPEAK, "--temperature", "1"), 2, "--temperature is not for OmniVoice, which has --steps"),
        ((*SPEAK, "--guidance", "99"), 2, "Guidance must lie between 0 and 10"),
        ((*SPEAK, "--duration", "600"), 2, "too far from what this text usually takes"),
        ((*SPEAK, "--instruct", "green"), 2, "does not know the description"),
        ((*SPEAK, "--technique", "ditreducio"), 2, "strategy table"),
        ((*SPEAK, "--technique", "steps"), 2, "not for models like OmniVoice"),
        ((*SPEAK, "--technique", "speculative"), 2, "not for models like OmniVoice"),
        (("measure-layers", *MODEL), 2, "OmniVoice"),
    ],
)
def test_what_is_not_for_masked_models_is_refused(
    paretone: Callable[..., tuple[int, str, str]], tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    (tmp_path / "official.json").write_text("[[[]]]")
    found, _, said = paretone(*(one.format(place=tmp_path) for one in arguments))
    assert (found, words in said) == (code, True), said
    assert "Traceback" not in said
