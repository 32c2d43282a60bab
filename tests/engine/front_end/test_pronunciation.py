from __future__ import annotations

import math
from pathlib import Path

import pytest

from paretone.errors import CheckpointError
from paretone.front_end.letter_to_sound import LetterToSound, default_letter_to_sound
from paretone.front_end.lexicon import default_lexicon, read_entries
from paretone.front_end.phones import CONSONANTS, VOWELS
from paretone.front_end.pronunciation import LEXICON, RULE, SPELLING, Pronouncer
from paretone.paths import resource


@pytest.fixture(scope="module")
def pronouncer() -> Pronouncer:
    return Pronouncer(default_lexicon(), default_letter_to_sound)


def test_every_entry_of_the_lexicon_has_known_phones() -> None:
    lexicon = default_lexicon()
    words = {word for name in ("cmudict.dict", "additions.dict") for word, _ in read_entries(resource("lexicon", name))}
    assert len(words) == len(lexicon) > 120_000
    assert {phone for word in words for phone in lexicon.phones(word)} == VOWELS | CONSONANTS


def test_additions_are_new_words_or_other_readings() -> None:
    additions = dict(read_entries(resource("lexicon", "additions.dict")))
    listed: dict[str, str] = {}
    for word, entry in read_entries(resource("lexicon", "cmudict.dict")):
        listed.setdefault(word, entry.strip())
    assert [word for word, entry in additions.items() if listed.get(word) == entry] == []


def test_probabilities_after_any_history_sum_to_one() -> None:
    model = default_letter_to_sound()
    for history in (1, 1 << 9 | 5, (1 << 9 | 40) << 9 | 77, 3 << 18 | 3 << 9 | 3):
        total = sum(math.exp(model.log_probability(history, unit)) for unit in range(1, 512))
        assert total == pytest.approx(1.0, abs=0.01)


def test_a_damaged_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "letter_to_sound.npz"
    path.write_bytes(b"no archive")
    with pytest.raises(CheckpointError, match=r"engine\.training\.recipes\.letter_to_sound"):
        LetterToSound.load(path)


@pytest.mark.parametrize(
    ("word", "phones", "source"),
    [
        ("cat", "k ae t", LEXICON),
        ("emojis", "iy m ow jh iy z", LEXICON),
        ("blorf's", "b l ao r f s", SPELLING),
        ("vlogs", "v l ao g z", RULE),
        ("codecs'", "k ow d eh k s", LEXICON),
        ("smartwatch", "s m aa r t w aa ch", RULE),
        ("vlog's", "v l ao g z", RULE),
        ("livestreamed", "l ay v s t r iy m d", RULE),
        ("analyse", "ae n ax l ay z", RULE),
        ("blorf", "b l ao r f", SPELLING),
        ("xqz", "eh k s k y uw z iy", SPELLING),
    ],
)
def test_words(pronouncer: Pronouncer, word: str, phones: str, source: str) -> None:
    said = pronouncer.pronounce(word)
    assert (" ".join(said.phones), said.source) == (phones, source)
