"""The times of phones in recordings."""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone.errors import AudioError, CheckpointError
from paretone.front_end.alignment import FORCED, MEAN_LENGTHS, align_phones
from paretone.front_end.phonemiser import default_phonemiser
from paretone.front_end.phones import BLANK, EDGE, PHONES, PhoneVocabulary, timed_phones, words
from paretone.front_end.reading import NaturalReader
from paretone.models.catalogue import voice
from tests.tools.recipes.alignments import respaced

MONOTONE = tuple((name, 0.1 * place, 0.1 * (place + 1)) for place, name in enumerate("ɡO_nW."))


@pytest.fixture(scope="module")
def reader() -> NaturalReader:
    return NaturalReader()


def test_the_phones_of_a_recording_are_found_by_its_transcript(reader: NaturalReader) -> None:
    pytest.importorskip("pocketsphinx")
    spoken = voice()
    samples, rate = soundfile.read(spoken.audio, dtype="float32")
    heard = reader.heard(samples, rate, spoken.transcript)
    assert heard.method == FORCED
    names = [name for name, _, _ in heard.phones]
    assert heard.phones[0][1] == 0.0 and heard.phones[-1][2] == pytest.approx(len(samples) / rate)
    assert all(end == start for (_, _, end), (_, start, _) in pairwise(heard.phones))
    said = "".join(names).replace(BLANK, " ").strip(EDGE)
    assert said == " ".join(default_phonemiser()(spoken.transcript).sentences).rstrip(
        "."
    )  # The recording ends with its speech.
    blanks = [end - start for name, start, end in heard.phones if name == BLANK]
    assert min(blanks) > 0.015 and np.mean(blanks) < 0.08
    # The same sounds are where the bundled times have them, which were measured when the voice was made.
    starts = [heard.phones[word[0]][1] for word in words(heard.phones)]
    assert starts == sorted(starts)


def test_without_the_aligner_mean_lengths_are_stretched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pocketsphinx", None)
    rate = 8000
    samples = np.concatenate([np.zeros(rate), np.random.default_rng(0).normal(0, 0.1, rate), np.zeros(rate)])
    aligned = align_phones(samples.astype(np.float32), rate, MONOTONE)
    assert aligned.method == MEAN_LENGTHS
    assert [name for name, _, _ in aligned.phones] == list("^ɡO_nW.^")
    np.testing.assert_allclose([start for _, start, _ in aligned.phones[1:]], np.linspace(1, 2, 7), atol=0.011)


def test_what_cannot_be_of_a_transcript_is_said(reader: NaturalReader) -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, 8000 * 9).astype(np.float32)
    with pytest.raises(
        AudioError, match=r"^9\.0 s of the recording's speech are used, but its transcript would take about"
    ):
        align_phones(noise, 8000, MONOTONE)
    with pytest.raises(AudioError, match="silent"):
        reader.heard(np.zeros(8000, np.float32), 8000, "Go now.")


SYMBOLS = tuple("^həlˈO wˌɜɹld.^")
LENGTHS = (4, 2, 2, 2, 1, 5, 2, 1, 2, 4, 0, 3, 2, 6, 3)


def test_words_keep_their_places_and_stress_its_vowel():
    phones = timed_phones(SYMBOLS, LENGTHS, 0.0125)
    assert [name for name, _, _ in phones] == [EDGE, "h", "ə", "l", "ˈO", BLANK, "w", "ˌɜ", "l", "d", ".", EDGE]
    assert phones[4] == ("ˈO", 0.125, 0.2)
    assert phones[-1][2] == pytest.approx(sum(LENGTHS) * 0.0125)
    assert all(end == start for (_, _, end), (_, start, _) in pairwise(phones))
    assert ["".join(phones[place][0] for place in word) for word in words(phones)] == ["həlˈO", "wˌɜld"]
    spaced = respaced(phones, np.ones_like)
    assert [name for name, _, _ in spaced] == [name for name, _, _ in phones]
    for word in words(phones):
        assert spaced[word[0]][1] == pytest.approx(phones[word[0]][1])
        assert spaced[word[-1]][2] == pytest.approx(phones[word[-1]][2])
        lengths = [spaced[place][2] - spaced[place][1] for place in word]
        assert lengths == pytest.approx([lengths[0]] * len(word))
    assert spaced[5] == phones[5]
    same = respaced(phones, lambda lengths: lengths)
    assert [time for _, *times in same for time in times] == pytest.approx(
        [time for _, *times in phones for time in times]
    )


def test_a_list_of_phones_gives_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{phone}\n" for phone in PHONES), encoding="utf-8")
    vocabulary = PhoneVocabulary.load(path)
    assert vocabulary.phones == PHONES
    assert vocabulary.ids(PHONES[3:6]).tolist() == [3, 4, 5]
    with pytest.raises(CheckpointError, match="lacks 'qq'"):
        vocabulary.ids(["qq"])


@pytest.mark.parametrize(
    ("listed", "problem"),
    [
        ("^ k qq", "'qq' is not a phone"),
        ("k t", r"'\^' is missing"),
        ("^ k k", "listed twice"),
        ("pau aa b", "made with an earlier version of Paretone"),
    ],
)
def test_a_list_that_cannot_be_used_is_refused(tmp_path: Path, listed: str, problem: str) -> None:
    (tmp_path / "vocab.txt").write_text(listed, encoding="utf-8")
    with pytest.raises(CheckpointError, match=problem):
        PhoneVocabulary.load(tmp_path / "vocab.txt")
