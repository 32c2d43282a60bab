"""Reading foreign files within bounds, so that none can hang, fill memory or flood a message. Torch-free.

Only regular files are opened; texts and descriptions are limited in size, JSON and YAML in depth, YAML's aliases in
their total expansion. Quotes in messages are cut to :data:`LONGEST_SHOWN` characters.
"""

from __future__ import annotations

import errno
import json
import os
import re
import reprlib
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from paretone.wording import grouped

if TYPE_CHECKING:
    import yaml

    from paretone.errors import PlainError

Function = TypeVar("Function", bound=Callable[..., Any])
LONGEST_SHOWN = 160
"""Maximum number of characters of a value in a message."""
DEEPEST = 64
"""Maximum nesting of lists and tables; ours have at most 10 levels."""
LARGEST = 1 << 28
"""Maximum size in bytes of a JSON or text file."""
LARGEST_YAML = 1 << 20
"""Maximum size in bytes of a YAML file, which reads a thousand times slower; published ones have 5 kB."""
LARGEST_POINTER = 1024
"""Bytes; Git LFS pointers are smaller."""
MOST_NODES = 100_000
"""Maximum number of values of a YAML file, with aliases expanded."""


class _Shortened(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 2
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = 4
        self.maxstring = self.maxother = 80
        self.maxlong = 40

    def repr_int(self, value: int, level: int) -> str:
        # Python refuses to write the digits of a very long number.
        return super().repr_int(value, level) if value.bit_length() < 10_000 else "a number of thousands of digits"


_SHORTENED = _Shortened()


def shown(value: object) -> str:
    """``repr`` of ``value`` for a message: at most :data:`LONGEST_SHOWN` characters for any content."""
    return shortened(_SHORTENED.repr(value))


def shortened(text: str, length: int = LONGEST_SHOWN) -> str:
    """The beginning of ``text``, of at most ``length`` characters."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def printable(text: str) -> str:
    """``text`` for a terminal, with escaped characters that would move its cursor, colour it or reverse letters, as
    foreign names and texts may contain them. Line ends and tabs stay. JSON keeps its meaning."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def require_regular(path: Path | str) -> os.stat_result:
    """Status of a file that can be read to its end. Raises :class:`OSError` for a pipe, a device, a folder, or an
    invalid name: opening a pipe would wait forever, and a device may have no end."""
    try:
        status = os.stat(path)
    except ValueError:  # A NUL in the name.
        raise OSError(errno.EINVAL, "no file can have such a name", str(path).replace("\0", "\\0")) from None
    if not stat.S_ISREG(status.st_mode):
        kind = next((words for is_kind, words in _KINDS if is_kind(status.st_mode)), "no regular file")
        raise OSError(errno.EINVAL, f"it is {kind}; choose a regular file", str(path))
    if status.st_size < LARGEST_POINTER and _is_pointer(path):
        said = "it is a Git LFS pointer, a note in place of the file; run 'git lfs pull' in its folder, or download it"
        raise OSError(errno.EINVAL, said, str(path))
    return status


def _is_pointer(path: Path | str) -> bool:
    """Whether a file is the pointer left by a clone without Git LFS. Source: Git LFS specification."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_POINTER)) == _POINTER
    except OSError:
        return False


_POINTER = b"version https://git-lfs.github.com/spec/"


def is_regular(path: Path) -> bool:
    """Whether ``path`` is a file that can be read to its end."""
    try:
        require_regular(path)
    except OSError:
        return False
    return True


def read_bytes(path: Path | str, largest: int = LARGEST) -> bytes:
    """Contents of a regular file of at most ``largest`` bytes. Raises :class:`OSError`."""
    if require_regular(path).st_size > largest:
        limit = f"{largest >> 20} MiB" if largest >= 1 << 20 else f"{largest >> 10} KiB"
        raise OSError(errno.EFBIG, f"it is larger than {limit}, which no such file is", str(path))
    return Path(path).read_bytes()


def read_text(path: Path | str, encoding: str = "utf-8", largest: int = LARGEST) -> str:
    """Text of a regular file, with ``\\n`` as line ends. Raises :class:`OSError`, and :class:`ValueError` otherwise."""
    text = decoded(read_bytes(path, largest), encoding)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


class NotTextError(UnicodeDecodeError):
    """Bytes that are not text, worded for a sentence."""

    def __str__(self) -> str:
        return f"byte {self.start + 1} is not text in {self.encoding.upper()}"


def decoded(content: bytes, encoding: str = "utf-8") -> str:
    """``content`` as text. Raises :class:`NotTextError`."""
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise NotTextError(*error.args) from None


def parsed_json(text: str | bytes, object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Value of a JSON text. Raises :class:`ValueError`, also for more than :data:`DEEPEST` levels."""
    try:
        data = json.loads(text, object_pairs_hook=object_pairs_hook)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except UnicodeDecodeError as error:
        raise NotTextError(*error.args) from None
    require_shallow(data)
    return data


def parsed_toml(text: str) -> dict[str, Any]:
    """Value of a TOML text. Raises :class:`ValueError`, also for more than :data:`DEEPEST` levels."""
    import tomllib

    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    require_shallow(data)
    return data


def require_shallow(data: object) -> None:
    """Raise :class:`ValueError` if lists and tables are nested more than :data:`DEEPEST` levels deep."""
    level = [data]
    for _ in range(DEEPEST + 1):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise ValueError(_TOO_DEEP)


def parsed_yaml(text: str) -> Any:
    """Value of a YAML text. Raises :class:`ValueError`, also for more than :data:`DEEPEST` levels, or aliases that
    expand to more than :data:`MOST_NODES` values."""
    import yaml  # takes longer to import than the whole command line

    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _require_small(node, DEEPEST, {})
        return loader.construct_document(node)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except (yaml.YAMLError, TypeError, AttributeError, LookupError, OverflowError) as error:
        raise ValueError(first_line(error)) from None


def read_yaml(path: Path) -> Any:
    """Value of a YAML file. Raises :class:`OSError` and :class:`ValueError`."""
    return parsed_yaml(read_text(path, largest=LARGEST_YAML))


def read_json(path: Path | str) -> Any:
    """Value of a JSON file. Raises :class:`OSError` and :class:`ValueError`."""
    return parsed_json(read_text(path))


_DAMAGED: tuple[type[Exception], ...] = (OSError, ValueError, LookupError, TypeError, AttributeError)


@contextmanager
def readable(kind: type[PlainError], what: str, advice: str = "", *also: type[Exception]) -> Iterator[None]:
    """Raise ``kind`` in place of what a damaged file causes within: ``what``, why, and ``advice``. ``also``: further
    kinds of errors, :class:`Exception` for packages that document none."""
    try:
        yield
    except _DAMAGED + also as error:
        raise kind(f"{what} ({first_line(error)}){advice and f'; {advice}'}.") from error


@contextmanager
def legible(kind: type[PlainError], noun: str, path: object) -> Iterator[None]:
    """Raise ``kind`` if the user's file ``path``, a ``noun``, cannot be read within, as UTF-8 where it is decoded."""
    try:
        yield
    except FileNotFoundError:
        raise kind(f"There is no {noun} {path}; check the path.") from None
    except OSError as error:
        raise kind(f"The {noun} {path} could not be read: {first_line(error)}.") from error
    except UnicodeDecodeError as error:
        raise kind(f"The {noun} {path} is not UTF-8 (byte {error.start + 1}); save it as UTF-8.") from error


def first_line(error: BaseException) -> str:
    """Reason in one line without a full stop, for the middle of a sentence."""
    if isinstance(error, OSError) and error.strerror:
        return shortened(error.strerror)
    lines = str(error).strip().splitlines()
    return shortened(lines[0].rstrip(".")) if lines else type(error).__name__


def named_first(names: Collection[object], count: int) -> str:
    """The first ``count`` of ``names``, each shortened, and the number of others."""
    few = ", ".join(shortened(str(name)) for name, _ in zip(names, range(count), strict=False))
    return few if len(names) <= count else f"{few} and {len(names) - count} more"


def until_changed(most: int) -> Callable[[Function], Function]:
    """Decorator of a function of a file, its first argument: keeps the ``most`` latest results until the file
    changes."""

    def decorated(read: Function) -> Function:
        kept = lru_cache(maxsize=most)(lambda path, seen, *others: read(path, *others))
        called: Any = wraps(read)(lambda path, *others: kept(path, version(path), *others))
        return called

    return decorated


def version(path: Path | str) -> tuple[int, int]:
    """Size in bytes and time of the last change in nanoseconds; zeros without a file."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return 0, 0
    return status.st_size, status.st_mtime_ns


_TOO_DEEP = f"lists and tables lie more than {DEEPEST} levels within each other"
_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def _require_small(node: yaml.Node, depth: int, counted: dict[int, int]) -> int:
    """Number of values of ``node`` with aliases expanded, before construction, where ``<<`` copies their targets."""
    if depth < 0:
        raise ValueError(_TOO_DEEP)
    if id(node) in counted:
        if not counted[id(node)]:
            raise ValueError("an alias stands for a list or table that it lies in")
        return counted[id(node)]
    counted[id(node)] = 0
    total = 1
    if not isinstance(node.value, str):
        for one in node.value:
            for inner in one if isinstance(one, tuple) else (one,):
                total += _require_small(inner, depth - 1, counted)
                if total > MOST_NODES:
                    raise ValueError(f"it stands for more than {grouped(MOST_NODES)} values")
    counted[id(node)] = total
    return total
