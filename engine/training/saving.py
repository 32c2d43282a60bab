"""Writing what a training made, with the log of its run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from engine import files
from engine.errors import TrainingError
from engine.training.session import LOG


def save_with_log(save: Callable[[Path], None], target: Path, work: Path) -> Path:
    """Let ``save`` write ``target``, or a numbered file next to it where it exists already; the path written. The log
    of the run in ``work`` goes with it.

    Raises :class:`TrainingError`.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        number, first = 1, target
        while target.exists():
            number += 1
            target = first.with_stem(f"{first.stem}-{number}")
        save(target)
        shutil.copyfile(work / LOG, target.with_suffix("." + LOG))
    except OSError as error:
        raise TrainingError(
            f"{target} could not be written: {files.reason(error)}. "
            "Everything that was trained is in the work folder: resume to write it again."
        ) from error
    return target
