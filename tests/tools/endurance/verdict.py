"""What the rounds say: whether memory stayed flat and nothing leaked, as sentences, and as a curve."""

import ctypes
import gc
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication
from shiboken6 import isValid

from paretone.errors import DeviceError, PlainError
from paretone.figures.curves import Curve, Curves, Level, sheet
from paretone.figures.glyphs import SERIES_ON_ANY, Glyph
from paretone.figures.scatter import Dimension
from paretone.files import write_atomically
from paretone.reading import read_text

MEGABYTE = 1e6
_PROCESS = Path("/proc/self")


@dataclass(frozen=True)
class Reading:
    """Counts, and memory in megabytes (10⁶ bytes)."""

    memory: float
    """Resident set size. (The proportional one grows when another process with the same libraries ends.)"""
    anonymous: float
    """The part of it that no file stands for, which is where leaks are."""
    threads: int
    files: int
    """Open files, sockets and pipes."""
    qt_objects: int
    """Objects of Qt that Python knows: timers, actions, models, layouts and widgets."""
    widgets: int
    """Widgets, those that Qt makes by itself included, such as the list of a combo box: Python knows these only once it
    has met them, which can be late."""
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
    known = [one for one in found if issubclass(type(one), QObject) and isValid(one)]
    return Reading(
        memory=sizes["Rss"] / MEGABYTE,
        anonymous=sizes["Anonymous"] / MEGABYTE,
        threads=len(os.listdir(_PROCESS / "task")),
        files=len(os.listdir(_PROCESS / "fd")) - 1,  # Listing opens one.
        qt_objects=len(known),
        widgets=len(QApplication.allWidgets()),
        windows=len(QApplication.topLevelWidgets()),
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


WARM_UP = 2
"""Rounds that are not judged: in these every model, panel and judge is used for the first time."""
LEAST = 6
"""Rounds after them without which nothing is judged."""
MEMORY_LIMIT = 1.01
"""Memory of the last third of the judged rounds, against that of the first third."""
SETTLED = 30
"""Judged rounds from which the medians of thirds are exact enough for that limit: single rounds differ by 4 %."""
ROUGH_LIMIT = 1.05
"""The limit of fewer."""
LEAKS = {
    "threads": "threads",
    "files": "open files",
    "qt_objects": "objects of Qt",
    "widgets": "widgets",
    "windows": "top-level widgets",
    "temporary_files": "temporary files",
}
"""What must not grow at all, and its name."""
SHELLS = 1.01
"""Limit of the objects of Qt in few rounds: PySide makes shells around widgets as they are looked at, and drops them
later. Widgets themselves must not grow."""
_MARKS = 24
"""Points of a curve at most."""


@dataclass(frozen=True)
class RoundLine:
    """One line of the log: a round, and what was read after it."""

    number: int
    """From 1; 0 is what was there before the first."""
    seconds: float
    """Since the window was ready."""
    reading: Reading
    takes: int
    """Takes that were made in it."""
    library: int
    """Takes that are kept."""
    done: int
    """Actions in it."""
    failures: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """Why techniques were not applied; no failures."""
    grown: dict[str, int] = field(default_factory=dict)
    """Types of objects with the largest growth since the warm-up."""
    actions: dict[str, float] = field(default_factory=dict)
    """Seconds of the actions, by name."""


@dataclass(frozen=True)
class Verdict:
    """``passed`` is ``None`` where the rounds are too few to say."""

    passed: bool | None
    sentences: tuple[str, ...]


def encoded(line: RoundLine) -> str:
    return json.dumps(asdict(line), ensure_ascii=False)


def read_log(path: Path) -> list[RoundLine]:
    """The rounds that a log has; half a line at its end, of a run that was killed, is passed over. Raises
    :class:`PlainError` with file and line otherwise."""
    try:
        lines = read_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PlainError(f"{path} cannot be read ({error}).") from error
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            given: dict[str, Any] = json.loads(line)
            found.append(
                RoundLine(
                    **{
                        **given,
                        "reading": Reading(**given["reading"]),
                        "failures": tuple(given["failures"]),
                        "refused": tuple(given["refused"]),
                    }
                )
            )
        except (ValueError, TypeError, KeyError) as error:
            if number == len(lines):
                break
            raise PlainError(f"{path}, line {number} is no round of an endurance run ({error}).") from error
    return found


def rounds_of(lines: Sequence[RoundLine]) -> Sequence[RoundLine]:
    """The rounds themselves, without what was there before."""
    return [one for one in lines if one.number]


def judge(lines: Sequence[RoundLine]) -> Verdict:
    """Whether a run passed. Memory: the median of the last third of the rounds after the warm-up is at most
    :data:`MEMORY_LIMIT` times that of the first third (:data:`ROUGH_LIMIT` of few rounds). What must not leak: the
    median of the last third is at most the largest of the first third. Failures of actions are none."""
    rounds = rounds_of(lines)
    sentences = [f"Round {one.number}: {failure}" for one in rounds for failure in one.failures]
    failed = bool(sentences)
    judged = rounds[WARM_UP:]
    if len(judged) < LEAST:
        sentences.append(
            f"{len(judged)} rounds after the warm-up of {WARM_UP}; memory and leaks are judged from {LEAST} on."
        )
        return Verdict(False if failed else None, tuple(sentences))
    third = len(judged) // 3
    first, last = judged[:third], judged[-third:]
    before, after = (median(one.reading.memory for one in part) for part in (first, last))
    limit = _limit(judged)
    sentences.append(
        f"Memory: {before:.0f} MB in the first {third} rounds after the warm-up, {after:.0f} MB in the last {third} "
        f"({after / before - 1:+.1%}; limit {limit - 1:+.0%})."
    )
    failed |= after > limit * before
    for name, title in LEAKS.items():
        most = max(getattr(one.reading, name) for one in first)
        allowed = SHELLS * most if name == "qt_objects" and len(judged) < SETTLED else most
        now = median(getattr(one.reading, name) for one in last)
        sentences.append(f"{title[0].upper()}{title[1:]}: at most {most} in the first, {now:g} in the last.")
        failed |= now > allowed
    return Verdict(not failed, tuple(sentences))


def _limit(judged: Sequence[RoundLine]) -> float:
    return MEMORY_LIMIT if len(judged) >= SETTLED else ROUGH_LIMIT


def curve(rounds: Sequence[RoundLine]) -> str:
    """The run as SVG: what :class:`Reading` counts, over the minutes."""
    apart = -(-len(rounds) // _MARKS)
    shown = [*rounds[:-1][::apart], *rounds[-1:]]
    minutes = np.round(np.array([one.seconds for one in shown]) / 60, 1)
    judged = rounds_of(rounds)[WARM_UP:]
    limit: tuple[Level, ...] = ()
    if len(judged) >= LEAST:
        before = median(one.reading.memory for one in judged[: len(judged) // 3])
        limit = (Level(_limit(judged) * before, "limit"),)

    def plot(title: str, value: Callable[[Reading], float], levels: tuple[Level, ...] = ()) -> Curves:
        values = np.array([float(value(one.reading)) for one in shown])
        tips = tuple(f"round {one.number}: {found:.6g}" for one, found in zip(shown, values, strict=True))
        line = Curve(Glyph((SERIES_ON_ANY[0],), "circle"), minutes, np.repeat(values[:, None], 3, axis=1), tips)
        return Curves(Dimension("minutes"), Dimension(title), (line,), levels)

    rows = (
        (
            plot("Memory (MB)", lambda one: one.memory, limit),
            plot("Of it anonymous (MB)", lambda one: one.anonymous),
            plot("Threads", lambda one: one.threads),
        ),
        (
            plot("Open files", lambda one: one.files),
            plot("Objects of Qt", lambda one: one.qt_objects),
            plot("Objects of Python", lambda one: one.objects),
        ),
    )
    titles = f"{len(rounds_of(rounds))} rounds in the window", "What they left"
    return sheet([(title, [], row) for title, row in zip(titles, rows, strict=True)])


def write_curve(rounds: Sequence[RoundLine], path: Path) -> None:
    write_atomically(path, curve(rounds).encode())
