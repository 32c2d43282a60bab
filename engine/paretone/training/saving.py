"""Writing what a training made, with the log of its run, so that a run that is resumed does not write it again."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from paretone import files
from paretone.errors import TrainingError
from paretone.reading import parsed_json
from paretone.training.session import LOG, read_log

_PIECE_BYTES = 2**24
_LONGEST_HEADER = 100_000_000
"""Bytes; the format allows no longer one."""


def save_with_log(save: Callable[[Path], None], target: Path, work: Path) -> Path:
    """Let ``save`` write ``target``, or a numbered file next to it where another one exists already; the path written.
    The log of the run in ``work`` goes with it.

    What is there already with the same content is what this run wrote before it was killed or resumed, and stays.
    Raises :class:`TrainingError`.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        files.clear_abandoned(target.parent)
        place = tempfile.mkdtemp(prefix=files.TEMPORARY, dir=target.parent)
        made = Path(place) / target.name
        try:
            save(made)
            path = next(one for one in _numbered(target) if not os.path.lexists(one) or _says_the_same(one, made))
            # First the log: weights without one would look like somebody else's.
            files.write_through(log_of(path), (work / LOG).read_bytes())
            if not path.is_symlink():  # Else its target says the same, and the link stays.
                os.replace(made, path)
        finally:
            with suppress(OSError):
                made.unlink(missing_ok=True)
                os.rmdir(place)
    except OSError as error:
        raise TrainingError(
            f"{target} could not be written: {files.reason(error)}. "
            "Everything that was trained is in the work folder: resume to write it again."
        ) from error
    return path


def is_kept(target: Path, work: Path) -> bool:
    """Whether ``target`` is what the run in ``work`` wrote: the logs of both begin with the same line."""
    ours, theirs = read_log(work / LOG)[:1], read_log(log_of(target))[:1]
    return target.exists() and ours == theirs != []


def log_of(target: Path) -> Path:
    """The log next to trained weights."""
    return target.with_suffix("." + LOG)


def _says_the_same(one: Path, other: Path) -> bool:
    """Whether two safetensors files have the same contents and headers that say the same: metadata are written in an
    order of their own each time. Source: "Safetensors", Hugging Face, section "Format"."""
    if not one.is_file() or one.stat().st_size != other.stat().st_size:
        return False
    with one.open("rb") as left, other.open("rb") as right:
        return _header(left) == _header(right) and all(
            piece == right.read(_PIECE_BYTES) for piece in iter(partial(left.read, _PIECE_BYTES), b"")
        )


def _header(file: BinaryIO) -> object:
    """What the header says, with the file's position behind it; its bytes if it is none."""
    length = int.from_bytes(file.read(8), "little")
    content = file.read(min(length, _LONGEST_HEADER))
    try:
        return parsed_json(content)
    except ValueError:
        return content


def _numbered(target: Path) -> Iterator[Path]:
    yield target
    number = 1
    while True:
        number += 1
        yield target.with_stem(f"{target.stem}-{number}")
