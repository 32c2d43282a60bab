"""Axes of a grid or search: options and knobs with their values. Torch-free.

A name is an option of the model (``guidance``) or a technique's knob (``steps.steps``, written as a nested table or in
quotes). Among a technique's values ``"off"`` means without the technique; ``"on"`` under the name ``used`` means its
default settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from paretone.by_name import meant
from paretone.errors import StudyError, placed
from paretone.fields import Fields
from paretone.measure.estimates import Margin, margin
from paretone.measure.metrics import metric
from paretone.models.declaration import Model
from paretone.reading import shown
from paretone.setting.knobs import Knob, Number
from paretone.techniques import technique
from paretone.wording import per_one

Figure = TypeVar("Figure", float, np.ndarray)
OFF, ON, USED = "off", "on", "used"
_USED_AS_WRITTEN = (USED, "engaged")
"""The second occurs in studies of the first edition; their trials are stored under it."""
LARGEST_SEED = 2**32 - 1
"""Limit of the samplers' generators."""
SAMPLERS = ("auto", "tpe", "nsga2", "random")


@dataclass(frozen=True)
class VariedKnob:
    technique: str
    """Name of the technique, or ``""`` for an option of the model."""
    knob: str
    """``""``: the use of the technique."""
    values: tuple[bool | int | float | str, ...]
    used: str = USED
    """Name of the technique's use in this study."""

    @property
    def name(self) -> str:
        return f"{self.technique}.{self.knob or self.used}" if self.technique else self.knob


@dataclass(frozen=True)
class Range:
    """A number that a search varies between ``low`` and ``high``, in steps of ``step`` if given."""

    technique: str
    knob: str
    low: float
    high: float
    step: float | None = None
    log: bool = False
    whole: bool = False

    @property
    def name(self) -> str:
        return f"{self.technique}.{self.knob}" if self.technique else self.knob


@dataclass(frozen=True)
class Constraint:
    """Constraint on a setting: a bound for a metric, or for its difference from the baseline."""

    metric: str
    bound: float
    above: bool
    """Whether the bound is a maximum; otherwise a minimum."""
    relative: bool
    """Whether the bound is a difference from the baseline."""

    def excess(self, value: Figure, baseline: Figure) -> Figure:
        """Excess of ``value`` over the limit: at most 0 if it is kept."""
        bound = baseline + self.bound if self.relative else self.bound
        return value - bound if self.above else bound - value

    def margin(self, values: np.ndarray, baseline: np.ndarray) -> Margin:
        """Margin of a setting's ``values`` by sentence, (n,), relative to those of its baseline."""
        reference = baseline if self.relative else None
        return margin(values, reference, self.bound, above=self.above, statistic=metric(self.metric).statistic)

    @property
    def words(self) -> str:
        one, bound = metric(self.metric), abs(self.bound) if self.relative else self.bound
        said = f"{per_one(one.unit) * bound:g}{' %' if one.unit == '%' else ''}"
        side = "is at most" if self.above else "is at least"
        if not self.relative:
            return f"{one.title} {side} {said}"
        direction = "above" if self.bound >= 0 else "below"
        return f"{one.title} {side} {said} {direction} the baseline's"


@dataclass(frozen=True)
class Search:
    trials: int
    objectives: tuple[str, ...]
    axes: tuple[VariedKnob | Range, ...]
    constraints: tuple[Constraint, ...] = ()
    sampler: str = "auto"
    seed: int = 0

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.objectives, *(one.metric for one in self.constraints)]))

    @property
    def words(self) -> str:
        goals = " and ".join(
            f"{'the highest' if metric(name).better == 'higher' else 'the lowest'} {metric(name).title}"
            for name in self.objectives
        )
        kept = f" whose {' and whose '.join(one.words for one in self.constraints)}" if self.constraints else ""
        return f"The setting with {goals}{kept}."


def axes_of(given: Mapping[str, object], entry: Model) -> tuple[VariedKnob, ...]:
    """Axes of a grid. Raises :class:`StudyError`."""
    found = []
    if not given:
        raise StudyError("grid is empty; name at least one option or knob to vary.")
    for owner, name, values in _flat(given):
        if not isinstance(values, list) or not values:
            raise StudyError(f"grid.{_joined(owner, name)} must be a list of values, not {shown(values)}.")
        found.append(_axis(owner, name, values, entry, "grid"))
    return tuple(found)


def search_of(given: Mapping[str, object], entry: Model) -> Search:
    """Search of a study. Raises :class:`StudyError`."""
    fields = study_fields(given, "search.")
    axes = tuple(_searched(*one, entry) for one in _flat(fields.table("space")))
    if not axes:
        raise StudyError("search.space is empty; name at least one option or knob to vary.")
    objectives = fields.texts("objectives") or ("real_time_factor",)
    for name in objectives:
        if metric(name).better == "neither":
            raise StudyError(f"search.objectives names {shown(name)}, but neither end of it is better.")
    sampler = fields.text("sampler", "auto")
    if sampler not in SAMPLERS:
        raise StudyError(f"search.sampler must be one of {', '.join(SAMPLERS)}, not {shown(sampler)}.")
    constraints = tuple(
        _constraint(study_fields(one, f"search.constraint[{index}]."))
        for index, one in enumerate(fields.list("constraint"))
    )
    search = Search(
        fields.whole("trials", 40, minimum=1),
        objectives,
        axes,
        constraints,
        sampler,
        fields.whole("seed", 0, maximum=LARGEST_SEED),
    )
    fields.require_known()
    return search


def _searched(owner: str, name: str, values: object, entry: Model) -> VariedKnob | Range:
    where = f"search.space.{_joined(owner, name)}"
    if isinstance(values, list) and values:
        return _axis(owner, name, values, entry, "search.space")
    if not isinstance(values, Mapping):
        raise StudyError(f"{where} must be a list of values, or low and high, not {shown(values)}.")
    fields = study_fields(values, f"{where}.")
    knob = _knob(owner, name, entry, where)
    low, high, step = fields.number("low"), fields.number("high"), fields.number("step")
    log = fields.flag("log")
    fields.require_known()
    if not isinstance(knob, Number) or low is None or high is None or not low < high:
        raise StudyError(f"{where} needs numbers low and high, with low below high.")
    if step is not None and (step <= 0 or log):
        raise StudyError(f"{where}.step must be above 0, and cannot be combined with log.")
    if log and low <= 0:
        raise StudyError(f"{where}.low must be above 0 if log is true.")
    with placed(StudyError, where):
        for bound in (low, high):
            knob.check(bound)
    return Range(owner, name, low, high, step, log, knob.whole)


def _axis(owner: str, name: str, values: list[Any], entry: Model, where: str) -> VariedKnob:
    place = f"{where}.{_joined(owner, name)}"
    used = name if owner and name in _USED_AS_WRITTEN else ""
    if used:
        technique(owner)
        if not set(values) <= {OFF, ON}:
            raise StudyError(f"{place} must be a list of 'on' and 'off', not {shown(values)}.")
        found: tuple[bool | int | float | str, ...] = tuple(values)
        name = ""
    else:
        knob = _knob(owner, name, entry, place)
        with placed(StudyError, place):
            found = tuple(one if owner and one == OFF else knob.check(one) for one in values)
    if len(set(found)) < len(found):
        raise StudyError(f"{place} names a value twice.")
    return VariedKnob(owner, name, found, used or USED)


def _knob(owner: str, name: str, entry: Model, where: str) -> Knob:
    knobs = technique(owner).knobs if owner else entry.options
    title = technique(owner).title if owner else entry.title
    for knob in knobs:
        if knob.name == name:
            return knob
    ending = meant(name, [knob.name for knob in knobs], "it has")
    raise StudyError(f"{where}: {title} has no {'knob' if owner else 'option'} named {shown(name)}; {ending}")


def study_fields(values: object, prefix: str = "") -> Fields:
    """Fields of a table in a study's file; ``prefix``: beginning of their names in sentences."""
    return Fields(values, prefix, StudyError, "a study")


def _constraint(fields: Fields) -> Constraint:
    name = metric(fields.text("metric")).name
    kinds = {
        "at_most": (True, False, 1.0),
        "at_least": (False, False, 1.0),
        "above_baseline": (True, True, 1.0),
        "below_baseline": (False, True, -1.0),
    }
    given = [(kind, bound) for kind in kinds if (bound := fields.number(kind)) is not None]
    fields.require_known()
    if len(given) != 1:
        raise StudyError(f"a constraint on {name} needs exactly one of {', '.join(kinds)}.")
    ((kind, bound),) = given
    above, relative, sign = kinds[kind]
    return Constraint(name, sign * bound, above, relative)


def _flat(given: Mapping[str, object]) -> Iterator[tuple[str, str, object]]:
    """(technique or ``""``, name, values) of each axis. A table belongs to a technique unless it is a range."""
    for name, values in given.items():
        if isinstance(values, Mapping) and not {"low", "high"} & set(values):
            for knob, inner in values.items():
                yield name, knob, inner
        else:
            owner, dot, knob = name.partition(".")
            yield (owner, knob, values) if dot else ("", name, values)


def _joined(owner: str, name: str) -> str:
    return f"{owner}.{name}" if owner else name
