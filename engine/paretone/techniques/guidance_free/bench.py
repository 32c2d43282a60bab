"""CFG-free weights next to the guidance that they replace: how much faster, and whether they speak as well.

For every weight w: the model under guidance w / (1 - w), its CFG-free weights in one branch, and for comparison the
model without guidance; word error rates of the same sentences, and distances of takes from the same noise. The
difference of the word error rates is paired sentence by sentence. What distance equally good takes have is seen where
the strongest guidance speaks from another noise, at another pace: frames are paired by time warping. How good they are
shows in the distance to the original speech, frames paired likewise: also of this, the difference is paired.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from paretone.bench import bundled
from paretone.bench.report import Report
from paretone.commands.arguments import finite
from paretone.errors import PlainError
from paretone.measure.estimates import bootstrap, rate
from paretone.measure.fidelity import log_mel_distance, warped_log_mel_distance
from paretone.measure.intelligibility import WordErrors
from paretone.measure.timing import Interval
from paretone.measure.verdicts import ORIGINAL, VoiceVerdict, Way, counted_errors, verdicts
from paretone.models.base import WeightSet
from paretone.models.catalogue import entry
from paretone.models.families.flow import FlowSpeech
from paretone.models.loading import load_vocoder
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques.guidance_free import NAME as TECHNIQUE
from paretone.techniques.guidance_free import SAME_WEIGHT, guided
from paretone.wording import Share

NAME = "guidance-free"
DEFINITION = (
    "CPU time of the backbone under guidance over its CPU time with CFG-free weights in one branch, median of paired, "
    "interleaved rounds; for the weights that replace the strongest guidance."
)
UNGUIDED = "no guidance"
OTHER_NOISE = "other noise"
DRAWS = 2000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    bundled.add_arguments(parser, steps=16, rounds=9)
    bundled.add_listening_arguments(parser, sentences=30, least=1)
    parser.add_argument("--weights", type=finite, nargs="+", metavar="w", help="which weights (default: all there are)")


def run(arguments: argparse.Namespace) -> Report:
    """Time every weight against guidance in the same rounds, then run the judge."""
    model = bundled.loaded_flow(arguments)
    chosen = _chosen(model, arguments.weights)
    baseline = bundled.setting(arguments)
    # Speed-up of every weight; under ``None`` that of guidance over itself.
    ways = [Way("guided", guided(baseline, chosen[-1].equivalent_guidance))]
    ways += [Way(f"{one.weight:g}", guidance_free(baseline, one)) for one in chosen]
    comparison = bundled.timed_sampling(model, ways, arguments)
    speed_up = {None: comparison.same} | {one.weight: comparison.speed_up[f"{one.weight:g}"] for one in chosen}
    rows = list(_heard(model, chosen, baseline, speed_up, arguments))
    rows.append({"speech": "guided, again (A/A)", "backbone speed-up": speed_up[None].median})
    return Report.of(NAME, speed_up[chosen[-1].weight], DEFINITION, rows)


def guidance_free(setting: Setting, weights: WeightSet) -> Setting:
    used = UsedTechnique(TECHNIQUE, Values(weight=round(weights.weight, 2)), weights.fingerprint)
    return guided(setting, weights.equivalent_guidance).with_technique(used)


def paired_difference(one: Sequence[WordErrors], other: Sequence[WordErrors]) -> tuple[float, float, float]:
    """Word error rate of ``other`` minus that of ``one``, with its 95 % bootstrap interval over the same sentences."""
    words = np.concatenate([errors.words for errors in one])
    more = np.concatenate([errors.edits for errors in other]) - np.concatenate([errors.edits for errors in one])
    return bootstrap(rate, more, words, draws=DRAWS)


def _chosen(model: FlowSpeech, wanted: Sequence[float] | None) -> list[WeightSet]:
    """Weight sets to compare, weakest first. Raises :class:`PlainError` if one is missing."""
    # Of several with the same w, take the first.
    there = list({one.weight: one for one in reversed(model.info.weight_sets)}.values())[::-1]
    if wanted is None and there:
        return there
    found = [next((one for one in there if abs(one.weight - weight) <= SAME_WEIGHT), None) for weight in wanted or ()]
    chosen = [one for one in found if one is not None]
    if not chosen or len(chosen) < len(found):
        names = ", ".join(f"{one.weight:.2f}" for one in there) or "none"
        raise PlainError(
            f"{model.info.title} has CFG-free weights for these w: {names}; train others with paretone train cfg-free."
        )
    return sorted(chosen, key=lambda one: one.weight)


def _heard(
    model: FlowSpeech,
    chosen: Sequence[WeightSet],
    baseline: Setting,
    speed_up: Mapping[float | None, Interval],
    arguments: argparse.Namespace,
) -> list[dict[str, object]]:
    """Rows of the judge's results, all voices together, and of the takes' distances from the guided ones."""
    strongest = guided(baseline, chosen[-1].equivalent_guidance)
    ways = [Way(UNGUIDED, guided(baseline, 0.0)), Way(OTHER_NOISE, replace(strongest, seed=strongest.seed + 1))]
    titles = [(f"guidance {one.equivalent_guidance:.2g}", f"CFG-free, w = {one.weight:.2f}") for one in chosen]
    for one, (with_guidance, free) in zip(chosen, titles, strict=True):
        ways.append(Way(with_guidance, guided(baseline, one.equivalent_guidance)))
        ways.append(Way(free, guidance_free(baseline, one)))
    found: dict[str, list[VoiceVerdict]] = {}
    vocoder = load_vocoder(entry(arguments.model).vocoder_folder)
    sentences = bundled.heard_sentences(arguments)
    for verdict in verdicts(sentences, bundled.heard_voices(arguments), vocoder, model, ways, bundled.say):
        found.setdefault(verdict.speech, []).append(verdict)
    rows = [_row(title, found[title]) for title in found if title not in {way.title for way in ways}]
    bundled.say("Distances to the original speech …")
    originals = [mel for verdict in found[ORIGINAL] for mel in verdict.mels]
    away: dict[str, np.ndarray] = {}
    for way in ways:
        takes = [one.trace.drawn_mel for verdict in found[way.title] for one in verdict.syntheses]
        distances = [warped_log_mel_distance(*pair) for pair in zip(takes, originals, strict=True)]
        away[way.title] = np.array(distances)
    for one, (title, free) in zip(chosen, titles, strict=True):
        rows.append({**_row(title, found[title]), "branches": 2, "distance to the original": float(away[title].mean())})
        for other, faster in ((free, {"backbone speed-up": speed_up[one.weight].median}), (UNGUIDED, {})):
            row = {**_row(other, found[other]), "branches": 1, **faster, **_compared(found[title], found[other])}
            rows.append(row | _further(away[title], away[other]))
    again = {**_row(f"{title}, {OTHER_NOISE}", found[OTHER_NOISE]), "branches": 2}
    again |= _compared(found[title], found[OTHER_NOISE])
    rows.append(again | _further(away[title], away[OTHER_NOISE]))
    return rows


def _further(reference: np.ndarray, other: np.ndarray) -> dict[str, object]:
    """Distance of takes from the original, and its excess over ``reference``'s, with the 95 % bootstrap interval."""
    mean, low, high = bootstrap(lambda drawn: drawn.mean(1), other - reference, draws=DRAWS)
    distance: dict[str, object] = {"distance to the original": float(other.mean()), "further": mean}
    return distance | {"further, low": low, "further, high": high}


def _row(title: str, heard: Sequence[VoiceVerdict]) -> dict[str, object]:
    return {"speech": title, **counted_errors(heard)}


def _compared(reference: Sequence[VoiceVerdict], other: Sequence[VoiceVerdict]) -> dict[str, object]:
    """Comparison paired with the takes of ``reference``, by sentence and voice. Frames are paired by time warping, and
    also one by one if all pairs have equal lengths: another seed speaks at another pace."""
    both = [one.errors for one in reference], [one.errors for one in other]
    more, low, high = map(Share, paired_difference(*both))
    pairs = [
        (first.trace.drawn_mel, second.trace.drawn_mel)
        for one, two in zip(reference, other, strict=True)
        for first, second in zip(one.syntheses, two.syntheses, strict=True)
    ]
    found: dict[str, object] = {"more errors per word": more, "low": low, "high": high}
    if all(len(first) == len(second) for first, second in pairs):
        found["log-mel distance"] = float(np.mean([log_mel_distance(*pair) for pair in pairs]))
    return found | {"log-mel distance, warped": float(np.mean([warped_log_mel_distance(*pair) for pair in pairs]))}
