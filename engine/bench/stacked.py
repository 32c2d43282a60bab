"""The product of all savings: each added in turn, paired against many steps under guidance on the same machine.

The ladder is that of ``resources/benches/stacked.toml``: fewer steps, weights with guidance in them, fewer bits, and a
cache on top. The baseline is guided as strongly as the weights replace. At every rung: what it adds and the product so
far, measured on the clock, the word error rate of an offline judge, and the log-mel distance to the baseline from the
same noise.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np

from engine.bench import bundled
from engine.bench.report import Report
from engine.bench.ways import read
from engine.errors import PlainError
from engine.measure.machine import describe
from engine.measure.timing import PairedTimes, interval
from engine.measure.verdicts import VoiceVerdict, Way, counted_errors, each_distance, verdicts
from engine.models.base import Utterance, WeightSet, run_to_completion
from engine.models.catalogue import entry
from engine.models.families.flow import FlowSpeech
from engine.models.silent_observer import SilentObserver
from engine.models.vocoders import load_vocoder
from engine.setting.knobs import Choice, Values
from engine.setting.setting import Setting, UsedTechnique
from engine.studies.hooks import preparer
from engine.techniques import Technique

NAME = "stacked"
NO_CACHE = "none"
OPTIONS = ("pruned", "precision")
"""Options of this bench that give a rung its knob."""
WORD_ERRORS = 0.02
"""By how much the word error rate may be above the baseline's."""
DEFINITION = (
    "Time of backbone and sampler without savings (guided, full number of steps, float32) over that with all savings "
    "together, median of paired, interleaved rounds on one sentence: a measured ratio, not a product of claimed ones."
)


@dataclass(frozen=True)
class Rung:
    """One step of the comparison: trained weights, or a technique with one knob."""

    technique: Technique
    title: str
    knob: str = ""
    option: str = ""
    """The option of this bench that gives the knob."""
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


def ladder() -> tuple[list[Rung], list[Top]]:
    """The rungs from the foot up, and what can be on top. Raises :class:`engine.errors.SettingError` for mistakes in
    the bench's file."""
    file = read(NAME)
    rungs, tops = [], []
    for one in file.tables("rungs"):
        of = one.technique()
        title = one.title({knob.name for knob in of.knobs})
        if of.weights is None:
            knob, option = one.knob(of).name, one.choice("option", OPTIONS)
            rungs.append(Rung(of, title, knob, option, one.texts("preferred"), one.text("without")))
        else:
            rungs.append(Rung(of, title))
        one.require_known()
    for one in file.tables("tops"):
        of = one.technique()
        tops.append(Top(of, one.title({knob.name for knob in of.knobs}), one.knob(of).name, one.given("default")))
        one.require_known()
    file.require_known()
    return rungs, tops


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this bench."""
    rungs, tops = ladder()
    caches = [*(top.technique.name for top in tops), NO_CACHE]
    precisions = next((rung.choices for rung in rungs if rung.option == "precision"), ())
    bundled.add_arguments(parser, steps=32, rounds=7)
    parser.add_argument("--pruned", type=int, default=7, help="steps after pruning (default: %(default)s)")
    parser.add_argument("--precision", choices=precisions, help="precision (default: what the device offers)")
    parser.add_argument(
        "--cache", choices=caches, default=caches[0], help="module-skipping technique (default: %(default)s)"
    )
    usual = ", ".join(f"{top.default:g} of {top.technique.name}" for top in tops)
    parser.add_argument(
        "--threshold", type=float, help=f"threshold of the module-skipping technique (default: {usual})"
    )
    bundled.add_listening_arguments(parser, sentences=10, least=1)


def run(arguments: argparse.Namespace) -> Report:
    """Climb the ladder: time all rungs in the same rounds, then let the judge listen."""
    model = bundled.loaded_flow(arguments)
    rungs = list(_ladder(model, arguments))
    for rung in rungs:
        model.make_ready(rung.setting, SilentObserver(), bundled.speaker(arguments))
    voice = bundled.speaker(arguments)
    backbone = {one.title: model.sampling(arguments.text, voice, one.setting, one.artefacts) for one in rungs}
    device = backbone[rungs[-1].title]().device.type

    def pipeline(way: Way) -> Callable[[], object]:
        return lambda: run_to_completion(
            model.synthesise(arguments.text, voice, way.setting, way.artefacts, SilentObserver())
        )

    sampled = bundled.timed(backbone, device, arguments, "backbone")
    spoken = bundled.timed({one.title: pipeline(one) for one in rungs}, device, arguments, "whole pipeline")
    heard: dict[str, list[VoiceVerdict]] = {}
    vocoder = load_vocoder(entry(arguments.model).vocoder_folder)
    sentences = bundled.heard_sentences(arguments)
    for verdict in verdicts(sentences, bundled.heard_voices(arguments), vocoder, model, rungs, bundled.say):
        heard.setdefault(verdict.speech, []).append(verdict)
    rows: list[dict[str, object]] = [
        {"rung": title, **counted_errors(said)} for title, said in heard.items() if title not in backbone
    ]
    rows += list(_rungs(rungs, heard, sampled, spoken))
    rows.append({"rung": "first stage, again (A/A)", "product": sampled.same.median, "pipeline": spoken.same.median})
    top = sampled.speed_up[rungs[-1].title]
    return Report(NAME, top.median, (top.low, top.high), DEFINITION, tuple(rows), describe().to_json())


# --- Rungs ------------------------------------------------------------------------------------------------------------
def _ladder(model: FlowSpeech, arguments: argparse.Namespace) -> Iterator[Way]:
    """The rungs from the foot up; a saving that this device or the options have not is left out."""
    rungs, tops = ladder()
    trained = {rung.technique.name: _strongest(model, rung.technique) for rung in rungs if rung.technique.weights}
    setting = bundled.setting(arguments)
    for weights in trained.values():
        setting = replace(setting, options=setting.options.replace(guidance=weights.equivalent_guidance))
    yield Way(f"{arguments.steps} steps, guidance {setting.options['guidance']:.2g}", setting)
    for rung in rungs:
        used = _technique(rung, model, trained.get(rung.technique.name), arguments)
        if used is not None:
            setting = setting.with_technique(used)
            yield Way(rung.title.format(**used.knobs), setting)
    for top in tops:
        if top.technique.name == arguments.cache:
            value = top.default if arguments.threshold is None else arguments.threshold
            yield _on_top(top, value, model, setting, arguments)


def _technique(
    rung: Rung, model: FlowSpeech, weights: WeightSet | None, arguments: argparse.Namespace
) -> UsedTechnique | None:
    """Technique that a step uses: trained weights, or the option's value; ``None`` if nothing."""
    of = rung.technique
    if weights is not None and of.weights is not None:
        # The titles of weights have two digits.
        knobs = {name: round(float(str(value)), 2) for name, value in of.weights.knobs_of(weights).items()}
        return UsedTechnique(of.name, Values(knobs), weights.fingerprint)
    value = getattr(arguments, rung.option)
    if value is None:
        value = next((one for one in rung.preferred if one in model.info.precisions), rung.without)
    return None if value == rung.without else UsedTechnique(of.name, Values({rung.knob: value}))


def _strongest(model: FlowSpeech, of: Technique) -> WeightSet:
    """The weights that replace the strongest guidance."""
    assert of.weights is not None
    there = [one for one in of.weights.all_of(model.info) if isinstance(one, WeightSet)]
    if not there:
        commands = (import_module(one).NAME for one in of.commands)
        train = next((f" (paretone {one})" for one in commands if one.startswith("train ")), "")
        raise PlainError(f"{model.info.title} has no {of.title} weights; train some{train}, then run this again.")
    return max(there, key=lambda one: one.weight)


def _on_top(top: Top, value: float, model: FlowSpeech, setting: Setting, arguments: argparse.Namespace) -> Way:
    """A cache on top of the others, prepared on the grid and the weights that run, if it has to be."""
    used, name = UsedTechnique(top.technique.name, Values({top.knob: value})), top.technique.name
    title = top.title.format(**used.knobs)
    if top.technique.artefact is None:
        return Way(title, setting.with_technique(used))
    bundled.say(f"calibrating at {top.knob} {value:g} …")
    utterance = Utterance(arguments.text, bundled.speaker(arguments))
    artefact = preparer(name)(model, [utterance], setting.with_technique(used), SilentObserver())
    return Way(title, setting.with_technique(replace(used, artefact=artefact.fingerprint)), (artefact,))


# --- Measured ---------------------------------------------------------------------------------------------------------
def _rungs(
    ladder: Sequence[Way], heard: Mapping[str, Sequence[VoiceVerdict]], sampled: PairedTimes, spoken: PairedTimes
) -> Iterator[dict[str, object]]:
    foot = heard[ladder[0].title]
    for below, rung in zip((None, *ladder), ladder, strict=False):
        said = heard[rung.title]
        errors = counted_errors(said)
        row: dict[str, object] = {"rung": rung.title, **errors}
        row["ops ratio"] = float(np.mean([one.measurements.ops_ratio for each in said for one in each.syntheses]))
        if below is None:
            yield {**row, "step factor": 1.0, "product": 1.0, "pipeline": 1.0, "log-mel distance": 0.0}
            continue
        own = np.array(sampled.seconds[below.title]) / np.array(sampled.seconds[rung.title])
        product = sampled.speed_up[rung.title]
        more = errors["word error rate"] - counted_errors(foot)["word error rate"]
        yield {
            **row,
            "step factor": interval(own.tolist()).median,
            "product": product.median,
            "low": product.low,
            "high": product.high,
            "pipeline": spoken.speed_up[rung.title].median,
            "log-mel distance": float(each_distance(foot, said).mean()),
            "within 2 points": "yes" if more <= WORD_ERRORS else "no",
        }
