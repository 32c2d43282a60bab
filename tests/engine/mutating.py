"""Files damaged at random give a sentence or a result, never a traceback, code that runs, or a wait."""

import contextlib
import os
import random
import re
import shutil
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import pytest

from paretone.errors import PlainError
from tests.workload import workload

PATIENCE = 60
"""Seconds after which reading one file counts as hanging; the slowest takes one."""
LONGEST = 1500
"""Characters of a sentence."""
EACH = workload(48, 2)
"""Damaged files of each kind."""


@dataclass(frozen=True)
class Kind:
    """A kind of file: how a folder with sound ones is written, which of them are damaged, and how they are read."""

    name: str
    write: Callable[[Path], None]
    pattern: str
    read: Callable[[Path, Path], object]
    """Called with the folder and the damaged file."""
    forgiving: bool = False
    """Whether what cannot be read is passed over, so that nothing is refused."""
    errors: tuple[type[Exception], ...] = (PlainError,)
    """What says a sentence."""


def void(done: object) -> None:
    """Nothing, of what was ``done``."""


class Hanging(BaseException):
    """Nothing may take it for an error of a file."""


@contextlib.contextmanager
def patience(what: str) -> Iterator[None]:
    """Fails what takes longer than :data:`PATIENCE`."""

    def late(number: int, frame: FrameType | None) -> None:
        raise Hanging(f"{what} hangs")

    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def check(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage files of ``kind``, one after the other: each is a sentence or a result."""
    sound, there = tmp_path / "sound", tmp_path / "there"
    sound.mkdir()
    kind.write(sound)
    monkeypatch.chdir(tmp_path)  # Where code that ran would leave something.
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "data"))
    names = sorted(path.relative_to(sound) for path in sound.glob(kind.pattern) if path.is_file())
    kind.read(sound, sound / names[0])
    refused = 0
    for seed in range(EACH):
        draw = random.Random(f"{kind.name} {seed}")
        shutil.copytree(sound, there)
        name = draw.choice(names)
        path = there / name
        if path.suffix == ".sqlite" and draw.random() < 0.5:  # A single value of a database.
            _damage_value(path, draw)
        else:
            path.write_bytes(mutated(path.read_bytes(), draw))
        what = f"{kind.name} {name}, seed {seed}"
        try:
            with patience(what):
                kind.read(there, path)
        except kind.errors as error:
            refused += 1
            sentence = str(error).replace(str(there), "")
            assert 20 < len(sentence) < LONGEST and "Traceback" not in sentence, (what, sentence[:LONGEST])
            assert "\n" in sentence or sentence.rstrip()[-1] in ".!?)", (what, sentence[:LONGEST])
        except Exception as error:
            kept = Path(os.environ.get("PARETONE_ARTEFACTS", tmp_path)) / f"{kind.name}-{seed}-{path.name}"
            shutil.copy(path, kept)
            pytest.fail(f"{what}: {type(error).__name__}: {str(error)[:300]}; the file is {kept}", pytrace=True)
        shutil.rmtree(there)
    assert not (tmp_path / "ran").exists()
    assert refused or EACH < 10 or kind.forgiving


# --- Damage -----------------------------------------------------------------------------------------------------------
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


def _damage_value(path: Path, draw: random.Random) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = draw.choice(sorted(names))
        column = draw.choice([row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')])
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
    found = list(_VALUE.finditer(content, 0, 1 << 16))
    if len(found) < 2:
        return _flipped(content, draw)
    one, other = draw.sample(found, 2)
    return content[: one.start()] + other[0] + content[one.end() :]


_KINDS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_flipped, _in_front, _lost, _cut, _doubled, _noise, _zeros),
    *(_value, _value, _value, _swapped, _swapped),
)
