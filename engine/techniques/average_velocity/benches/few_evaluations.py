"""The fewest evaluations that speak as well and as variedly as 32 guided steps: backbone time, words, variety, voice.

Average velocity in one to four evaluations, the model itself in few Euler steps, and the rivals that
``resources/benches/few-evaluations.toml`` names, from the same noise. A model in one step speaks the average reading:
its words are clear and it sounds natural, but every seed sounds alike. So what passes has to keep the spread over
seeds, the pitch range and the likeness to the prompt as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.bench import bundled
from engine.bench.report import Report
from engine.bench.voices import Heard, Panel
from engine.bench.ways import read
from engine.errors import PlainError, SettingError
from engine.measure.fidelity import log_mel_distance
from engine.measure.machine import describe
from engine.measure.melody import diversity
from engine.measure.timing import Interval, PairedTimes
from engine.models.base import IntervalWeights, run_to_completion
from engine.models.catalogue import entry
from engine.models.families.flow import FlowSpeech
from engine.models.silent_observer import SilentObserver
from engine.setting.knobs import Values
from engine.setting.setting import Setting, UsedTechnique
from engine.techniques.average_velocity import NAME as TECHNIQUE
from engine.techniques.resolving import resolve

NAME = "few-evaluations"
BASELINE, GUIDED = "baseline", "guided steps"
WORDS, NATURALNESS, SPREAD, RANGE, LIKENESS = 0.01, 0.15, 0.85, 0.9, 0.02
"""What may be lost: word error rate, predicted naturalness, similarity to the prompt; and the shares that are to be
kept of the spread over seeds and of the pitch range."""
DEFINITION = (
    "CPU time of the backbone in guided steps over that of the fewest evaluations that pass against as many steps "
    f"under the guidance that the weights include: word error rate within {WORDS:.0%}, predicted naturalness within "
    f"{NATURALNESS}, at least {SPREAD:.0%} of the spread of log f0 over seeds, {RANGE:.0%} of the pitch range, "
    f"similarity to the prompt within {LIKENESS}. Without --precision's rows; median of paired, interleaved rounds; 0 "
    "if nothing passes."
)


@dataclass(frozen=True)
class Spoken:
    """One way of speaking, by sentence and seed."""

    heard: Mapping[tuple[int, int], Heard]
    mels: Mapping[tuple[int, int], np.ndarray]
    """What the model drew, (frames, bands)."""

    @property
    def figures(self) -> dict[str, float | None]:
        """Means over the takes; the spread is one over the seeds of each sentence, ``None`` with one seed."""
        takes = list(self.heard.values())
        sentences = sorted({sentence for sentence, _ in self.heard})
        curves = [[one.curve for (other, _), one in self.heard.items() if other == at] for at in sentences]
        spreads = [found for some in curves if (found := diversity(some)) is not None]
        return {
            "word error rate": sum(one.edits for one in takes) / sum(one.words for one in takes),
            "naturalness": float(np.mean([one.naturalness for one in takes])),
            "spread over seeds": float(np.mean(spreads)) if spreads else None,
            "pitch range": float(np.nanmean([one.spread for one in takes])),
            "similarity": float(np.mean([one.own for one in takes])),
        }


def failing(figures: Mapping[str, float | None], baseline: Mapping[str, float | None]) -> tuple[str, ...]:
    """The names of the figures that fall too far behind those of the ``baseline``."""
    floors = {
        "naturalness": _of(baseline, "naturalness") - NATURALNESS,
        "spread over seeds": SPREAD * _of(baseline, "spread over seeds"),
        "pitch range": RANGE * _of(baseline, "pitch range"),
        "similarity": _of(baseline, "similarity") - LIKENESS,
    }
    failed = [name for name, floor in floors.items() if not _of(figures, name) >= floor]
    if not _of(figures, "word error rate") <= _of(baseline, "word error rate") + WORDS:
        failed.insert(0, "word error rate")
    return tuple(failed)


def _of(figures: Mapping[str, float | None], name: str) -> float:
    """A figure; NaN, with which nothing passes, if it was not measured."""
    value = figures[name]
    return float("nan") if value is None else value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this bench."""
    bundled.add_arguments(parser, steps=32, rounds=7)
    bundled.add_listening_arguments(parser, sentences=30, least=2, spoken="in the voices in turn")
    parser.set_defaults(voices=5)
    parser.add_argument("--seeds", type=int, default=3, help="takes of each sentence, two at least (default: 3)")
    parser.add_argument(
        "--weights", default="", help="file of the weights, or beginning of its SHA-256 (default: first)"
    )
    parser.add_argument("--precision", default="", help="also run average velocity in this precision")


def run(arguments: argparse.Namespace) -> Report:
    """Time every way against the baseline in the same rounds, then let the judges listen."""
    if arguments.seeds < 2:
        raise SettingError("--seeds must be at least 2: the spread over seeds is what few steps lose.")
    texts, speakers = bundled.heard_sentences(arguments), bundled.heard_voices(arguments)
    model = bundled.loaded_flow(arguments)
    weights = _weights(model, arguments.weights)
    usual = _with_options(bundled.setting(arguments), {"spacing": "uniform"})
    baseline = _with_options(usual, weights.guidance)
    ways = {BASELINE: baseline}
    if resolve(model.info, baseline).branches == 1:  # Weights without guidance: what they save is the usual guidance.
        ways = {GUIDED: usual, **ways}
    ways |= dict(_ways(model, baseline, weights, arguments.precision))
    times = _timed(model, ways, arguments)
    panel = Panel(texts, speakers)
    spoken = {title: _spoken(title, model, setting, panel, arguments.seeds) for title, setting in ways.items()}
    rows = [_row(title, ways[title], spoken[title], spoken[BASELINE], model, times) for title in ways]
    rows.append({"speech": f"{times.baseline}, again (A/A)", "backbone speed-up": times.same.median})
    headline = _headline(spoken, times, range(1, weights.evaluations + 1))
    return Report(NAME, headline.median, (headline.low, headline.high), DEFINITION, tuple(rows), describe().to_json())


def few(setting: Setting, evaluations: int, weights: IntervalWeights) -> Setting:
    """``setting`` with that number of evaluations by ``weights``."""
    return setting.with_technique(UsedTechnique(TECHNIQUE, Values(evaluations=evaluations), weights.fingerprint))


def _weights(model: FlowSpeech, typed: str) -> IntervalWeights:
    """Those that are named, or the first. Raises :class:`PlainError` if there are none."""
    there = model.info.interval_weights
    for one in there:
        if not typed or one.fingerprint.startswith(typed.lower()) or typed in one.path:
            return one
    names = ", ".join(one.path for one in there) or "none"
    raise PlainError(
        f"{model.info.title} has these average-velocity weights: {names}; train others with paretone train "
        "average-velocity."
    )


def _ways(
    model: FlowSpeech, baseline: Setting, weights: IntervalWeights, precision: str
) -> Iterator[tuple[str, Setting]]:
    """All ways but the baseline that the model can speak, by title."""
    numbers = range(1, weights.evaluations + 1)
    offered = [(_title(number), few(baseline, number, weights)) for number in numbers]
    if precision:
        narrow = read(NAME).part("narrow").entry(("precision",)).with_values({"precision": precision})
        offered += [(f"{title}, {precision}", setting.with_technique(narrow)) for title, setting in offered]
    for title, setting in (*offered, *_rivals(baseline)):
        try:
            resolve(model.info, setting)
        except PlainError as error:
            bundled.say(f"{title} is left out: {error}")
        else:
            yield title, setting


def _rivals(baseline: Setting) -> Iterator[tuple[str, Setting]]:
    """What the bench's file names. Raises :class:`SettingError` for mistakes in it."""
    file = read(NAME)
    for one in file.tables("plain"):
        title, options = one.title(()), one.table("options")
        one.require_known()
        yield title, _with_options(baseline, options)
    for one in file.tables("rivals"):
        used = one.entry((), rest=True)
        title, options = one.title(()), one.table("options")
        one.require_known()
        yield title, _with_options(baseline, options).with_technique(used.with_values({}))
    file.part("narrow")
    file.require_known()


def _with_options(baseline: Setting, options: Mapping[str, object]) -> Setting:
    changed = baseline.options.replace(**options)
    return replace(baseline, options=entry(baseline.model).options_with(**changed))


def _title(evaluations: int) -> str:
    return f"average velocity, {evaluations} evaluation{'' if evaluations == 1 else 's'}"


def _timed(model: FlowSpeech, ways: Mapping[str, Setting], arguments: argparse.Namespace) -> PairedTimes:
    voice = bundled.speaker(arguments)
    variants = {title: model.sampling(arguments.text, voice, setting) for title, setting in ways.items()}
    return bundled.timed(variants, model.info.device_type or "cpu", arguments)


def _spoken(title: str, model: FlowSpeech, setting: Setting, panel: Panel, seeds: int) -> Spoken:
    bundled.say(f"{title}: {len(panel.texts)} sentences, {seeds} takes of each …")
    heard, mels = {}, {}
    for at, text in enumerate(panel.texts):
        for seed in range(seeds):
            chosen = replace(setting, seed=setting.seed + seed)
            take = run_to_completion(model.synthesise(text, panel.voice(at), chosen, (), SilentObserver()))
            heard[at, seed] = panel.hear(at, title, take.samples, take.sample_rate, seed)
            mels[at, seed] = take.trace.drawn_mel
    return Spoken(heard, mels)


def _row(
    title: str, setting: Setting, spoken: Spoken, baseline: Spoken, model: FlowSpeech, times: PairedTimes
) -> dict[str, object]:
    plan = resolve(model.info, setting)
    figures = spoken.figures
    row: dict[str, object] = {
        "speech": title,
        "evaluations": plan.options["steps"],
        "branches": plan.branches,
        **figures,
    }
    if spoken is not baseline:
        failed = failing(figures, baseline.figures)
        pairs = [log_mel_distance(baseline.mels[one], spoken.mels[one]) for one in spoken.mels]
        row |= {
            "distance": float(np.mean(pairs)),
            "passes": not failed,
            "fails by": ", ".join(failed),
        }
    if title != times.baseline:
        row["backbone speed-up"] = times.speed_up[title].median
    return row


def _headline(spoken: Mapping[str, Spoken], times: PairedTimes, numbers: Sequence[int]) -> Interval:
    """Speed-up of the fewest of these numbers of evaluations that pass; zeros if none does."""
    baseline = spoken[BASELINE].figures
    for title in map(_title, numbers):
        if title in spoken and not failing(spoken[title].figures, baseline):
            return times.speed_up[title]
    return Interval(0.0, 0.0, 0.0)
