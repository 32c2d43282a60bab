"""Texts in pieces of phones with durations, as the bundled models speak them."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile

from engine.errors import AudioError, TextError
from engine.front_end.chunking import FIRST_PIECE_SECONDS, PIECE_SECONDS
from engine.front_end.durations import TAIL_SECONDS
from engine.front_end.phones import PAUSE
from engine.front_end.reading import PhoneReader
from engine.models.shipped_voices import ARCTIC, voices_of
from tests.engine.front_end.arctic import duration_table

SENTENCE = "Rice is often served in round bowls."


@pytest.fixture(scope="module")
def reader() -> PhoneReader:
    return PhoneReader(duration_table())


def test_a_sentence_is_one_piece_without_pauses_at_its_ends(reader: PhoneReader) -> None:
    (piece,), notes = reader.pieces(SENTENCE, "slt", 1.0, quick_start=True)
    assert (piece.text, notes) == (SENTENCE, ())
    assert piece.phones[:3] == ("r", "ay", "s")
    assert piece.phones[-1] == "z"
    assert len(piece.seconds) == len(piece.phones) and (piece.seconds > 0).all()


def test_pieces_keep_to_the_budget_and_have_pauses_at_their_seams(reader: PhoneReader) -> None:
    pieces, _ = reader.pieces(" ".join([SENTENCE] * 6), "rms", 1.0, quick_start=False)
    assert len(pieces) > 1
    assert " ".join(piece.text for piece in pieces) == " ".join([SENTENCE] * 6)
    pauses = [(piece.phones[0] == PAUSE, piece.phones[-1] == PAUSE) for piece in pieces]
    assert pauses[0] == (False, True) and pauses[-1] == (True, False)
    assert set(pauses[1:-1]) <= {(True, True)}
    # The budget is for what is said; the pauses at the seams come on top.
    for piece in pieces:
        said = [seconds for phone, seconds in zip(piece.phones, piece.seconds, strict=True) if phone != PAUSE]
        assert sum(said) + TAIL_SECONDS <= PIECE_SECONDS
    quick, _ = reader.pieces(" ".join([SENTENCE] * 6), "rms", 1.0, quick_start=True)
    assert quick[0].seconds.sum() <= FIRST_PIECE_SECONDS + 0.5 < pieces[0].seconds.sum()


def test_speed_and_voice_change_durations_only(reader: PhoneReader) -> None:
    (usual,), (fast,), (other,) = (
        reader.pieces(SENTENCE, name, speed, quick_start=True)[0]
        for name, speed in (("slt", 1.0), ("slt", 2.0), ("rms", 1.0))
    )
    assert usual.phones == fast.phones == other.phones
    np.testing.assert_allclose(fast.seconds, usual.seconds / 2)
    assert not np.allclose(other.seconds, usual.seconds)


def test_what_cannot_be_read_is_said(reader: PhoneReader) -> None:
    with pytest.raises(TextError):
        reader.pieces("…", "slt", 1.0, quick_start=True)
    with pytest.raises(TextError, match="looks like German, but the bundled model speaks only English"):
        reader.pieces("Guten Tag, wie geht es Ihnen?", "slt", 1.0, quick_start=True)
    pieces, notes = reader.pieces("Rice 🍚 is served.", "slt", 1.0, quick_start=True)
    assert len(pieces) == 1
    assert "🍚" in notes[0]


def test_the_phones_of_a_recording_are_found_by_its_transcript(reader: PhoneReader) -> None:
    shipped = voices_of(ARCTIC)[0]
    samples, rate = soundfile.read(shipped.audio, dtype="float32")
    heard = reader.heard(samples, rate, shipped.transcript)
    assert heard.phones[-1][2] == pytest.approx(len(samples) / rate)
    found, measured = ([name for name, _, _ in one if name != PAUSE] for one in (heard.phones, shipped.phones))
    assert found == measured
    with pytest.raises(AudioError, match="exactly the words"):
        reader.heard(samples, rate, "No.")
