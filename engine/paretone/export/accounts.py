"""Account of an export: the parts of a profile that it honours and drops, known before writing. Torch-free.

An account has a line per sampler option, and one or more per technique. The target reports on options (an
:class:`OptionLedger`), each technique on its data for the target (a :class:`Carried`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paretone.models.declaration import Model
from paretone.setting.knobs import NO_VALUES, Choice, Knob, Number, Switch, Values
from paretone.setting.setting import UsedTechnique
from paretone.techniques import knobs_of, technique

OPTIONS = "sampler options"
F5_WEIGHTS = "weights in the layout of the official F5-TTS class"
TABLE = "strategy tables"
CACHE_DIT = "configurations of cache-dit"
PRECISION = "a precision for the whole model"
FEWER_LAYERS = "language models with fewer layers"
DRAFT = "drafts that propose tokens"
ADAPTIVE_DRAFT = "drafts that propose as many tokens as are accepted"
GUIDED_STEPS = "guidance on the first steps"
TIMES = "times of the steps, one by one"
GUIDANCE_EVERY = "the unconditional branch at every n-th step"
"""Capabilities of targets (:attr:`paretone.export.targets.Target.takes`); techniques test for them."""


@dataclass(frozen=True)
class Line:
    what: str
    """Option, technique or knob, as labelled in the window."""
    value: str
    how: str
    """How the export carries it, or the reason why not: a phrase without a full stop."""

    @property
    def subject(self) -> str:
        return f"{self.what} {self.value}" if self.value else self.what


@dataclass(frozen=True)
class Carried:
    """A technique's contribution to a target. A technique with nothing honoured is left out: the export then has the
    options that apply without it."""

    honours: tuple[Line, ...] = ()
    drops: tuple[Line, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    """Data for the target, JSON values under names that both know."""
    why_not: str = ""
    """Reason why a profile with the technique cannot be exported to the target, as a sentence, or ``""``."""


@dataclass(frozen=True)
class Account:
    honours: tuple[Line, ...] = ()
    drops: tuple[Line, ...] = ()
    why_not: str = ""
    """Reason why the profile cannot be exported to the target, as a sentence, or ``""``; then there are no lines."""
    options: Values = NO_VALUES
    techniques: tuple[UsedTechnique, ...] = ()
    """Techniques that are carried, wholly or partly."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Data of the techniques for the target."""

    @property
    def weights(self) -> bool:
        """Whether a carried technique replaces the model's weights."""
        return any(technique(one.technique).weights is not None for one in self.techniques)

    def to_json(self) -> dict[str, Any]:
        """Account as plain JSON values: the lists ``honours`` and ``drops``, and ``why_not``."""
        honours, drops = ([vars(line) for line in lines] for lines in (self.honours, self.drops))
        return {"honours": honours, "drops": drops, "why_not": self.why_not}

    def sentences(self) -> list[str]:
        if self.why_not:
            return [f"Cannot be exported: {self.why_not}"]
        found = []
        for title, lines in (("Honoured", self.honours), ("Dropped", self.drops)):
            found.append(f"{title}:" if lines else f"{title}: nothing")
            found += [f"  {line.subject}: {line.how}" for line in lines]
        return found


class OptionLedger:
    """Collects a target's treatment of each sampler option. Unmentioned options are dropped."""

    def __init__(self, model: Model, options: Values, seed: int, given: Mapping[str, Any] | None = None) -> None:
        self.model, self.options, self.seed = model, options, seed
        self.given = given or {}
        """Data of the techniques for the target."""
        self._knobs = {knob.name: knob for knob in model.options}
        self._lines: dict[str, tuple[bool, Line]] = {}
        """By option: whether it is carried, and its line."""

    def honour_if(self, carried: bool, how: str, why: str, *names: str) -> None:
        """Record whether the options ``names``, if the model has them, are carried: ``how``, or ``why`` not."""
        for name in names:
            if line := self._line(name, how if carried else why):
                self._lines[name] = carried, line

    def honour(self, how: str, *names: str) -> None:
        self.honour_if(True, how, "", *names)

    def drop(self, why: str, *names: str) -> None:
        self.honour_if(False, "", why, *names)

    def drop_rest(self, why: str) -> None:
        self.drop(why, *(name for name in (*self._knobs, SEED) if name not in self._lines))

    def lines(self, carried: bool) -> tuple[Line, ...]:
        """Honoured (``carried``) or dropped options, in the order of the model's."""
        found = (self._lines.get(name) for name in (*self._knobs, SEED))
        return tuple(one[1] for one in found if one is not None and one[0] == carried)

    def _line(self, name: str, how: str) -> Line | None:
        if name == SEED:
            return Line("Seed", str(self.seed), how)
        knob = self._knobs.get(name)
        if knob is None or (knob.later and self.options.get(name) == knob.default):
            return None
        return Line(knob.title, value_text(knob, self.options[name]), how)


SEED = "seed"


def value_text(knob: Knob, value: object) -> str:
    if isinstance(knob, Switch):
        return "on" if value else "off"
    if isinstance(knob, Choice) and knob.titles:
        return knob.titles[knob.values.index(str(value))]
    if isinstance(knob, Number) and (words := knob.in_words(value)):
        return words
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{text} {knob.unit}" if knob.unit and text else text or "none"


def whole_line(entry: UsedTechnique, how: str) -> Line:
    """Line for a technique with all its knobs."""
    declared = technique(entry.technique)
    return Line(declared.title, declared.describe(knobs_of(entry)), how)


def knob_lines(entry: UsedTechnique, how: str, names: Iterable[str]) -> tuple[Line, ...]:
    declared, values = technique(entry.technique), knobs_of(entry)
    knobs = {knob.name: knob for knob in declared.knobs}
    title = declared.title.partition(" (")[0]
    return tuple(Line(f"{title}, {knobs[name].title}", value_text(knobs[name], values[name]), how) for name in names)
