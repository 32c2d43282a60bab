"""Sentences to phonemes: words and marks, what the words around a word change, and words put together from parts."""

from __future__ import annotations

import pytest

from paretone.front_end.phonemiser import NaturalPhonemiser, familiar
from paretone.front_end.tagger import tokens


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
    assert " ".join(one.phonemes for one in phonemise.as_the_teacher(text)) == phonemes


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
    assert read.spoken == "The zorblax met Quixtable-Smith and the zorblax."


@pytest.mark.parametrize("unit", ["a-", "a/b", "x.", "aB", "'a", "word "])
def test_twenty_thousand_characters_of_anything_come_back_quickly(phonemise: NaturalPhonemiser, unit: str) -> None:
    assert phonemise("go " + (unit * 20_000)[:20_000]).sentences


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Don't go, she said.", "Do n't _ go , _ she _ said ."),
        ('"Yes," he said.', '" Yes , " _ he _ said .'),
        ("The boy's dogs' tails aren't here", "The _ boy 's _ dogs ' _ tails _ are n't _ here"),
        ("well-known and/or (odd)", "well - known _ and / or _ ( odd )"),
        ("I cannot, they'd've", "I _ can not , _ they 'd 've"),
        ("In the U.S. at 5 P.M.", "In _ the _ U.S. _ at _ 5 _ P.M."),
        ("J. K. Rowe", "J. _ K. _ Rowe"),
        ("Wait... what?! No -- yes…", "Wait ... _ what ? ! _ No _ -- _ yes …"),
        ("'Go!' said 'em all, 'cause.", "' Go ! ' _ said _ 'em _ all , _ 'cause ."),
    ],
)
def test_words_are_split_as_the_tagger_knows_them(text: str, found: str) -> None:
    assert " ".join(one.text + " _" * one.blank for one in tokens(text)) == found


def test_marks_are_what_is_heard_of_punctuation():
    marks = [(one.text, one.mark) for one in tokens('"Go [now] -- I—we" (so-called), end…') if one.mark is not None]
    assert marks == [
        ('"', ""),
        ("[", "("),
        ("]", ")"),
        ("--", "—"),
        ("—", "—"),
        ('"', ""),
        ("(", "("),
        (")", ")"),
        (",", ","),
        ("…", "…"),
    ]


def test_signs_without_a_sound_are_no_words():
    assert [(one.text, one.mark) for one in tokens("x # /b © 1")] == [
        ("x", None),
        ("#", ""),
        ("/b", None),
        ("©", ""),
        ("1", None),
    ]


def test_nothing_is_no_token():
    assert tokens("   ") == []
