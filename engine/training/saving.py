"""Writing what a training made, with the log of its run, so that a run that is resumed does not write it again."""

from __future__ import annotations

import filecmp
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from engine import files
from engine.errors import TrainingError
from engine.training.session import LOG, read_log


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
            path = next(one for one in _numbered(target) if not one.exists() or filecmp.cmp(one, made, shallow=False))
            # First the log: weights without one would look like somebody else's.
            files.write_atomically(log_of(path), (work / LOG).read_bytes())
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


def _numbered(target: Path) -> Iterator[Path]:
    yield target
    number = 1
    while True:
        number += 1
        yield target.with_stem(f"{target.stem}-{number}")
