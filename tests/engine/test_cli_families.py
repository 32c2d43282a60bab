"""The command line with a speech language model and with masked models: every command works, or says why not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone.models.base import SpeechModel
from paretone.models.families.passages import StreamingDifference
from paretone.models.minis.lm_mini import GatheringDecoder
from tests.engine import speaking
from tests.engine.models.omnivoice import small_release

Paretone = Callable[..., tuple[int, str, str]]
LANGUAGE, MASKED, MINI = "lm-mini", "OmniVoice", "omni-mini"
QUICK = ("--no-clone", "--steps", "4")


LOADING: dict[str, Callable[[Path], SpeechModel]] = {
    LANGUAGE: lambda folder: speaking.load(speaking.write_all(folder)),
    MASKED: lambda folder: small_release.load(small_release.write_release(folder)),
}


@pytest.fixture(scope="module")
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SpeechModel:
    return LOADING[request.param](tmp_path_factory.mktemp("models") / "model")


language = pytest.mark.parametrize("model", [LANGUAGE], indirect=True)
masked = pytest.mark.parametrize("model", [MASKED], indirect=True)


# --- A speech language model ------------------------------------------------------------------------------------------
@language
def test_a_language_model_speaks(paretone: Paretone, tmp_path: Path) -> None:
    out = tmp_path / "speech.wav"
    speak = ("speak", "--model", LANGUAGE, "--text", speaking.TEXT, "--speed", "2", "--out", out)
    code, said, _ = paretone(*speak, "--top-k", "5", "--json")
    assert code == 0
    data = json.loads(said)
    assert data["tokens"] > 20
    assert data["setting"]["options"]["top_k"] == 5
    assert soundfile.info(out).frames == data["samples"]
    code, said, _ = paretone(*speak)
    assert code == 0
    # The last pass gives the end.
    assert f"{data['tokens'] / data['target_passes']:.2f} per pass of the model" in said
    assert data["target_passes"] == data["tokens"] + 1


@language
def test_a_language_model_takes_techniques_by_name(paretone: Paretone, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "speech.wav", "--json", "--technique")
    speak = ("speak", "--model", LANGUAGE, "--text", speaking.TEXT, "--speed", "2", *out)
    code, said, _ = paretone(*speak, "speculative:tolerance=0.4;draft_length=2")
    assert code == 0
    assert json.loads(said)["target_passes"] < json.loads(said)["tokens"]
    code, said, _ = paretone(*speak, "spade:depth=2")
    assert code == 0
    assert json.loads(said)["ops_ratio"] < 0.9
    code, _, said = paretone(*speak, "spade:depth=1")
    assert code == 2
    assert "No fully retrained student" in said


@language
def test_a_language_model_is_compared(paretone: Paretone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare = ("compare", "--model", LANGUAGE, "--text", speaking.TEXT, "--repeats", "1")
    drafting = "technique=speculative:draft_length=3;adaptive=false"
    both = ("--out", tmp_path / "both", "--json")
    code, said, _ = paretone(*compare, *both, "baseline", f"speed=2,temperature=0,{drafting}")
    assert code == 0
    data = json.loads(said)
    assert data["a"]["tokens"] == data["b"]["tokens"]
    assert data["a"]["target_passes"] > data["b"]["target_passes"]
    # Greedy speculation says the same, to rounding.
    assert data["log_mel_distance"] < 1e-4
    assert len(data["files"]) == 2
    streamed = (*compare, "speed=2", "speed=2,temperature=0")
    assert "streamed to whole" not in paretone(*streamed)[1]
    # As with a decoder that looks at the whole utterance.
    monkeypatch.setattr(GatheringDecoder, "exact", False)
    monkeypatch.setattr(GatheringDecoder, "difference", lambda one: StreamingDifference(0.1, -18.4))
    said = paretone(*streamed)[1]
    assert "streamed to whole (dB)" in said and "-18" in said
    assert json.loads(paretone(*streamed, "--json")[1])["a"]["streaming_difference"] == -18.4


# --- Masked models ----------------------------------------------------------------------------------------------------
@masked
def test_the_first_codebooks_are_written_alone(paretone: Paretone, tmp_path: Path) -> None:
    whole, part = tmp_path / "whole.wav", tmp_path / "part.wav"
    speak = ("speak", "--model", MASKED, *QUICK, "--text", small_release.TEXT)
    assert paretone(*speak, "--out", whole)[0] == 0
    code, said, _ = paretone(*speak, "--codebooks", "2", "--out", part)
    assert code == 0 and "holds the first 2 codebooks alone" in said
    one, other = (soundfile.read(path)[0] for path in (whole, part))
    assert len(other) % 960 == 0, "whole frames, neither trimmed nor padded"
    assert other.any() and not np.array_equal(one[: len(other)], other)
    code, _, said = paretone(*speak, "--codebooks", "99", "--out", tmp_path / "none.wav")
    assert code != 0 and "codebooks: decode 1 to" in said and not (tmp_path / "none.wav").exists()
    assert "Synthesising" not in said, "refused before anything is spoken"


@masked
def test_a_masked_model_speaks(paretone: Paretone, tmp_path: Path) -> None:
    out = tmp_path / "speech.wav"
    speak = ("speak", "--model", MASKED, *QUICK, "--text", small_release.TEXT, "--out", out)
    code, said, problem = paretone(*speak, "--guidance", "1.5", "--language", "English", "--json")
    assert code == 0, problem
    data = json.loads(said)
    assert data["evaluations"] == 4
    assert data["setting"]["options"]["guidance"] == 1.5
    assert soundfile.info(out).frames == data["samples"]


@masked
def test_a_masked_model_takes_techniques_by_name(paretone: Paretone, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "speech.wav", "--json", "--technique")
    speak = ("speak", "--model", MASKED, *QUICK, "--text", small_release.LONG, *out)
    blocks = "blockwise:block=16;first_block=16;first_steps=2;later_steps=2;adaptive=false"
    code, said, problem = paretone(*speak, blocks)
    assert code == 0, problem
    data = json.loads(said)
    assert data["evaluations"] > 6
    assert data["ops_ratio"] > 1
    assert data["first_audio_seconds"] < data["seconds"]
    code, said, _ = paretone(*speak, "guidance_stride:every=2")
    assert (code, json.loads(said)["ops_ratio"] < 1) == (0, True)


# --- Both -------------------------------------------------------------------------------------------------------------
SPEAK = ("speak", "--text", "Rice is good.", "--out", "{place}/o.wav")


@pytest.mark.parametrize(
    ("model", "arguments", "words"),
    [
        (LANGUAGE, ("calibrate", "--profile", "{place}/p.json"), "Calibrating is for models that go from noise"),
        (MASKED, ("transfer", "--table", "{place}/official.json"), "A strategy table is for models that go from"),
        (LANGUAGE, ("view", "temporal-redundancy"), " belongs to"),
        (MASKED, (*SPEAK, "--table", "{place}/official.json"), "A strategy table is for models that go from"),
        (LANGUAGE, (*SPEAK, "--technique", "ditreducio"), "strategy table"),
        (LANGUAGE, (*SPEAK, "--steps", "4"), "--steps is not for LM mini, which has --temperature"),
        (LANGUAGE, (*SPEAK, "--temperature", "9"), "Temperature must lie between 0 and 2"),
        (MASKED, (*SPEAK, *QUICK, "--duration", "600"), "too far from what this text usually takes"),
        (MASKED, (*SPEAK, *QUICK, "--instruct", "green"), "does not know the description"),
        (MASKED, (*SPEAK, "--technique", "speculative"), "not for models like OmniVoice"),
        (MASKED, ("measure-layers",), "OmniVoice"),
    ],
    indirect=["model"],
)
def test_what_is_not_for_a_model_is_refused(
    paretone: Paretone, model: SpeechModel, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "official.json").write_text("[[[]]]")
    found, _, said = paretone(*(one.format(place=tmp_path) for one in arguments), "--model", model.info.id)
    assert (found, words in said) == (2, True), said
    assert "Traceback" not in said
