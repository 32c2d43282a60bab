"""What is read of 500 sentences against the teacher's front end, as it was recorded."""

from __future__ import annotations

from collections import Counter

import pytest

from paretone.front_end.phonemiser import NaturalPhonemiser
from paretone.training.sentences import written_sentences
from tests.engine.front_end.references import Reference, error_rate, errors, references


@pytest.fixture(scope="module")
def found() -> dict[str, str]:
    read = NaturalPhonemiser().as_the_teacher
    return {one.text: " ".join(sentence.phonemes for sentence in read(one.text)) for one in references()}


def test_there_are_500_sentences_of_all_kinds():
    kinds = Counter(one.kind for one in references())
    assert len({one.text for one in references()}) == len(references()) == 500
    assert min(kinds.values()) >= 12 and set(kinds) == set(
        "news dialogue questions list number date time currency unit abbreviation url initials roman name unknown "
        "homograph punctuation conversation story technical".split()
    )
    assert not {one.text for one in references()} & set(written_sentences())


def test_errors_against_the_teacher_are_few_even_where_it_is_wrong(found: dict[str, str]) -> None:
    assert error_rate([(found[one.text], one.teacher) for one in references()]) < 0.015


def test_where_the_teacher_reads_rightly_hardly_anything_differs(found: dict[str, str]) -> None:
    right = [one for one in references() if not one.wrong]
    assert len(right) > 430
    assert error_rate([(found[one.text], one.teacher) for one in right]) < 0.002


def test_where_the_teacher_reads_wrongly_the_right_reading_is_kept(found: dict[str, str]) -> None:
    wrong = [one for one in references() if one.wrong]
    assert all(one.right != one.teacher for one in wrong)
    assert [one.text for one in wrong if found[one.text] != one.right] == []


def test_errors_are_counted_in_phones():
    assert errors("abcd", "abd") == errors("abd", "axbd") == errors("abd", "abx") == 1
    assert error_rate([("ɡˈO", "ɡˌO"), ("nˈW.", "nˈW.")]) == pytest.approx(1 / 5)
    assert Reference("kind", "text", "a", "a").wrong == ""
