"""What the rounds say: whether memory stayed flat and nothing leaked, as sentences, and as a curve."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from paretone.errors import PlainError
from paretone.figures.curves import Curve, Curves, Level
from paretone.figures.curves_svg import sheet
from paretone.figures.glyphs import SERIES_ON_ANY, Glyph
from paretone.figures.scatter import Dimension
from paretone.files import write_atomically
from paretone.reading import read_text
from paretone_app.endurance.readings import Reading

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
    """One line of JSON."""
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
        now = median(getattr(one.reading, name) for one in last)
        sentences.append(f"{title[0].upper()}{title[1:]}: at most {most} in the first, {now:g} in the last.")
        failed |= now > most
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
    """Write :func:`curve`."""
    write_atomically(path, curve(rounds).encode())
