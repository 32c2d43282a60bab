"""The last few things are kept, and made once."""

import pytest

from paretone.last_used import LastUsed


def test_what_was_used_longest_ago_makes_room() -> None:
    made: list[str] = []

    def make(name: str) -> str:
        made.append(name)
        return name.upper()

    kept: LastUsed[str] = LastUsed(2)
    assert [kept.of(name, lambda name=name: make(name)) for name in ("a", "b", "a", "c", "a")] == list("ABACA")
    assert made == ["a", "b", "c"] and len(kept) == 2
    kept.of("b", lambda: make("b"))
    assert made == ["a", "b", "c", "b"]


def test_what_could_not_be_made_is_not_kept() -> None:
    kept: LastUsed[float] = LastUsed(2)
    with pytest.raises(ZeroDivisionError):
        kept.of(1, lambda: 1 / 0)
    assert len(kept) == 0 and kept.of(1, lambda: 3.0) == 3
