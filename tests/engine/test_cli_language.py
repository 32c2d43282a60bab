"""The command line with a speech language model: every command works, or says why not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import soundfile

from paretone.models.families.token_decoder import StreamingDifference
from paretone.models.minis.lm_mini import GatheringDecoder, LmMiniSpeech
from tests.engine.speaking import TEXT, load, write_all
from tests.voices import voice_names

MODEL = ("--model", "lm-mini")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LmMiniSpeech:
    return load(write_all(tmp_path_factory.mktemp("language") / "model"))


def test_speaking(paretone: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    out = tmp_path / "speech.wav"
    code, said, _ = paretone("speak", *MODEL, "--text", TEXT, "--speed", "2", "--top-k", "5", "--out", out, "--json")
    assert code == 0
    data = json.loads(said)
    assert data["tokens"] > 20
    assert data["setting"]["options"]["top_k"] == 5
    assert soundfile.info(out).frames == data["samples"]
    code, said, _ = paretone("speak", *MODEL, "--text", TEXT, "--speed", "2", "--out", out)
    assert code == 0
    # The last pass gives the end.
    assert f"{data['tokens'] / data['target_passes']:.2f} per pass of the model" in said
    assert data["target_passes"] == data["tokens"] + 1


def test_techniques_by_name(paretone: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    out = tmp_path / "speech.wav"
    speak = ("speak", *MODEL, "--text", TEXT, "--speed", "2", "--out", out, "--json", "--technique")
    code, said, _ = paretone(*speak, "speculative:tolerance=0.4;draft_length=2")
    assert code == 0
    assert json.loads(said)["target_passes"] < json.loads(said)["tokens"]
    code, said, _ = paretone(*speak, "spade:depth=2")
    assert code == 0
    assert json.loads(said)["ops_ratio"] < 0.9
    code, _, said = paretone(*speak, "spade:depth=1")
    assert code == 2
    assert "No fully retrained student" in said


def test_comparing(paretone: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    compare = ("compare", *MODEL, "--text", TEXT, "--repeats", "1", "--out", tmp_path / "both", "--json")
    drafting = "technique=speculative:draft_length=3;adaptive=false"
    code, said, _ = paretone(*compare, "baseline", f"speed=2,temperature=0,{drafting}")
    assert code == 0
    data = json.loads(said)
    assert data["a"]["tokens"] == data["b"]["tokens"]
    assert data["a"]["target_passes"] > data["b"]["target_passes"]
    # Greedy speculation says the same, to rounding.
    assert data["log_mel_distance"] < 1e-4
    assert len(data["files"]) == 2


def test_what_streaming_costs_is_compared(
    paretone: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    compare = ("compare", *MODEL, "--text", TEXT, "--repeats", "1", "speed=2", "speed=2,temperature=0")
    assert "streamed to whole" not in paretone(*compare)[1]
    # As with a decoder that looks at the whole utterance.
    monkeypatch.setattr(GatheringDecoder, "exact", False)
    differing = StreamingDifference(0.1, -18.4, 0)
    monkeypatch.setattr(GatheringDecoder, "difference", lambda one: differing)
    said = paretone(*compare)[1]
    assert "streamed to whole (dB)" in said and "-18" in said
    assert json.loads(paretone(*compare, "--json")[1])["a"]["streaming_difference"] == -18.4


def test_models_are_listed(paretone: Callable[..., tuple[int, str, str]]) -> None:
    code, said, _ = paretone("models", "--json")
    assert code == 0
    data = json.loads(said)
    listed = next(one for one in data["models"] if one["id"] == "lm-mini")
    assert (listed["family"], listed["available"]) == ("language", True)
    assert tuple(one["id"] for one in data["voices"] if "lm-mini" in one["models"]) == voice_names("lm-mini")


SPEAK = ("speak", *MODEL, "--text", TEXT, "--out", "{place}/o.wav")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("calibrate", *MODEL, "--profile", "{place}/p.json"), 2, "Calibrating is for models that go from noise"),
        (("transfer", *MODEL, "--table", "{place}/official.json"), 2, "A strategy table is for models that go from"),
        (("view", "temporal-redundancy", *MODEL), 2, "LM mini belongs to"),
        ((*SPEAK, "--table", "{place}/official.json"), 2, "A strategy table is for models that go from"),
        ((*SPEAK, "--steps", "4"), 2, "--steps is not for LM mini, which has --temperature"),
        ((*SPEAK, "--temperature", "9"), 2, "Temperature must lie between 0 and 2"),
        ((*SPEAK, "--technique", "ditreducio"), 2, "strategy table"),
        ((*SPEAK, "--technique", "steps"), 2, "not for models like LM mini"),
    ],
)
def test_what_is_not_for_language_models_is_refused(
    paretone: Callable[..., tuple[int, str, str]], tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    (tmp_path / "official.json").write_text("[[[]]]")
    found, _, said = paretone(*(one.format(place=tmp_path) for one in arguments))
    assert (found, words in said) == (code, True), said
    assert "Traceback" not in said
