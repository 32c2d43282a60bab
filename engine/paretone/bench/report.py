"""Report of a bench, as a table for people and as one JSON object for machines."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paretone.measure.machine import describe
from paretone.measure.timing import Interval


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


def table(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Lines of an aligned table; columns in order of first occurrence, numbers right-aligned."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[_shown(row.get(name, "")) for name in columns] for row in rows]
    widths = [max([len(name), *(len(line[index]) for line in cells)]) for index, name in enumerate(columns)]
    right = [all(isinstance(row.get(name, 0), int | float | None) for row in rows) for name in columns]

    def line(values: Sequence[str]) -> str:
        padded = (
            value.rjust(width) if numeric else value.ljust(width)
            for value, width, numeric in zip(values, widths, right, strict=True)
        )
        return "  ".join(padded).rstrip()

    return [line(columns), line(["-" * width for width in widths]), *map(line, cells)] if columns else []


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    return str(value)
