"""Sentences to phonemes: words and marks, what the words around a word change, and words put together from parts."""

import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest

from paretone.errors import CheckpointError
from paretone.front_end import networks, tagger
from paretone.front_end.lexicon import SEPARATOR, Context, Lexicon, bundled, default_lexicon
from paretone.front_end.networks import SymbolLengths, UnknownWords, default_lengths, default_unknown_words
from paretone.front_end.phonemiser import NaturalPhonemiser, familiar
from paretone.front_end.phones import EDGE
from paretone.front_end.tagger import Tagger, default_tagger, tokens
from paretone.front_end.writing import write_out
from tests.engine.front_end.references import error_rate, references
from tests.workload import workload

LONG = workload(20_000, 2_000)
"""Characters."""


@pytest.fixture(scope="module")
def phonemise() -> NaturalPhonemiser:
    return NaturalPhonemiser()


@pytest.mark.parametrize(
    ("text", "phonemes"),
    [
        ("The apple to eat, the pear to buy.", "ði ˈæpᵊl tʊ ˈit, ðə pˈɛɹ tə bˈI."),
        ("a well-known and/or odd YouTube", "ɐ wˌɛlnˈOn ænd ɔɹ ˈɑd jˈutˌub"),
        ("GPUs, IBM, and the U.S.", "ʤˌipˌijˈuz, ˌIbˌiˈɛm, ænd ðə jˌuˈɛs."),
        ("It is 3.5, a point.", "ˌɪt ɪz θɹˈi pYnt fˈIv, ɐ pˈYnt."),
        ("Lead pipes lead to a bass guitar.", "lˈɛd pˈIps lˈid tə ɐ bˈAs ɡətˈɑɹ."),
        ("I object to the object.", "ˌI əbʤˈɛkt tə ði ˈɑbʤəkt."),
        ("“No,” said O'Leary's (odd) cat…", "nˈO, sˈɛd ˈO lˈɪɹiz (ˈɑd) kˈæt…"),
    ],
)
def test_words_are_read_in_their_sentence(phonemise: NaturalPhonemiser, text: str, phonemes: str) -> None:
    read = [phonemise.sentence(one.text) for one in write_out(text).sentences]
    assert " ".join(one.phonemes for one in read) == phonemes


@pytest.mark.parametrize(
    ("phonemes", "heard"),
    [
        ("nˈO (ˈA) wˈA…", "nˈO, ˈA, wˈA."),
        ("wˈɛl... jˈɛs?! nˈO!!", "wˈɛl, jˈɛs? nˈO!"),
        ("(ˈA), “ˈO”—ˈI", "ˈA, “ˈO” — ˈI"),
        ("ˈA , , ˈO ;: ˈI", "ˈA, ˈO; ˈI"),
    ],
)
def test_punctuation_becomes_what_models_have_heard(phonemes: str, heard: str) -> None:
    assert familiar(phonemes) == heard


def test_what_was_guessed_is_named(phonemise: NaturalPhonemiser) -> None:
    read = phonemise("The zorblax met Quixtable-Smith and the zorblax.")
    assert read.guessed == ("zorblax", "Quixtable-Smith")
    assert [one.text for one in read.written] == ["The zorblax met Quixtable-Smith and the zorblax."]


@pytest.mark.parametrize("unit", ["a-", "a/b", "x.", "aB", "'a", "word "])
def test_thousands_of_characters_of_anything_come_back(phonemise: NaturalPhonemiser, unit: str) -> None:
    assert phonemise("go " + (unit * LONG)[:LONG]).sentences


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Don't go, she said.", "Do n't _ go , _ she _ said ."),
        ('"Yes," he said.', '" Yes , " _ he _ said .'),
        ("The boy's dogs' tails aren't here", "The _ boy 's _ dogs ' _ tails _ are n't _ here"),
        ("I cannot, they'd've", "I _ can not , _ they 'd 've"),
        ("In the U.S. at 5 P.M.", "In _ the _ U.S. _ at _ 5 _ P.M."),
        ("Wait... what?! No -- yes…", "Wait ... _ what ? ! _ No _ -- _ yes …"),
        ("'Go!' said 'em all, 'cause.", "' Go ! ' _ said _ 'em _ all , _ 'cause ."),
    ],
)
def test_words_are_split_as_the_tagger_knows_them(text: str, found: str) -> None:
    assert " ".join(one.text + " _" * one.blank for one in tokens(text)) == found


def test_marks_are_what_is_heard_of_punctuation():
    found = " ".join(
        f"{one.text}→{one.mark}" for one in tokens('"Go [now] -- I—we" (so-called), end…') if one.mark is not None
    )
    assert found == '"→ [→( ]→) --→— —→— "→ (→( )→) ,→, …→…'


def test_the_time_of_many_dots_does_not_double_with_each() -> None:
    assert [one.text for one in tokens(f"well{'.' * 200}yes")] == ["well", "." * 200, "yes"]


def test_parts_of_speech_follow_from_the_sentence():
    said = default_tagger()("They record a new record , and I read it .".split())
    assert said == ["PRP", "VBP", "DT", "JJ", "NN", ",", "CC", "PRP", "VBP", "PRP", "."]


def test_unknown_words_are_read_by_their_letters():
    read = default_unknown_words()
    assert read("zorblax") == "zˈɔɹblæks"
    assert read("漢1") == ""
    assert read("a" * 100) == read("a" * 24)


def test_lengths_are_plausible_and_depend_on_the_place_in_the_sentence():
    units = default_lengths().units((EDGE, *"ɡˈO ɡˈO ɡˈO.", EDGE))
    assert units.shape == (14,) and units.dtype == np.float32
    assert 12 < units.sum() < 80
    assert units[11] > units[3]  # The last word is longer.


@pytest.mark.parametrize(
    ("kind", "name"), [(Tagger, tagger.FILE), (UnknownWords, networks.UNKNOWN_WORDS), (SymbolLengths, networks.LENGTHS)]
)
def test_damaged_files_are_named(tmp_path: Path, kind: type[Tagger], name: str) -> None:
    path = tmp_path / name
    shutil.copy(bundled(name), path)
    kind.load(path)
    path.write_bytes(path.read_bytes()[:1000])
    for _ in range(2):
        with pytest.raises(CheckpointError, match="install Paretone again"):
            kind.load(path)
        path.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def found() -> dict[str, str]:
    phonemise = NaturalPhonemiser()
    return {
        one.text: " ".join(phonemise.sentence(written.text).phonemes for written in write_out(one.text).sentences)
        for one in references()
    }


def test_errors_against_the_teacher_are_few_even_where_it_is_wrong(found: dict[str, str]) -> None:
    assert error_rate([(found[one.text], one.teacher) for one in references()]) < 0.015


def test_where_the_teacher_reads_rightly_hardly_anything_differs(found: dict[str, str]) -> None:
    right = [one for one in references() if not one.wrong]
    assert len(right) > 425
    assert error_rate([(found[one.text], one.teacher) for one in right]) < 0.002


def test_where_the_teacher_reads_wrongly_the_right_reading_is_kept(found: dict[str, str]) -> None:
    wrong = [one for one in references() if one.wrong]
    assert all(one.right != one.teacher for one in wrong)
    assert [one.text for one in wrong if found[one.text] != one.right] == []


VOWEL, CONSONANT, PAUSE = Context(True), Context(False), Context(None)


@pytest.mark.parametrize(
    ("word", "tag", "phonemes"),
    [
        ("house", "NN", "hˈWs"),
        ("wishes", "VBZ", "wˈɪʃᵻz"),
        ("boys'", "NNS", "bˈYz"),
        ("GPU", "NN", "ʤˌipˌijˈu"),
        ("U.S.", "NNP", "jˌuˈɛs"),
        ("NASA", "NNP", "nˈæsə"),
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


def test_a_word_in_either_case_is_looked_up(tmp_path: Path):
    path = tmp_path / "words.gz"
    path.write_bytes(gzip.compress(f"Paris\tpˈɛɹəs\nrow\tDEFAULT=ɹˈO\tNOUN=ɹˈW\n{SEPARATOR}\nodd\tˈɑd".encode()))
    lexicon = Lexicon.load(path)
    found = [lexicon.pronounce(word, "NN") for word in ("paris", "Paris", "row", "odd")]
    assert found == ["pˈɛɹəs", "pˈɛɹəs", "ɹˈW", "ˈɑd"]
    for content in (b"no archive", gzip.compress(b"one part")):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="install Paretone again"):
            Lexicon.load(path)
