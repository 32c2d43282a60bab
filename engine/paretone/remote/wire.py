"""Typed messages between a window and an engine elsewhere. Torch-free.

A message is an :class:`Envelope` in MessagePack: kind, version, number, payload. Payloads hold plain values, arrays as
binary, and objects of *declared* types only: commands and events of the session, the types of their fields, and the
types of registered techniques: the artefacts, and what the modules of their requests define. An object travels as a
table of its fields, and is read back by the annotations of its class, so that nothing else is ever constructed.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, NamedTuple, TypeVar, get_args, get_origin

import msgspec
import numpy as np

from paretone.errors import PlainError
from paretone.reading import shortened, shown
from paretone.session import commands, events
from paretone.setting.knobs import Values
from paretone.setting.profile import Profile
from paretone.studies.store import StoredTake
from paretone.studies.verifying import Check
from paretone.techniques.registry import named, techniques
from paretone.wording import grouped

VERSION = 1, 0
"""Of these messages: a host reads messages of its own major and of any minor version."""
LARGEST_COMMAND, LARGEST_EVENT = 1 << 27, 1 << 30
"""Bytes of a message to the host and from it."""
COMMAND, EVENT, HELLO, WELCOME = "command", "event", "hello", "welcome"
REFUSED, ASK, ANSWER, SEEN = "refused", "ask", "answer", "seen"
_TYPE = "$"
"""Field of a table that names its type; :data:`_TABLE` and :data:`_VALUES` are tables of names and values."""
_TABLE, _VALUES = "table", "values"
_ARRAY = 1
"""MessagePack's extension for an array: its type and shape, then its bytes."""
_DTYPES = frozenset("|b1 |i1 |u1 <i2 <i4 <i8 <u2 <u4 <u8 <f2 <f4 <f8".split())
_MOST_AXES = 8
_DEFERRED = {"Profile": Profile, "StoredTake": StoredTake, "Check": Check}
"""Names in annotations that the modules import for type checkers only."""
_UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
_PLAIN = (type(None), bool, int, float, str, bytes)


class WireError(PlainError):
    """A message that is refused; the sentence says why."""


class Envelope(NamedTuple):
    kind: str
    version: tuple[int, int]
    number: int
    payload: msgspec.Raw


@dataclass(frozen=True)
class Hello:
    """The window's first message."""

    paretone: str
    """The program's version."""
    window: str
    """Identity of the window, new at each start."""
    title: str
    """Name of its machine, for other windows."""
    session: str = ""
    """Identity of the engine that it was connected to, or ``""``."""
    seen: int = 0
    """Number of the last event that arrived."""
    take_over: bool = False
    """Whether to cancel what an absent window left running."""


@dataclass(frozen=True)
class Welcome:
    """The host's answer to :class:`Hello`."""

    paretone: str
    session: str
    received: int
    """Number of the last command that arrived."""
    techniques: tuple[str, ...]
    dropped: int = 0
    """Intermediate events dropped while the window was away: the store of events is bounded."""


@dataclass(frozen=True)
class Ask:
    """A question about the host's files, or a part of a file."""

    what: str
    text: str = ""
    number: int = 0
    content: bytes = b""


@dataclass(frozen=True)
class Answer:
    value: Any = None
    problem: str = ""


# --- Declared types ---------------------------------------------------------------------------------------------------
@cache
def declared() -> dict[str, type]:
    """All types that may travel, by name. Commands without their own function control jobs and travel too."""
    found: dict[str, type] = {}
    left: list[type] = [
        one
        for root in (commands.Command, events.Event)
        for one in _frozen_in(root.__module__)
        if issubclass(one, root) and one is not root
    ]
    for one in techniques():
        with suppress(Exception):  # What a broken plug-in declares cannot travel; all else can.
            left += [kind for job in one.jobs for kind in _frozen_of(named(job.request))]
            left += _frozen_of(one.artefact.type) if one.artefact is not None else ()
    while left:
        kind = left.pop()
        if _name(kind) in found:
            continue
        found[_name(kind)] = kind
        if dataclasses.is_dataclass(kind):
            left += [one for one in _frozen_in(kind.__module__) if issubclass(one, kind)]
            with suppress(WireError):
                left += [one for hint in _hints(kind).values() for one in _classes(hint)]
    return found


def _frozen_of(kind: type) -> Iterator[type]:
    """Frozen dataclasses of the module that defines ``kind``, and those of its bases' modules."""
    for base in inspect.getmro(kind):
        if dataclasses.is_dataclass(base):
            yield from _frozen_in(base.__module__)


def _frozen_in(module: str) -> list[type]:
    classes = [one for one in vars(sys.modules[module]).values() if isinstance(one, type) and one.__module__ == module]
    return [one for one in classes if (params := getattr(one, "__dataclass_params__", None)) and params.frozen]


def _classes(hint: Any) -> Iterator[type]:
    """Dataclasses and enumerations within an annotation; for a protocol, those that its module defines."""
    for argument in get_args(hint):
        yield from _classes(argument)
    if not isinstance(hint, type) or get_origin(hint) is not None:
        return
    if dataclasses.is_dataclass(hint) or issubclass(hint, Enum):
        yield hint
    elif getattr(hint, "_is_protocol", False):
        yield from (one for one in _frozen_in(hint.__module__) if _fits_protocol(one, hint))


def _fits_protocol(kind: type, protocol: type) -> bool:
    return all(hasattr(kind, name) for name in vars(protocol) if not name.startswith("_"))


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """Annotations of the fields of ``kind`` that travel."""
    try:
        hints = typing.get_type_hints(kind, localns=_DEFERRED)
    except NameError as error:
        raise WireError(
            f"{kind.__qualname__} cannot travel to another machine: its module does not import {error.name}."
        ) from error
    return {one.name: hints[one.name] for one in dataclasses.fields(kind) if one.init}


# --- Writing ----------------------------------------------------------------------------------------------------------
Replace = Callable[[Any], Any]
"""Replaces an object before it is written, such as a voice by one with a path that the host knows."""


def packed(value: Any, replace: Replace = lambda value: value) -> Any:
    """``value`` as plain values, tables and arrays. Raises :class:`WireError` for an undeclared type."""
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        if all(type(one) in _PLAIN for one in value):
            return value
        return [packed(one, replace) for one in value]
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, str) and not isinstance(value, Enum):
        return str.__str__(value)  # A library's own kind of text, such as torch's version.
    if kind is Values:
        _, (given, implied) = value.__reduce__()
        return {_TYPE: _VALUES, "of": given, "implied": implied}
    if isinstance(value, Mapping):
        return {_TYPE: _TABLE, "of": [[packed(key, replace), packed(one, replace)] for key, one in value.items()]}
    name = _name(kind)
    if name not in declared():
        raise WireError(f"{kind.__qualname__} of {kind.__module__} cannot travel: no technique here declares it.")
    if isinstance(value, Enum):
        return {_TYPE: name, "name": value.name}
    value = replace(value)
    made: dict[str, Any] = {_TYPE: name}
    for field, default in _fields(kind):
        one = getattr(value, field)
        if not (one is default or (type(one) in (*_PLAIN, tuple) and type(one) is type(default) and one == default)):
            made[field] = packed(one, replace)
    return made


@cache
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Fields to write, with their defaults: newer fields at their defaults are then no obstacle to older hosts."""
    return tuple((one.name, one.default) for one in dataclasses.fields(kind) if one.init)


def _array(value: np.ndarray) -> msgspec.msgpack.Ext:
    whole = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
    if whole.dtype.str not in _DTYPES:
        raise WireError(f"An array of {value.dtype} cannot travel.")
    head = msgspec.msgpack.encode([whole.dtype.str, value.shape])
    return msgspec.msgpack.Ext(_ARRAY, bytes([len(head)]) + head + whole.tobytes())


def message(kind: str, payload: Any, number: int = 0) -> bytes:
    """The bytes of a message; ``payload``: one of the classes above, or :func:`packed`."""
    try:
        return msgspec.msgpack.encode([kind, VERSION, number, payload])
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise WireError(f"The {kind} cannot travel: {error}.") from error


# --- Reading ----------------------------------------------------------------------------------------------------------
Payload = TypeVar("Payload")


def envelope(content: object, largest: int) -> Envelope:
    """The envelope of a message. Raises :class:`WireError`."""
    if not isinstance(content, bytes):
        raise WireError("A message must be binary.")
    if len(content) > largest:
        raise WireError(f"The message has {grouped(len(content))} bytes, but {grouped(largest)} at most.")
    try:
        found = msgspec.msgpack.decode(content, type=Envelope)
    except _UNREADABLE as error:
        raise WireError(f"The message is no envelope: {shortened(str(error))}.") from error
    if found.version[0] != VERSION[0]:
        raise WireError(
            f"The message has version {'.'.join(map(str, found.version))}; this program reads {VERSION[0]}.x. Install "
            "the same version of Paretone on both machines."
        )
    return found


def read(payload: msgspec.Raw, kind: type[Payload]) -> Payload:
    """The payload as one of the classes above. Raises :class:`WireError`."""
    try:
        return msgspec.msgpack.decode(payload, type=kind)
    except _UNREADABLE as error:
        raise WireError(f"{kind.__name__} is not understood: {shortened(str(error))}.") from error


def plain(payload: msgspec.Raw) -> Any:
    """The payload as plain values, tables and arrays."""
    try:
        return msgspec.msgpack.decode(payload, ext_hook=_read_array)
    except _UNREADABLE as error:
        raise WireError(f"The message is not understood: {shortened(str(error))}.") from error


def command(data: Any) -> commands.Command:
    """The command that :func:`plain` values say."""
    return _of(data, commands.Command)


def event(data: Any) -> events.Event:
    return _of(data, events.Event)


def changed(value: commands.Command, change: Replace) -> commands.Command:
    """A command with every object in it changed."""
    return command(plain(msgspec.Raw(msgspec.msgpack.encode(packed(value, change)))))


Root = TypeVar("Root", commands.Command, events.Event)


def _of(data: Any, root: type[Root]) -> Root:
    try:
        return _object(data, root, f"The {root.__name__.lower()}")
    except RecursionError as error:
        raise WireError("The message is nested too deeply.") from error


def _read_array(code: int, data: memoryview) -> np.ndarray:
    if code != _ARRAY or not len(data) or len(data) <= data[0]:
        raise WireError("The message has a damaged array.")
    dtype, shape = msgspec.msgpack.decode(data[1 : 1 + data[0]], type=tuple[str, tuple[int, ...]])
    if dtype not in _DTYPES or len(shape) > _MOST_AXES or any(one < 0 for one in shape):
        raise WireError(f"The message has an array of an unknown type or shape, {shown(dtype)}, {shown(shape)}.")
    size = np.dtype(dtype).itemsize
    for one in shape:
        size *= one
    if size != len(data) - 1 - data[0]:
        raise WireError("The message has an array with too few or too many bytes.")
    # A copy, which is writable and aligned.
    return np.frombuffer(data[1 + data[0] :], dtype).reshape(shape).copy()


def _object(data: Any, wanted: type, where: str) -> Any:
    """An object of the declared type that ``data`` names, which must be ``wanted`` or derive from it."""
    name = data.get(_TYPE) if isinstance(data, dict) else None
    if not isinstance(name, str):
        raise WireError(f"{where} must be of type {wanted.__name__}, not {_shown(data)}.")
    kind: Any = declared().get(name)
    if kind is None:
        raise WireError(
            f"{where} has the type {shown(name)}, which nothing here declares; install the same version of Paretone, "
            "and the same plug-ins, on both machines."
        )
    if not _is_a(kind, wanted):
        raise WireError(f"{where} must be of type {wanted.__name__}, not {kind.__name__}.")
    if issubclass(kind, Enum):
        if set(data) != {_TYPE, "name"} or data["name"] not in kind.__members__:
            raise WireError(f"{where} must be one of {', '.join(kind.__members__)}, not {_shown(data.get('name'))}.")
        return kind[data["name"]]
    hints = _hints(kind)
    if unknown := [field for field in data if field not in hints and field != _TYPE]:
        raise WireError(f"{kind.__name__} has no field {_shown(unknown[0])} here; update Paretone on both machines.")
    given = {field: _as(one, hints[field], f"{kind.__name__}.{field}") for field, one in data.items() if field != _TYPE}
    try:
        return kind(**given)
    except PlainError as error:
        raise WireError(f"{where}: {error}") from error
    except Exception as error:  # The checks of any class.
        raise WireError(f"{where} is no {kind.__name__}: {shortened(str(error))}.") from error


def _is_a(kind: type, wanted: type) -> bool:
    if getattr(wanted, "_is_protocol", False):
        return _fits_protocol(kind, wanted)
    return wanted is object or issubclass(kind, wanted)


_KINDS: dict[Any, tuple[type, ...]] = {**{one: (one,) for one in (*_PLAIN, np.ndarray)}, float: (float, int)}
"""Types of plain values, by annotation."""


def _as(value: Any, hint: Any, where: str) -> Any:
    """``value`` as its annotation says. Raises :class:`WireError`."""
    origin, arguments = get_origin(hint), get_args(hint)
    if (kinds := _KINDS.get(hint)) is not None:
        if type(value) not in kinds:
            raise WireError(f"{where} must be of type {hint.__name__}, not {_shown(value)}.")
        return value
    if origin in (typing.Union, types.UnionType):
        problem = None
        for one in arguments:
            try:
                return _as(value, one, where)
            except WireError as error:
                problem = error
        raise problem or WireError(f"{where} cannot be {_shown(value)}.")
    if origin is tuple:
        found = _require(value, list, where)
        if arguments[1:] == (...,):
            return tuple(_as(one, arguments[0], where) for one in found)
        if len(found) != len(arguments):
            raise WireError(f"{where} must have {len(arguments)} parts, not {len(found)}.")
        return tuple(_as(one, kind, where) for one, kind in zip(found, arguments, strict=True))
    if origin is Mapping or origin is dict:
        return {_as(name, arguments[0], where): _as(one, arguments[1], where) for name, one in _pairs(value, where)}
    if hint is Values:
        return _values(value, where)
    if hint is Any or not isinstance(hint, type):
        return _anything(value, where)
    return _object(value, hint, where) if hint is not object else _anything(value, where)


def _anything(value: Any, where: str) -> Any:
    """A value without annotation: plain, an array, an object of a declared type, or several."""
    if isinstance(value, list):
        return tuple(_anything(one, where) for one in value)
    if not isinstance(value, dict):
        return value
    if value.get(_TYPE) == _VALUES:
        return _values(value, where)
    if value.get(_TYPE) == _TABLE:
        return {_anything(name, where): _anything(one, where) for name, one in _pairs(value, where)}
    return _object(value, object, where)


def _values(value: Any, where: str) -> Values:
    if not isinstance(value, dict) or value.get(_TYPE) != _VALUES or set(value) != {_TYPE, "of", "implied"}:
        raise WireError(f"{where} must be values of knobs, not {_shown(value)}.")
    given, implied = (_require(value[part], dict, where) for part in ("of", "implied"))
    for name, one in (*given.items(), *implied.items()):
        if type(name) is not str or type(one) not in (bool, int, float, str):
            raise WireError(f"{where} must have names with plain values, not {_shown(name)}: {_shown(one)}.")
    made = Values.complete(given, implied)
    if len(made) != len(given):
        raise WireError(f"{where} repeats values that are implied.")
    return made


def _pairs(value: Any, where: str) -> list[tuple[Any, Any]]:
    """Names and values of a table."""
    if not isinstance(value, dict) or value.get(_TYPE) != _TABLE or set(value) != {_TYPE, "of"}:
        raise WireError(f"{where} must be a table, not {_shown(value)}.")
    pairs = _require(value["of"], list, where)
    if not all(isinstance(one, list) and len(one) == 2 and type(one[0]) in _PLAIN for one in pairs):
        raise WireError(f"{where} must be a table of names and values.")
    return pairs


def _require(value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, kind):
        raise WireError(f"{where} must be of type {kind.__name__}, not {_shown(value)}.")
    return value


def _shown(value: Any) -> str:
    return f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else shown(value)
