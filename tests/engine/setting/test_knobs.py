"""Knobs check their values, and what is younger than files is not written at its default."""

from __future__ import annotations

import pickle

import pytest

from paretone.errors import SettingError
from paretone.setting.knobs import Choice, Number, Text, checked, defaults

INSTRUCTION = Text("instruction", "Instruction", "How to speak.", default="", longest=12)


def test_words_are_kept_on_one_line() -> None:
    assert INSTRUCTION.check(" Speak \n low. ") == "Speak low."
    assert INSTRUCTION.check("") == ""


@pytest.mark.parametrize(("value", "said"), [(3, "must be text, not 3"), ("a" * 13, "has 13 characters, but 12")])
def test_what_is_no_text_or_too_long_is_refused(value: object, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        INSTRUCTION.check(value)


LATER = (Number("old", "Old", "", default=1.0), Choice("new", "New", "", default="a", values=("a", "b"), later=True))


def test_a_later_knob_is_written_only_if_it_is_not_at_its_default() -> None:
    before = checked(LATER, {"old": 2.0}, "owner")
    assert before["new"] == before.get("new") == "a" and "new" in before
    assert dict(before) == {"old": 2.0}, "as files say that are older than the knob"
    after = before.replace(new="b")
    assert dict(after) == {"old": 2.0, "new": "b"} and after != before
    back = after.replace(new="a")
    assert back == before and hash(back) == hash(before) and dict(back) == {"old": 2.0}
    for one in (before, after):
        again = pickle.loads(pickle.dumps(one))
        assert again == one and again["new"] == one["new"]
    assert defaults(LATER) == checked(LATER, {}, "owner")


@pytest.mark.parametrize("value", [10**400, -(10**400), float("inf"), True, "2"])
def test_numbers_that_no_float_can_hold_are_refused(value: object) -> None:
    with pytest.raises(SettingError, match=r"Old must be a number, not .{1,40}\."):
        LATER[0].check(value)
