"""Pronunciations of words on their own."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from paretone.errors import CheckpointError
from paretone.front_end.lexicon import SEPARATOR, Context, Lexicon, default_lexicon

VOWEL, CONSONANT, PAUSE = Context(True), Context(False), Context(None)


@pytest.mark.parametrize(
    ("word", "tag", "phonemes"),
    [
        ("house", "NN", "hˈWs"),
        ("House", "NNP", "hˈWs"),
        ("walks", "VBZ", "wˈɔks"),
        ("wishes", "VBZ", "wˈɪʃᵻz"),
        ("boys'", "NNS", "bˈYz"),
        ("GPU", "NN", "ʤˌipˌijˈu"),
        ("U.S.", "NNP", "jˌuˈɛs"),
        ("NASA", "NNP", "nˈæsə"),
        ("café", "NN", "kæfˈA"),
        ("cafés", "NNS", "kæfˈAz"),
    ],
)
def test_listed_words_their_forms_and_letters(word: str, tag: str, phonemes: str) -> None:
    assert default_lexicon().pronounce(word, tag, CONSONANT) == phonemes


@pytest.mark.parametrize(
    ("word", "readings"),
    [
        ("read", {"VB": "ɹˈid", "VBD": "ɹˈɛd"}),
        ("live", {"VBP": "lˈɪv", "JJ": "lˈIv"}),
        ("record", {"NN": "ɹˈɛkəɹd", "VB": "ɹəkˈɔɹd"}),
        ("close", {"VB": "klˈOz", "JJ": "klˈOs"}),
    ],
)
def test_the_part_of_speech_decides(word: str, readings: dict[str, str]) -> None:
    assert {tag: default_lexicon().pronounce(word, tag, CONSONANT) for tag in readings} == readings


def test_small_words_depend_on_what_comes_next():
    say = default_lexicon().pronounce
    assert [say("the", "DT", context) for context in (VOWEL, CONSONANT)] == ["ði", "ðə"]
    assert [say("to", "TO", context) for context in (VOWEL, CONSONANT)] == ["tʊ", "tə"]
    assert [say("in", "IN", context) for context in (CONSONANT, PAUSE)] == ["ɪn", "ˈɪn"]
    assert [say("A", tag, CONSONANT) for tag in ("DT", "NN")] == ["ɐ", "ˈA"]
    assert [say("used", "VBD", Context(False, to)) for to in (True, False)] == ["jˈust", "jˈuzd"]


def test_what_is_not_known_has_no_pronunciation():
    assert default_lexicon().pronounce("zorblax", "NN") is None
    assert default_lexicon().spelled("1") is None


def test_a_word_in_either_case_is_looked_up(tmp_path: Path):
    path = tmp_path / "words.gz"
    path.write_bytes(gzip.compress(f"Paris\tpˈɛɹəs\nrow\tDEFAULT=ɹˈO\tNOUN=ɹˈW\n{SEPARATOR}\nodd\tˈɑd".encode()))
    lexicon = Lexicon.load(path)
    assert [lexicon.pronounce(word, "NN") for word in ("paris", "Paris", "row", "odd")] == [
        "pˈɛɹəs",
        "pˈɛɹəs",
        "ɹˈW",
        "ˈɑd",
    ]
    for content in (b"no archive", gzip.compress(b"one part")):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="install Paretone again"):
            Lexicon.load(path)


def test_its_words_are_sorted_and_each_is_listed() -> None:
    lexicon = default_lexicon()
    words = lexicon.words()
    assert len(words) > 150_000 and words == sorted(set(words))
    assert all(word in lexicon for word in words[::997])
