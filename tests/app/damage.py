"""Databases as a failing disk leaves them."""

import sqlite3
from pathlib import Path

from paretone.setting.library import DATABASE, Library


def spoil(folder: Path, readable: bool) -> None:
    """Leave a damaged library in ``folder``: one that can be read in part, or one that cannot be read at all."""
    Library(folder).close()
    spoil_database(folder / DATABASE, "takes_by_creation" if readable else "")


def spoil_database(path: Path, index: str = "") -> None:
    """Break the page of ``index``, so that all else can be read; or everything, where none is given."""
    if not index:
        path.write_bytes(b"not a database at all" * 100)
        return
    with sqlite3.connect(path) as direct:
        direct.execute("PRAGMA journal_mode = DELETE")
        (page,) = direct.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (index,)).fetchone()
        (size,) = direct.execute("PRAGMA page_size").fetchone()
    direct.close()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = b"\xff" * size
    path.write_bytes(content)
