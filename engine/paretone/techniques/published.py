"""Techniques as published: the settings of their sources, and what a setting has otherwise. Torch-free.

Techniques declare them (:class:`paretone.techniques.base.Published`). Front ends take them by name: ``published`` is
the main setting of every technique that has one for the model, other names, such as ``T4``, are one setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from paretone.by_name import meant
from paretone.errors import SettingError
from paretone.models import catalogue
from paretone.reading import shown
from paretone.setting.knobs import Choice, Knob, Values, defaults
from paretone.setting.setting import Published, Setting, UsedTechnique
from paretone.techniques.base import Technique
from paretone.techniques.registry import technique
from paretone.techniques.registry import techniques as every_technique
from paretone.techniques.resolving import knobs_of, knobs_under, options_in_force
from paretone.wording import listed

PUBLISHED = "published"
"""Name of the main setting of every technique."""


def offered(declared: Technique, options: Iterable[Knob]) -> tuple[Published, ...]:
    """Published settings of a technique for models with these ``options``; of two of a name, the later one."""
    names = {knob.name for knob in options}
    return tuple({one.name: one for one in declared.published if names.issuperset(one.options)}.values())


def main(there: Iterable[Published]) -> Published | None:
    """The main one of those :func:`offered`, if any."""
    return next(iter(sorted(there, key=lambda one: not one.main)), None)


def chosen(model: str, name: str, techniques: Iterable[str]) -> dict[str, Published]:
    """The published setting called ``name`` of each of the ``techniques`` that has one for ``model``; if none is named,
    of every technique that has one of this name, :data:`PUBLISHED` excepted. Raises :class:`SettingError` if none has,
    with their names, or if two want different sampler options."""
    entry, found = catalogue.entry(model), {}
    named = [technique(one) for one in dict.fromkeys(techniques)]
    known: dict[str, str] = {}
    for declared in named or [one for one in every_technique() if entry.family in one.families]:
        there = offered(declared, entry.options)
        known |= {one.name: declared.title for one in there}
        one = main(there) if name == PUBLISHED else next((each for each in there if each.name == name), None)
        if one is not None:
            found[declared.name] = one
    if not named and name == PUBLISHED:
        raise SettingError(f"There is no technique to use as {name}: name one, such as {next(iter(found), 'steps')}.")
    if not found:
        if not named:
            known.pop(PUBLISHED, "")
            instead = meant(name, known, "there are")
            raise SettingError(f"No technique has a setting {shown(name)} for {entry.title}; {instead}")
        which = listed(one.title for one in named)
        if not known:
            raise SettingError(f"{which} has no published setting for {entry.title}; set its knobs instead.")
        raise SettingError(f"{which} has no setting {shown(name)} for {entry.title}; {meant(name, known, 'it has')}")
    options_of(found)
    return found


def options_of(found: Mapping[str, Published]) -> Values:
    """Sampler options of published settings by technique. Raises :class:`SettingError` if they contradict."""
    options: dict[str, object] = {}
    for name, one in found.items():
        for option, value in one.options.items():
            if options.setdefault(option, value) != value:
                raise SettingError(
                    f"The published setting {one.name} of {technique(name).title} has {option} {value}, that of "
                    f"another technique {options[option]}; use one of the two."
                )
    return Values(options)


def as_published(setting: Setting, name: str, one: Published) -> Setting:
    """``setting`` with the technique ``name`` as in ``one``; weights stay, other knobs have their defaults."""
    declared, used = technique(name), setting.technique(name)
    options = {option: one.options.get(option, value) for option, value in setting.options.items()}
    made = UsedTechnique(name, defaults(declared.knobs).replace(**one.knobs), used.artefact if used else "")
    return replace(setting, options=Values(options)).with_technique(made)


def rule_of(declared: Technique, setting: Setting, options: Iterable[Knob], published: bool) -> Values:
    """Knobs of a technique in a view: those in ``setting``; if ``published``, with what its main published setting for
    models with these ``options`` fixes."""
    knobs = knobs_under(setting, declared.name)
    one = main(offered(declared, options)) if published else None
    return knobs.replace(**one.knobs) if one is not None else knobs


@dataclass(frozen=True)
class Comparison:
    """A technique in a setting, and the published setting that is nearest to it."""

    technique: str
    published: Published
    differences: tuple[str, ...]
    """Such as ``Threshold δ 0.1, not 0.2``; empty if the setting is as published."""

    @property
    def sentence(self) -> str:
        declared, one = technique(self.technique), self.published
        where = f"{one.name} ({declared.paper.reference}, {one.source})"
        but = f", except {'; '.join(self.differences)}" if self.differences else ""
        return f"{declared.title} is set as {where}{but}.{f' {one.remark}' if one.remark else ''}"

    def to_json(self) -> dict[str, object]:
        one = self.published
        about = {"technique": self.technique, "setting": one.name, "source": one.source}
        return {**about, "differences": list(self.differences), "remark": one.remark}


def comparisons(setting: Setting) -> tuple[Comparison, ...]:
    """The techniques of ``setting`` that have published settings for its model, each compared with the nearest."""
    entry, found = catalogue.entry(setting.model), []
    for used in setting.techniques:
        there = offered(technique(used.technique), entry.options)
        each = [Comparison(used.technique, one, _differences(setting, used, one)) for one in there]
        if each:
            found.append(min(each, key=lambda one: (len(one.differences), not one.published.main)))
    return tuple(found)


def _differences(setting: Setting, used: UsedTechnique, one: Published) -> tuple[str, ...]:
    entry, declared, knobs = catalogue.entry(setting.model), technique(used.technique), knobs_of(used)
    try:
        options: Mapping[str, Any] = options_in_force(setting.without(used.technique))
    except SettingError:  # The reason is said elsewhere.
        options = setting.options
    found = [*_changed(declared.knobs, knobs, one.knobs), *_changed(entry.options, options, one.options)]
    others = [technique(each.technique).title for each in setting.techniques if each != used]
    if others:
        found.append(f"{listed(others)} as well")
    if one.models and entry.id not in one.models:
        found.append(f"model {entry.title}, not {listed((catalogue.entry(each).title for each in one.models), 'or')}")
    return tuple(found)


def _changed(knobs: Iterable[Knob], values: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    return [
        f"{' '.join(filter(None, (knob.title, knob.symbol)))} {_shown(knob, values[knob.name])}, not "
        f"{_shown(knob, wanted[knob.name])}"
        for knob in knobs
        if knob.name in wanted and values[knob.name] != wanted[knob.name]
    ]


def _shown(knob: Knob, value: Any) -> str:
    if isinstance(knob, Choice) and knob.titles:
        return f"“{knob.titles[knob.values.index(value)]}”"
    if isinstance(value, str):
        return value or "empty"
    return ("on" if value else "off") if isinstance(value, bool) else f"{value:g}"
