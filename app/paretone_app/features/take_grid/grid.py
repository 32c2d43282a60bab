"""The take grid: dimensions in which takes differ, and the takes around a reference in two of them. No Qt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import eq

import numpy as np

from paretone.errors import SettingError
from paretone.measure.metrics import HIGHER, LOWER, Metric
from paretone.models import catalogue
from paretone.models.voices import is_own, shown_name
from paretone.setting.knobs import Choice, Knob, Number, Switch, Values
from paretone.setting.library import TakeSummary
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import technique, techniques
from paretone_app.features.tradeoff.axes import TIMES
from paretone_app.numbers import counted, displayed
from paretone_app.results.points import Scores, figures_of
from paretone_app.state.differences import model_title, value_text

Value = str | float | int | bool | None
"""``None`` for an unused technique."""
TEXT, VOICE, SEED, MODEL = "text", "voice", "seed", "model"
_LONGEST = 28  # Longest sentence on an axis, in letters.
_BETWEEN = {TEXT: "|", VOICE: ";", MODEL: ";"}  # Separators of typed values.


@dataclass(frozen=True)
class Asked:
    text: str
    voice: str
    """The voice's id."""
    setting: Setting

    @classmethod
    def of(cls, take: TakeSummary) -> Asked:
        return cls(take.text, take.voice, take.setting)


@dataclass(frozen=True)
class Dimension:
    name: str
    """``text``, ``voice``, ``seed``, ``model``, ``option:steps`` or ``steps.steps``."""
    title: str
    technique: str = ""
    knob: Knob | None = None
    """A knob of the technique, or an option of models without one."""

    def value(self, asked: Asked) -> Value:
        setting = asked.setting
        if self.knob is None:
            fixed: dict[str, Value] = {TEXT: asked.text, VOICE: asked.voice, SEED: setting.seed, MODEL: setting.model}
            return fixed[self.name]
        if not self.technique:
            return setting.options.get(self.knob.name)
        used = setting.technique(self.technique)
        return None if used is None else used.knobs.get(self.knob.name, self.knob.default)

    def put(self, asked: Asked, value: Value) -> Asked:
        setting = asked.setting
        if self.name == TEXT:
            return replace(asked, text=str(value))
        if self.name == VOICE:
            return replace(asked, voice=str(value))
        if self.name == SEED:
            return replace(asked, setting=replace(setting, seed=int(value or 0)))
        if self.name == MODEL:
            options = _usual_options(str(value), setting)
            return replace(asked, setting=replace(setting, model=str(value), options=options))
        assert self.knob is not None
        if not self.technique:
            return replace(asked, setting=replace(setting, options=setting.options.replace(**{self.knob.name: value})))
        if value is None:
            return replace(asked, setting=setting.without(self.technique))
        used = setting.technique(self.technique) or UsedTechnique(self.technique)
        # Artefacts prepared for one knob value do not fit another.
        entry = UsedTechnique(self.technique, used.knobs.replace(**{self.knob.name: value}))
        return replace(asked, setting=setting.with_technique(entry))

    def in_words(self, value: Value, whole: bool = False) -> str:
        """A value for display; ``whole``: do not shorten sentences."""
        if value is None:
            return "off"
        if self.name == MODEL:
            return model_title(str(value))
        if self.name == VOICE:
            name = shown_name(str(value)) if is_own(str(value)) else str(value).rpartition("/")[2]
            return name[:1].upper() + name[1:]
        if self.name == TEXT and not whole and len(str(value)) > _LONGEST:
            return f"{str(value)[:_LONGEST].rstrip()}…"
        return str(value) if self.knob is None else value_text(self.knob, value)

    def read(self, words: str, named: Mapping[str, str] = {}) -> tuple[Value, ...]:
        """Parse typed values, separated by ``;`` or spaces, sentences by ``|``, voices and models by ``;``;
        ``named``: known voices or models by lower-case name. Raises :class:`SettingError` for an invalid value."""
        if self.name in _BETWEEN:
            parts = [one.strip() for one in words.split(_BETWEEN[self.name])]
        else:
            parts = words.replace(";", " ").split()
        return tuple(dict.fromkeys(self._read_one(one, named) for one in parts if one))

    def _read_one(self, word: str, named: Mapping[str, str]) -> Value:
        if self.name in (VOICE, MODEL):
            if word.casefold() not in named:
                there = ", ".join(dict.fromkeys(self.in_words(one) for one in named.values()))
                raise SettingError(f"There is no {self.title.lower()} “{word}”; there are {there or 'none'}.")
            return named[word.casefold()]
        if self.name == SEED:
            if not (word.isascii() and word.isdigit()) or len(word) > 15:
                raise SettingError(f"A seed is a whole number from 0 on, not “{word}”.")
            return int(word)
        if self.knob is None:
            return word
        if self.technique and word.casefold() == "off":
            return None
        if isinstance(self.knob, Switch):
            if word.casefold() not in ("on", "off"):
                raise SettingError(f"{self.knob.title} is on or off, not “{word}”.")
            return word.casefold() == "on"
        if isinstance(self.knob, Number):
            try:
                return self.knob.check(float(word.replace(",", ".").replace("−", "-")))
            except ValueError:
                raise SettingError(f"{self.knob.title} must be a number, not “{word}”.") from None
        return self.knob.check(word)


def _usual_options(model: str, setting: Setting) -> Values:
    try:
        return setting.options if model == setting.model else catalogue.entry(model).options_with()
    except SettingError:
        return setting.options  # Takes outlive models.


_TITLES = {TEXT: "Sentence", VOICE: "Voice", SEED: "Seed", MODEL: "Model"}
_FIXED = tuple(Dimension(name, title) for name, title in _TITLES.items())


def dimensions(takes: Sequence[Asked], model: str) -> tuple[Dimension, ...]:
    """Dimensions for takes around one of ``model``: first its knobs and options with several values among ``takes``,
    then sentence, voice, seed and model, then its other knobs and options."""
    # Thousands of takes have few settings.
    own = [
        *{(one.setting.options, one.setting.techniques): one for one in takes if one.setting.model == model}.values()
    ]
    known = tuple(_knobs(model))
    varied = {one for one in known if _is_varied(one, own)}
    return (*(one for one in known if one in varied), *_FIXED, *(one for one in known if one not in varied))


def _knobs(model: str) -> Iterator[Dimension]:
    try:
        entry = catalogue.entry(model)
    except SettingError:
        return  # Takes outlive models.
    for each in techniques():
        if entry.family in each.families:
            for knob in each.knobs:
                if isinstance(knob, Number | Choice | Switch):
                    title = knob.title if len(each.knobs) == 1 else f"{each.title}: {knob.title.lower()}"
                    yield Dimension(f"{each.name}.{knob.name}", f"{title} {knob.symbol}".rstrip(), each.name, knob)
    for knob in entry.options:
        if isinstance(knob, Number | Choice | Switch):
            yield Dimension(f"option:{knob.name}", f"{knob.title} {knob.symbol}".rstrip(), "", knob)


def _is_varied(one: Dimension, takes: Sequence[Asked]) -> bool:
    """Whether ``takes`` have several values of a knob; the first knob also varies if its technique is on and off."""
    # ``True`` and 1 are different values.
    values = {(type(value), value) for take in takes if (value := one.value(take)) is not None}
    first = bool(one.technique) and one.knob == technique(one.technique).knobs[0]
    return len(values) > 1 or (first and bool(values) and any(one.value(take) is None for take in takes))


def in_order(values: Iterable[Value]) -> tuple[Value, ...]:
    """Off first, then numbers ascending, then the rest in the given order."""
    distinct = tuple(dict.fromkeys(values))
    numbers = sorted(one for one in distinct if isinstance(one, int | float) and not isinstance(one, bool))
    others = [one for one in distinct if one is not None and one not in numbers]
    return (*((None,) if None in distinct else ()), *numbers, *others)


_NO_SCORES = Scores()


@dataclass(frozen=True)
class TakeGrid:
    """The drawn grid. Arrays and tables are (rows, columns)."""

    rows: Dimension
    columns: Dimension
    figure: Metric
    row_values: tuple[Value, ...] = ()
    column_values: tuple[Value, ...] = ()
    takes: tuple[tuple[TakeSummary | None, ...], ...] = ()
    asked: tuple[tuple[Asked | None, ...], ...] = ()
    """Content of a cell's take, existing or not; ``None`` if no such setting exists."""
    values: np.ndarray = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    reference: tuple[int, int] = (0, 0)
    sentences: tuple[str, ...] = ()
    """Sentences with comparable takes, the reference's included; empty if sentences are a dimension."""
    others: tuple[TakeGrid, ...] = ()
    """One grid per sentence, if figures are means over sentences."""

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.row_values), len(self.column_values)

    @cached_property
    def differences(self) -> np.ndarray:
        if not self.values.size:
            return self.values
        if self.others:
            return _mean([one.differences for one in self.others])
        return self.values - self.values[self.reference]

    @cached_property
    def numbers(self) -> np.ndarray:
        """Number of sentences per cell's difference."""
        return sum((~np.isnan(one.differences)).astype(int) for one in self.others or (self,))

    @cached_property
    def largest(self) -> float:
        """The largest absolute difference; 0 if there is none."""
        known = np.abs(self.differences[~np.isnan(self.differences)])
        return float(known.max()) if known.size else 0.0

    def share(self, row: int, column: int) -> float:
        """How much better (> 0) or worse a cell is than the reference, as a share of the largest difference."""
        difference = self.differences[row, column]
        sign = {HIGHER: 1.0, LOWER: -1.0}.get(self.figure.better, 0.0)
        return 0.0 if np.isnan(difference) or not self.largest else sign * float(difference) / self.largest

    @property
    def empty(self) -> tuple[tuple[int, int], ...]:
        """Cells without a take that could have one."""
        return tuple(
            (row, column)
            for row, line in enumerate(self.takes)
            for column, one in enumerate(line)
            if one is None and self.asked[row][column] is not None
        )

    def place_in_words(self, row: int, column: int) -> str:
        return ", ".join(
            f"{one.title}: {one.in_words(values[at], whole=True)}"
            for one, values, at in ((self.rows, self.row_values, row), (self.columns, self.column_values, column))
        )

    def cell_in_words(self, row: int, column: int) -> str:
        """A cell's figure and difference from the reference, as a sentence without its position."""
        if self.asked[row][column] is None and self.takes[row][column] is None:
            return "There is no such setting: its technique would be off in one knob and on in the other."
        if self.takes[row][column] is None:
            return "No take yet: press M to make it."
        value, difference = self.values[row, column], self.differences[row, column]
        if np.isnan(value):
            return f"{self.figure.title} {self.why_not(row, column)}."
        figure = f"{self.figure.title} {displayed(self.figure.said(float(value)))}"
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
        return f"{figure}, {displayed(self.figure.said(abs(float(difference))))} {way} than the reference{verdict}."

    def why_not(self, row: int, column: int) -> str:
        """Why a cell has no figure: the rest of a sentence after its title."""
        take, reference = self.takes[row][column], self.takes[self.reference[0]][self.reference[1]]
        if take is not None and reference is not None and self.elsewhere(take, reference):
            return "was measured on another machine than the reference's"
        if self.figure.judge:
            return "was not judged"
        if self.figure.relative:
            return "is not known, because the baseline's take is missing"
        return "was not measured"

    def elsewhere(self, take: TakeSummary, reference: TakeSummary) -> bool:
        """Whether two takes are from different machines and the figure is a time."""
        return self.figure.name in TIMES and take.machine != reference.machine


Figures = tuple[Dimension, Dimension, Metric]
"""Rows, columns and the figure."""
More = tuple[Sequence[Value], Sequence[Value]]
"""Further values of rows and of columns."""


def take_grid(takes: Sequence[TakeSummary], reference: TakeSummary, what: Figures, more: More = ((), ())) -> TakeGrid:
    """The grid of ``takes`` (newest first) around ``reference``; ``more``: further values of rows and columns."""
    said = _by_sentence(takes, reference, what)
    if TEXT in (what[0].name, what[1].name):
        alike = [one for some in said.values() for one in some]
        return _arranged(alike, reference, what, _values(alike, what, more))
    alike = said[reference.text]
    return replace(_arranged(alike, reference, what, _values(alike, what, more)), sentences=tuple(said))


def over_sentences(
    takes: Sequence[TakeSummary], reference: TakeSummary, what: Figures, more: More = ((), ())
) -> TakeGrid:
    """As :func:`take_grid`, with means over all sentences; each sentence has its own reference."""
    said = _by_sentence(takes, reference, what)
    wanted = _identity(reference, what)
    same = {text: next((one for one in some if _identity(one, what) == wanted), None) for text, some in said.items()}
    known = {text: one for text, one in (same | {reference.text: reference}).items() if one is not None}
    if TEXT in (what[0].name, what[1].name) or len(known) < 2:
        return take_grid(takes, reference, what, more)
    places = _values([one for text in known for one in said[text]], what, more)
    grids = [_arranged(said[text], one, what, places) for text, one in known.items()]
    own = grids[list(known).index(reference.text)]
    cells = tuple(
        tuple(next((one for one in of_all if one is not None), None) for of_all in zip(*lines, strict=True))
        for lines in zip(*(one.takes for one in (own, *grids)), strict=True)
    )
    mean = _mean([one.values for one in grids])
    return replace(own, takes=cells, values=mean, others=tuple(grids), sentences=tuple(said))


def _identity(take: TakeSummary, what: Figures) -> tuple[object, ...]:
    """Equal for takes of one setting in one cell, whatever their sentence."""
    asked = Asked.of(take)
    return what[0].value(asked), what[1].value(asked), take.setting.bare


def _by_sentence(takes: Sequence[TakeSummary], reference: TakeSummary, what: Figures) -> dict[str, list[TakeSummary]]:
    """Takes that fit the grid of any sentence, by sentence, including the reference."""
    free = what[:2]
    wanted = [*_rest(reference, free)]
    found: dict[str, list[TakeSummary]] = {}
    for one in takes:
        if all(map(eq, _rest(one, free), wanted)):
            found.setdefault(one.text, []).append(one)
    own = found.setdefault(reference.text, [])
    if all(one is not reference for one in own):
        own.insert(0, reference)
    return found


def _values(takes: Sequence[TakeSummary], what: Figures, more: More) -> More:
    rows, columns, _ = what
    asked = [Asked.of(one) for one in takes]
    return (
        in_order((*(rows.value(one) for one in asked), *more[0])),
        in_order((*(columns.value(one) for one in asked), *more[1])),
    )


def _arranged(alike: Sequence[TakeSummary], reference: TakeSummary, what: Figures, places: More) -> TakeGrid:
    rows, columns, figure = what
    both, around = (rows, columns), Asked.of(reference)
    found: dict[tuple[Value, Value], list[TakeSummary]] = {}
    for one in alike:
        found.setdefault((rows.value(Asked.of(one)), columns.value(Asked.of(one))), []).append(one)
    usual, own = Counter(_others(Asked.of(one), both) for one in alike), _others(around, both)

    def best(row: Value, column: Value) -> TakeSummary | None:
        """The best of several takes: the reference, else most similar to it, else most typical; then the newest."""
        there = found.get((row, column), ())
        likeness = [
            (one is reference, len(set(own) & set(_others(Asked.of(one), both))), usual[_others(Asked.of(one), both)])
            for one in there
        ]
        return there[likeness.index(max(likeness))] if there else None

    def wanted(row: Value, column: Value, take: TakeSummary | None) -> Asked | None:
        """Content of a cell; ``None`` if no such setting exists, with a technique on in one knob and off in another."""
        if take is not None:
            return Asked.of(take)
        made = columns.put(rows.put(around, row), column)
        return made if (rows.value(made), columns.value(made)) == (row, column) else None

    cells = tuple(tuple(best(row, column) for column in places[1]) for row in places[0])
    asked = tuple(
        tuple(wanted(row, column, one) for one, column in zip(line, places[1], strict=True))
        for line, row in zip(cells, places[0], strict=True)
    )
    at = list(places[0]).index(rows.value(around)), list(places[1]).index(columns.value(around))
    grid = TakeGrid(rows, columns, figure, tuple(places[0]), tuple(places[1]), cells, asked, reference=at)
    values = np.array([[_value(grid, one, reference) for one in line] for line in cells], float).reshape(grid.shape)
    return replace(grid, values=values)


def _mean(tables: Sequence[np.ndarray]) -> np.ndarray:
    """Mean of known values, cell by cell; NaN if none is known."""
    stacked = np.stack(tables)
    known = (~np.isnan(stacked)).sum(0)
    return np.where(known > 0, np.nansum(stacked, axis=0) / np.maximum(known, 1), np.nan)


def _value(grid: TakeGrid, take: TakeSummary | None, reference: TakeSummary) -> float:
    if take is None or grid.elsewhere(take, reference):
        return np.nan
    found = figures_of(take, _NO_SCORES).get(grid.figure.name)
    return np.nan if found is None else found.value


def _rest(take: TakeSummary, free: Sequence[Dimension]) -> Iterator[object]:
    """What takes of one grid have in common: everything but the sentence and the values in ``free`` dimensions. What
    differs most often comes first, so that comparing ends early. Options, weights and voices differ between models."""
    names, setting = {one.name for one in free}, take.setting
    of_any = MODEL in names
    yield None if SEED in names else setting.seed
    yield None if of_any else (setting.model, take.checkpoint)
    yield None if VOICE in names else take.voice.rpartition("/")[2] if of_any else take.voice
    techniques = {one.technique for one in free if one.technique}
    yield [(one.technique, one.knobs) for one in setting.techniques if one.technique not in techniques]
    yield () if of_any else [(name, value) for name, value in setting.options.items() if f"option:{name}" not in names]


def _others(asked: Asked, both: Sequence[Dimension]) -> tuple[tuple[str, str, object], ...]:
    """The other knobs of techniques with a knob as dimension."""
    ours = {(one.technique, one.knob.name) for one in both if one.technique and one.knob is not None}
    return tuple(
        (one.technique, name, value)
        for one in asked.setting.techniques
        if any(one.technique == technique for technique, _ in ours)
        for name, value in one.knobs.items()
        if (one.technique, name) not in ours
    )
