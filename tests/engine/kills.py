"""Processes that are killed at random moments while they write, and what must be there afterwards."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

MODULE = "tests.engine.test_kills"
LONGEST_SECONDS = 0.15
"""After that, at the latest, a process is killed."""


def killed(work: Callable[[Path], None], folder: Path, moment: float) -> bool:
    """Let ``work`` write into ``folder`` in a process of its own, and kill it after ``moment`` seconds of that; whether
    it was still at work."""
    # A server with torch loaded makes processes in no time, so that they are killed at work.
    context = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
    if sys.platform != "win32":
        context.set_forkserver_preload([MODULE])
    reading, writing = context.Pipe(duplex=False)
    process = context.Process(target=_begin, args=(work, folder, writing), daemon=True)
    process.start()
    writing.close()
    try:
        reading.recv()
        process.join(moment)
        at_work = process.is_alive()
    finally:
        process.kill()
        process.join()
        reading.close()
    return at_work


def _begin(work: Callable[[Path], None], folder: Path, begun: object) -> None:
    begun.send(None)
    work(folder)


def note(folder: Path, line: str) -> None:
    """Note in the file of what is finished, which nothing else writes: whole, or not at all."""
    handle = os.open(folder / "finished", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, line.encode() + b"\n")
    os.close(handle)


def finished(folder: Path) -> list[str]:
    """What was noted."""
    path = folder / "finished"
    return path.read_text().splitlines() if path.exists() else []


def age(folder: Path, seconds: float) -> None:
    """Have everything below ``folder`` been written ``seconds`` earlier."""
    before = time.time() - seconds
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            os.utime(Path(place) / name, (before, before), follow_symlinks=False)
