"""Journal of a search: what was tried is kept, so that an interrupted search goes on where it was. Torch-free.

One file for each search in the data folder, gone once the search has ended. A search is determined by what it begins
with: with every value at hand it takes the same way again, at once.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from paretone.files import append_line
from paretone.paths import data_folder
from paretone.reading import parsed_json, read_text
from paretone.sampling.grid_search import Times, Value

FOLDER = "grid-searches"


class Journal:
    """Values by grid, also in a file; lines that cannot be read are passed over."""

    def __init__(self, name: str, resume: bool = True) -> None:
        """``name`` is that of the search; not to ``resume``, what is there is thrown away."""
        self._path = data_folder() / FOLDER / f"{name}.jsonl"
        self.known: dict[Times, Value] = {}
        if resume:
            self.known.update(_read(self._path))
        else:
            self.close()

    def add(self, times: Times, value: Value) -> None:
        """Keep the value of a grid. A file that cannot be written only costs that the search cannot go on later."""
        self.known[times] = value
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            append_line(self._path, json.dumps([times, value]))
        except OSError:
            return

    def close(self) -> None:
        """The search has ended."""
        self._path.unlink(missing_ok=True)


def search_name(*parts: object) -> str:
    """Sixteen hexadecimal digits that are equal for equal searches; ``parts`` are JSON values that determine it."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _read(path: Path) -> dict[Times, Value]:
    try:
        lines = read_text(path).splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    found = {}
    for line in lines:
        try:
            times, value = parsed_json(line)
            found[tuple(map(float, times))] = tuple(map(float, value))
        except (ValueError, TypeError):
            continue  # The last line of an interrupted search may be a piece of one.
    return found
