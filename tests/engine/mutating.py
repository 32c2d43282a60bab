"""Damaging files of a kind at random and reading them: a sentence or a result, never a traceback, code that runs, or a
wait."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import pytest

from paretone.errors import PlainError
from tests.engine.mutations import damage
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
        damage(path, draw)
        what = f"{kind.name} {name}, seed {seed}"
        try:
            with patience(what):
                kind.read(there, path)
        except kind.errors as error:
            refused += 1
            check_sentence(str(error).replace(str(there), ""), what)
        except Exception as error:
            kept = Path(os.environ.get("PARETONE_ARTEFACTS", tmp_path)) / f"{kind.name}-{seed}-{path.name}"
            shutil.copy(path, kept)
            pytest.fail(f"{what}: {type(error).__name__}: {str(error)[:300]}; the file is {kept}", pytrace=True)
        shutil.rmtree(there)
    assert not (tmp_path / "ran").exists()
    assert refused or EACH < 10 or kind.forgiving


def check_sentence(sentence: str, what: str) -> None:
    assert 20 < len(sentence) < LONGEST, (what, sentence[:LONGEST])
    assert "Traceback" not in sentence, what
    assert "\n" in sentence or sentence.rstrip()[-1] in ".!?)", (what, sentence[:LONGEST])
