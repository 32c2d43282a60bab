"""Random damage to files: bytes that were lost, changed or doubled, and values that nobody meant. Seeded."""

from __future__ import annotations

import contextlib
import random
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

VALUES = (
    *(b"null", b"[]", b"{}", b"-1", b"0", b"1e308", b"-1e308", b"1e999", b"NaN", b"Infinity", b"true", b'""', b'"x"'),
    *(b"9" * 400, b"9" * 5000, b"0x" + b"f" * 5000, b"1" + b"0" * 30, b"0.1", b'"' + b"a" * 100_000 + b'"'),
    *(b"[" * 200 + b"]" * 200, b"[" * 100_000, b'{"a":' * 500, b'"\\u0000"', b'"\\ud800"', b'"\xff\xfe"', b'"../../x"'),
    *(b'"/dev/zero"', b'"a\\u0000b"', b"!!python/object/apply:os.mkdir [ran]", b"*a", b"&a [*a]", b"2001-99-99"),
)
"""What takes the place of a value in a file that people can read."""
_VALUE = re.compile(rb'"[^"\n]{0,200}"|-?\d[\d.eE+-]*|\b(?:true|false|null)\b')


def mutated(content: bytes, draw: random.Random) -> bytes:
    """``content`` with one to three kinds of damage."""
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        content = draw.choice(_KINDS)(content, draw)
    return content


def damage(path: Path, draw: random.Random) -> None:
    """Damage to the file at ``path``; in a database, half of the time to a single value."""
    if path.suffix == ".sqlite" and draw.random() < 0.5:
        _damage_value(path, draw)
    else:
        path.write_bytes(mutated(path.read_bytes(), draw))


def _damage_value(path: Path, draw: random.Random) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = draw.choice(sorted(names))
        columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
        column = draw.choice(columns)
        values = [value for (value,) in connection.execute(f'SELECT "{column}" FROM "{table}"')]
        if not values:
            return
        value = draw.choice(values)
        kept = value if isinstance(value, bytes) else str(value).encode()
        changed = draw.choice((mutated(kept, draw), draw.choice(VALUES)))
        text: object = draw.choice((changed, changed.decode(errors="replace"), None, -1, 2**62, 1e308))
        with contextlib.suppress(sqlite3.Error):  # What the table itself refuses.
            connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE "{column}" IS ?', (text, value))
            connection.commit()


def _span(content: bytes, draw: random.Random, longest: int = 64) -> tuple[int, int]:
    start = draw.randrange(len(content) + 1)
    return start, min(len(content), start + draw.randint(1, longest))


def _flipped(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(draw.randint(1, 8) if changed else 0):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _in_front(content: bytes, draw: random.Random) -> bytes:
    """Where most formats have their header."""
    changed = bytearray(content)
    for _ in range(draw.randint(1, 4) if changed else 0):
        changed[draw.randrange(min(64, len(changed)))] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
    return bytes(changed)


def _lost(content: bytes, draw: random.Random) -> bytes:
    start, end = _span(content, draw, max(len(content) // 4, 1))
    return content[:start] + content[end:]


def _cut(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randrange(len(content) + 1)]


def _doubled(content: bytes, draw: random.Random) -> bytes:
    start, end = _span(content, draw, 4096)
    return content[:end] + content[start:end] * draw.randint(1, 20) + content[end:]


def _noise(content: bytes, draw: random.Random) -> bytes:
    start, end = _span(content, draw)
    return content[:start] + draw.randbytes(draw.randint(1, 256)) + content[end:]


def _zeros(content: bytes, draw: random.Random) -> bytes:
    start, end = _span(content, draw, 4096)
    return content[:start] + bytes(end - start) + content[end:]


def _value(content: bytes, draw: random.Random) -> bytes:
    found = list(_VALUE.finditer(content, 0, 1 << 16))
    if not found:
        return _noise(content, draw)
    one = draw.choice(found)
    return content[: one.start()] + draw.choice(VALUES) + content[one.end() :]


def _swapped(content: bytes, draw: random.Random) -> bytes:
    """One value in the place of another."""
    found = list(_VALUE.finditer(content, 0, 1 << 16))
    if len(found) < 2:
        return _flipped(content, draw)
    one, other = draw.sample(found, 2)
    return content[: one.start()] + other[0] + content[one.end() :]


_KINDS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_flipped, _in_front, _lost, _cut, _doubled, _noise, _zeros),
    *(_value, _value, _value, _swapped, _swapped),
)
