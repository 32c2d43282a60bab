from __future__ import annotations

from pathlib import Path

import pytest

from paretone.errors import CheckpointError
from paretone.front_end.natural.phones import PHONES
from paretone.front_end.phones import PhoneVocabulary


def test_a_list_of_phones_gives_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{phone}\n" for phone in PHONES), encoding="utf-8")
    vocabulary = PhoneVocabulary.load(path)
    assert vocabulary.phones == PHONES
    assert vocabulary.ids(PHONES[3:6]).tolist() == [3, 4, 5]
    with pytest.raises(CheckpointError, match="lacks 'qq'"):
        vocabulary.ids(["qq"])


@pytest.mark.parametrize(
    ("listed", "problem"),
    [
        ("^ k qq", "'qq' is not a phone"),
        ("k t", r"'\^' is missing"),
        ("^ k k", "listed twice"),
        ("pau aa b", "made with an earlier version of Paretone"),
    ],
)
def test_a_list_that_cannot_be_used_is_refused(tmp_path: Path, listed: str, problem: str) -> None:
    (tmp_path / "vocab.txt").write_text(listed, encoding="utf-8")
    with pytest.raises(CheckpointError, match=problem):
        PhoneVocabulary.load(tmp_path / "vocab.txt")


def test_a_missing_list_is_said(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be read"):
        PhoneVocabulary.load(tmp_path / "vocab.txt")
