"""The product of all savings: each added in turn, paired against many steps under guidance on the same machine.

The ladder: fewer steps, CFG-free weights, fewer bits, and over what is left DiTReducio, or another cache in its place.
The baseline is guided as strongly as the CFG-free weights replace. At every rung: what it adds and the product so far,
measured on the clock, the word error rate of an offline judge, and the log-mel distance to the baseline from the same
noise.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from engine.bench import bundled
from engine.bench.report import Report
from engine.bench.rivals import each_distance
from engine.errors import PlainError
from engine.measure.machine import describe
from engine.measure.timing import Comparison, interval, paired_ratio
from engine.measure.verdicts import Verdict, Way, verdicts
from engine.models.base import SpeechModel, Utterance, WeightSet, run_to_completion
from engine.models.catalogue import entry, harvard_sentences, voices
from engine.models.networks.vocos import Vocos
from engine.models.silent_observer import SilentObserver
from engine.setting.knobs import Values
from engine.setting.setting import Engaged, Setting
from engine.techniques import ditreducio, error_curve, guidance_free, precision, steps
from engine.techniques.ditreducio.preparation import calibrate_model

NAME = "stacked"
THRESHOLDS = {ditreducio.TECHNIQUE.name: 0.1, error_curve.NAME: 0.2}
"""The default threshold of each technique that can be on top."""
CACHES = (*THRESHOLDS, "none")
PREFERRED = ("bfloat16", "float16", "int8")
"""Which precision is taken where a device offers several."""
WORD_ERRORS = 0.02
"""By how much the word error rate may be above the baseline's."""
DEFINITION = (
    "Time of backbone and sampler at the ladder's foot (guided, full number of steps, float32) over that at its top "
    "(all savings together), median of paired, interleaved rounds on one sentence: a measured ratio, not a product of "
    "claimed ones."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this bench."""
    bundled.add_arguments(parser, steps=32, rounds=7)
    parser.add_argument("--pruned", type=int, default=7, help="steps after pruning (default: %(default)s)")
    parser.add_argument("--precision", choices=precision.PRECISIONS, help="precision (default: what the device offers)")
    parser.add_argument("--cache", choices=CACHES, default=CACHES[0], help="what skips modules (default: %(default)s)")
    usual = ", ".join(f"{value:g} of {name}" for name, value in THRESHOLDS.items())
    parser.add_argument("--threshold", type=float, help=f"threshold of what skips modules (default: {usual})")
    parser.add_argument("--sentences", type=int, default=10, help="how many of the 30 Harvard sentences (default: 10)")


def run(arguments: argparse.Namespace) -> Report:
    """Climb the ladder: time all rungs in the same rounds, then let the judge listen."""
    model = bundled.loaded(arguments)
    ladder = list(_ladder(model, arguments))
    for rung in ladder:
        model.make_ready(rung.setting, SilentObserver(), bundled.speaker(arguments))
    voice = bundled.speaker(arguments)
    backbone = {one.title: model.sampling(arguments.text, voice, one.setting, one.artefacts) for one in ladder}
    device = backbone[ladder[-1].title]().device.type

    def pipeline(way: Way) -> Callable[[], object]:
        return lambda: run_to_completion(
            model.synthesise(arguments.text, voice, way.setting, way.artefacts, SilentObserver())
        )

    sampled = _timed("backbone", backbone, device, arguments)
    spoken = _timed("whole pipeline", {one.title: pipeline(one) for one in ladder}, device, arguments)
    heard: dict[str, list[Verdict]] = {}
    vocoder = Vocos.load(entry(arguments.model).vocoder_folder)
    sentences = harvard_sentences()[: arguments.sentences]
    for verdict in verdicts(sentences, voices(), vocoder, model, ladder, bundled.say):
        heard.setdefault(verdict.speech, []).append(verdict)
    rows = [_heard(title, said) for title, said in heard.items() if title not in backbone]
    rows += list(_rungs(ladder, heard, sampled, spoken))
    rows.append({"rung": "foot, again (A/A)", "product": sampled.same.median, "pipeline": spoken.same.median})
    top = sampled.speed_up[ladder[-1].title]
    return Report(NAME, top.median, (top.low, top.high), DEFINITION, tuple(rows), describe().to_json())


# --- Rungs ------------------------------------------------------------------------------------------------------------
def _ladder(model: SpeechModel, arguments: argparse.Namespace) -> Iterator[Way]:
    """The rungs from the foot up; a saving that this device or the options have not is left out."""
    weights = _weights(model)
    setting = bundled.setting(arguments)
    setting = replace(setting, options=setting.options.replace(guidance=weights.equivalent_guidance))
    yield Way(f"{arguments.steps} steps, guidance {weights.equivalent_guidance:.2g}", setting)
    setting = setting.with_technique(Engaged(steps.TECHNIQUE.name, Values(steps=arguments.pruned)))
    yield Way(f"+ {arguments.pruned} steps", setting)
    engaged = Engaged(guidance_free.NAME, Values(weight=round(weights.weight, 2)), weights.fingerprint)
    setting = setting.with_technique(engaged)
    yield Way(f"+ CFG-free, w = {weights.weight:.2f}", setting)
    offered = (one for one in PREFERRED if one in model.info.precisions)
    chosen = arguments.precision or next(offered, "float32")
    if chosen != "float32":
        setting = setting.with_technique(Engaged(precision.NAME, Values(precision=chosen)))
        yield Way(f"+ {chosen}", setting)
    threshold = THRESHOLDS.get(arguments.cache) if arguments.threshold is None else arguments.threshold
    if arguments.cache == error_curve.NAME:
        engaged = Engaged(error_curve.NAME, Values(threshold=threshold))
        yield Way(f"+ error-curve cache, α = {threshold:g}", setting.with_technique(engaged))
    elif arguments.cache == ditreducio.TECHNIQUE.name:
        yield _calibrated(model, setting, threshold, arguments)


def _weights(model: SpeechModel) -> WeightSet:
    """The CFG-free weights that replace the strongest guidance."""
    if not model.info.weight_sets:
        raise PlainError(
            f"{model.info.title} has no CFG-free weights; train some (paretone train cfg-free), then run this again."
        )
    return max(model.info.weight_sets, key=lambda one: one.weight)


def _calibrated(model: SpeechModel, setting: Setting, threshold: float, arguments: argparse.Namespace) -> Way:
    """DiTReducio on top of the others, calibrated on the grid and the weights that run."""
    bundled.say(f"calibrating at threshold {threshold:g} …")
    engaged = Engaged(ditreducio.TECHNIQUE.name, Values(threshold=threshold))
    utterance = Utterance(arguments.text, bundled.speaker(arguments))
    table = calibrate_model(model, [utterance], setting.with_technique(engaged), SilentObserver()).table
    title = f"+ DiTReducio, δ = {threshold:g}"
    return Way(title, setting.with_technique(replace(engaged, artefact=table.fingerprint)), (table,))


# --- Measured ---------------------------------------------------------------------------------------------------------
def _timed(
    what: str, variants: Mapping[str, Callable[[], object]], device: str, arguments: argparse.Namespace
) -> Comparison:
    bundled.say(f"{what}: {arguments.rounds} rounds of each …")
    return paired_ratio(
        variants,
        arguments.rounds,
        device=device,
        on_round=lambda done: bundled.say(f"round {done} of {arguments.rounds}"),
    )


def _rungs(
    ladder: Sequence[Way], heard: Mapping[str, Sequence[Verdict]], sampled: Comparison, spoken: Comparison
) -> Iterator[dict[str, object]]:
    foot = heard[ladder[0].title]
    for below, rung in zip((None, *ladder), ladder, strict=False):
        said = heard[rung.title]
        row = _heard(rung.title, said)
        row["ops ratio"] = float(np.mean([one.measurements.ops_ratio for each in said for one in each.syntheses]))
        if below is None:
            yield {**row, "own factor": 1.0, "product": 1.0, "pipeline": 1.0, "log-mel distance": 0.0}
            continue
        own = np.array(sampled.seconds[below.title]) / np.array(sampled.seconds[rung.title])
        product = sampled.speed_up[rung.title]
        more = row["word error rate"] - _heard(ladder[0].title, foot)["word error rate"]
        yield {
            **row,
            "own factor": interval(own.tolist()).median,
            "product": product.median,
            "low": product.low,
            "high": product.high,
            "pipeline": spoken.speed_up[rung.title].median,
            "log-mel distance": float(each_distance(foot, said).mean()),
            "within 2 points": "yes" if more <= WORD_ERRORS else "no",
        }


def _heard(title: str, said: Sequence[Verdict]) -> dict[str, object]:
    """Word errors, both voices together."""
    edits, words = (sum(sum(getattr(one.errors, name)) for one in said) for name in ("edits", "words"))
    return {"rung": title, "word error rate": edits / words, "errors": edits, "words": words}
