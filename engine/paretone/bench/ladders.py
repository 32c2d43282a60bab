"""Ladders of savings, from ``resources/benches/stacked.toml``: each rung adds one technique to those below it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from paretone.bench import bundled
from paretone.bench.ways import Read, read
from paretone.commands.command import Command
from paretone.errors import PlainError
from paretone.measure.verdicts import Way
from paretone.models.base import IntervalWeights, Utterance, WeightSet
from paretone.models.families.flow import FlowSpeech
from paretone.observer import Observer
from paretone.setting.knobs import Choice, Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.studies.hooks import preparer
from paretone.techniques import Technique
from paretone.techniques.registry import named
from paretone.techniques.resolving import resolve

NAME = "stacked"
NO_CACHE = "none"
OPTIONS = ("pruned", "evaluations", "precision")
"""Options of the bench that give a rung its knob."""
Guided = WeightSet | IntervalWeights
"""Trained weights that include guidance."""


@dataclass(frozen=True)
class Rung:
    """One step of the comparison: trained weights, a technique with one knob, or both."""

    technique: Technique
    title: str
    knob: str = ""
    option: str = ""
    """The option of the bench that gives the knob."""
    preferred: tuple[str, ...] = ()
    """Which precision is taken where a device offers several and the option is not given."""
    without: str = ""
    """The knob's value with which there is no such rung."""

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of the knob, if it has only some."""
        return next(
            (one.values for one in self.technique.knobs if one.name == self.knob and isinstance(one, Choice)), ()
        )


@dataclass(frozen=True)
class Top:
    """The module-skipping technique of the last step."""

    technique: Technique
    title: str
    knob: str
    default: float


@dataclass(frozen=True)
class Ladder:
    """Rungs from the foot up, and what can be on top."""

    name: str
    rungs: tuple[Rung, ...]
    tops: tuple[Top, ...]

    def why_not(self, model: FlowSpeech) -> str:
        """Why ``model`` cannot climb it, as a sentence, or ``""``."""
        for of in (rung.technique for rung in self.rungs):
            if of.weights is not None and not _guided(model, of):
                commands = (Command.of(named(one)).name for one in of.commands)
                train = next((f" (paretone {one})" for one in commands if one.startswith("train ")), "")
                return f"{model.info.title} has no {of.title} weights; train some{train}, then run this again."
        return ""


def ladders() -> tuple[Ladder, ...]:
    """Those of the bench's file. Raises :class:`paretone.errors.SettingError` for mistakes in it."""
    return ladders_of(read(NAME))


def ladders_of(file: Read) -> tuple[Ladder, ...]:
    """Those of ``file``. Raises :class:`paretone.errors.SettingError` for mistakes in it."""
    tops = tuple(map(_top, file.tables("tops")))
    found = []
    for one in file.tables("ladders"):
        found.append(Ladder(one.title((), "name"), tuple(map(_rung, one.tables("rungs"))), tops))
        one.require_known()
    file.require_known()
    return tuple(found)


def _rung(table: Read) -> Rung:
    of = table.technique()
    title = table.title({knob.name for knob in of.knobs})
    if of.weights is None or "knob" in table:
        knob, option = table.knob(of).name, table.choice("option", OPTIONS)
        rung = Rung(of, title, knob, option, table.texts("preferred"), table.text("without"))
    else:
        rung = Rung(of, title)
    table.require_known()
    return rung


def _top(table: Read) -> Top:
    of = table.technique()
    top = Top(of, table.title({knob.name for knob in of.knobs}), table.knob(of).name, table.given("default"))
    table.require_known()
    return top


@dataclass(frozen=True)
class Climb:
    """The ways of speaking of a ladder. The first is many steps under guidance, which all are timed against."""

    ladder: str
    ways: tuple[Way, ...]
    baseline: Way
    """Many steps under the guidance that the weights include, which all are judged against. It is the first way,
    or, where that guidance is none, the second."""


def climb(ladder: Ladder, model: FlowSpeech, arguments: argparse.Namespace) -> Climb:
    """The rungs from the foot up; a saving that the device or the options have not, or that does not go with those
    below it, is left out. Raises :class:`PlainError` if trained weights are missing."""
    if reason := ladder.why_not(model):
        raise PlainError(reason)
    usual = setting = bundled.setting(arguments)
    trained = {
        rung.technique.name: _strongest(model, rung.technique) for rung in ladder.rungs if rung.technique.weights
    }
    for weights in trained.values():
        setting = replace(setting, options=setting.options.replace(**weights.guidance))
    guidance = dict.fromkeys(name for weights in trained.values() for name in weights.guidance)
    baseline = Way(_foot(setting, guidance), setting)
    ways = [baseline]
    if resolve(model.info, setting).branches == 1:  # Weights without guidance: what they save is the usual guidance.
        ways.insert(0, Way(_foot(usual, guidance), usual))
    ways += _rungs(ladder, model, setting, trained, arguments)
    return Climb(ladder.name, tuple(ways), baseline)


def _foot(setting: Setting, guidance: Iterable[str]) -> str:
    strengths = [f"{name} {float(setting.options[name]):.2g}" for name in guidance]
    return ", ".join([f"{setting.options['steps']} steps", *strengths])


def _rungs(
    ladder: Ladder,
    model: FlowSpeech,
    setting: Setting,
    trained: dict[str, Guided],
    arguments: argparse.Namespace,
) -> Iterator[Way]:
    for rung in ladder.rungs:
        used = _technique(rung, model, trained.get(rung.technique.name), arguments)
        if used is not None:
            setting = setting.with_technique(used)
            yield Way(rung.title.format(**used.knobs), setting)
    for top in ladder.tops:
        if top.technique.name == arguments.cache:
            value = top.default if arguments.threshold is None else arguments.threshold
            used = UsedTechnique(top.technique.name, Values({top.knob: value}))
            title = top.title.format(**used.knobs)
            try:
                resolve(model.info, setting.with_technique(used), prepared=False)
            except PlainError as error:
                bundled.say(f"{title} is left out: {error}")
            else:
                yield _on_top(top, title, used, model, setting, arguments)


def _technique(
    rung: Rung, model: FlowSpeech, weights: Guided | None, arguments: argparse.Namespace
) -> UsedTechnique | None:
    """Technique that a step uses: trained weights, the option's value, or both; ``None`` if nothing."""
    of = rung.technique
    knobs: dict[str, object] = {}
    if weights is not None and of.weights is not None:
        # The titles of weights have two digits.
        knobs |= {name: round(float(str(value)), 2) for name, value in of.weights.knobs_of(weights).items()}
    if rung.knob:
        value = getattr(arguments, rung.option)
        if value is None:
            value = next((one for one in rung.preferred if one in model.info.precisions), rung.without)
        if value == rung.without:
            return None
        knobs[rung.knob] = value
    return UsedTechnique(of.name, Values(knobs), "" if weights is None else weights.fingerprint)


def _guided(model: FlowSpeech, of: Technique) -> list[Guided]:
    assert of.weights is not None
    return [one for one in of.weights.all_of(model.info) if isinstance(one, WeightSet | IntervalWeights)]


def _strongest(model: FlowSpeech, of: Technique) -> Guided:
    """The weights that replace the strongest guidance."""
    return max(_guided(model, of), key=lambda one: sum(map(float, one.guidance.values())))


def _on_top(
    top: Top, title: str, used: UsedTechnique, model: FlowSpeech, setting: Setting, arguments: argparse.Namespace
) -> Way:
    """A cache on top of the others, prepared on the grid and the weights that run, if it has to be."""
    if top.technique.artefact is None:
        return Way(title, setting.with_technique(used))
    bundled.say(f"calibrating at {top.knob} {used.knobs[top.knob]:g} …")
    utterance = Utterance(arguments.text, bundled.speaker(arguments))
    artefact = preparer(used.technique)(model, [utterance], setting.with_technique(used), Observer())
    return Way(title, setting.with_technique(replace(used, artefact=artefact.fingerprint)), (artefact,))
