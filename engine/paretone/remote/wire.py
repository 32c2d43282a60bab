"""Typed messages between a window and an engine elsewhere. Torch-free.

A message is an :class:`Envelope` in MessagePack: kind, version, number, payload. Payloads hold plain values, arrays as
binary, and objects of *declared* types only: commands and events of the session, the types of their fields, and the
types of registered techniques: the artefacts, and what the modules of their requests define. An object travels as a
table of its fields, and is read back by the annotations of its class, so that nothing else is ever constructed.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hmac
import inspect
import math
import secrets
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args, get_origin

import msgspec
import numpy as np

from paretone.errors import PlainError
from paretone.fields import exact, has_names_of, misfit
from paretone.reading import shortened, shown
from paretone.session import commands, events
from paretone.setting.knobs import Values
from paretone.setting.plan import named
from paretone.setting.profile import Profile
from paretone.studies.store import StoredTake
from paretone.studies.verifying import Check
from paretone.techniques.registry import techniques
from paretone.wording import grouped

if TYPE_CHECKING:
    import aiohttp

VERSION = 1, 0
"""Of these messages: a host reads messages of its own major and of any minor version."""
PATH = "/engine"
"""Of the websocket, of questions, and of files, each with its name as ``file`` in the query; for :func:`proof`, with
the ``challenge``."""
LARGEST_COMMAND, LARGEST_EVENT = 1 << 27, 1 << 30
"""Bytes of a message to the host and from it."""
COMMAND, EVENT, HELLO, WELCOME = "command", "event", "hello", "welcome"
REFUSED, ASK, SEEN = "refused", "ask", "seen"
_TYPE = "$"
"""Field of a table that names its type; :data:`_TABLE` and :data:`_VALUES` are tables of names and values."""
_TABLE, _VALUES = "table", "values"
_ARRAY = 1
"""MessagePack's extension for an array: its type and shape, then its bytes."""
_DTYPES = frozenset("|b1 |i1 |u1 <i2 <i4 <i8 <u2 <u4 <u8 <f2 <f4 <f8".split())
_DEFERRED = {"Profile": Profile, "StoredTake": StoredTake, "Check": Check}
"""Names in annotations that the modules import for type checkers only."""
_PLAIN = (type(None), bool, int, float, str, bytes)
_OF_KNOBS = dict[str, bool | int | float | str]


class WireError(PlainError):
    """A message that is refused; the sentence says why."""


class Envelope(NamedTuple):
    kind: str
    version: tuple[int, int]
    number: int
    payload: msgspec.Raw


@dataclass(frozen=True)
class Hello:
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
    dropped: int = 0
    """Intermediate events dropped while the window was away: the store of events is bounded."""


@dataclass(frozen=True)
class Ask:
    """A question about the host and its files."""

    what: str
    text: str = ""
    content: bytes = b""


def proof(token: str, challenge: str) -> str:
    """The answer to ``challenge`` of an engine that has the ``token``, which another program on its port has not."""
    return hmac.digest(token.encode(), challenge.encode(), "sha256").hex()


async def unproven(session: aiohttp.ClientSession, token: str) -> int:
    """Status of an answer without :func:`proof`; 0 if what answers has the ``token``."""
    challenge = secrets.token_hex()
    wanted = proof(token, challenge).encode()
    # Nobody may send us on to the engine, and pass its proof off as its own.
    async with session.get(PATH, params={"challenge": challenge}, allow_redirects=False) as answer:
        with suppress(asyncio.IncompleteReadError):
            return answer.status * (await answer.content.readexactly(len(wanted)) != wanted)
        return answer.status


# --- Declared types ---------------------------------------------------------------------------------------------------
@cache
def declared() -> dict[str, type]:
    """All types that may travel, by name. Commands without their own function control jobs and travel too."""
    found: dict[str, type] = {}
    left = [*_frozen_in(commands.__name__), *_frozen_in(events.__name__)]
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
                left += [one for hint in field_types(kind).values() for one in _classes(hint)]
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
        yield from (one for one in _frozen_in(hint.__module__) if has_names_of(hint, one))


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


@cache
def field_types(kind: Any) -> dict[str, Any]:
    """Annotations of the fields of ``kind`` that travel, by name. Raises :class:`WireError`."""
    try:
        hints = typing.get_type_hints(kind, localns=_DEFERRED)
    except NameError as error:
        raise WireError(
            f"{kind.__qualname__} cannot travel to another machine: its module does not import {error.name}."
        ) from error
    return {one.name: hints[one.name] for one in dataclasses.fields(kind) if one.init}


# --- Writing ----------------------------------------------------------------------------------------------------------
Replace = Callable[[Any], Any]
"""Replaces an object before it is written, or once it is read, such as a voice by one with a path of the host."""


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
    for field in field_types(kind):
        one, default = getattr(value, field), getattr(kind, field, dataclasses.MISSING)
        # Newer fields at their defaults are then no obstacle to older hosts.
        if not (one is default or (type(one) in (*_PLAIN, tuple) and type(one) is type(default) and one == default)):
            made[field] = packed(one, replace)
    return made


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
    found = _decoded(content, "The message is no envelope", type=Envelope)
    if found.version[0] != VERSION[0]:
        raise WireError(
            f"The message has version {'.'.join(map(str, found.version))}; this program reads {VERSION[0]}.x. Install "
            "the same version of Paretone on both machines."
        )
    return found


def read(payload: msgspec.Raw, kind: type[Payload]) -> Payload:
    """The payload as one of the classes above. Raises :class:`WireError`."""
    return _decoded(payload, f"{kind.__name__} is not understood", type=kind)


def plain(payload: msgspec.Raw) -> Any:
    """The payload as plain values, tables and arrays."""
    return _decoded(payload, "The message is not understood", ext_hook=_read_array)


def _decoded(content: msgspec.Raw | bytes, problem: str, **how: Any) -> Any:
    try:
        return msgspec.msgpack.decode(content, **how)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise WireError(f"{problem}: {shortened(str(error))}.") from error


Root = TypeVar("Root", commands.Command, events.Event)


def of(data: Any, root: type[Root], replace: Replace = lambda value: value) -> Root:
    """The command or event that :func:`plain` values say. Raises :class:`WireError`, and what ``replace`` raises."""
    try:
        found = _read(data, replace)
    except RecursionError as error:
        raise WireError("The message is nested too deeply.") from error
    if not isinstance(found, root):
        raise WireError(f"The {root.__name__.lower()} must be of type {root.__name__}, not {_shown(data)}.")
    return found


def _read_array(code: int, data: memoryview) -> np.ndarray:
    if code != _ARRAY or not len(data) or len(data) <= data[0]:
        raise WireError("The message has a damaged array.")
    dtype, shape = msgspec.msgpack.decode(data[1 : 1 + data[0]], type=tuple[str, tuple[int, ...]])
    if dtype not in _DTYPES or len(shape) > 8 or any(one < 0 for one in shape):
        raise WireError(f"The message has an array of an unknown type or shape, {shown(dtype)}, {shown(shape)}.")
    if np.dtype(dtype).itemsize * math.prod(shape) != len(data) - 1 - data[0]:
        raise WireError("The message has an array with too few or too many bytes.")
    # A copy, which is writable and aligned.
    return np.frombuffer(data[1 + data[0] :], dtype).reshape(shape).copy()


def _read(value: Any, replace: Replace) -> Any:
    """Plain values with the objects that they name: each of a declared type, its fields as its annotations say."""
    if isinstance(value, list):
        return tuple(_read(one, replace) for one in value)
    if not isinstance(value, dict):
        return value
    if not isinstance(name := value.get(_TYPE), str):
        raise WireError(f"A table of the message has no type: {_shown(value)}.")
    if name == _TABLE:
        pairs = exact(value, "a table", {_TYPE: str, "of": list[list]}, WireError)["of"]
        if not all(len(one) == 2 and type(one[0]) in _PLAIN for one in pairs):
            raise WireError("A table must have names with values.")
        return {key: _read(one, replace) for key, one in pairs}
    if name == _VALUES:
        exact(value, "a table of knobs", {_TYPE: str, "of": _OF_KNOBS, "implied": _OF_KNOBS}, WireError)
        made = Values.complete(value["of"], value["implied"])
        if len(made) != len(value["of"]):
            raise WireError("Values of knobs repeat those that are implied.")
        return made
    kind: Any = declared().get(name)
    if kind is None:
        raise WireError(
            f"The message has the type {shown(name)}, which nothing here declares; install the same version of "
            "Paretone, and the same plug-ins, on both machines."
        )
    if issubclass(kind, Enum):
        if set(value) != {_TYPE, "name"} or (member := str(value["name"])) not in kind.__members__:
            raise WireError(f"{kind.__name__} must be one of {', '.join(kind.__members__)}, not {_shown(value)}.")
        return kind[member]
    hints = field_types(kind)
    if unknown := [field for field in value if field not in hints and field != _TYPE]:
        raise WireError(f"{kind.__name__} has no field {_shown(unknown[0])} here; update Paretone on both machines.")
    given = {field: _read(one, replace) for field, one in value.items() if field != _TYPE}
    for field, one in given.items():
        if reason := misfit(f"{kind.__name__}.{field}", one, hints[field]):
            raise WireError(f"{reason}.")
    try:
        made = kind(**given)
    except Exception as error:  # The checks of any class.
        raise WireError(f"The message is no {kind.__name__}: {shortened(str(error)).rstrip('.')}.") from error
    return replace(made)


def _shown(value: Any) -> str:
    return f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else shown(value)
