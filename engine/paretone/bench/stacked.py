"""The product of all savings: each added in turn, paired against many steps under guidance on the same machine.

The ladders: step pruning, CFG-free weights and fewer bits, or average velocity and fewer bits, with a cache on top.
Each stands on many steps under the guidance that its weights include. At every rung: what it adds, the product so far
on the clock, of the backbone and of the whole take with the vocoder, the judges' figures and whether they pass, and the
log-mel distance from the same noise.

A default run ends within five minutes on two cores and hears as many sentences as fit into that, none of them the one
that the cache was calibrated on. For figures to quote, give it time for all of them: ``--minutes 20``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np

from paretone.bench import bundled, qualities
from paretone.bench.budget import Budget
from paretone.bench.qualities import LIMITS, compared, headline, judged, listened, target
from paretone.bench.report import Report
from paretone.bench.voices import Panel
from paretone.commands.arguments import finite, positive
from paretone.errors import PlainError
from paretone.measure.estimates import Margins
from paretone.measure.timing import Interval, PairedTimes, interval
from paretone.measure.verdicts import Way
from paretone.models.base import IntervalWeights, Utterance, WeightSet
from paretone.models.families.flow import FlowSpeech
from paretone.models.kernels.split_products import has_amx
from paretone.observer import Observer
from paretone.setting.knobs import Choice, Values
from paretone.setting.setting import Artefact, Setting, UsedTechnique
from paretone.speaking import make_ready, synthesise
from paretone.studies.hooks import preparer
from paretone.techniques import Technique, technique
from paretone.techniques.resolving import resolve

NAME = "stacked"
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
    """Option of the bench for the knob."""


@dataclass(frozen=True)
class Ladder:
    name: str
    rungs: tuple[Rung, ...]

    def why_not(self, model: FlowSpeech) -> str:
        """Reason why ``model`` cannot climb it, as a sentence, or ``""``."""
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
"""Preferred precision if a device offers several and the option is not given; the last one has no rung."""
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
"""Best first."""
TOPS = (
    Top("ditreducio", "+ DiTReducio, δ = {threshold:g}", "threshold", 0.1),
    Top("error_curve", "+ error-curve cache, α = {threshold:g}", "threshold", 0.2),
)
"""Caches for the top of each ladder, default first."""


@dataclass(frozen=True)
class Climb:
    """Ways of speaking of a ladder. The first is many steps under guidance, the reference of all times."""

    ladder: str
    ways: tuple[Way, ...]
    baseline: Way
    """Many steps under the guidance included in the weights, the reference of all judgements. It is the first way or,
    if that guidance is none, the second."""


def climb(ladder: Ladder, model: FlowSpeech, arguments: argparse.Namespace) -> Climb:
    """Rungs from the foot up, without savings that the device or the options lack, or that conflict with lower ones.
    Raises :class:`PlainError` if trained weights are missing."""
    if reason := ladder.why_not(model):
        raise PlainError(reason)
    usual = setting = bundled.setting(arguments)
    trained = {
        one.name: max(_guided(model, one), key=lambda weights: sum(map(float, weights.guidance.values())))
        for one in [technique(rung.technique) for rung in ladder.rungs]
        if one.weights
    }
    for weights in trained.values():
        setting = replace(setting, options=setting.options.replace(**weights.guidance))
    guidance = dict.fromkeys(name for weights in trained.values() for name in weights.guidance)
    baseline = Way(_foot(setting, guidance), setting)
    ways = [baseline]
    if resolve(model.info, setting).branches == 1:  # Weights without guidance save the default guidance.
        ways.insert(0, Way(_foot(usual, guidance), usual))
    ways += _rungs(ladder, model, setting, trained, arguments)
    return Climb(ladder.name, tuple(ways), baseline)


def _foot(setting: Setting, guidance: Iterable[str]) -> str:
    strengths = [f"{name} {float(setting.options[name]):.2g}" for name in guidance]
    return ", ".join([f"{setting.options['steps']} steps", *strengths])


def _rungs(
    ladder: Ladder, model: FlowSpeech, setting: Setting, trained: dict[str, Guided], arguments: argparse.Namespace
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
                continue
            artefacts: tuple[Artefact, ...] = ()
            if technique(top.technique).artefact is not None:
                bundled.say(f"calibrating at {top.knob} {used.knobs[top.knob]:g} …")
                utterance = Utterance(arguments.text, bundled.speaker(arguments))
                artefact = preparer(used.technique)(model, [utterance], setting.with_technique(used), Observer())
                used, artefacts = replace(used, artefact=artefact.fingerprint), (artefact,)
            yield Way(title, setting.with_technique(used), artefacts)


def _technique(
    rung: Rung, model: FlowSpeech, weights: Guided | None, arguments: argparse.Namespace
) -> UsedTechnique | None:
    """Technique of a rung: trained weights, the option's value, or both; ``None`` if neither."""
    of = technique(rung.technique)
    knobs: dict[str, object] = {}
    if weights is not None and of.weights is not None:
        # Titles of weights have two digits.
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


BEST, EVERY = "best", "every"
"""Ladders by model: the first with weights, or all of these."""
TIMED = 0.25
"""Share of a ladder's remaining time for the rounds of the backbone, and then for those of whole takes."""
TARGETS = {True: 50.0, False: 30.0}
"""Target product, with AMX or a GPU and without."""
DEFINITION = (
    "Time of backbone and sampler without savings (guided, full number of steps, float32) over that of the fastest "
    f"rung that passes against as many steps under the guidance that its weights include: {LIMITS}. If none passes, it "
    "is that of the fastest undecided rung, else of the fastest. Median of paired, interleaved rounds on one sentence: "
    "a measured ratio, not a product of claimed ones. A rung counts if it is faster than the one below it."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    caches = [*(top.technique for top in TOPS), "none"]
    (precision,) = (one for one in technique(PRECISION.technique).knobs if isinstance(one, Choice))
    bundled.add_arguments(parser, steps=32, rounds=5)
    parser.add_argument(
        "--ladder",
        choices=[*(one.name for one in LADDERS), BEST, EVERY],
        default=BEST,
        help="which savings are stacked; best: the first of these that the model has weights for; every: all of them "
        "(default: %(default)s)",
    )
    parser.add_argument("--pruned", type=positive, default=7, help="steps after pruning (default: %(default)s)")
    parser.add_argument(
        "--evaluations", type=positive, default=1, help="evaluations by average velocity (default: %(default)s)"
    )
    parser.add_argument("--precision", choices=precision.values, help="precision (default: what the device offers)")
    parser.add_argument(
        "--cache", choices=caches, default=caches[0], help="module-skipping technique (default: %(default)s)"
    )
    usual = ", ".join(f"{top.default:g} of {top.technique}" for top in TOPS)
    parser.add_argument(
        "--threshold", type=finite, help=f"threshold of the module-skipping technique (default: {usual})"
    )
    qualities.add_arguments(parser, sentences=10)


def run(arguments: argparse.Namespace) -> Report:
    """Climb the ladders: time all rungs of one in the same rounds, then judge them."""
    budget = Budget(arguments.minutes, arguments.rounds)
    texts, speakers = qualities.heard(arguments, [arguments.text])
    model = bundled.loaded_flow(arguments)
    climbs = [climb(one, model, arguments) for one in climbable(model, arguments.ladder)]
    panel = Panel(texts, speakers)
    rows: list[dict[str, object]] = []
    found: list[tuple[Interval, Margins]] = []
    heard: list[str] = []
    for at, one in enumerate(climbs):
        own, counted, said = _climbed(one, model, panel, arguments, budget.part(1 / (len(climbs) - at)))
        rows += own
        found += counted
        heard.append(said)
    best, verdict = headline(found)
    fast = (model.info.device_type or "cpu") != "cpu" or has_amx()
    where = "with AMX or a GPU" if fast else "without AMX or a GPU"
    definition = " ".join([DEFINITION, target(best, verdict, TARGETS[fast], where), *dict.fromkeys(heard)])
    return Report.of(NAME, best, definition, rows, verdict)


def climbable(model: FlowSpeech, name: str) -> Sequence[Ladder]:
    """The ladder ``name``, or those that ``model`` can climb. Raises :class:`PlainError` if there is none."""
    if name not in (BEST, EVERY):
        return [one for one in LADDERS if one.name == name]
    reasons = {one: one.why_not(model) for one in LADDERS}
    if all(reasons.values()):
        raise PlainError(" ".join(dict.fromkeys(reasons.values())))
    possible = [one for one, reason in reasons.items() if not reason]
    return possible[:1] if name == BEST else possible


def _climbed(
    chosen: Climb, model: FlowSpeech, panel: Panel, arguments: argparse.Namespace, budget: Budget
) -> tuple[list[dict[str, object]], list[tuple[Interval, Margins]], str]:
    """Rows of the rungs; speed-up and judgement of the rungs faster than the one below (of the highest, if none is);
    sentence on the judged sentences."""
    voice = bundled.speaker(arguments)
    for rung in chosen.ways:
        make_ready(model, rung.setting, voice)

    def take(way: Way) -> Callable[[], object]:
        return lambda: synthesise(model, arguments.text, voice, way.setting, way.artefacts)

    what, device = f"{chosen.ladder}, backbone", model.info.device_type or "cpu"
    sampled = bundled.timed_sampling(model, chosen.ways, arguments, what, budget, TIMED)
    variants, what = {one.title: take(one) for one in chosen.ways}, f"{chosen.ladder}, whole take"
    whole = bundled.timed(variants, device, arguments, what, budget=budget, share=TIMED)
    takes = qualities.spoken(chosen.ways, model, panel, arguments.seeds, budget)
    rows = []
    found = []
    for below, rung in zip((None, *chosen.ways), chosen.ways, strict=False):
        own = takes[rung.title]
        row: dict[str, object] = {"ladder": chosen.ladder, "rung": rung.title, **_times(below, rung, sampled, whole)}
        row |= {"takes": len(own.heard), "ops ratio": own.ops_ratio, **own.figures}
        if below is not None:
            row |= compared(own, takes[chosen.baseline.title])
            counted = sampled.speed_up[rung.title], judged(own, takes[chosen.baseline.title])
            found.append((_step(below, rung, sampled).low > 1, counted))
        rows.append(row)
    same = {"backbone": sampled.same.median, "whole take": whole.same.median}
    rows.append({"ladder": chosen.ladder, "rung": "first, again (A/A)", **same})
    faster = [one for counts, one in found if counts] or [found[-1][1]]
    return rows, faster, listened(takes, panel)


def _times(below: Way | None, rung: Way, sampled: PairedTimes, whole: PairedTimes) -> dict[str, object]:
    """Columns of times, relative to the first rung."""
    if below is None:
        return {"step factor": 1.0, "backbone": 1.0, "low": 1.0, "high": 1.0, "whole take": 1.0}
    product, take = sampled.speed_up[rung.title], whole.speed_up[rung.title]
    return {"step factor": _step(below, rung, sampled).median, **product.columns("backbone"), "whole take": take.median}


def _step(below: Way, rung: Way, sampled: PairedTimes) -> Interval:
    return interval((np.array(sampled.seconds[below.title]) / np.array(sampled.seconds[rung.title])).tolist())
