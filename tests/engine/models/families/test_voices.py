"""Readers of voices: their common part."""

from __future__ import annotations

import operator
import os
from pathlib import Path

import pytest

from paretone.errors import TextError
from paretone.models.base import Voice
from paretone.models.families.voices import Remembered, changed, transcript_of


def test_the_last_is_remembered_and_no_other() -> None:
    made: list[str] = []
    last: Remembered[str] = Remembered()

    def get(key: str) -> str:
        return last.of(key, lambda: made.append(key) or key.upper())

    assert [get(key) for key in ("a", "a", "b", "a")] == ["A", "A", "B", "A"]
    assert made == ["a", "b", "a"]


def test_what_is_equal_may_still_be_another() -> None:
    last: Remembered[int] = Remembered(operator.is_)
    one, other = [1], [1]
    assert [last.of(key, lambda key=key: id(key)) for key in (one, other)] == [id(one), id(other)]


def test_what_fails_is_not_remembered() -> None:
    last: Remembered[int] = Remembered()

    def fail() -> int:
        raise TextError("no")

    with pytest.raises(TextError):
        last.of("a", fail)
    assert last.of("a", lambda: 2) == 2


def test_a_file_that_is_written_again_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "voice.wav"
    assert changed(path) == 0
    path.write_bytes(b"one")
    before = changed(path)
    os.utime(path, ns=(before + 10, before + 10))
    assert changed(path) == before + 10


def test_a_transcript_is_one_line() -> None:
    assert transcript_of(Voice("a", "A", "a.wav", "One\n two ")) == "One two"


@pytest.mark.parametrize(("title", "shown"), [("Anna", "'Anna'"), ("", "'a'")])
def test_a_voice_without_transcript_is_named(title: str, shown: str) -> None:
    with pytest.raises(TextError, match=f"The voice {shown} has no transcript.* It is long"):
        transcript_of(Voice("a", title, "a.wav", " \n"), " It is long")
