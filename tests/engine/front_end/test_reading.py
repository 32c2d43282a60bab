"""Texts in pieces of phones with times, as models of natural speech speak them."""

import numpy as np
import pytest

from paretone.errors import SettingError, TextError
from paretone.front_end.phones import EDGE, PHONES, PhoneVocabulary, labels, words
from paretone.front_end.pronunciations import HowToRead
from paretone.front_end.reading import EMPHASISED, LEAD, LONGER, TAIL, TEMPOS, NaturalReader, Prosody
from paretone.front_end.speakable import FIRST_PIECE_SECONDS, PIECE_SECONDS, chunks, sentences

SENTENCE = "Rice is often served in round bowls."


@pytest.fixture(scope="module")
def reader() -> NaturalReader:
    return NaturalReader()


def test_a_sentence_is_one_piece_with_silence_at_its_ends(reader: NaturalReader) -> None:
    (piece,), notes = reader.pieces(SENTENCE, HowToRead(quick_start=True))
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
    quick, _ = reader.pieces(" ".join([SENTENCE] * 6), HowToRead(quick_start=True))
    assert quick[0].seconds <= FIRST_PIECE_SECONDS < pieces[0].seconds
    one_by_one, _ = reader.pieces(" ".join([SENTENCE] * 6), HowToRead(by_sentence=True))
    assert [piece.text for piece in one_by_one] == [SENTENCE] * 6
    parts, _ = reader.pieces(("and then we walked along the river " * 8).strip())
    assert [piece.phonemes[-1][-1] == "." for piece in parts] == [False] * (len(parts) - 1) + [True]


def test_seeds_and_speed_change_times_only(reader: NaturalReader) -> None:
    mean, again, first, same, fast = (
        reader.pieces(SENTENCE, HowToRead(speed=speed, seed=seed))[0][0]
        for seed, speed in ((None, 1.0), (None, 1.0), (1, 1.0), (1, 1.0), (None, 2.0))
    )
    assert mean == again and first == same
    assert len({tuple(name for name, _, _ in piece.phones) for piece in (mean, first, fast)}) == 1
    assert fast.seconds == pytest.approx(mean.seconds / 2, rel=0.15)
    lengths = [reader.pieces(SENTENCE, HowToRead(seed=seed))[0][0].seconds for seed in range(40)]
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
        reader.pieces(SENTENCE, HowToRead(speed=0.0))
    _, notes = reader.pieces("The zorblax is here 🙂.")
    assert notes == (
        "Skipped unsupported characters: 🙂 (slightly smiling face).",
        "Read by rule, not in the lexicon: zorblax.",
    )


@pytest.mark.parametrize("text", ["a ×·™ b", "'-PCF \\ ]", "{f: 99/99}", "@@ ~[x]> ^y", "\x0b/j?3B…"])
def test_whatever_is_typed_becomes_phones_that_models_know(reader: NaturalReader, text: str) -> None:
    pieces, _ = reader.pieces(text, HowToRead(seed=2))
    assert {name for piece in pieces for name, _, _ in piece.phones} <= set(PHONES)


PLAIN_SENTENCE = "ɡˈO ðˈɛɹ, nˈW."


def _units(symbols: object) -> np.ndarray:
    return np.full(len(PLAIN_SENTENCE) + 2, 4.0, np.float32)


def test_lengths_are_divided_by_tempo_and_speed_and_the_silence_at_the_ends_is_short():
    usual, fast = (Prosody(tempo).spoken(PLAIN_SENTENCE, _units, speed) for tempo, speed in ((1.0, 1.0), (1.25, 1.6)))
    assert usual[0] == (EDGE, 0.0, LEAD * 0.0125)
    assert usual[-1][2] - usual[-1][1] == pytest.approx(min(TAIL, 8) * 0.0125)
    assert usual[1][2] - usual[1][1] == pytest.approx(0.1)
    assert fast[-1][2] == pytest.approx(usual[-1][2] / 2)


def test_an_emphasised_word_is_longer_and_nothing_else():
    usual, other = (one.spoken(PLAIN_SENTENCE, _units, 1.0) for one in (Prosody(), Prosody(1.0, 0.5, 1.0)))
    lengths = [[end - start for _, start, end in phones] for phones in (usual, other)]
    longer = np.flatnonzero(~np.isclose(*lengths))
    assert "".join(usual[place][0] for place in longer) == "ðˈɛɹ"
    inside = [sum(one[place] for place in longer) for one in lengths]
    assert inside[1] / inside[0] == pytest.approx(1 + LONGER, rel=0.03)


def test_paces_are_drawn_as_the_training_speech_has_them():
    drawn = [Prosody.drawn(seed, 0) for seed in range(400)]
    assert Prosody.drawn(-1) == Prosody.drawn(-1)
    assert drawn[7] == Prosody.drawn(7, 0) != Prosody.drawn(7, 1)
    assert TEMPOS[0] <= min(one.tempo for one in drawn) and max(one.tempo for one in drawn) <= TEMPOS[1]
    assert np.mean([one.emphasis is not None for one in drawn]) == pytest.approx(EMPHASISED, abs=0.08)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two? Three!", ["One.", "Two?", "Three!"]),
        ("Dr. Lee met J. K. Rowling. They spoke.", ["Dr. Lee met J. K. Rowling.", "They spoke."]),
        ("It cost 3.50 dollars. OK.", ["It cost 3.50 dollars.", "OK."]),
        ("“Go!” she said. He went.", ["“Go!” she said.", "He went."]),
        ("Title\n\nBody text", ["Title", "Body text"]),
        ("no end", ["no end"]),
        ("  ", []),
    ],
)
def test_sentences(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts


def letters(text: str) -> float:
    """A stand-in for duration: one second a letter."""
    return float(sum(character.isalnum() for character in text))


def test_a_long_sentence_is_cut_at_commas_then_at_words() -> None:
    assert chunks("Aaa bbb, ccc ddd.", letters, budget=6) == ["Aaa bbb,", "ccc ddd."]
    assert all(letters(part) <= 6 for part in chunks("aaa bbb ccc ddd", letters, budget=6))


def test_the_first_chunk_is_shorter_but_never_cut_inside_a_clause() -> None:
    assert chunks("Aaa bbb, ccc. Ddd eee.", letters, budget=20, first_budget=7) == ["Aaa bbb,", "ccc. Ddd eee."]
    assert chunks("Aaa bbb ccc. Ddd eee.", letters, budget=20, first_budget=4) == ["Aaa bbb ccc.", "Ddd eee."]


def test_the_duration_of_each_piece_is_asked_once() -> None:
    asked = list[str]()
    text = " ".join(f"One {number}, three four. Five six {number}." for number in range(30))

    def counted(one: str) -> float:
        asked.append(one)
        return letters(one)

    assert len(chunks(text, counted, budget=60)) > 5
    assert len(set(asked)) == len(asked) and sum(map(len, asked)) <= len(text), "never of several pieces together"


@pytest.mark.parametrize("unit", ["word ", "x", "One, two. ", "aaaa-bbbb", "1234567890 "])
def test_nothing_is_lost_and_every_chunk_keeps_to_the_budget(unit: str) -> None:
    text = (unit * 4000)[:20_000]
    cut = chunks(text, letters, budget=120, first_budget=40)
    assert "".join("".join(cut).split()) == "".join(text.split())
    assert all(0 < letters(chunk) <= 120 for chunk in cut)
