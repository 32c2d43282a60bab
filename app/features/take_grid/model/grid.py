"""A grid of takes: cells differ from the reference in the two dimensions alone, and each has a figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from app.features.take_grid.model.dimensions import MODEL, SEED, TEXT, VOICE, Asked, Dimension, Value, in_order
from app.features.tradeoff.model.axes import TIMES, said
from app.features.tradeoff.model.points import Scores, figures_of
from app.numbers import counted
from engine.measure.metrics import HIGHER, LOWER, Metric
from engine.setting.library import TakeSummary

_NO_SCORES = Scores()


@dataclass(frozen=True)
class TakeGrid:
    """What is drawn. Arrays and tables are (rows, columns)."""

    rows: Dimension
    columns: Dimension
    figure: Metric
    row_values: tuple[Value, ...] = ()
    column_values: tuple[Value, ...] = ()
    takes: tuple[tuple[TakeSummary | None, ...], ...] = ()
    asked: tuple[tuple[Asked, ...], ...] = ()
    """What a cell's take is of, or would be."""
    values: np.ndarray = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    """Of the figure; NaN where there is none."""
    reference: tuple[int, int] = (0, 0)
    sentences: tuple[str, ...] = ()
    """That the same has been made of, the reference's own among them; none if sentences are a dimension."""
    others: tuple[TakeGrid, ...] = ()
    """The grids of all these sentences, if figures are means over them."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.row_values), len(self.column_values)

    @cached_property
    def differences(self) -> np.ndarray:
        """Of the values from the reference's."""
        if not self.values.size:
            return self.values
        if self.others:
            return _mean([one.differences for one in self.others])
        return self.values - self.values[self.reference]

    @cached_property
    def numbers(self) -> np.ndarray:
        """Of sentences that a cell's difference is from."""
        return sum((~np.isnan(one.differences)).astype(int) for one in self.others or (self,))

    @cached_property
    def largest(self) -> float:
        """The largest difference in either direction; 0 if there is none."""
        known = np.abs(self.differences[~np.isnan(self.differences)])
        return float(known.max()) if known.size else 0.0

    def share(self, row: int, column: int) -> float:
        """How much better (above 0) or worse than the reference a cell is, of the largest difference; 0 where neither
        is known or neither end is better."""
        difference = self.differences[row, column]
        sign = {HIGHER: 1.0, LOWER: -1.0}.get(self.figure.better, 0.0)
        return 0.0 if np.isnan(difference) or not self.largest else sign * float(difference) / self.largest

    @property
    def empty(self) -> tuple[tuple[int, int], ...]:
        """Cells without a take."""
        return tuple((row, column) for row, line in enumerate(self.takes) for column, one in enumerate(line) if not one)

    # --- In words -----------------------------------------------------------------------------------------------------
    def place_in_words(self, row: int, column: int) -> str:
        """Where a cell is."""
        return ", ".join(
            f"{one.title}: {one.in_words(values[at], whole=True)}"
            for one, values, at in ((self.rows, self.row_values, row), (self.columns, self.column_values, column))
        )

    def cell_in_words(self, row: int, column: int) -> str:
        """A cell's figure and how it differs from the reference's, as a sentence, without its place."""
        if self.takes[row][column] is None:
            return "No take yet: press M to make it."
        value, difference = self.values[row, column], self.differences[row, column]
        if np.isnan(value):
            return f"{self.figure.title} {self.why_not(row, column)}."
        figure = f"{self.figure.title} {said(float(value), self.figure.unit)}"
        if (row, column) == self.reference:
            return f"{figure}: the reference."
        if np.isnan(difference):
            return f"{figure}; the reference has none to compare with."
        if difference == 0.0:
            return f"{figure}, as the reference."
        if self.others:
            figure += f" (mean of {counted(int(self.numbers[row, column]), 'sentence', 'sentences')})"
        better = self.share(row, column)
        verdict = ", better" if better > 0 else ", worse" if better < 0 else ""
        way = "more" if difference > 0 else "less"
        return f"{figure}, {said(abs(float(difference)))} {way} than the reference{verdict}."

    def why_not(self, row: int, column: int) -> str:
        """Why a cell has no figure: the end of a sentence that begins with its title."""
        take, reference = self.takes[row][column], self.takes[self.reference[0]][self.reference[1]]
        if take is not None and reference is not None and self.elsewhere(take, reference):
            return "was measured on another machine than the reference's"
        if self.figure.judge:
            return "was not judged"
        if self.figure.relative:
            return "is not known, because the baseline's take is missing"
        return "was not measured"

    def elsewhere(self, take: TakeSummary, reference: TakeSummary) -> bool:
        """Whether two takes are from machines whose times cannot be compared."""
        return self.figure.name in TIMES and take.machine != reference.machine


def take_grid(
    takes: Sequence[TakeSummary],
    reference: TakeSummary,
    rows: Dimension,
    columns: Dimension,
    figure: Metric,
    more: tuple[Sequence[Value], Sequence[Value]] = ((), ()),
) -> TakeGrid:
    """The grid of ``takes``, the newest of which come first, around ``reference``; ``more`` values of rows and columns
    have a place as well."""
    both = (rows, columns)
    wanted, around = _rest(Asked.of(reference), reference.checkpoint, both), Asked.of(reference)
    alike = [one for one in takes if _rest(Asked.of(one), one.checkpoint, both) == wanted]
    if reference not in alike:
        alike.insert(0, reference)
    found: dict[tuple[Value, Value], list[TakeSummary]] = {}
    for one in alike:
        found.setdefault((rows.value(Asked.of(one)), columns.value(Asked.of(one))), []).append(one)
    row_values = in_order((*(row for row, _ in found), *more[0]))
    column_values = in_order((*(column for _, column in found), *more[1]))
    usual = Counter(_others(Asked.of(one), both) for one in alike)

    def best(row: Value, column: Value) -> TakeSummary | None:
        """Of several takes the reference, or the one that is most like it, or like most others; the newest of those."""
        there = found.get((row, column), ())
        own = _others(around, both)
        likeness = [
            (one is reference, len(set(own) & set(_others(Asked.of(one), both))), usual[_others(Asked.of(one), both)])
            for one in there
        ]
        return there[likeness.index(max(likeness))] if there else None

    cells = tuple(tuple(best(row, column) for column in column_values) for row in row_values)
    at = (
        row_values.index(rows.value(around)),
        column_values.index(columns.value(around)),
    )
    asked = tuple(
        tuple(
            Asked.of(one) if one is not None else columns.put(rows.put(around, row), column)
            for one, column in zip(line, column_values, strict=True)
        )
        for line, row in zip(cells, row_values, strict=True)
    )
    grid = TakeGrid(rows, columns, figure, row_values, column_values, cells, asked, reference=at)
    values = np.array([[_value(grid, one, reference) for one in line] for line in cells], float).reshape(grid.shape)
    sentences: tuple[str, ...] = ()
    if TEXT not in (rows.name, columns.name):
        same = _rest(around, reference.checkpoint, (*both, Dimension(TEXT, "")))
        of_same = (one.text for one in takes if _rest(Asked.of(one), one.checkpoint, (*both, _TEXT)) == same)
        sentences = tuple(dict.fromkeys((*of_same, reference.text)))
    return TakeGrid(rows, columns, figure, row_values, column_values, cells, asked, values, at, sentences)


def over_sentences(
    takes: Sequence[TakeSummary],
    reference: TakeSummary,
    rows: Dimension,
    columns: Dimension,
    figure: Metric,
    more: tuple[Sequence[Value], Sequence[Value]] = ((), ()),
) -> TakeGrid:
    """The grid around ``reference`` with means over all sentences that the same has been made of: each sentence's takes
    are compared with its own reference."""
    first = take_grid(takes, reference, rows, columns, figure, more)
    wanted = (reference.voice, reference.setting.bare, reference.setting.seed, reference.checkpoint)
    references = {reference.text: reference}
    for one in takes:
        if one.text in first.sentences and (one.voice, one.setting.bare, one.setting.seed, one.checkpoint) == wanted:
            references.setdefault(one.text, one)
    if len(references) < 2:
        return first
    grids = [take_grid(takes, one, rows, columns, figure, more) for one in references.values()]
    every = (
        in_order(value for one in grids for value in one.row_values),
        in_order(value for one in grids for value in one.column_values),
    )
    grids = [take_grid(takes, one, rows, columns, figure, every) for one in references.values()]
    return replace(grids[0], values=_mean([one.values for one in grids]), others=tuple(grids))


def _mean(tables: Sequence[np.ndarray]) -> np.ndarray:
    """Mean of what is known, cell by cell; NaN where nothing is."""
    stacked = np.stack(tables)
    known = (~np.isnan(stacked)).sum(0)
    return np.where(known > 0, np.nansum(stacked, axis=0) / np.maximum(known, 1), np.nan)


_TEXT = Dimension(TEXT, "")


def _value(grid: TakeGrid, take: TakeSummary | None, reference: TakeSummary) -> float:
    if take is None or grid.elsewhere(take, reference):
        return np.nan
    found = figures_of(take, _NO_SCORES).get(grid.figure.name)
    return np.nan if found is None else found.value


def _rest(asked: Asked, checkpoint: str, both: Sequence[Dimension]) -> tuple[object, ...]:
    """Everything but what ``both`` dimensions say: equal for takes that belong into one grid. Models have options,
    weights and voices of their own."""
    names, setting = {one.name for one in both}, asked.setting
    techniques = {one.technique for one in both if one.technique}
    of_any = MODEL in names
    voice = asked.voice.rpartition("/")[2] if of_any else asked.voice
    options = () if of_any else tuple((name, setting.options[name]) for name in sorted(setting.options))
    return (
        None if TEXT in names else asked.text,
        None if VOICE in names else voice,
        None if SEED in names else setting.seed,
        None if of_any else (setting.model, checkpoint),
        tuple((name, value) for name, value in options if f"option:{name}" not in names),
        tuple((one.technique, one.knobs) for one in setting.techniques if one.technique not in techniques),
    )


def _others(asked: Asked, both: Sequence[Dimension]) -> tuple[tuple[str, str, object], ...]:
    """The other knobs of the techniques whose knobs are dimensions."""
    ours = {(one.technique, one.knob.name) for one in both if one.technique and one.knob is not None}
    return tuple(
        (one.technique, name, value)
        for one in asked.setting.techniques
        if any(one.technique == technique for technique, _ in ours)
        for name, value in one.knobs.items()
        if (one.technique, name) not in ours
    )
