"""``paretone roofline``: cost, lower time bound and measured time of each component of a model."""

from __future__ import annotations

import argparse
import math

from paretone import files
from paretone.bench.report import table
from paretone.commands import arguments
from paretone.commands.command import Result
from paretone.commands.output import apart, writable
from paretone.commands.speak import declare_setting, prepared
from paretone.commands.terminal import JOB, Session
from paretone.errors import SettingError
from paretone.measure.roofline import ceilings as store
from paretone.measure.roofline import published
from paretone.measure.roofline.report import TITLES, Phase, RooflineReport, shares
from paretone.models.base import Utterance
from paretone.session.commands import MeasureRoofline
from paretone.wording import grouped, percent, times

NAME = "roofline"
SUMMARY = "Measure the time of each component against the least time that this machine needs for it."


def declare(parser: argparse.ArgumentParser) -> None:
    declare_setting(parser)
    arguments.add_text(parser)
    group = parser.add_argument_group("roofline")
    group.add_argument(
        "--setting",
        action="append",
        default=[],
        metavar="SETTING",
        help="profile (.json), or a technique as in --technique; repeat for more",
    )
    group.add_argument("--compare", action="store_true", help="also measure the setting without its techniques")
    group.add_argument("--again", action="store_true", help="measure this machine's ceilings again")
    group.add_argument(
        "--card",
        metavar="NAME",
        help="on paper: count the components, and give their floors on another card, such as h100, a100 or rtx-4090; "
        "nothing is measured",
    )
    group.add_argument("--rounds", type=arguments.positive, default=5, help="measurement rounds (default: %(default)s)")
    group.add_argument("--trace", metavar="FILE", help="write one forward of every phase as a Chrome trace (JSON)")
    group.add_argument("--csv", metavar="FILE", help="write the table as CSV")
    group.add_argument(
        "--published",
        action="store_true",
        help="print the roofline post's table for OmniVoice on an H100 instead; computed, not measured",
    )


def run(options: argparse.Namespace, session: Session) -> Result:
    trace, csv = (None if one is None else writable(one) for one in (options.trace, options.csv))
    apart({"--trace": trace, "--csv": csv}, {"--profile": options.profile, "--text-file": options.text_file})
    card = store.card(options.card) if options.card else None
    if card is not None and options.again:
        raise SettingError("--again measures this machine, and --card is on paper: give one of them.")
    if options.published:
        report = published.report(card or published.CEILINGS)
        if csv is not None:
            files.write(csv, report.to_csv().encode())
        return Result(report.to_json(), "\n".join([*_shown(report), *_published()]))
    for one in options.setting:
        if not one.endswith(".json"):
            options.technique = [*options.technique, one]
        elif options.profile:
            raise SettingError("Give only one profile: one setting is measured.")
        else:
            options.profile = one
    spoken, _ = prepared(options, session, arguments.text(options))
    utterance, setting = Utterance(spoken.text, spoken.voice), spoken.setting
    measuring = MeasureRoofline(
        JOB, utterance, setting, spoken.artefacts, options.again, options.rounds, str(trace or ""), options.card or ""
    )
    report = session.carry_out(measuring).report
    data, lines = report.to_json(), _shown(report)
    if options.compare and setting.techniques:
        plain = MeasureRoofline(JOB, utterance, setting.baseline, rounds=options.rounds, card=options.card or "")
        before = session.carry_out(plain).report
        data["baseline"] = before.to_json()
        lines += ["", "Without techniques, and with them:", *waterfall(before, report)]
    if csv is not None:
        files.write(csv, report.to_csv().encode())
    lines += [f"Wrote {path}." for path in (trace, csv) if path is not None]
    return Result(data, "\n".join(lines))


def waterfall(before: RooflineReport, after: RooflineReport) -> list[str]:
    """Table of each component's time before and after, all phases together."""
    one, two = before.by_component(), after.by_component()
    rows = [
        {
            "component": TITLES[name],
            "before, ms": _milliseconds(one.get(name)),
            "after, ms": _milliseconds(two.get(name)),
            "change, ms": _milliseconds(two.get(name, 0.0) - one.get(name, 0.0)),
        }
        for name in TITLES
        if name in one or name in two
    ]
    ratio = before.total / after.total if after.total else math.nan
    floors = "" if after.measured else " by their floors"
    total = f"Together {before.total * 1e3:.1f} → {after.total * 1e3:.1f} ms, {times(ratio)} as fast{floors}."
    return [*table(rows), total]


def _shown(report: RooflineReport) -> list[str]:
    ceilings = report.ceilings
    spoken = f" “{report.text}”" if report.text else ""
    lines = [f"{report.title}:{spoken} {report.audio_seconds:.1f} s of audio.", f"{ceilings.device}; {ceilings.clock}."]
    lines += [
        f"Ceilings in {precision}: {grouped(ceilings.operations_of(precision) / 1e9)} GFLOP/s, "
        f"{grouped(ceilings.bytes_of(precision) / 1e9, 1)} GB/s, ridge at {ceilings.ridge(precision):.1f} FLOP/B."
        for precision in ceilings.operations
    ]
    if ceilings.stated:
        lines.append(f"Ceilings as stated: {ceilings.stated}.")
    graphed = ceilings.graph_launch_seconds
    within = "" if graphed is None else f"; within a CUDA graph {graphed * 1e6:.2f} µs"
    lines.append(f"A launch takes {ceilings.launch_seconds * 1e6:.2f} µs{within}.")
    for phase in report.phases:
        lines += ["", _headline(phase), *table(_rows(report, phase))]
    lines += ["", _summary(report), *_below(report), *report.notes]
    return lines


def _headline(phase: Phase) -> str:
    measured = "" if phase.whole_seconds is None else f", {phase.whole_seconds * 1e3:.3g} ms each"
    layers = f" ({phase.launches_by_layer})" if phase.launches_by_layer else ""
    graph = ", as a CUDA graph" if phase.graphed else ""
    launches = f", {grouped(phase.launches)} launches each{layers}{graph}"
    return f"{phase.title}: {phase.forwards:g} × ({phase.shape}){measured}{launches}"


def _rows(report: RooflineReport, phase: Phase) -> list[dict[str, object]]:
    ceilings = report.ceilings
    return [
        {
            "component": one.title,
            "calls": round(one.calls, 1),
            "MFLOP": _rounded(one.work.operations / 1e6),
            "MB": _rounded(one.work.bytes / 1e6),
            "launches": round(one.launches, 1),
            "floor, ms": _milliseconds(one.floor(ceilings)),
            "launching, ms": _milliseconds(one.calls * ceilings.launching(one.launches, phase.graphed)),
            "measured, ms": _milliseconds(one.total_seconds),
            "ratio": None if (ratio := one.ratio(ceilings)) is None else round(ratio, 2),
            "bound by": phase.bound(one, ceilings),
            "in": one.precision,
        }
        for one in phase.rows()
    ]


def _summary(report: RooflineReport) -> str:
    floor = f"The floor is {report.floor * 1e3:.1f} ms; {grouped(report.launches)} launches"
    if not report.measured:
        return f"{floor} take {report.ceilings.launching(report.launches) * 1e3:.0f} ms alone."
    bounds = ", ".join(f"{name} {percent(share)}" for name, share in shares(report).items() if share >= 0.005)
    noise = " The rest is within noise." if report.rest_is_noise else ""
    return (
        f"{floor}. Measured: {report.measured * 1e3:.1f} ms, {report.measured / report.floor:.2f} times the floor. "
        f"Bound by {bounds}.{noise}"
    )


def _below(report: RooflineReport) -> list[str]:
    """Sentences on components faster than their floors, one per reason."""
    found: dict[str, list[str]] = {}
    for _, one in report.components():
        if why := one.why_below_floor(report.ceilings):
            found.setdefault(why, []).append(f"{one.title} ({one.ratio(report.ceilings):.2f})")
    return [f"Below the floor: {', '.join(dict.fromkeys(names))}: {why}." for why, names in found.items()]


def _published() -> list[str]:
    measured = published.MEASURED
    rows = [
        {"component": TITLES[name]}
        | {f"measured in {precision}, ms": _milliseconds(values.get(name)) for precision, values in measured.items()}
        for name in TITLES
        if any(name in values for values in measured.values())
    ]
    return ["", "Measurements of the post, with a profiler (its attention includes the projections):", *table(rows)]


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else _rounded(seconds * 1e3)


def _rounded(value: float) -> float:
    """Round to four digits, for narrow columns."""
    return float(f"{value:.4g}")
