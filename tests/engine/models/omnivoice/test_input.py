"""Every mistake in a request to a masked model ends as a sentence: a refusal, or a note of the take."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone.errors import AudioError, PlainError, TextError
from paretone.models.base import SpeechModel, Synthesis, Voice
from paretone.setting.setting import Setting
from tests.engine.models.official import used
from tests.engine.models.omnivoice.small_release import TEXT, load, setting, spoken, write_release

RATE = 24000


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> SpeechModel:
    return load(write_release(tmp_path_factory.mktemp("input") / "model"))


def refusal(model: SpeechModel, chosen: Setting, text: str = TEXT, by: Voice | None = None) -> str:
    with pytest.raises(PlainError) as raised:
        spoken(model, chosen, text, by=by)
    return str(raised.value)


def recorded(path: Path, seconds: float, transcript: str = "Some words here.", level: float = 0.2) -> Voice:
    """Words of 0.35 s with pauses between."""
    times = np.arange(round(seconds * RATE)) / RATE
    samples = level * np.sin(2770 * times) * (times % 0.6 < 0.35)
    soundfile.write(path, samples.astype(np.float32), RATE)
    return Voice(f"own:{path}", path.name, str(path), transcript)


def said(made: Synthesis, words: str) -> str:
    """The one note with these words."""
    (note,) = (one for one in made.notes if words in one)
    return note


def test_an_unknown_language_is_not_told(model: SpeechModel) -> None:
    note = said(spoken(model, setting(language="Klingon")), "Klingon")
    assert note.startswith("OmniVoice does not know the language 'Klingon', so no language was set.")
    for known in ("de", "German"):
        assert not any("language" in one for one in spoken(model, setting(language=known)).notes)


@pytest.mark.parametrize("text", ["", "  ", "… !"])
def test_nothing_to_speak_is_refused(model: SpeechModel, text: str) -> None:
    assert refusal(model, setting(), text) == "There is nothing to speak in this text; type a sentence."


def test_a_long_reference_without_a_transcript_says_where_to_cut_it(model: SpeechModel, tmp_path: Path) -> None:
    long, short = (recorded(tmp_path / f"{seconds}.wav", seconds, transcript="") for seconds in (24.0, 6.0))
    sentence = refusal(model, setting(clone=True), by=long)
    assert "has no transcript; write down what the recording says. It lasts 24.0 s" in sentence
    assert "cut it at a pause, such as at 15.0 s, and transcribe the rest" in sentence
    assert refusal(model, setting(clone=True), by=short).endswith("write down what the recording says.")


def test_no_duration_is_the_texts_own_and_ten_minutes_are_too_long(model: SpeechModel) -> None:
    own = spoken(model, setting(post_process=False))
    assert np.array_equal(own.samples, spoken(model, setting(post_process=False, duration=0.0)).samples)
    sentence = refusal(model, setting(duration=600.0))
    assert sentence.startswith("A duration of 600 s is too far from what this text usually takes (")
    assert "between 0 and 600 s, not at 601" in refusal(model, setting(duration=601.0))
    assert spoken(model, setting(duration=2.0, post_process=False)).trace.demasking.passages[0].codes.shape[1] == 50


def test_a_precision_that_the_device_lacks_is_replaced(model: SpeechModel) -> None:
    plain, narrow = spoken(model, setting()), spoken(model, setting(used("precision", precision="float16")))
    assert "does not gain from float16 for OmniVoice, which uses float32 instead" in said(narrow, "float16")
    assert np.array_equal(plain.samples, narrow.samples)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"level": 0.0}, AudioError, "is silent"),
        ({"transcript": " "}, TextError, "no transcript"),
        ({"seconds": 0.1}, AudioError, "at least 0.3 s"),
        ({"seconds": 61.0}, AudioError, "cut it to 60 s"),
    ],
)
def test_references_that_cannot_be_used(
    model: SpeechModel, tmp_path: Path, change: dict, error: type[Exception], said: str
) -> None:
    mine = recorded(tmp_path / "mine.wav", **{"seconds": 2.0, **change})
    with pytest.raises(error, match=said):
        spoken(model, setting(clone=True), by=mine)


@pytest.mark.parametrize(
    ("seconds", "transcript", "said"),
    [
        (6.0, "Word.", "too short for its 6.0 s: so much text usually takes about 1.1 s"),
        (2.0, "Word after word. " * 20, "too long for its 2.0 s: so much text usually takes about 20.0 s"),
        (24.0, "Word.", "mine.wav: 24.0 s are long for a reference"),
    ],
)
def test_references_that_are_odd_are_used_with_a_warning(
    model: SpeechModel, tmp_path: Path, seconds: float, transcript: str, said: str
) -> None:
    pytest.importorskip("transformers")
    mine = recorded(tmp_path / "mine.wav", seconds, transcript=transcript)
    notes = model.prompt(mine, setting(clone=True, prepare=False).options, lambda: None).notes
    assert any(said in note for note in notes), notes
    assert sum("transcript" in note for note in notes) <= 1, "once"
