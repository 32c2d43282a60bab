"""Speech as a model sees it, kept on disk: named arrays of each clip, in portions that are written as they come.

What makes them (a model that speaks, an aligner that listens) takes far longer than reading what came of it, so a run
that was stopped goes on where it was.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from paretone.errors import TrainingError
from paretone.files import reason, write_atomically
from paretone.training.follower import Follower

PORTION = 8
"""Pieces of work in a file."""
FORMAT = "1"
"""Goes into the names of folders, so that a change of what they hold makes new ones."""

Arrays = Mapping[str, np.ndarray]
Piece = TypeVar("Piece")


@dataclass(frozen=True)
class Reading:
    """One clip."""

    voice: str
    arrays: Arrays = field(repr=False)


def folder_of(parent: Path, *told: Any) -> Path:
    """The folder in ``parent`` for readings that depend on ``told``, values that JSON can hold."""
    key = hashlib.sha256(json.dumps([FORMAT, *told], sort_keys=True).encode()).hexdigest()
    return parent / key[:16]


def kept_readings(
    folder: Path,
    pieces: Sequence[Piece],
    ready: Callable[[], Callable[[Piece], Iterable[Reading]]],
    follower: Follower,
) -> tuple[Reading, ...]:
    """The readings of ``pieces`` in ``folder``; those that it lacks are made first.

    ``ready`` is called if some are missing and returns the function that makes the readings of one piece.
    ``follower`` is told finished and total pieces and may raise to cancel; what is finished is kept. Raises
    :class:`TrainingError`.
    """
    make: Callable[[Piece], Iterable[Reading]] | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for start in range(0, len(pieces), PORTION):
            portion = pieces[start : start + PORTION]
            path = folder / _name(start)
            if not path.is_file():
                make = make or ready()
                made: list[Reading] = []
                for number, piece in enumerate(portion, start):
                    follower.progress(number, len(pieces))
                    made += make(piece)
                write_atomically(path, _packed(made))
            follower.progress(start + len(portion), len(pieces))
    except OSError as error:
        raise TrainingError(f"Prepared speech could not be written to {folder}: {reason(error)}.") from error
    return tuple(one for start in range(0, len(pieces), PORTION) for one in _read(folder / _name(start)))


def _name(start: int) -> str:
    return f"{start:06d}.npz"


def _packed(readings: Sequence[Reading]) -> bytes:
    content = io.BytesIO()
    named = {f"{number}.{name}": value for number, one in enumerate(readings) for name, value in one.arrays.items()}
    np.savez(content, voices=np.array([one.voice for one in readings], str), **named)  # type: ignore[arg-type]
    return content.getvalue()


def _read(path: Path) -> list[Reading]:
    """Raises :class:`TrainingError`."""
    try:
        with np.load(path) as file:
            voices = [str(one) for one in file["voices"]]
            arrays: list[dict[str, np.ndarray]] = [{} for _ in voices]
            for key in file.files:
                number, _, name = key.partition(".")
                if name:
                    arrays[int(number)][name] = file[key]
    except (OSError, ValueError, KeyError, IndexError, zipfile.BadZipFile) as error:
        raise TrainingError(
            f"The prepared speech in {path} cannot be read ({type(error).__name__}); delete the file, and it is made "
            "again."
        ) from error
    return [Reading(voice, one) for voice, one in zip(voices, arrays, strict=True)]
