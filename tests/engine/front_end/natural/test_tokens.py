"""Sentences in words and marks."""

from __future__ import annotations

import pytest

from paretone.front_end.natural.tokens import tokens


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
