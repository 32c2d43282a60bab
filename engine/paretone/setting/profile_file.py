"""JSON as profiles have it: fields that are named when they are wrong, and each row of a table on one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeVar

from paretone.errors import ProfileError
from paretone.fields import is_of, require_usual_numbers
from paretone.reading import parsed_json, shortened, shown

_Kind = TypeVar("_Kind")
_TYPES = {int: "a whole number", str: "text", dict: "an object"}


def encoded(data: Mapping[str, object]) -> bytes:
    """The content of a file with ``data``, plain JSON values."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    return (_compact_rows(text) + "\n").encode()


def decoded(content: bytes) -> object:
    """The JSON values in a file. Raises :class:`ProfileError` for fields given twice and for numbers that no field
    takes, and :class:`ValueError` for what is not JSON."""
    data = parsed_json(content, object_pairs_hook=_unique, parse_constant=_no_constant)
    require_usual_numbers(data, ProfileError)
    return data


def only(data: Mapping[str, object], prefix: str, names: tuple[str, ...]) -> None:
    """Raise :class:`ProfileError` unless ``data`` has exactly the fields ``names``."""
    for name in data:
        if name not in names:
            raise ProfileError(f"{prefix}{shortened(name)} is an unknown field.")
    for name in names:
        if name not in data:
            raise ProfileError(f"{prefix}{name} is missing.")


def typed(data: Mapping[str, object], prefix: str, name: str, kind: type[_Kind]) -> _Kind:
    """The field ``name``. Raises :class:`ProfileError` unless it is there and of this ``kind``."""
    if name not in data:
        raise ProfileError(f"{prefix}{name} is missing.")
    value = data[name]
    if not is_of(value, kind):
        raise ProfileError(f"{prefix}{name} must be {_TYPES[kind]}, not {shown(value)}.")
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object without duplicate fields, which would be ambiguous."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ProfileError(f"the field {shown(twice)} is given twice.")
    return found


def _no_constant(name: str) -> float:
    raise ProfileError(f"{name} is not a number that a profile may hold.")


def _compact_rows(text: str) -> str:
    """Indented JSON with each of the table's rows on one line, so that people can read the table."""
    lines: list[str] = []
    row: list[str] | None = None
    for line in text.splitlines():
        stripped = line.strip()
        if row is None and stripped in ('"NONE",', '"TS",', '"BS",', '"NONE"', '"TS"', '"BS"'):
            row = [lines.pop()]
        if row is None:
            lines.append(line)
        elif stripped.startswith("]"):
            lines.append(row[0] + " ".join(row[1:]) + stripped)
            row = None
        else:
            row.append(stripped)
    return "\n".join(lines)
