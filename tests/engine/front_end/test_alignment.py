"""The times of phones in recordings."""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
import pytest
import soundfile

from paretone.errors import AudioError
from paretone.front_end.alignment import ALIGNER_PHONES, FORCED, MEAN_LENGTHS, align_phones
from paretone.front_end.phones import BLANK, CONSONANTS, EDGE, VOWELS, words
from paretone.front_end.reading import NaturalReader
from paretone.models.catalogue import voice

MONOTONE = tuple((name, 0.1 * place, 0.1 * (place + 1)) for place, name in enumerate("ɡO_nW."))


@pytest.fixture(scope="module")
def reader() -> NaturalReader:
    return NaturalReader()


def test_every_sound_has_a_name_for_the_aligner():
    assert set(ALIGNER_PHONES) == {*VOWELS, *CONSONANTS}


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
    assert said == " ".join(reader.text(spoken.transcript).sentences).rstrip(".")  # The recording ends with its speech.
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
