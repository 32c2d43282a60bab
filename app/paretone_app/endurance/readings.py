"""What this process holds at a moment: memory, threads, open files, objects of Qt and of Python, temporary files."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

from paretone.errors import DeviceError

MEGABYTE = 1e6
_PROCESS = Path("/proc/self")


@dataclass(frozen=True)
class Reading:
    """Counts, and memory in megabytes (10⁶ bytes)."""

    memory: float
    """Resident set size. (Not the proportional one: that grows as soon as another process that uses the same libraries
    ends.)"""
    anonymous: float
    """The part of it that no file stands for, which is where leaks are."""
    threads: int
    files: int
    """Open files, sockets and pipes."""
    qt_objects: int
    """Objects of Qt that Python knows: timers, actions, models, layouts and widgets."""
    widgets: int
    """Widgets among them."""
    windows: int
    """Top-level widgets, hidden ones included."""
    objects: int
    """Objects that Python's collector follows."""
    temporary_files: int
    """Files in the folder for temporary files, below it included."""


def why_not_read() -> str:
    """Why nothing can be read on this system, as a sentence, or ``""``."""
    if (_PROCESS / "smaps_rollup").exists():
        return ""
    return "Endurance reads memory, threads and open files from /proc, which only Linux has."


def read(types: Counter[str] | None = None) -> Reading:
    """Clean up and look. What Qt and Python are done with is ended first, and free memory goes back to the system; call
    it on Qt's thread. ``types`` is filled with the number of Python's objects by type.

    Raises :class:`DeviceError` where :func:`why_not_read` has a reason.
    """
    if reason := why_not_read():
        raise DeviceError(reason)
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect()
    _give_back_free_memory()
    sizes = _sizes()
    found = gc.get_objects()
    if types is not None:
        types.update(f"{type(one).__module__}.{type(one).__qualname__}" for one in found)
    # Those that Python knows: asked for all, PySide makes a shell around each that Qt made by itself, such as the line
    # of a spin box, and keeps it when Qt has ended that.
    known = [one for one in found if issubclass(type(one), QObject) and isValid(one)]
    widgets = [one for one in known if isinstance(one, QWidget)]
    return Reading(
        memory=sizes["Rss"] / MEGABYTE,
        anonymous=sizes["Anonymous"] / MEGABYTE,
        threads=len(os.listdir(_PROCESS / "task")),
        files=len(os.listdir(_PROCESS / "fd")) - 1,  # Listing opens one.
        qt_objects=len(known),
        widgets=len(widgets),
        windows=sum(one.isWindow() for one in widgets),
        objects=len(found),
        temporary_files=sum(len(files) for _, _, files in os.walk(tempfile.gettempdir())),
    )


def grown(before: Mapping[str, int], now: Mapping[str, int], most: int = 12) -> dict[str, int]:
    """The types of which there are more ``now``, by how many, the most first."""
    more = {name: count - before.get(name, 0) for name, count in now.items()}
    return dict(sorted(((name, count) for name, count in more.items() if count > 0), key=lambda one: -one[1])[:most])


def _sizes() -> dict[str, int]:
    """Bytes, by the kernel's names."""
    found = {}
    for line in (_PROCESS / "smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        with suppress(ValueError, IndexError):
            found[name] = 1024 * int(rest.split()[0])
    return found


def _give_back_free_memory() -> None:
    """Free malloc's cache: it hides leaks. Only glibc can."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
