"""Figures: results of a view, drawn by front ends and readable as tables. Torch-free.

A figure contains everything for print: panels with titled axes and units, its question, its first publication if any, a
caption computed from its data, and its provenance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from paretone.models.base import Utterance
from paretone.models.voices import shown_name
from paretone.setting.knobs import NO_VALUES, Values
from paretone.setting.setting import Setting
from paretone.wording import comma_separated, comments, counted, plain

COLUMNS = ("panel", "series", "x", "y", "value", "low", "high", "note")
"""Columns of a figure's table. Lines have values at an x, bars at a group's name, heat maps at x and y."""


@dataclass(frozen=True)
class Axis:
    """Meaning of an axis, or of colours."""

    title: str
    unit: str = ""
    logarithmic: bool = False
    """Whether curves are drawn on a logarithmic scale; all values are then positive."""

    @property
    def label(self) -> str:
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def even(self, values: np.ndarray) -> np.ndarray:
        """``values``, or their decimal logarithms on a logarithmic axis."""
        return np.log10(values) if self.logarithmic else values


@dataclass(frozen=True)
class HeatMap:
    """A value for each x and y; ``values[row][column]``, NaN if missing. Rows are drawn from the top."""

    title: str
    x: Axis
    y: Axis
    colour: Axis
    columns: tuple[float, ...]
    """Labels of the columns along x, such as layer or step numbers."""
    rows: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    categories: tuple[str, ...] = ()
    """Names of the values 0, 1, … for categories."""

    @classmethod
    def by_layer(
        cls, title: str, colour: str, values: Sequence[Sequence[float]], categories: tuple[str, ...] = ()
    ) -> HeatMap:
        """``values[layer][step]``, both numbered from 1."""
        rows = tuple(tuple(map(float, row)) for row in values)
        layers, steps = (tuple(one + 1.0 for one in range(count)) for count in (len(rows), len(rows[0])))
        return cls(title, Axis("Step"), Axis("Layer"), Axis(colour), steps, layers, rows, categories)

    def __post_init__(self) -> None:
        if len(self.values) != len(self.rows) or any(len(row) != len(self.columns) for row in self.values):
            raise ValueError(f"The values of {self.title!r} are not {len(self.rows)} rows of {len(self.columns)}.")

    def lines(self) -> Iterator[tuple[Any, ...]]:
        """Rows of its table after the panel's title; see :data:`COLUMNS`."""
        for y, row in zip(self.rows, self.values, strict=True):
            for x, value in zip(self.columns, row, strict=True):
                yield "", x, y, self.categories[int(value)] if self.categories else value, "", "", ""


@dataclass(frozen=True)
class Curve:
    """Points of one series, joined in order; ``low`` and ``high`` are interval bounds."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()
    reference: bool = False
    """Whether it is a reference for the others."""

    @classmethod
    def banded(cls, name: str, x: Iterable[float], bands: Iterable[Iterable[float]], **more: Any) -> Curve:
        """Curve of ``bands``, each a value and the bounds of its interval."""
        values, low, high = zip(*bands, strict=True)
        return cls(name, tuple(x), values, low, high, **more)

    def __post_init__(self) -> None:
        parts = (self.y, self.low or self.x, self.high or self.x, self.notes or self.x)
        if any(len(one) != len(self.x) for one in parts):
            raise ValueError(f"The series {self.name!r} has parts of different lengths.")


@dataclass(frozen=True)
class Lines:
    """Curves over one x axis."""

    title: str
    x: Axis
    y: Axis
    curves: tuple[Curve, ...]

    def lines(self) -> Iterator[tuple[Any, ...]]:
        for curve in self.curves:
            for index, (x, value) in enumerate(zip(curve.x, curve.y, strict=True)):
                yield curve.name, x, "", value, *_more(curve.low, curve.high, curve.notes, index)


@dataclass(frozen=True)
class BarSeries:
    """One bar per group, with an interval if ``low`` and ``high`` are given; NaN: no bar."""

    name: str
    values: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bars:
    title: str
    x: Axis
    y: Axis
    groups: tuple[str, ...]
    series: tuple[BarSeries, ...]

    def __post_init__(self) -> None:
        for one in self.series:
            for part in (one.values, one.low or one.values, one.high or one.values, one.notes or one.values):
                if len(part) != len(self.groups):
                    raise ValueError(f"The series {one.name!r} of {self.title!r} has not {len(self.groups)} bars.")

    def lines(self) -> Iterator[tuple[Any, ...]]:
        for one in self.series:
            for index, (group, value) in enumerate(zip(self.groups, one.values, strict=True)):
                yield one.name, group, "", value, *_more(one.low, one.high, one.notes, index)


Panel = HeatMap | Lines | Bars


@dataclass(frozen=True)
class Provenance:
    model: str
    fingerprint: str
    setting: Setting
    utterances: tuple[Utterance, ...]
    knobs: Values = NO_VALUES
    device: str = ""
    machine: str = ""
    created: str = ""
    """UTC, ISO 8601."""
    seconds: float = 0.0

    @property
    def stem(self) -> str:
        """Part of file names."""
        return self.setting.model

    @property
    def line(self) -> str:
        """Everything except the machine, in one line."""
        spoken = self.utterances[0]
        options = ", ".join(f"{_spaced(name)} {plain(value)}" for name, value in self.setting.options.items())
        knobs = ", ".join(f"{_spaced(name)} {plain(value)}" for name, value in self.knobs.items())
        said = f"“{spoken.text}” by {shown_name(spoken.voice.id)}"
        on = f"{self.model} ({self.fingerprint[:12]}) on {self.device}"
        parts = [on, options, f"seed {self.setting.seed}", said]
        if len(self.utterances) > 1:
            parts.append(f"judged on {counted(len(self.utterances) - 1, 'sentence', 'sentences')}")
        return "; ".join([*parts, *filter(None, [knobs]), self.created[:10]])

    def to_json(self) -> dict:
        spoken = [{"text": one.text, "voice": one.voice.id} for one in self.utterances]
        return {**vars(self), "setting": self.setting.to_json(), "utterances": spoken, "knobs": dict(self.knobs)}


@dataclass(frozen=True)
class Measured:
    """Provenance of what was measured from outside, without a model of ours."""

    model: str
    """What was measured."""
    line: str
    machine: str
    created: str
    """UTC, ISO 8601."""
    stem: str = "server"
    """Part of file names."""

    def to_json(self) -> dict:
        return vars(self)


@dataclass(frozen=True)
class Figure:
    view: str
    title: str
    question: str
    source: str
    panels: tuple[Panel, ...]
    caption: str
    """Caption with numbers computed from the data."""
    provenance: Provenance | Measured = field(repr=False)
    across: int = 2
    """Number of panels side by side."""

    def rows(self) -> Iterator[tuple[Any, ...]]:
        for panel in self.panels:
            for line in panel.lines():
                yield panel.title, *line

    def to_csv(self) -> str:
        """All values in one long table, after header lines that begin with ``#``."""
        made = self.provenance
        head = {"figure": self.title, "question": self.question, "source": self.source, "caption": self.caption}
        head |= {"made with": made.line, "machine": made.machine, "created": made.created}
        for panel in self.panels:
            axes = [f"x: {panel.x.label}", f"y: {panel.y.label}"]
            axes += [f"value: {panel.colour.label}"] if isinstance(panel, HeatMap) else []
            head[f"panel {panel.title}"] = "; ".join(axes)
        rows = (["" if _missing(value) else value for value in row] for row in self.rows())
        return comments(head) + comma_separated([COLUMNS, *rows])

    def to_json(self) -> dict:
        return {
            **{name: getattr(self, name) for name in ("view", "title", "question", "source", "caption")},
            "panels": [
                {"title": panel.title, "kind": type(panel).__name__, "x": asdict(panel.x), "y": asdict(panel.y)}
                for panel in self.panels
            ],
            "columns": list(COLUMNS),
            "rows": [[None if _missing(value) else value for value in row] for row in self.rows()],
            "provenance": self.provenance.to_json(),
        }


def _missing(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _more(
    low: Sequence[float], high: Sequence[float], notes: Sequence[str], index: int
) -> tuple[object, object, object]:
    return (low[index] if low else ""), (high[index] if high else ""), (notes[index] if notes else "")
