"""``paretone calibrate``: calibrate DiTReducio's strategy tables at one or several thresholds, with evidence."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from paretone.bench.report import table as table_lines
from paretone.commands import arguments
from paretone.commands.command import Result
from paretone.commands.output import apart, writable, write_json
from paretone.commands.technique_args import with_weights
from paretone.commands.terminal import JOB, Session, Terminal
from paretone.errors import SettingError
from paretone.measure.fidelity import log_mel_distance
from paretone.models.base import Utterance, flow_model
from paretone.sampling.actions import SkipAction
from paretone.session.commands import Prepare, Synthesise
from paretone.session.events import Event, PreparationReport
from paretone.setting.knobs import Values, checked
from paretone.setting.plan import flow_of
from paretone.setting.profile import Evidence, Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Take
from paretone.speaking import scripted
from paretone.techniques import ditreducio, resolve
from paretone.techniques.ditreducio.record import CalibrationRecord, CalibrationRequest, Trial
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.techniques.published import comparisons

NAME = "calibrate"
SUMMARY = "Calibrate DiTReducio on one or several sentences and write the result, with measurements."
NAME_OF = ditreducio.TECHNIQUE.name
KINDS = {"profile": "profile", "table": "strategy table", "official": "official strategy table"}
"""Outputs, by the names of their options."""
EPILOGUE = (
    "Several sentences and voices take turns: the first sentence in the first voice, the second in the second, and so "
    "on; the shorter list starts over. Evidence is measured on the first of them."
)


def declare(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser)
    arguments.add_sampler(parser)
    arguments.add_techniques(parser.add_argument_group("techniques besides DiTReducio"))
    group = parser.add_argument_group("DiTReducio")
    arguments.add_knobs(group, ditreducio.TECHNIQUE.knobs)
    group.add_argument(
        "--thresholds",
        type=float,
        nargs="+",
        metavar="δ",
        help="several thresholds; each file then has its threshold in its name: table-0.1.json",
    )
    group.add_argument(
        "--combine",
        choices=ditreducio.COMBINATIONS,
        default=ditreducio.COMBINATIONS[0],
        help="combination of several sentences' errors (default: %(default)s)",
    )
    arguments.add_utterances(parser, "a sample sentence", "the model's first")
    parser.epilog = EPILOGUE
    written = parser.add_argument_group("output, at least one")
    written.add_argument("--profile", metavar="FILE", help="profile: setting, table and evidence")
    written.add_argument("--table", metavar="FILE", help="strategy table with its setting")
    written.add_argument("--official", metavar="FILE", help="strategy table in the official code's format")
    parser.add_argument("--no-evidence", action="store_true", help="do not measure speed and fidelity afterwards")


@dataclass
class _Calibration:
    """One threshold or budget: its output files and its results."""

    knobs: Values
    places: dict[str, Path]
    record: CalibrationRecord = field(init=False)
    seconds: float = 0.0
    same_as: float | None = None
    """Threshold with an identical calibration, which made this one unnecessary."""
    evidence: Evidence | None = None

    @property
    def threshold(self) -> float:
        return float(self.knobs["threshold"])

    @property
    def words(self) -> str:
        if self.knobs["objective"] == ditreducio.END:
            return f"for the end at {self.knobs['operations']:g} % of the operations"
        return f"at threshold {self.threshold:g}"


def run(options: argparse.Namespace, session: Session) -> Result:
    model_id = arguments.model(options)
    calibrations = _planned(options, model_id)
    utterances = arguments.several_utterances(options, model_id, 1)
    plain = arguments.setting(options, model_id, NAME_OF)
    model = flow_model(arguments.load(options, session, model_id, options.variant), "Calibrating")
    plain = with_weights(plain, model.info)
    for number, one in enumerate(calibrations):
        started = time.perf_counter()
        derived = ((other, other.record.derive(one.threshold)) for other in calibrations[:number])
        exact = next((pair for pair in derived if pair[1].exact), None)
        if exact is not None:  # The table follows from that of another threshold.
            other, known = exact
            one.record = replace(other.record, table=known.table, knobs=one.knobs)
            one.same_as = other.threshold
        else:
            session.terminal.status(f"Calibrating {one.words}")
            used = plain.with_technique(UsedTechnique(NAME_OF, one.knobs))
            request = CalibrationRequest(tuple(utterances), used, options.combine)
            one.record = session.carry_out(Prepare(JOB, NAME_OF, request), _Trials(session.terminal)).result.record
        one.seconds = time.perf_counter() - started
    if not options.no_evidence:
        _measure(calibrations, session, utterances[0], plain)
    operations = model.operations(scripted(model, utterances[0].text, utterances[0].voice, plain, prepared=False))
    found = []
    for one in calibrations:
        setting = _reduced(plain, one)
        table = one.record.table
        if "profile" in one.places:
            Profile.of(setting, model.info, (table,), one.evidence).save(one.places["profile"])
        if "table" in one.places:
            write_json(one.places["table"], table.to_json())
        if "official" in one.places:
            write_json(one.places["official"], table.to_official())
        ops_ratio = flow_of(resolve(model.info, setting, (one.record.table,))).ops_ratio(operations)
        whose = ditreducio.ops_ratio_of(model.info)
        figures = {"ops_ratio": ops_ratio, "ops_ratio_of": whose, "setting": setting.to_json()}
        found.append({**_figures(one), **figures})
    compared = [one for each in calibrations for one in comparisons(_reduced(plain, each))]
    data: dict[str, Any] = found[0] if options.thresholds is None else {"calibrations": found}
    data = {**data, "machine": session.machine, "published": [one.to_json() for one in compared]}
    return Result(data, "\n".join([_shown(calibrations, found), *(one.sentence for one in compared)]))


def _planned(options: argparse.Namespace, model: str) -> list[_Calibration]:
    """Planned calibrations, checked before loading anything."""
    names = {kind: getattr(options, kind) for kind in KINDS if getattr(options, kind) is not None}
    if not names:
        raise SettingError("No output: give --profile, --table or --official.")
    arguments.refuse_from_files(options, NAME_OF)
    apart({f"--{kind}": name for kind, name in names.items()}, {"--text-file": options.text_file})
    given = arguments.given(options, ditreducio.TECHNIQUE.knobs)
    published = arguments.published(options, model, NAME_OF).get(NAME_OF)
    own = published.knobs if published is not None else {}

    def planned(places: Mapping[str, str | Path], **more: float) -> _Calibration:
        knobs = checked(ditreducio.TECHNIQUE.knobs, {**own, **given, **more}, ditreducio.TECHNIQUE.title)
        return _Calibration(knobs, {kind: writable(place) for kind, place in places.items()})

    if options.thresholds is None:
        return [planned(names)]
    if "threshold" in given:
        raise SettingError("Give either --threshold or --thresholds.")
    if given.get("objective") == ditreducio.END:
        raise SettingError(
            "--thresholds belongs to the published objective; a calibration for the end of the trajectory has one "
            "budget, --operations."
        )
    if len(set(options.thresholds)) < len(options.thresholds):
        raise SettingError("--thresholds has a threshold twice; give each of them once.")
    calibrations = []
    for one in options.thresholds:
        paths = {kind: Path(name) for kind, name in names.items()}
        places = {kind: path.with_name(f"{path.stem}-{one!r}{path.suffix}") for kind, path in paths.items()}
        calibrations.append(planned(places, threshold=one))
    return calibrations


class _Trials:
    """Shows the progress of a calibration in the terminal, with the number of accepted trials."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._done = self._accepted = 0

    def __call__(self, event: Event) -> None:
        if not isinstance(event, PreparationReport):
            self._terminal.hear(event)
        elif isinstance(event.report, Trial):
            self._done += 1
            self._accepted += event.report.accepted
            self._terminal.remark = f"{self._accepted} of {self._done} skips accepted"


def _reduced(plain: Setting, one: _Calibration) -> Setting:
    return plain.with_technique(UsedTechnique(NAME_OF, one.knobs, one.record.table.fingerprint))


def _measure(calibrations: list[_Calibration], session: Session, utterance: Utterance, plain: Setting) -> None:
    """Compare each table with the baseline: one synthesis each, from the same noise."""

    def take(setting: Setting, *tables: StrategyTable) -> Take:
        return session.carry_out(Synthesise(JOB, utterance.text, utterance.voice, setting, tables)).take

    session.terminal.status("Measuring the baseline")
    take(plain.baseline)  # The first synthesis of this length also pays for its preparation.
    baseline = take(plain.baseline)
    for one in calibrations:
        session.terminal.status(f"Measuring the accelerated synthesis, calibrated {one.words}")
        accelerated = take(_reduced(plain, one), one.record.table)
        distance = log_mel_distance(baseline.trace.drawn_mel, accelerated.trace.drawn_mel)
        accelerated = replace(accelerated, fidelity_to=baseline.id, log_mel_distance=distance)
        one.evidence = Evidence.of(accelerated, baseline)


def _figures(one: _Calibration) -> dict[str, object]:
    table = one.record.table
    low, high = one.record.exact_interval
    return {
        **{kind: str(path) for kind, path in one.places.items()},
        "objective": one.knobs["objective"],
        "operations": one.knobs["operations"] if one.record.is_for_end else None,
        "threshold": None if one.record.is_for_end else one.threshold,
        "metric": one.knobs["metric"],
        "compare": one.knobs["compare"],
        "sentences": [asdict(sentence) for sentence in one.record.sentences],
        "combine": one.record.combine if len(one.record.sentences) > 1 else None,
        # JSON has no infinity.
        "exact_interval": [low, high if math.isfinite(high) else None],
        "same_as": one.same_as,
        "seconds": one.seconds,
        "cells": {action.name: table.count(action) for action in SkipAction},
        "skipped_share": table.skipped_share,
        "trials": len(one.record.trials),
        "accepted": sum(trial.accepted for trial in one.record.trials),
        "layers": table.layers,
        "steps": table.steps,
        "evidence": None if one.evidence is None else dict(one.evidence.metrics),
    }


def _shown(calibrations: list[_Calibration], found: list[dict]) -> str:
    rows = [_row(one, figures) for one, figures in zip(calibrations, found, strict=True)]
    ratio = "Ops ratio: operations left of the baseline's."
    if found[0]["ops_ratio_of"] == "flow":
        ratio = "Ops ratio of the flow: operations left of those of its baseline; the language model's do not count."
    exact = "The table is the same for every threshold δ of its exact range."
    lines = [*table_lines(rows), "", ratio if calibrations[0].record.is_for_end else f"{exact} {ratio}"]
    if calibrations[0].evidence is not None:
        lines.append("RTF and speed-up come from one run each; paretone compare measures them with an interval.")
    lines += [
        f"Threshold {one.threshold:g} needed no trials: it gives the same table as {one.same_as:g}."
        for one in calibrations
        if one.same_as is not None
    ]
    lines += [f"Wrote the {KINDS[kind]} to {path}." for one in calibrations for kind, path in one.places.items()]
    return "\n".join(lines)


def _row(one: _Calibration, figures: dict) -> dict[str, object]:
    low, high = figures["exact_interval"]
    unit = ditreducio.UNITS[str(one.knobs["metric"])]
    head: dict[str, object] = {
        f"δ ({unit})": one.threshold,
        "exact range of δ": f"{low:.4g} < δ" if high is None else f"{low:.4g} < δ ≤ {high:.4g}",
        "trials": figures["trials"],
        "accepted": figures["accepted"],
    }
    if one.record.is_for_end:
        head = {"budget (%)": one.knobs["operations"], "changes": figures["trials"]}
    row = {
        **head,
        **{f"{name} (cells)": count for name, count in figures["cells"].items()},
        "ops ratio" if figures["ops_ratio_of"] == "model" else "ops ratio of the flow": figures["ops_ratio"],
        "calibration (s)": figures["seconds"],
    }
    if one.evidence is not None:
        row |= {
            "RTF (s/s)": one.evidence.metrics["real_time_factor"],
            "speed-up (times)": one.evidence.metrics["speed_up"],
            "log-mel distance (nat. log)": one.evidence.metrics["log_mel_distance"],
        }
    return row
