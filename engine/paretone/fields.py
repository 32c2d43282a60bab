"""Reading a mapping's fields from a file, and arguments and declarations from Python, with mistakes reported by name.

:func:`exact` is for files written by programs: all fields are required, and no others allowed. :class:`Fields` is for
files written by people: fields have defaults, and unknown ones are reported. :func:`typed` is for public functions, and
:func:`fault_of_fields` for declarations of plug-ins: values are of their annotations. Torch-free.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass
from functools import cache, wraps
from itertools import chain, cycle, repeat
from numbers import Integral, Real
from pathlib import Path
from types import FunctionType, NoneType, SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard, TypeVar, get_args, get_origin, get_type_hints, overload

from paretone.by_name import meant
from paretone.errors import PlainError, SettingError
from paretone.reading import shortened, shown
from paretone.wording import listed

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Kind = TypeVar("Kind")
Count = Annotated[int, "from 1"]


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
            raise error(f"{place} must be a whole number of at most 64 bits, not {shown(value)}.")
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
        if reason := misfit(f"{where}.{name}", data[name], kind):
            raise error(f"{reason}.")
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
        if name in kinds and (reason := misfit(name, value, kinds[name])):
            raise ValueError(reason)
    return kind(**data)


@cache
def _simple_kinds(kind: type) -> Mapping[str, type | UnionType]:
    """Types of the dataclass's fields; any number may be whole."""
    simple: dict[object, type | UnionType] = {float: int | float, int: int | float, str: str, bool: bool}
    simple |= {one | None: wanted | None for one, wanted in list(simple.items()) if isinstance(one, type)}
    return {name: simple[one] for name, one in _annotations(kind).items() if one in simple}


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
        of_tables = f" of tables, each headed [[{self._prefix}{name}]]" if isinstance(self.get(name), Mapping) else ""
        found: Any = self._typed(name, list, f"a list{of_tables}", [])
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        return self._all(name, str, "texts", ())

    def wholes(self, name: str, default: Sequence[int]) -> tuple[int, ...]:
        """A list of whole numbers from 0."""
        found = self._all(name, int, "whole numbers", default)
        if not found or min(found) < 0:
            given = shown(list(found))
            raise self._error(f"{self._prefix}{name} must be whole numbers from 0, at least one of them, not {given}.")
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


def typed(public: Kind) -> Kind:
    """Decorator of a public function, or of a class for its public methods: arguments of other types than their
    annotations raise :class:`SettingError`."""
    made: Any = public
    if isinstance(made, type):
        for name, one in list(vars(made).items()):
            if isinstance(one, FunctionType) and not name.startswith("_"):
                setattr(made, name, typed(one))
            elif isinstance(one, classmethod):
                setattr(made, name, classmethod(typed(one.__func__)))
        return public
    parameters = inspect.signature(made).parameters.values()
    places = [one.name for one in parameters if one.kind not in (one.KEYWORD_ONLY, one.VAR_KEYWORD)]

    @cache
    def kinds() -> dict[str, Any]:
        of_arguments = {name: one for name, one in made.__annotations__.items() if name != "return"}
        return get_type_hints(SimpleNamespace(__annotations__=of_arguments), made.__globals__, include_extras=True)

    @wraps(made)
    def call(*given: Any, **named: Any) -> Any:
        # The last place may be that of further arguments.
        for name, value in chain(zip(chain(places, cycle(places[-1:])), given, strict=False), named.items()):
            if name in kinds():
                require_kind(name, value, kinds()[name])
        return made(*given, **named)

    called: Any = call
    return called


def require_kind(name: str, value: object, kind: Any) -> None:
    """Raise :class:`SettingError` with :func:`misfit`."""
    if reason := misfit(name, value, kind):
        raise SettingError(f"{reason}.")


def misfit(name: str, value: Any, kind: Any) -> str:
    """Why ``value``, called ``name``, is not of the annotation ``kind``, as a sentence without full stop, or ``""``.
    A list, tuple or dictionary is checked with its entries."""
    if type(value) is kind:
        return ""
    if kind == Count:
        return misfit(name, value, int) or (f"{name} must be at least 1, not {shown(value)}" if value < 1 else "")
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    found = next((one for one in kinds if _fits(value, get_origin(one) or one)), None)
    if found is None and isinstance(value, str) and tuple[str, ...] in kinds:
        return f"{name} is the text {shown(value)}, but must be a tuple: ({shown(value)},)"
    if found is None:
        wanted = (get_origin(one) or one for one in kinds if one is not int or float not in kinds)
        return f"{name} must be {listed(map(_in_words, wanted), 'or')}, not {shown(value)}"
    if isinstance(value, str | Path) and Path in kinds and "\0" in str(value):
        return f"{name} cannot be {shown(value)}: no file can have such a name"
    inner = get_args(found)
    if inner and isinstance(value, Mapping):
        for key, one in value.items():
            reason = misfit(f"each name in {name}", key, inner[0]) or misfit(f"{name}[{shown(key)}]", one, inner[1])
            if reason:
                return reason
    elif inner and isinstance(value, list | tuple):
        of_each = repeat(inner[0]) if get_origin(found) is not tuple or inner[-1] is Ellipsis else inner
        if of_each is inner and len(inner) != len(value):
            return f"{name} must have {len(inner)} entries, not {len(value)}"
        for place, (one, its) in enumerate(zip(value, of_each, strict=False)):
            if type(one) is not its and (reason := misfit(f"{name}[{place}]", one, its)):
                return reason
    return ""


def fault_of_fields(declared: DataclassInstance, within: str = "") -> str:
    """The :func:`misfit` of a field of a dataclass or of one in it, or ``""``."""
    for name, kind in _annotations(type(declared)).items():
        value = getattr(declared, name)
        reason = misfit(f"{within}{name}", value, kind)
        if not reason and is_dataclass(value) and not isinstance(value, type):
            reason = fault_of_fields(value, f"{within}{name}.")
        if reason:
            return reason
    return ""


@cache
def _annotations(kind: type) -> dict[str, Any]:
    """Of its fields; none if a plug-in imports some for type checkers only."""
    with suppress(NameError):
        return get_type_hints(kind)
    return {}


_NAMES: dict[Any, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    NoneType: "None",
    Path: "a path",
    Mapping: "a dictionary",
    **dict.fromkeys((Sequence, Iterable, list), "a list"),
    tuple: "a tuple",
    dict: "a table",
    Callable: "a function",
}


def _in_words(kind: Any) -> str:
    return _NAMES.get(kind) or f"{'an' if kind.__name__[0] in 'AEIO' else 'a'} {kind.__name__}"


def _fits(value: object, kind: Any) -> bool:
    """Numbers of numpy are numbers; a text is no list of letters, and a dictionary no list of names."""
    if kind in (Any, object) or not isinstance(kind, type):
        return True
    if getattr(kind, "_is_protocol", False):
        return has_names_of(kind, value)
    if kind in (Sequence, Iterable) and isinstance(value, str | bytes | Mapping):
        return False
    return is_of(value, {int: Integral, float: Real}.get(kind, kind))


def has_names_of(protocol: type, value: object) -> bool:
    """Whether ``value``, or instances of it if it is a class, have the public names of ``protocol``."""
    return all(hasattr(value, name) for name in vars(protocol) if not name.startswith("_"))
