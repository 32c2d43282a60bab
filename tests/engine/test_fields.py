"""Typed fields of a mapping out of a file."""

from __future__ import annotations

import pytest

from paretone.errors import ProfileError, StudyError
from paretone.fields import Fields, exact, is_of, require_usual_numbers

KINDS = {"name": str, "count": int, "share": int | float, "on": bool}
SOUND = {"name": "one", "count": 2, "share": 0.5, "on": True}


def fields(values: object, prefix: str = "search.") -> Fields:
    return Fields(values, prefix, StudyError, "a study")


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [(True, int, False), (True, bool, True), (1, bool, False), (1, int | float, True), ("1", int | float, False)],
)
def test_true_and_false_are_no_numbers(value: object, kind: type, expected: bool) -> None:
    assert is_of(value, kind) is expected


def test_what_has_exactly_its_fields_is_given_back() -> None:
    assert exact(SOUND, "table", KINDS, ProfileError) == SOUND
    without = {name: value for name, value in SOUND.items() if name != "on"}
    assert exact(without, "table", KINDS, ProfileError, optional=("on",)) == without


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ([], "table must be an object, not list."),
        (SOUND | {"colour": 1}, "table has an unknown field 'colour'."),
        ({"name": "one"}, "table lacks the field 'count'."),
        (SOUND | {"count": True}, "table.count must be of type int, not True."),
        (SOUND | {"share": "half"}, "table.share must be of type int | float, not 'half'."),
    ],
)
def test_the_field_at_fault_is_named(data: object, sentence: str) -> None:
    with pytest.raises(ProfileError) as raised:
        exact(data, "table", KINDS, ProfileError)
    assert str(raised.value) == sentence


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**400, float("nan"), float("-inf")])
def test_numbers_that_no_field_takes_are_named(value: float) -> None:
    require_usual_numbers({"a": [{"b": [2**63 - 1, -(2**63), 1e308, True, "10"]}]}, StudyError)
    with pytest.raises(StudyError, match=r"^a\[1\]\.b (is too large a number|must be a number)"):
        require_usual_numbers({"a": [0, {"b": value}]}, StudyError)


def test_fields_have_defaults_and_types() -> None:
    one = fields({"steps": 12, "texts": ["a", "b"]})
    assert (one.whole("steps", 1), one.texts("texts"), one.text("title", "none"), one.flag("on")) == (
        12,
        ("a", "b"),
        "none",
        False,
    )
    one.require_known()


@pytest.mark.parametrize(
    ("values", "read", "sentence"),
    [
        ({"steps": 0}, lambda one: one.whole("steps", 1, 1), "search.steps must be at least 1, not 0."),
        ({"steps": True}, lambda one: one.whole("steps", 1), "search.steps must be a whole number, not True."),
        ({"bound": "x"}, lambda one: one.number("bound"), "search.bound must be a number, not 'x'."),
        ({"texts": ["a", 1]}, lambda one: one.texts("texts"), "search.texts must be a list of texts; 1 is not."),
        ({"spets": 1}, lambda one: one.whole("steps", 1), "search.spets is an unknown field; did you mean 'steps'?"),
        ({"pace": 1}, lambda one: one.whole("steps", 1), "search.pace is an unknown field; known ones: steps."),
    ],
)
def test_mistakes_of_people_are_reported_by_field(values: dict, read: object, sentence: str) -> None:
    def reading() -> None:
        one = fields(values)
        read(one)
        one.require_known()

    with pytest.raises(StudyError) as raised:
        reading()
    assert str(raised.value) == sentence


def test_fields_taken_as_they_stand_are_known() -> None:
    one = fields({"weight": 0.5})
    assert one.all() == {"weight": 0.5}
    one.require_known()
