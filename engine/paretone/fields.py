"""Reading a mapping's fields from a file, with mistakes reported by field.

:func:`exact` is for files written by programs: all fields are required, and no others allowed. :class:`Fields` is for
files written by people: fields have defaults, and unknown ones are reported. Torch-free.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Any, TypeGuard, TypeVar, get_type_hints, overload

from paretone.by_name import meant
from paretone.errors import PlainError
from paretone.reading import shortened, shown

Kind = TypeVar("Kind")


@overload
def is_of(value: object, kind: type[Kind]) -> TypeGuard[Kind]: ...


@overload
def is_of(value: object, kind: type | UnionType) -> bool: ...


def is_of(value: object, kind: type | UnionType) -> bool:
    """Whether ``value`` is of ``kind``; booleans are not numbers."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def require_usual_numbers(data: object, error: type[PlainError]) -> None:
    """Raise ``error`` with the field for an unusable number in lists and tables: a whole number of more than 64 bits,
    which neither floats nor databases hold, or one that is not finite."""
    left: list[tuple[str, object]] = [("", data)]
    while left:
        place, value = left.pop()
        if isinstance(value, Mapping):
            left += [(f"{place}.{name}" if place else str(name), inner) for name, inner in value.items()]
        elif isinstance(value, list):
            left += [(f"{place}[{index}]", inner) for index, inner in enumerate(value)]
        elif is_of(value, int) and not -(2**63) <= value < 2**63:
            raise error(f"{place} is too large a number: whole ones have 64 bits at most.")
        elif isinstance(value, float) and not math.isfinite(value):
            raise error(f"{place} must be a number, not {value}.")


def exact(
    data: object,
    where: str,
    kinds: Mapping[str, type | UnionType],
    error: type[PlainError],
    optional: Collection[str] = (),
) -> dict[str, Any]:
    """``data``, checked to be an object with exactly the fields ``kinds``, each of its type (``object``: any);
    ``optional`` ones may be absent. Raises ``error`` with the field at fault, as part of ``where``."""
    if not isinstance(data, dict):
        raise error(f"{where} must be an object, not {type(data).__name__}.")
    if unknown := sorted(set(data) - set(kinds), key=str):
        raise error(f"{where} has an unknown field {shown(unknown[0])}.")
    for name, kind in kinds.items():
        if name not in data:
            if name in optional:
                continue
            raise error(f"{where} lacks the field {shown(name)}.")
        if kind is not object and not is_of(data[name], kind):
            raise error(f"{where}.{name} must be of type {named(kind)}, not {shown(data[name])}.")
    return data


def record(kind: type[Kind], data: object) -> Kind:
    """The dataclass ``kind``, of numbers and texts, from fields ``data`` written by a program; missing fields have
    their defaults, and infinite or NaN values count as not measured. Raises :class:`ValueError` for a value of another
    type, and :class:`TypeError` for an unknown field."""
    if not isinstance(data, Mapping):
        raise ValueError(f"{kind.__name__} must be a table of fields, not {shown(data)}")
    declared: Any = kind
    kinds = _simple_kinds(declared)
    data = {name: None if isinstance(one, float) and not math.isfinite(one) else one for name, one in data.items()}
    for name, value in data.items():
        if name in kinds and not is_of(value, kinds[name]):
            raise ValueError(f"{name} must be of type {named(kinds[name])}, not {shown(value)}")
    return kind(**data)


@cache
def _simple_kinds(kind: type) -> Mapping[str, type | UnionType]:
    """Types of the dataclass's fields; any number may be whole."""
    simple: dict[object, type | UnionType] = {float: int | float, int: int | float, str: str, bool: bool}
    simple |= {one | None: wanted | None for one, wanted in list(simple.items()) if isinstance(one, type)}
    return {name: simple[one] for name, one in get_type_hints(kind).items() if one in simple}


def named(kind: type | UnionType) -> str:
    """Type name for sentences."""
    return getattr(kind, "__name__", str(kind))


class Fields:
    """The fields of one table; ``prefix``: beginning of their names in sentences. Records the requested ones. Every
    method raises ``error``, given at creation."""

    def __init__(self, values: object, prefix: str, error: type[PlainError], what: str) -> None:
        """``what``: name of a table without a prefix."""
        if not isinstance(values, Mapping):
            raise error(f"{prefix.rstrip('.') or what} must be a table of fields, not {shown(values)}.")
        self.values = dict(values)
        self._prefix, self._error = prefix, error
        self._asked: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str, default: object = None) -> Any:
        """The unchecked value."""
        self._asked.add(name)
        return self.values.get(name, default)

    def all(self) -> dict[str, object]:
        """All unchecked fields, for knobs, which check their values themselves."""
        self._asked.update(self.values)
        return dict(self.values)

    def text(self, name: str, default: str = "") -> str:
        return self._typed(name, str, "a text", default)

    def flag(self, name: str) -> bool:
        return self._typed(name, bool, "true or false", False)

    def number(self, name: str, default: float | None = None) -> float | None:
        value = self.get(name, default)
        if value is not None and not is_of(value, int | float):
            raise self._error(f"{self._prefix}{name} must be a number, not {shown(value)}.")
        return value

    def whole(self, name: str, default: int, minimum: int = 0, maximum: int | None = None) -> int:
        """A whole number from ``minimum``, optionally up to ``maximum``."""
        value: int = self._typed(name, int, "a whole number", default)
        if value < minimum:
            raise self._error(f"{self._prefix}{name} must be at least {minimum}, not {shown(value)}.")
        if maximum is not None and value > maximum:
            raise self._error(f"{self._prefix}{name} must be at most {maximum}, not {shown(value)}.")
        return value

    def list(self, name: str) -> list[object]:
        found: Any = self._typed(name, list, "a list", [])
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        return self._all(name, str, "texts", ())

    def wholes(self, name: str, default: Sequence[int]) -> tuple[int, ...]:
        """A list of whole numbers from 0."""
        found = self._all(name, int, "whole numbers", default)
        if not found or min(found) < 0:
            raise self._error(f"{self._prefix}{name} must be whole numbers from 0, at least one of them.")
        return found

    def table(self, name: str) -> Mapping[str, object]:
        return self._typed(name, dict, "a table of fields", {})

    def require_known(self) -> None:
        for name in self.values:
            if name not in self._asked:
                ending = meant(str(name), sorted(self._asked), "known ones:")
                raise self._error(f"{self._prefix}{shortened(str(name))} is an unknown field; {ending}")

    def _typed(self, name: str, kind: type[Kind], words: str, default: Kind) -> Kind:
        value = self.get(name, default)
        if not is_of(value, kind):
            raise self._error(f"{self._prefix}{name} must be {words}, not {shown(value)}.")
        return value

    def _all(self, name: str, kind: type, words: str, default: Sequence) -> tuple:
        values = self._typed(name, list, f"a list of {words}", list(default))
        for value in values:
            if not is_of(value, kind):
                raise self._error(f"{self._prefix}{name} must be a list of {words}; {shown(value)} is not.")
        return tuple(values)
