"""The product of all savings: each added in turn, paired against many steps under guidance on the same machine.

The ladders are those of ``resources/benches/stacked.toml``: step pruning, CFG-free weights and fewer bits, or average
velocity and fewer bits, with a cache on top. Each stands on many steps under the guidance that its weights include. At
every rung: what it adds, the product so far on the clock, of the backbone and of the whole take with the vocoder, the
judges' figures and whether they pass, and the log-mel distance from the same noise.

A default run ends within five minutes on two cores and hears as many sentences as fit into that, none of them the one
that the cache was calibrated on. For figures to quote, give it time for all of them: ``--minutes 20``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from paretone.bench import bundled, qualities
from paretone.bench.budget import Budget
from paretone.bench.ladders import NAME, NO_CACHE, Climb, Ladder, climb, ladders
from paretone.bench.qualities import LIMITS, compared, headline, judged, listened, target
from paretone.bench.report import Report
from paretone.bench.voices import Panel
from paretone.commands.arguments import finite, positive
from paretone.errors import PlainError
from paretone.measure.limits import Judgement
from paretone.measure.machine import describe
from paretone.measure.timing import Interval, PairedTimes, interval
from paretone.measure.verdicts import Way
from paretone.models.families.flow import FlowSpeech
from paretone.models.kernels.split_products import has_amx
from paretone.speaking import make_ready, scripted, synthesise

BEST, EVERY = "best", "every"
"""Ladders by the model: the first that it has weights for, or all of these."""
TIMED = 0.25
"""Share of what is left of a ladder's time for the rounds of the backbone, and then for those of whole takes."""
TARGETS = {True: 50.0, False: 30.0}
"""The product that is aimed at, with AMX or a GPU and without."""
DEFINITION = (
    "Time of backbone and sampler without savings (guided, full number of steps, float32) over that of the fastest "
    f"rung that passes against as many steps under the guidance that its weights include: {LIMITS}. If none passes, it "
    "is that of the fastest undecided rung, else of the fastest. Median of paired, interleaved rounds on one sentence: "
    "a measured ratio, not a product of claimed ones. A rung counts if it is faster than the one below it."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this bench."""
    known = ladders()
    tops = known[0].tops
    caches = [*(top.technique.name for top in tops), NO_CACHE]
    precisions = next((rung.choices for one in known for rung in one.rungs if rung.option == "precision"), ())
    bundled.add_arguments(parser, steps=32, rounds=5)
    parser.add_argument(
        "--ladder",
        choices=[*(one.name for one in known), BEST, EVERY],
        default=BEST,
        help="which savings are stacked; best: the first of these that the model has weights for; every: all of them "
        "(default: %(default)s)",
    )
    parser.add_argument("--pruned", type=positive, default=7, help="steps after pruning (default: %(default)s)")
    parser.add_argument(
        "--evaluations", type=positive, default=1, help="evaluations by average velocity (default: %(default)s)"
    )
    parser.add_argument("--precision", choices=precisions, help="precision (default: what the device offers)")
    parser.add_argument(
        "--cache", choices=caches, default=caches[0], help="module-skipping technique (default: %(default)s)"
    )
    usual = ", ".join(f"{top.default:g} of {top.technique.name}" for top in tops)
    parser.add_argument(
        "--threshold", type=finite, help=f"threshold of the module-skipping technique (default: {usual})"
    )
    qualities.add_arguments(parser, sentences=10)


def run(arguments: argparse.Namespace) -> Report:
    """Climb the ladders: time all rungs of one in the same rounds, then let the judges listen."""
    budget = Budget(arguments.minutes, arguments.rounds)
    texts, speakers = qualities.heard(arguments, [arguments.text])
    model = bundled.loaded_flow(arguments)
    climbs = [climb(one, model, arguments) for one in _chosen(model, arguments.ladder)]
    panel = Panel(texts, speakers)
    rows: list[dict[str, object]] = []
    found: list[tuple[Interval, Judgement]] = []
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
    machine = describe().to_json()
    return Report(NAME, best.median, (best.low, best.high), definition, tuple(rows), machine, verdict)


def _chosen(model: FlowSpeech, name: str) -> Sequence[Ladder]:
    """The ladder called ``name``, or those that ``model`` can climb. Raises :class:`PlainError` if there is none."""
    known = ladders()
    if name not in (BEST, EVERY):
        return [one for one in known if one.name == name]
    reasons = {one: one.why_not(model) for one in known}
    if all(reasons.values()):
        raise PlainError(" ".join(dict.fromkeys(reasons.values())))
    possible = [one for one, reason in reasons.items() if not reason]
    return possible[:1] if name == BEST else possible


def _climbed(
    chosen: Climb, model: FlowSpeech, panel: Panel, arguments: argparse.Namespace, budget: Budget
) -> tuple[list[dict[str, object]], list[tuple[Interval, Judgement]], str]:
    """Rows of the rungs; speed-up and judgement of those that are faster than the one below (of the highest, if none
    is); how much was heard."""
    for rung in chosen.ways:
        make_ready(model, rung.setting, bundled.speaker(arguments))
    sampled, whole = _timed(chosen, model, arguments, budget)
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


def _timed(
    chosen: Climb, model: FlowSpeech, arguments: argparse.Namespace, budget: Budget
) -> tuple[PairedTimes, PairedTimes]:
    """Backbone and sampler of every rung, and its whole takes."""
    voice = bundled.speaker(arguments)
    backbone = {
        one.title: model.sampling(scripted(model, arguments.text, voice, one.setting, one.artefacts))
        for one in chosen.ways
    }
    device = model.info.device_type or "cpu"

    def take(way: Way) -> Callable[[], object]:
        return lambda: synthesise(model, arguments.text, voice, way.setting, way.artefacts)

    def timed(variants: Mapping[str, Callable[[], object]], what: str) -> PairedTimes:
        return bundled.timed(variants, device, arguments, f"{chosen.ladder}, {what}", budget=budget, share=TIMED)

    sampled = timed(backbone, "backbone")
    return sampled, timed({one.title: take(one) for one in chosen.ways}, "whole take")


def _times(below: Way | None, rung: Way, sampled: PairedTimes, whole: PairedTimes) -> dict[str, object]:
    """Columns of times; the first rung is what others are compared with."""
    if below is None:
        return {"step factor": 1.0, "backbone": 1.0, "low": 1.0, "high": 1.0, "whole take": 1.0}
    product, take = sampled.speed_up[rung.title], whole.speed_up[rung.title]
    return {
        "step factor": _step(below, rung, sampled).median,
        "backbone": product.median,
        "low": product.low,
        "high": product.high,
        "whole take": take.median,
    }


def _step(below: Way, rung: Way, sampled: PairedTimes) -> Interval:
    """What a rung adds on the clock."""
    ratios = np.array(sampled.seconds[below.title]) / np.array(sampled.seconds[rung.title])
    return interval(ratios.tolist())
