"""The command line with a speech language model and with masked models: every command works, or says why not."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone.models.base import SpeechModel
from paretone.models.families.passages import StreamingDifference
from paretone.models.minis.lm_mini import GatheringDecoder
from tests.engine import speaking
from tests.engine.command_line import Console
from tests.engine.models.omnivoice import small_release

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
def test_a_language_model_speaks(paretone: Console, tmp_path: Path) -> None:
    out = tmp_path / "speech.wav"
    speak = ("speak", "--model", LANGUAGE, "--text", speaking.TEXT, "--speed", "2", "--out", out)
    data = paretone.data(*speak, "--top-k", "5", "--json")
    assert data["tokens"] > 20
    assert data["setting"]["options"]["top_k"] == 5
    assert soundfile.info(out).frames == data["samples"]
    # The last pass gives the end.
    assert f"{data['tokens'] / data['target_passes']:.2f} per pass of the model" in paretone.out(*speak)
    assert data["target_passes"] == data["tokens"] + 1


@language
def test_a_language_model_takes_techniques_by_name(paretone: Console, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "speech.wav", "--json", "--technique")
    speak = ("speak", "--model", LANGUAGE, "--text", speaking.TEXT, "--speed", "2", *out)
    data = paretone.data(*speak, "speculative:tolerance=0.4;draft_length=2")
    assert data["target_passes"] < data["tokens"]
    assert paretone.data(*speak, "spade:depth=2")["ops_ratio"] < 0.9
    assert "No fully retrained student" in paretone.refusal(*speak, "spade:depth=1", code=2)


@language
def test_a_language_model_is_compared(paretone: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare = ("compare", "--model", LANGUAGE, "--text", speaking.TEXT, "--repeats", "1")
    drafting = "technique=speculative:draft_length=3;adaptive=false"
    both = ("--out", tmp_path / "both", "--json")
    data = paretone.data(*compare, *both, "baseline", f"speed=2,temperature=0,{drafting}")
    assert data["a"]["tokens"] == data["b"]["tokens"]
    assert data["a"]["target_passes"] > data["b"]["target_passes"]
    # Greedy speculation says the same, to rounding.
    assert data["log_mel_distance"] < 1e-4
    assert len(data["files"]) == 2
    streamed = (*compare, "speed=2", "speed=2,temperature=0")
    assert "streamed to whole" not in paretone.out(*streamed)
    # As with a decoder that looks at the whole utterance.
    monkeypatch.setattr(GatheringDecoder, "exact", False)
    monkeypatch.setattr(GatheringDecoder, "difference", lambda one: StreamingDifference(0.1, -18.4))
    said = paretone.out(*streamed)
    assert "streamed to whole (dB)" in said and "-18" in said
    assert paretone.data(*streamed, "--json")["a"]["streaming_difference"] == -18.4


# --- Masked models ----------------------------------------------------------------------------------------------------
@masked
def test_the_first_codebooks_are_written_alone(paretone: Console, tmp_path: Path) -> None:
    whole, part = tmp_path / "whole.wav", tmp_path / "part.wav"
    speak = ("speak", "--model", MASKED, *QUICK, "--text", small_release.TEXT)
    paretone.out(*speak, "--out", whole)
    assert "holds the first 2 codebooks alone" in paretone.out(*speak, "--codebooks", "2", "--out", part)
    one, other = (soundfile.read(path)[0] for path in (whole, part))
    assert len(other) % 960 == 0, "whole frames, neither trimmed nor padded"
    assert other.any() and not np.array_equal(one[: len(other)], other)
    said = paretone.refusal(*speak, "--codebooks", "99", "--out", tmp_path / "none.wav")
    assert "codebooks: decode 1 to" in said and not (tmp_path / "none.wav").exists()
    assert "Synthesising" not in said, "refused before anything is spoken"


@masked
def test_a_masked_model_speaks(paretone: Console, tmp_path: Path) -> None:
    out = tmp_path / "speech.wav"
    speak = ("speak", "--model", MASKED, *QUICK, "--text", small_release.TEXT, "--out", out)
    data = paretone.data(*speak, "--guidance", "1.5", "--language", "English", "--json")
    assert data["evaluations"] == 4
    assert data["setting"]["options"]["guidance"] == 1.5
    assert soundfile.info(out).frames == data["samples"]


@masked
def test_a_masked_model_takes_techniques_by_name(paretone: Console, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "speech.wav", "--json", "--technique")
    speak = ("speak", "--model", MASKED, *QUICK, "--text", small_release.LONG, *out)
    data = paretone.data(*speak, "blockwise:block=16;first_block=16;first_steps=2;later_steps=2;adaptive=false")
    assert data["evaluations"] > 6
    assert data["ops_ratio"] > 1
    assert data["first_audio_seconds"] < data["seconds"]
    assert paretone.data(*speak, "guidance_stride:every=2")["ops_ratio"] < 1


# --- Both -------------------------------------------------------------------------------------------------------------
SPEAK = ("speak", "--text", "Rice is good.", "--out", "{place}/o.wav")


@pytest.mark.parametrize(
    ("model", "arguments", "words"),
    [
        (LANGUAGE, ("calibrate", "--profile", "{place}/p.json"), "Calibrating is for models that go from noise"),
        (MASKED, ("transfer", "--table", "{place}/official.json"), "A strategy table is for models that go from"),
        (LANGUAGE, ("view", "temporal-redundancy"), " belongs to"),
        (MASKED, (*SPEAK, "--table", "{place}/official.json"), "A strategy table is for models that go from"),
        (LANGUAGE, (*SPEAK, "--technique", "ditreducio"), "not for models like LM mini"),
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
    paretone: Console, model: SpeechModel, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "official.json").write_text("[[[]]]")
    said = paretone.refusal(*(one.format(place=tmp_path) for one in arguments), "--model", model.info.id, code=2)
    assert words in said and "Traceback" not in said
