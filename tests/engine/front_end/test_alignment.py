from __future__ import annotations

import json

import numpy as np
import pytest
import soundfile

from engine.errors import AudioError
from engine.front_end import alignment
from engine.front_end.alignment import FORCED, TABLE, align
from engine.front_end.durations import DurationTable
from engine.front_end.phonemiser import Phonemiser
from engine.paths import resource
from tests.engine.front_end.arctic import duration_table


@pytest.fixture(scope="module")
def table() -> DurationTable:
    return duration_table()


def recording(voice: str) -> tuple[np.ndarray, int, str, list[float]]:
    """Samples, rate, transcript and the true ends of the phones."""
    folder = resource("voices", "arctic")
    samples, rate = soundfile.read(folder / f"{voice}.wav", dtype="float32")
    known = json.loads((folder / f"{voice}.json").read_text())
    return samples, rate, known["text"], [end for phone, _, end in known["phones"] if phone != "pau"]


def ends(found: alignment.Alignment) -> np.ndarray:
    return np.array([end for phone, _, end in found.phones if phone != "pau"])


@pytest.mark.parametrize("voice", ["slt", "rms"])
def test_forced_alignment_finds_the_phones(table: DurationTable, voice: str) -> None:
    pytest.importorskip("pocketsphinx")
    samples, rate, text, truth = recording(voice)
    found = align(samples, rate, Phonemiser()(text), table)
    assert found.method == FORCED
    assert np.abs(ends(found) - truth).mean() < 0.02


@pytest.mark.parametrize("voice", ["slt", "rms"])
def test_without_an_aligner_the_table_is_stretched(
    table: DurationTable, voice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pocketsphinx", None)
    samples, rate, text, truth = recording(voice)
    found = align(samples, rate, Phonemiser()(text), table, voice)
    assert found.method == TABLE
    assert np.abs(ends(found) - truth).mean() < 0.08
    assert found.phones[0][1] == 0.0
    assert found.phones[-1][2] == pytest.approx(len(samples) / rate, abs=0.011)
    assert all(first[2] == second[1] for first, second in zip(found.phones, found.phones[1:], strict=False))


def test_a_transcript_of_something_else_is_refused(table: DurationTable) -> None:
    samples, rate, text, _ = recording("slt")
    with pytest.raises(AudioError, match="check that the transcript"):
        align(samples, rate, Phonemiser()("No."), table)
    with pytest.raises(AudioError, match="check that the transcript"):
        align(samples, rate, Phonemiser()(" ".join([text] * 4)), table)


@pytest.mark.parametrize("samples", [np.zeros(24000, np.float32), np.zeros(0, np.float32)])
def test_silence_is_refused(table: DurationTable, samples: np.ndarray) -> None:
    with pytest.raises(AudioError, match="silent or empty"):
        align(samples, 24000, Phonemiser()("Hello."), table)
