"""Reading what others have written: bounded, so that no file can hang, fill memory or flood a message. Torch-free.

Only regular files are opened, texts and descriptions up to a size, JSON and YAML up to a depth, aliases of YAML up to
what they stand for together. What is quoted in a message is cut to :data:`LONGEST_SHOWN` characters.
"""

from __future__ import annotations

import errno
import json
import os
import re
import reprlib
import stat
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretone.wording import grouped

if TYPE_CHECKING:
    import yaml

LONGEST_SHOWN = 160
"""Characters of a value in a message."""
DEEPEST = 64
"""Lists and tables within each other; ours have at most 10."""
LARGEST = 1 << 28
"""Bytes of a file of JSON or text."""
LARGEST_YAML = 1 << 20
"""Bytes of a file of YAML, which is read a thousand times slower; published ones have 5 kB."""
LARGEST_POINTER = 1024
"""Bytes; Git LFS writes smaller ones."""
MOST_NODES = 100_000
"""Values of a YAML file, those that its aliases stand for counted each time."""


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
    """``value`` as Python writes it, for a message: at most :data:`LONGEST_SHOWN` characters, whatever it holds."""
    return shortened(_SHORTENED.repr(value))


def shortened(text: str, length: int = LONGEST_SHOWN) -> str:
    """The beginning of ``text``, of at most ``length`` characters."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def printable(text: str) -> str:
    """``text`` for a terminal: what would move its cursor, colour it, or turn letters round is written out, since names
    and texts of others may hold it. Ends of lines and tabs stay. JSON keeps its meaning."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def require_regular(path: Path | str) -> os.stat_result:
    """The status of a file that can be read to its end. Raises :class:`OSError` for a pipe, a device, a folder, or a
    name that no file can have: opening a pipe would wait for ever, and a device may have no end."""
    try:
        status = os.stat(path)
    except ValueError:  # a NUL in the name
        raise OSError(errno.EINVAL, "no file can have such a name", _printable(path)) from None
    if not stat.S_ISREG(status.st_mode):
        kind = next((words for is_kind, words in _KINDS if is_kind(status.st_mode)), "no regular file")
        raise OSError(errno.EINVAL, f"it is {kind}; choose a regular file", str(path))
    if status.st_size < LARGEST_POINTER and _is_pointer(path):
        raise OSError(
            errno.EINVAL,
            "it is a Git LFS pointer, a note in place of the file; run 'git lfs pull' in its folder, or download it",
            str(path),
        )
    return status


def _is_pointer(path: Path | str) -> bool:
    """Whether a clone without Git LFS left its note where a large file should be. Source: Git LFS specification."""
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
        raise OSError(errno.EFBIG, f"it is larger than {_size(largest)}, which no such file is", str(path))
    return Path(path).read_bytes()


def read_text(path: Path | str, encoding: str = "utf-8", largest: int = LARGEST) -> str:
    """The same as text, with ends of lines as ``\\n``. Raises :class:`OSError`, and :class:`ValueError` for other
    bytes than text."""
    text = decoded(read_bytes(path, largest), encoding)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


class NotTextError(UnicodeDecodeError):
    """Bytes that are not text, in words that fit into a sentence."""

    def __str__(self) -> str:
        return f"byte {self.start + 1} is not text in {self.encoding.upper()}"


def decoded(content: bytes, encoding: str = "utf-8") -> str:
    """``content`` as text. Raises :class:`NotTextError`."""
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise NotTextError(*error.args) from None


def parsed_json(
    text: str | bytes,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
    parse_constant: Callable[[str], Any] | None = None,
) -> Any:
    """What ``text`` says. Raises :class:`ValueError`, for more than :data:`DEEPEST` levels too."""
    try:
        data = json.loads(text, object_pairs_hook=object_pairs_hook, parse_constant=parse_constant)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except UnicodeDecodeError as error:
        raise NotTextError(*error.args) from None
    require_shallow(data)
    return data


def parsed_toml(text: str) -> dict[str, Any]:
    """What ``text`` says. Raises :class:`ValueError`, for more than :data:`DEEPEST` levels too."""
    import tomllib

    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    require_shallow(data)
    return data


def require_shallow(data: object) -> None:
    """Raise :class:`ValueError` if lists and tables lie more than :data:`DEEPEST` levels within each other."""
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
    """What ``text`` says. Raises :class:`ValueError`: for more than :data:`DEEPEST` levels and for aliases that stand
    for more than :data:`MOST_NODES` values too."""
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
    """What a YAML file says. Raises :class:`OSError` and :class:`ValueError`."""
    return parsed_yaml(read_text(path, largest=LARGEST_YAML))


def read_json(path: Path | str) -> Any:
    """What a JSON file says. Raises :class:`OSError` and :class:`ValueError`."""
    return parsed_json(read_text(path))


def first_line(error: BaseException) -> str:
    """Why, in one line without an end: for the middle of a sentence."""
    if isinstance(error, OSError) and error.strerror:
        return shortened(error.strerror)
    lines = str(error).strip().splitlines()
    return shortened(lines[0].rstrip(".")) if lines else type(error).__name__


def named_first(names: Collection[object], count: int) -> str:
    """The first ``count`` of ``names``, each cut, and how many more there are."""
    few = ", ".join(shortened(str(name)) for name, _ in zip(names, range(count), strict=False))
    return few if len(names) <= count else f"{few} and {len(names) - count} more"


_TOO_DEEP = f"lists and tables lie more than {DEEPEST} levels within each other"
_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def _require_small(node: yaml.Node, depth: int, counted: dict[int, int]) -> int:
    """Number of values of ``node``, those of aliases counted each time; before any is made, because merging tables by
    ``<<`` copies what aliases stand for."""
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


def _printable(path: Path | str) -> str:
    return str(path).replace("\0", "\\0")


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"
