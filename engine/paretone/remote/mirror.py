"""Results of a study on a host, mirrored into the study's folder here while it runs. Torch-free.

The host copies the study's database, page by page and consistently; only blocks that changed since the last time
travel. Recordings come first, then the rows that name them, so that readers here never find a row without its file.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

from paretone import files
from paretone.database import AUDIO
from paretone.errors import StudyError
from paretone.reading import readable
from paretone.studies.store import DATABASE

BLOCK = 1 << 14
_DIGEST = 8
_MOST_BLOCKS = 256
"""In one answer."""
Asking = Callable[..., Any]
"""Asks the host, with the fields of :class:`paretone.remote.wire.Ask`; or fetches its files of some names to paths
here."""


@contextmanager
def _copying(folder: Path) -> Iterator[None]:
    """Raise :class:`StudyError` with the reason if the study in ``folder`` cannot be copied within."""
    problem = f"The study in {folder} could not be copied"
    with readable(StudyError, problem, "", sqlite3.Error), files.explained(StudyError, problem):
        yield


def snapshot(folder: Path, known: bytes) -> dict[str, Any]:
    """The blocks that differ in a consistent copy of the study's database in ``folder`` from those with the digests
    ``known``. ``more``: whether others are left; after the last answer the window has the copy as it was then."""
    source, copy = folder / DATABASE, folder / "copy.sqlite"
    if not source.is_file():
        return {"size": 0, "blocks": [], "more": False}
    with _copying(folder):
        _back_up(source, copy)
        content = copy.read_bytes()
        there = [known[one : one + _DIGEST] for one in range(0, len(known), _DIGEST)]
        parts = zip_longest(range(0, len(content), BLOCK), _digests(content), there)
        differing = [at for at, digest, other in parts if at is not None and digest != other]
        blocks = [[at, content[at : at + BLOCK]] for at in differing[:_MOST_BLOCKS]]
        return {"size": len(content), "blocks": blocks, "more": len(differing) > _MOST_BLOCKS}


def _opened(database: Path) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True))


def _back_up(source: Path, target: Path) -> None:
    with _opened(source) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


def _digests(content: bytes) -> list[bytes]:
    blocks = (content[at : at + BLOCK] for at in range(0, len(content), BLOCK))
    return [hashlib.blake2b(one, digest_size=_DIGEST).digest() for one in blocks]


class Mirror:
    """The study ``folder`` here, and the one with the name ``key`` on the host. ``copies``: folder of the last
    copies."""

    def __init__(self, folder: Path, key: str, file: str, copies: Path) -> None:
        self.folder, self.key, self._file = folder, key, file
        self._copy = copies / f"{key}.sqlite"

    def require_own(self) -> None:
        """Raise :class:`StudyError` for takes here that this host did not make: times of two machines do not mix."""
        with _copying(self.folder):
            if _takes(self.folder / DATABASE) - _takes(self._copy):
                raise StudyError(
                    f"The study in {self.folder} has takes that another machine made, and times of two machines do not "
                    "mix; run it there, or copy its file into another folder."
                )

    async def fetch(self, ask: Asking, fetch: Asking) -> None:
        """Bring what is new. Raises :class:`StudyError`, and what ``ask`` and ``fetch`` raise."""
        with _copying(self.folder):
            self._copy.parent.mkdir(parents=True, exist_ok=True)
            self._copy.touch()
        more = True
        while more:
            found = await ask("study", self.key, b"".join(_digests(self._copy.read_bytes())))
            if not found["size"]:
                return
            with _copying(self.folder), open(self._copy, "r+b") as file:
                for at, content in found["blocks"]:
                    file.seek(at)
                    file.write(content)
                file.truncate(found["size"])
            more = found["more"]
        with _copying(self.folder):
            (self.folder / AUDIO).mkdir(parents=True, exist_ok=True)
            places = [self.folder / AUDIO / f"{take}.wav" for take in sorted(_takes(self._copy))]
        await fetch({f"studies/{self.key}/{AUDIO}/{one.name}": one for one in places if not one.exists()})
        with _copying(self.folder):
            _back_up(self._copy, self.folder / DATABASE)
            with closing(sqlite3.connect(self.folder / DATABASE)) as here, here:
                here.execute("UPDATE study SET file = ?", (self._file,))


def _takes(database: Path) -> set[str]:
    if not database.is_file():
        return set()
    with _opened(database) as one:
        return {take for (take,) in one.execute("SELECT take FROM takes WHERE round = 0")}
