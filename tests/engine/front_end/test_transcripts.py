"""Recordings held against their transcripts. The thresholds were set on recordings of people (bundled-models.md)."""

import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone.audio.prompt import is_cut
from paretone.audio.recording import Recording
from paretone.audio.resampling import resample
from paretone.errors import AudioError
from paretone.front_end import transcripts
from paretone.front_end.transcripts import doubts, fitted, hear
from paretone.models.catalogue import voices
from paretone.models.voices import examine, examined
from tests.workload import workload

VOICES = voices()
HEARD = workload(VOICES, VOICES[:1])
TEXT = VOICES[0].transcript
OTHER = "The juice of lemons makes fine punch, and nobody knows why."


def spoken(number: int = 0) -> tuple[np.ndarray, int]:
    samples, rate = soundfile.read(VOICES[number].audio, dtype="float32")
    return samples, rate


def noise(count: int, level: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, level, count).astype(np.float32)


def heard(samples: np.ndarray, rate: int, transcript: str) -> tuple[str, ...]:
    return doubts(hear(samples, rate, transcript), "me.wav")


@pytest.fixture
def aligner() -> None:
    pytest.importorskip("pocketsphinx")


@pytest.fixture
def no_aligner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pocketsphinx", None)


@pytest.mark.usefixtures("aligner")
@pytest.mark.parametrize("number", range(len(HEARD)), ids=lambda number: VOICES[number].id)
def test_the_shipped_voices_say_their_transcripts(number: int) -> None:
    samples, rate = spoken(number)
    narrow = resample(resample(samples, rate, 8000), 8000, rate)
    noisy = samples + noise(len(samples), float(np.sqrt(np.mean(samples**2))) / 10)
    for harmed in workload((samples, narrow, noisy, samples / 32), (narrow, noisy / 32)):
        assert heard(harmed, rate, VOICES[number].transcript) == ()


@pytest.mark.usefixtures("aligner")
@pytest.mark.parametrize(
    ("transcript", "said"),
    [
        (OTHER, "does not seem to say its transcript"),
        ("We will meet at the old harbor.", "says more than its transcript"),
        (f"{TEXT} {OTHER}", "could not be found"),
    ],
)
def test_another_transcript_is_doubted(transcript: str, said: str) -> None:
    (one,) = heard(*spoken(), transcript)
    assert one.startswith("me.wav") or "in me.wav" in one
    assert said in one and "exactly the words" in one


@pytest.mark.usefixtures("aligner")
def test_what_is_no_english_speech_is_doubted() -> None:
    samples, rate = spoken()
    assert heard(samples[::-1].copy(), rate, TEXT), "backwards it is another language"
    bursts = noise(3 * rate, 0.1) * (np.arange(3 * rate) % (0.7 * rate) < 0.3 * rate)
    assert heard(bursts, rate, TEXT)
    assert heard(0.3 * samples + 0.1, rate, TEXT) == ()


@pytest.mark.parametrize("kind", ["noise", "tone", "chord"])
def test_a_steady_sound_is_no_speech_with_and_without_the_aligner(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    time = np.arange(3 * 24000) / 24000
    tones = {"tone": (220,), "chord": (220, 277, 330)}.get(kind, ())
    sound = noise(len(time), 0.1) if kind == "noise" else sum(0.1 * np.sin(2 * np.pi * one * time) for one in tones)
    for _ in range(2):
        assert "no speech in me.wav" in heard(np.asarray(sound, np.float32), 24000, TEXT)[0]
        monkeypatch.setitem(sys.modules, "pocketsphinx", None)


@pytest.mark.usefixtures("no_aligner")
def test_without_the_aligner_the_pace_tells_and_it_is_said_that_nothing_else_does() -> None:
    assert heard(*spoken(), TEXT) == heard(*spoken(), OTHER) == ()
    assert "too short for the" in heard(*spoken(), "We will.")[0]
    assert "too long for the" in heard(*spoken(), " ".join([TEXT] * 4))[0]
    assert "paretone[judge]" in transcripts.unchecked(hear(*spoken(), TEXT), "me.wav")


@pytest.mark.parametrize(
    "transcript", ["今天天气很好，我们去海边。", "Guten Tag, wie geht es Ihnen heute Morgen, mein Herr?"]
)
def test_of_other_languages_it_is_said_that_their_words_are_not_looked_for(transcript: str) -> None:
    samples, rate = spoken()
    said = hear(samples, rate, transcript)
    assert doubts(said, "me.wav") == ()
    (one,) = transcripts.remarks(said, "me.wav")
    assert "could not be checked: only English words are looked for" in one == transcripts.unchecked(said, "me.wav")
    assert transcripts.remarks(hear(samples, rate, ""), "me.wav") == ()


GERMAN = (
    "Guten Tag, meine Damen und Herren, ich freue mich sehr, dass Sie heute zu uns gekommen sind, um über die Zukunft "
    "der Sprache zu sprechen. Die Technik hat sich in den letzten Jahren stark verändert, und wir müssen lernen, mit "
    "ihr umzugehen. Es ist nicht immer leicht, aber es lohnt sich für alle, die sich darauf einlassen. Nach der Pause "
    "sehen wir uns einige Beispiele an, die zeigen, wie weit die Forschung gekommen ist und was noch vor uns liegt."
)
UNNOTICED = (
    "Heute morgen fuhren drei Busse langsam durchs Dorf. Kinder spielten Fangen, Hunde bellten, Nachbarn grüßten. " * 3
)
"""German without any of the frequent words by which it is told."""


@pytest.mark.parametrize("transcript", [GERMAN, "今天天气很好，我们去海边，晚上再回家吃饭。" * 4])
def test_of_other_languages_the_pace_is_judged_roughly(transcript: str) -> None:
    assert "too long for the 2." in heard(*spoken(), transcript)[0]
    assert "too short for the" in heard(*spoken_for(37.0), transcript[:10] + "，ist das nicht die")[0]


def spoken_for(seconds: float) -> tuple[np.ndarray, int]:
    """Recordings of all voices in turn."""
    parts = [spoken(number) for number in range(len(VOICES))]
    rate = parts[0][1]
    return np.tile(np.concatenate([samples for samples, _ in parts]), 4)[: round(seconds * rate)], rate


def test_a_long_recording_in_another_language_is_not_cut_without_its_transcript() -> None:
    recording = Recording(*spoken_for(37.0))
    with pytest.raises(AudioError) as raised:
        fitted(recording, GERMAN, "me.wav")
    sentence = str(raised.value)
    assert sentence.startswith("Only the first 1") and "Shorten the transcript to what is said in them." in sentence
    assert "“" not in sentence and "judge" not in sentence, "which words end them is not known"
    of_beginning = GERMAN[: GERMAN.index("Die Technik")]
    kept, said = fitted(recording, of_beginning, "me.wav")
    assert said == of_beginning and kept.seconds < 13


@pytest.mark.usefixtures("aligner")
@pytest.mark.parametrize("transcript", workload([UNNOTICED, f"{OTHER} " * 5], [UNNOTICED]))
def test_no_words_are_quoted_that_a_long_recording_does_not_say(transcript: str) -> None:
    with pytest.raises(AudioError) as raised:
        fitted(Recording(*spoken_for(workload(37.0, 20.0))), transcript[: workload(None, 240)], "me.wav")
    sentence = str(raised.value)
    assert "exactly the words of the recording. Of its speech only the first 1" in sentence and "“" not in sentence


# --- Both cut together ------------------------------------------------------------------------------------------------
SENTENCE = 3.175
SOME = workload(19, 6)
"""Times that the sentence is said."""
LONG = " ".join([TEXT] * 19)


def minute(repeats: int = 19) -> Recording:
    samples, rate = spoken()
    return Recording(np.tile(samples, repeats)[: 60 * rate], rate)


@pytest.mark.usefixtures("aligner")
def test_a_minute_is_cut_together_with_its_transcript() -> None:
    recording, said = fitted(minute(SOME), " ".join([TEXT] * SOME), "me.wav")
    count = said.count("harbor")
    assert said == " ".join([TEXT] * count), "at the end of a sentence"
    assert count >= 2 and recording.seconds == pytest.approx(count * SENTENCE, abs=1.0)
    assert recording.notes[-1].startswith(f"me.wav was cut to its first {recording.seconds:.0f}"[:30])
    assert "and its transcript to “We will meet at … talk about the weather.”" in recording.notes[-1]
    assert heard(recording.samples, recording.sample_rate, said) == ()


def test_written_words_are_counted_as_they_are_spoken() -> None:
    text = "Dr. Who came in 1999, at 5:30. It rained."
    spoken = {text[:place]: count for place, count in transcripts.counted(text)}
    assert spoken["Dr. Who came"] == 3 and spoken[text] - spoken["Dr. Who came in 1999, at 5:30."] == 2
    assert spoken["Dr. Who came in 1999,"] > 5


@pytest.mark.usefixtures("aligner")
def test_another_transcript_of_the_same_length_is_doubted_and_not_cut() -> None:
    other = " ".join([OTHER] * 3)
    kept, said = fitted(minute(6), other, "me.wav")
    assert said == other and heard(kept.samples, kept.sample_rate, said)


@pytest.mark.usefixtures("aligner")
def test_the_transcript_of_the_beginning_stays_as_it_is() -> None:
    """As the official package asks for it: what it cuts off was not written down."""
    whole = minute(4)
    assert is_cut(whole)
    _, first = fitted(whole, " ".join([TEXT] * 4), "me.wav")
    kept, said = fitted(whole, first, "me.wav")
    assert said == first and "cut to its first" in kept.notes[-1]


@pytest.mark.usefixtures("no_aligner")
def test_without_the_aligner_it_is_said_which_seconds_and_words_are_used() -> None:
    with pytest.raises(AudioError) as raised:
        fitted(minute(), LONG, "me.wav")
    sentence = str(raised.value)
    assert "Only the first 1" in sentence and "shorten the transcript" in sentence and "paretone[judge]" in sentence
    quoted = sentence.partition("end near “")[2].partition("”")[0]
    assert quoted.startswith("We will meet at …")
    # The first 10.9 s have the sentence three times and a half: within three words of that.
    assert any(quoted.endswith(" ".join((TEXT.split() * 2)[:last][-4:])) for last in range(4, 12)), quoted


# --- As the window asks -----------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("aligner")
def test_a_recording_is_examined_in_a_process_of_its_own(tmp_path: Path) -> None:
    path, text = tmp_path / "me.wav", f"{TEXT} {TEXT}"
    soundfile.write(path, minute(2).samples, 24_000)
    found = examine(path, text)
    assert (found.problem, found.doubts) == ("", ()) and found.seconds == pytest.approx(2 * SENTENCE, abs=0.5)
    assert found == examined(path, text)
    assert "words fit" in examined(VOICES[0].audio, OTHER).doubts[0]
    soundfile.write(path, minute(7).samples, 24_000)
    assert "Only the first" in examined(path, GERMAN).doubts[0]
    assert examine(path, GERMAN, False).notes[-1].endswith("only English words are looked for.")
    soundfile.write(path, np.zeros(48_000), 24_000)
    assert "is silent" in examined(path, LONG).problem
