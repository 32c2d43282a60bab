"""The fewest evaluations that speak as well and as variedly as 32 guided steps: backbone time, words, variety, voice.

Average velocity in one to four evaluations, the model itself in few Euler steps, and its rivals, from the same noise. A
model in one step speaks the average reading: its words are clear and it sounds natural, but every seed sounds alike. So
what passes has to keep the spread over seeds, the pitch range and the likeness to the prompt as well.

A default run ends within five minutes on two cores and hears as many sentences as fit into that. For figures to quote,
give it time for all of them: ``--minutes 60``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import replace

from paretone.bench import bundled, qualities
from paretone.bench.budget import Budget
from paretone.bench.bundled import used
from paretone.bench.qualities import LIMITS, Spoken, compared, headline, judged, listened, spoken, target
from paretone.bench.report import Report
from paretone.bench.voices import Panel
from paretone.errors import PlainError
from paretone.measure.timing import Interval, PairedTimes
from paretone.measure.verdicts import Way
from paretone.models.base import IntervalWeights
from paretone.models.catalogue import entry
from paretone.models.families.flow import FlowSpeech
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques.average_velocity import NAME as TECHNIQUE
from paretone.techniques.resolving import resolve
from paretone.wording import counted

NAME = "few-evaluations"
BASELINE, GUIDED = "baseline", "guided steps"
TARGET, NARROW_TARGET = 32.0, 50.0
"""Target speed-ups in float32 and with --precision."""
TIMED = 0.35
"""Share of the budget for timed rounds."""
DEFINITION = (
    "CPU time of the backbone in guided steps over that of the fewest evaluations that pass against as many steps "
    f"under the guidance that the weights include: {LIMITS}. If none passes, it is that of the fewest that are "
    "undecided, else of the fewest. Without --precision's rows; median of paired, interleaved rounds."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    bundled.add_arguments(parser, steps=32, rounds=7)
    qualities.add_arguments(parser, sentences=30)
    parser.add_argument("--weights", default="", help="file of the weights, or start of its SHA-256 (default: first)")
    parser.add_argument("--precision", default="", help="also run average velocity in this precision")


def run(arguments: argparse.Namespace) -> Report:
    """Time every method against the baseline in the same rounds, then run the judges."""
    budget = Budget(arguments.minutes, arguments.rounds)
    texts, speakers = qualities.heard(arguments)
    model = bundled.loaded_flow(arguments)
    weights = _weights(model, arguments.weights)
    usual = _with_options(bundled.setting(arguments), {"spacing": "uniform"})
    baseline = _with_options(usual, weights.guidance)
    ways = {BASELINE: baseline}
    if resolve(model.info, baseline).branches == 1:  # Weights without guidance save the usual guidance.
        ways = {GUIDED: usual, **ways}
    ways |= dict(_ways(model, baseline, weights, arguments.precision))
    spoken_ways = [Way(title, setting) for title, setting in ways.items()]
    times = bundled.timed_sampling(model, spoken_ways, arguments, budget=budget, share=TIMED)
    panel = Panel(texts, speakers)
    takes = spoken(spoken_ways, model, panel, arguments.seeds, budget)
    rows = [_row(title, ways[title], takes[title], takes[BASELINE], model, times) for title in ways]
    rows.append({"speech": f"{times.baseline}, again (A/A)", "backbone speed-up": times.same.median})
    best, verdict = _headline(takes, times, weights)
    said = [DEFINITION, target(best, verdict, TARGET, "in float32")]
    if narrow := arguments.precision:
        said.append(target(*_headline(takes, times, weights, narrow), NARROW_TARGET, f"in {narrow}"))
    return Report.of(NAME, best, " ".join([*said, listened(takes, panel)]), rows, verdict)


def few(setting: Setting, evaluations: int, weights: IntervalWeights) -> Setting:
    return setting.with_technique(UsedTechnique(TECHNIQUE, Values(evaluations=evaluations), weights.fingerprint))


def _weights(model: FlowSpeech, typed: str) -> IntervalWeights:
    """The weights named ``typed``, or the first. Raises :class:`PlainError` if there are none."""
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
    """All methods but the baseline that the model can run, by title."""
    numbers = range(1, weights.evaluations + 1)
    offered = [(_title(number), few(baseline, number, weights)) for number in numbers]
    if precision:
        narrow = used("precision", precision=precision)
        offered += [(f"{title}, {precision}", setting.with_technique(narrow)) for title, setting in offered]
    for title, setting in (*offered, *rivals(baseline)):
        try:
            resolve(model.info, setting)
        except PlainError as error:
            bundled.say(f"{title} is left out: {error}")
        else:
            yield title, setting


def rivals(baseline: Setting) -> Iterator[tuple[str, Setting]]:
    """Other methods with as few evaluations, by title."""
    euler = {steps: _with_options(baseline, {"steps": steps, "spacing": "uniform"}) for steps in (1, 2, 4)}
    for steps, plain in euler.items():
        yield f"Euler, {counted(steps, 'step', 'steps')}", plain
    for steps in (5, 7):
        yield f"step pruning, {steps} steps", baseline.with_technique(used("steps", steps=steps))
    # One branch and the same number of evaluations. The weights must include the baseline's guidance, which 0.5 does
    # for 1.
    for steps, plain in euler.items():
        title = f"CFG-free, {counted(steps, 'evaluation', 'evaluations')}"
        yield title, plain.with_technique(used("guidance_free", weight=0.5))


def _with_options(baseline: Setting, options: Mapping[str, object]) -> Setting:
    changed = baseline.options.replace(**options)
    return replace(baseline, options=entry(baseline.model).options_with(**changed))


def _title(evaluations: int) -> str:
    return f"average velocity, {counted(evaluations, 'evaluation', 'evaluations')}"


def _row(
    title: str, setting: Setting, takes: Spoken, baseline: Spoken, model: FlowSpeech, times: PairedTimes
) -> dict[str, object]:
    plan = resolve(model.info, setting)
    row: dict[str, object] = {
        "speech": title,
        "evaluations": plan.options["steps"],
        "branches": plan.branches,
        "takes": len(takes.heard),
        **takes.figures,
    }
    if takes is not baseline:
        row |= compared(takes, baseline)
    if title != times.baseline:
        row["backbone speed-up"] = times.speed_up[title].median
    return row


def _headline(
    takes: Mapping[str, Spoken], times: PairedTimes, weights: IntervalWeights, precision: str = ""
) -> tuple[Interval, str]:
    """Speed-up of the fewest evaluations that pass, as :func:`paretone.bench.qualities.headline`, and verdict."""
    titles = [_title(number) for number in range(1, weights.evaluations + 1)]
    if precision:
        titles = [f"{one}, {precision}" for one in titles]
    found = [(times.speed_up[one], judged(takes[one], takes[BASELINE])) for one in titles if one in takes]
    return headline(found)
