"""Texts in pieces of phones with times, as models of natural speech speak them."""

from __future__ import annotations

import numpy as np
import pytest

from paretone.errors import SettingError, TextError
from paretone.front_end.chunking import FIRST_PIECE_SECONDS, PIECE_SECONDS
from paretone.front_end.phones import EDGE, PHONES, PhoneVocabulary, labels, words
from paretone.front_end.reading import NaturalReader

SENTENCE = "Rice is often served in round bowls."


@pytest.fixture(scope="module")
def reader() -> NaturalReader:
    return NaturalReader()


def test_a_sentence_is_one_piece_with_silence_at_its_ends(reader: NaturalReader) -> None:
    (piece,), notes = reader.pieces(SENTENCE, quick_start=True)
    assert (piece.text, notes, piece.phonemes) == (SENTENCE, (), ("ɹˈIs ɪz ˈɔfᵊn sˈɜɹvd ɪn ɹˈWnd bˈOlz.",))
    names = [name for name, _, _ in piece.phones]
    assert names[0] == names[-1] == EDGE and names[-2] == "."
    assert next("".join(names[place] for place in word) for word in words(piece.phones)) == "ɹˈIs"
    assert 1.8 < piece.seconds < 3.2


def test_every_frame_has_a_phone_at_the_rates_of_mels_and_of_latents(reader: NaturalReader) -> None:
    (piece,), _ = reader.pieces(SENTENCE)
    vocabulary = PhoneVocabulary(PHONES)
    mel = labels(piece.phones, piece.mel_frames, vocabulary)
    latent = labels(piece.phones, piece.latent_frames, vocabulary, hop=300)
    assert len(mel) / len(latent) == pytest.approx(300 / 256, abs=0.01)
    assert set(mel) == set(latent) == {vocabulary.index[name] for name, _, _ in piece.phones}


def test_pieces_keep_to_the_budget_and_end_only_where_a_sentence_does(reader: NaturalReader) -> None:
    pieces, _ = reader.pieces(" ".join([SENTENCE] * 6))
    assert len(pieces) > 1
    assert " ".join(piece.text for piece in pieces) == " ".join([SENTENCE] * 6)
    assert all(piece.seconds <= PIECE_SECONDS for piece in pieces)
    quick, _ = reader.pieces(" ".join([SENTENCE] * 6), quick_start=True)
    assert quick[0].seconds <= FIRST_PIECE_SECONDS < pieces[0].seconds
    one_by_one, _ = reader.pieces(" ".join([SENTENCE] * 6), by_sentence=True)
    assert [piece.text for piece in one_by_one] == [SENTENCE] * 6
    long = "and then we walked along the river " * 8
    parts, _ = reader.pieces(long.strip())
    assert [piece.phonemes[-1][-1] == "." for piece in parts] == [False] * (len(parts) - 1) + [True]


def test_seeds_and_speed_change_times_only(reader: NaturalReader) -> None:
    mean, again, first, same, fast = (
        reader.pieces(SENTENCE, speed=speed, seed=seed)[0][0]
        for seed, speed in ((None, 1.0), (None, 1.0), (1, 1.0), (1, 1.0), (None, 2.0))
    )
    assert mean == again and first == same
    assert len({tuple(name for name, _, _ in piece.phones) for piece in (mean, first, fast)}) == 1
    assert fast.seconds == pytest.approx(mean.seconds / 2, rel=0.15)
    lengths = [reader.pieces(SENTENCE, seed=seed)[0][0].seconds for seed in range(40)]
    assert 0.03 < np.std(np.log(lengths)) < 0.12
    assert abs(np.mean(np.log(lengths)) - np.log(mean.seconds)) < 0.05


def test_what_cannot_be_read_is_said(reader: NaturalReader) -> None:
    for text in ("…", "  ", "?!"):
        with pytest.raises(TextError):
            reader.pieces(text)
    with pytest.raises(TextError, match="looks like German, but the bundled model speaks only English"):
        reader.pieces("Wie geht es dir, und was machst du mit dem Hund in der Stadt?")
    with pytest.raises(TextError, match="Cyrillic"):
        reader.pieces("Привет, как дела?")
    with pytest.raises(SettingError, match="must be greater than 0"):
        reader.pieces(SENTENCE, speed=0.0)
    _, notes = reader.pieces("The zorblax is here 🙂.")
    assert notes == (
        "Skipped unsupported characters: 🙂 (slightly smiling face).",
        "Read by rule, not in the lexicon: zorblax.",
    )


@pytest.mark.parametrize(
    "text", ["a ×·™ b", "see /b #x", "¢ ® (", "'-PCF \\ ]", "{f: 99/99}", "@@ ~[x]> ^y", "\x0b/j?3B…", "go -- #"]
)
def test_whatever_is_typed_becomes_phones_that_models_know(reader: NaturalReader, text: str) -> None:
    pieces, _ = reader.pieces(text, seed=2)
    assert {name for piece in pieces for name, _, _ in piece.phones} <= set(PHONES)


def test_noise_of_thousands_of_characters_is_cut_into_short_pieces(reader: NaturalReader) -> None:
    for text in ("a" * 900, "@" * 500, "x.y." * 100):
        pieces, _ = reader.pieces(text)
        assert max(piece.seconds for piece in pieces) < PIECE_SECONDS + 1
