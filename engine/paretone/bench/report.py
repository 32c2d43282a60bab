"""Report of a bench, as a table for people and as one JSON object for machines."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from shutil import get_terminal_size
from textwrap import wrap

from paretone.measure.machine import describe
from paretone.measure.timing import Interval
from paretone.wording import Share, in_unit


@dataclass(frozen=True)
class Report:
    """A bench's result.

    ``headline``: one number, more is better; ``interval``: its 95 % interval, low and high; ``verdict``: whether the
    measured setting keeps its limits (``passes``, ``undecided …``, ``fails …``), empty without limits; ``definition``:
    a sentence defining it. ``rows``: further figures, each a mapping from column to value; ``machine``:
    :meth:`paretone.measure.machine.Machine.to_json`. Raises :class:`ValueError` if the headline is not finite: a bench
    that could not measure must raise an error.
    """

    bench: str
    headline: float
    interval: tuple[float, float]
    definition: str
    rows: tuple[Mapping[str, object], ...]
    machine: Mapping[str, object]
    verdict: str = ""

    @classmethod
    def of(
        cls, bench: str, gain: Interval, definition: str, rows: Sequence[Mapping[str, object]], verdict: str = ""
    ) -> Report:
        """Report of this machine, whose headline is the median ``gain``."""
        ends = gain.low, gain.high
        return cls(bench, gain.median, ends, definition, tuple(rows), describe().to_json(), verdict)

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (self.headline, *self.interval))):
            raise ValueError(f"The bench {self.bench} gave no finite headline: {self.headline}, {self.interval}.")

    def to_json(self) -> str:
        """One JSON object with the fields' names as keys."""
        data = {
            "bench": self.bench,
            "headline": self.headline,
            "interval": list(self.interval),
            "verdict": self.verdict,
            "definition": self.definition,
            "rows": [dict(row) for row in self.rows],
            "machine": dict(self.machine),
        }
        return json.dumps(data, ensure_ascii=False, allow_nan=False)

    def to_text(self) -> str:
        low, high = self.interval
        lines = [
            f"{self.bench}: {self.headline:.3g} (95 % interval {low:.3g} to {high:.3g}){self.verdict and ', '}"
            f"{self.verdict}",
            self.definition,
            "",
        ]
        lines += table(self.rows)
        machine = ", ".join(
            f"{name} {_shown(value)}" for name, value in self.machine.items() if value not in ((), [], None)
        )
        return "\n".join([*lines, "", f"Machine: {machine}"])


def table(rows: Sequence[Mapping[str, object]], available: int | None = None) -> list[str]:
    """Lines of an aligned table; columns in order of first occurrence, figures right-aligned.

    Cells of text are wrapped between words where the table would be wider than ``available``, by default the
    terminal's width. A file or a pipe gets one line for each row.
    """
    if available is None:
        available = get_terminal_size().columns if sys.stdout.isatty() else 0
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[_shown(row.get(name, "")) for name in columns] for row in rows]
    figures = [[row.get(name, "%") for row in rows] for name in columns]
    right = [all(isinstance(one, int | float | None) or str(one).endswith("%") for one in some) for some in figures]
    widths = _widths(list(zip(columns, *cells, strict=True)), available)

    def lines(values: Sequence[str]) -> list[str]:
        wrapped = [wrap(value, width, break_on_hyphens=False) for value, width in zip(values, widths, strict=True)]
        return [
            "  ".join(
                part.rjust(width) if numeric else part.ljust(width)
                for part, width, numeric in zip(parts, widths, right, strict=True)
            ).rstrip()
            for parts in zip_longest(*wrapped, fillvalue="")
        ] or [""]

    ruled = [columns, ["-" * width for width in widths], *cells]
    return [line for values in ruled for line in lines(values)] if columns else []


def _widths(columns: Sequence[Sequence[str]], available: int) -> list[int]:
    """Width of each column so that all fit into ``available`` characters (0: any number), but no word is cut."""
    whole = [max(map(len, column)) for column in columns]
    words = [max((len(word) for cell in column for word in cell.split()), default=1) for column in columns]
    limit = max(whole, default=0)
    widths = whole
    while available and sum(widths) + 2 * (len(widths) - 1) > available and widths != words:
        limit -= 1
        widths = [max(word, min(width, limit)) for word, width in zip(words, whole, strict=True)]
    return widths


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{in_unit(value, '%')} %" if isinstance(value, Share) else f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(_shown(one) for one in value)
    return str(value)
