"""Ladders of savings, from ``resources/benches/stacked.toml``: each rung adds one technique to those below it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module

from paretone.bench import bundled
from paretone.errors import PlainError
from paretone.measure.verdicts import Way
from paretone.models.base import IntervalWeights, Utterance, WeightSet
from paretone.models.families.flow import FlowSpeech
from paretone.models.silent_observer import SilentObserver
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.studies.hooks import preparer
from paretone.techniques import Technique, technique
from paretone.techniques.resolving import resolve

NAME = "stacked"
NO_CACHE = "none"
Guided = WeightSet | IntervalWeights
"""Trained weights that include guidance."""


@dataclass(frozen=True)
class Rung:
    """One step of the comparison: trained weights, a technique with one knob, or both."""

    technique: str
    title: str
    """With the technique's knobs in braces."""
    knob: str = ""
    option: str = ""
    """The option of the bench that gives the knob."""


@dataclass(frozen=True)
class Ladder:
    """Rungs from the foot up."""

    name: str
    rungs: tuple[Rung, ...]

    def why_not(self, model: FlowSpeech) -> str:
        """Why ``model`` cannot climb it, as a sentence, or ``""``."""
        for of in (technique(rung.technique) for rung in self.rungs):
            if of.weights is not None and not _guided(model, of):
                commands = (import_module(one).NAME for one in of.commands)
                train = next((f" (paretone {one})" for one in commands if one.startswith("train ")), "")
                return f"{model.info.title} has no {of.title} weights; train some{train}, then run this again."
        return ""


@dataclass(frozen=True)
class Top:
    """The module-skipping technique of the last step."""

    technique: str
    title: str
    knob: str
    default: float


PRECISION = Rung("precision", "+ {precision}", "precision", "precision")
PREFERRED, WHOLE = ("bfloat16", "float16", "int8"), "float32"
"""Which precision is taken where a device offers several and the option is not given; with the last, there is no
such rung."""
LADDERS = (
    Ladder(
        "average-velocity",
        (Rung("average_velocity", "+ average velocity, N = {evaluations}", "evaluations", "evaluations"), PRECISION),
    ),
    Ladder(
        "pruned",
        (
            Rung("steps", "+ {steps} steps", "steps", "pruned"),
            Rung("guidance_free", "+ CFG-free, w = {weight:.2f}"),
            PRECISION,
        ),
    ),
)
"""The best first."""
TOPS = (
    Top("ditreducio", "+ DiTReducio, δ = {threshold:g}", "threshold", 0.1),
    Top("error_curve", "+ error-curve cache, α = {threshold:g}", "threshold", 0.2),
)
"""What can be on top of each, the usual one first."""


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
    declared = [technique(rung.technique) for rung in ladder.rungs]
    trained = {one.name: _strongest(model, one) for one in declared if one.weights}
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
        used = _technique(rung, model, trained.get(rung.technique), arguments)
        if used is not None:
            setting = setting.with_technique(used)
            yield Way(rung.title.format(**used.knobs), setting)
    for top in TOPS:
        if top.technique == arguments.cache:
            value = top.default if arguments.threshold is None else arguments.threshold
            used = UsedTechnique(top.technique, Values({top.knob: value}))
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
    of = technique(rung.technique)
    knobs: dict[str, object] = {}
    if weights is not None and of.weights is not None:
        # The titles of weights have two digits.
        knobs |= {name: round(float(str(value)), 2) for name, value in of.weights.knobs_of(weights).items()}
    if rung.knob:
        value = getattr(arguments, rung.option)
        if value is None:
            value = next((one for one in PREFERRED if one in model.info.precisions), WHOLE)
        if value == WHOLE:
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
    if technique(top.technique).artefact is None:
        return Way(title, setting.with_technique(used))
    bundled.say(f"calibrating at {top.knob} {used.knobs[top.knob]:g} …")
    utterance = Utterance(arguments.text, bundled.speaker(arguments))
    artefact = preparer(used.technique)(model, [utterance], setting.with_technique(used), SilentObserver())
    return Way(title, setting.with_technique(replace(used, artefact=artefact.fingerprint)), (artefact,))
