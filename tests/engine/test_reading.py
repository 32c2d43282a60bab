import os
from pathlib import Path

import pytest

from paretone.errors import ProfileError, StudyError
from paretone.fields import Fields, exact, require_usual_numbers
from paretone.reading import (
    DEEPEST,
    LONGEST_SHOWN,
    parsed_json,
    parsed_yaml,
    read_bytes,
    read_text,
    shown,
    until_changed,
)

ALIASES = "a0: &a0 [x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 8)}]\n" for level in range(1, 12)
)
"""Under a kilobyte that stands for 8¹² values."""
MERGES = "a0: &a0 {x: 1}\n" + "".join(
    f"a{level}: &a{level}\n  <<: [{', '.join([f'*a{level - 1}'] * 8)}]\n" for level in range(1, 12)
)
"""The same of tables, which are copied where they are merged."""


def nested(levels: int) -> list:
    found: list = []
    for _ in range(levels):
        found = [found] * 3
    return found


@pytest.mark.parametrize(
    "value",
    [nested(30), "x" * 10**6, 1 << 10**6, {str(key): nested(9) for key in range(99)}],
    ids=["lists", "text", "long number", "table"],
)
def test_a_value_is_shown_in_a_line(value: object) -> None:
    assert 0 < len(shown(value)) <= LONGEST_SHOWN


def test_short_values_are_shown_as_they_are() -> None:
    found = [shown(one) for one in (1, "a", [1, "b"], {"c": None}, True, -1.5)]
    assert found == ["1", "'a'", "[1, 'b']", "{'c': None}", "True", "-1.5"]


def test_a_field_of_a_file_is_echoed_in_a_line() -> None:
    for check in (
        lambda: exact({"a": nested(25)}, "it", {"a": int}, ProfileError),
        lambda: exact({"b" * 9999: 1}, "it", {"a": int}, ProfileError),
        lambda: Fields({"a": nested(25)}, "", ProfileError, "it").text("a"),
        lambda: Fields({"a": 10**400}, "", ProfileError, "it").text("a"),
        lambda: Fields({"a": -(10**400)}, "", ProfileError, "it").whole("a", 0),
        lambda: Fields({"a" * 9999: 1}, "", ProfileError, "it").require_known(),
    ):
        with pytest.raises(ProfileError) as caught:
            check()
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * (DEEPEST + 2) + "]" * (DEEPEST + 2)])
def test_deep_json_and_yaml_are_refused(text: str) -> None:
    for parsed in (parsed_json, parsed_yaml):
        with pytest.raises(ValueError, match=r"levels|expected"):
            parsed(text)
    allowed = "[" * DEEPEST + "]" * DEEPEST
    assert parsed_json(allowed) == parsed_yaml(allowed)


@pytest.mark.parametrize("text", [ALIASES, MERGES])
def test_aliases_do_not_expand(text: str) -> None:
    assert len(text) < 1000
    with pytest.raises(ValueError, match="stands for more than"):
        parsed_yaml(text)


def test_an_alias_of_itself_is_refused_and_plain_ones_are_read() -> None:
    with pytest.raises(ValueError, match="lies in"):
        parsed_yaml("a: &a [*a]")
    assert parsed_yaml("a: &a [1, 2]\nb: *a\nc: {<<: {d: 3}}") == {"a": [1, 2], "b": [1, 2], "c": {"d": 3}}
    assert parsed_yaml("") is None


@pytest.mark.parametrize("text", ["2001-99-99", "? [1]\n: 2", "!!python/object/apply:os.getcwd []", "a: b: c"])
def test_yaml_that_makes_no_values_is_a_value_error_of_one_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z"):
        parsed_yaml(text)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
def test_only_regular_files_are_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, reason in ((pipe, "a pipe"), (Path("/dev/zero"), "a device"), (tmp_path, "a folder")):
        with pytest.raises(OSError, match=f"it is {reason}; choose a regular file"):
            read_bytes(path)
    with pytest.raises(OSError, match="no file can have such a name"):
        read_bytes("a\0b")


def test_no_more_is_read_than_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes("é\r\na\rb".encode())
    assert read_text(path) == "é\na\nb"
    with pytest.raises(OSError, match="larger than"):
        read_text(path, largest=3)
    path.write_bytes(b"0" * 3000)
    with pytest.raises(OSError, match="larger than 2 KiB"):
        read_text(path, largest=2048)
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="larger than"):
        read_bytes(path)


def test_bytes_that_are_not_text_are_said_without_words_of_python(tmp_path: Path) -> None:
    path = tmp_path / "sound.json"
    path.write_bytes(b"RIFF\xc0\xff")
    for read in (lambda: read_text(path, "utf-8-sig"), lambda: parsed_json(path.read_bytes())):
        with pytest.raises(ValueError, match=r"^byte 5 is not text in UTF-8$"):
            read()


KINDS = {"name": str, "count": int, "share": int | float, "on": bool}
SOUND = {"name": "one", "count": 2, "share": 0.5, "on": True}


def fields(values: object, prefix: str = "search.") -> Fields:
    return Fields(values, prefix, StudyError, "a study")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ([], "table must be an object, not list."),
        (SOUND | {"colour": 1}, "table has an unknown field 'colour'."),
        ({"name": "one"}, "table lacks the field 'count'."),
        (SOUND | {"count": True}, "table.count must be a whole number, not True."),
        (SOUND | {"share": "half"}, "table.share must be a number, not 'half'."),
    ],
)
def test_the_field_at_fault_is_named(data: object, sentence: str) -> None:
    assert exact(SOUND, "table", KINDS, ProfileError) == SOUND
    with pytest.raises(ProfileError) as raised:
        exact(data, "table", KINDS, ProfileError)
    assert str(raised.value) == sentence


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, float("nan")])
def test_numbers_that_no_field_takes_are_named(value: float) -> None:
    require_usual_numbers({"a": [{"b": [2**63 - 1, -(2**63), 1e308, True, "10"]}]}, StudyError)
    with pytest.raises(StudyError, match=r"^a\[1\]\.b must be a (whole )?number"):
        require_usual_numbers({"a": [0, {"b": value}]}, StudyError)


def test_what_a_file_says_is_kept_until_it_changes(tmp_path: Path) -> None:
    calls, file = [], tmp_path / "file"
    read = until_changed(2)(lambda path, more: calls.append(more) or (path.is_file() and path.read_text() + more))
    file.write_text("some ")
    assert [read(file, one) for one in "aab"] == ["some a", "some a", "some b"]
    file.write_text("others ")
    assert read(file, "b") == "others b" and calls == ["a", "b", "b"]


def test_fields_have_defaults_and_types() -> None:
    one = fields({"steps": 12, "texts": ["a", "b"]})
    found = one.whole("steps", 1), one.texts("texts"), one.text("title", "none"), one.flag("on")
    assert found == (12, ("a", "b"), "none", False)
    one.require_known()


@pytest.mark.parametrize(
    ("values", "read", "sentence"),
    [
        ({"steps": 0}, lambda one: one.whole("steps", 1, 1), "search.steps must be at least 1, not 0."),
        ({"steps": True}, lambda one: one.whole("steps", 1), "search.steps must be a whole number, not True."),
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
