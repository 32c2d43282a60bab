"""``paretone study``: run a study, show its status, export its results."""

from __future__ import annotations

import argparse
import os
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from paretone.bench.report import table as table_lines
from paretone.checks.faults import strict
from paretone.commands import arguments
from paretone.commands.command import Result
from paretone.commands.output import folder as made_folder
from paretone.commands.terminal import JOB, Session
from paretone.errors import Cancelled, StudyError
from paretone.session.commands import RunStudy, VerifyStudy
from paretone.session.events import Event, Progress
from paretone.studies.study import SERVER, results_folder
from paretone.wording import counted, grouped

if TYPE_CHECKING:
    from paretone.studies.results import Results, SettingResult

NAME = "study"
SET_ASIDE, VERIFY = "set-aside", "verify"
SUMMARY = "Run a study of many settings on many sentences, show its status, export a report, check its results."
EPILOGUE = (
    "run does the remaining takes of the study in FILE and keeps every finished take in a folder next to it, "
    "FILE without its ending plus .study; Ctrl-C stops it, and the same command resumes. status prints the "
    "results so far; export writes report.html, curves.svg, results.csv, takes.csv and results.tex; set-aside moves "
    "damaged results into another folder, so that the study can run again; verify checks the results against the "
    "study's file, the weights and the code, and makes and judges some takes again. These four also accept the folder."
)
MARKS = {True: "✓", False: "✗", None: "–"}
"""Of what agrees, of what does not, and of what could not be checked."""
ACTIONS = ("run", "status", "export", VERIFY, SET_ASIDE)


def declare(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOGUE
    parser.add_argument("action", choices=ACTIONS, help="action")
    parser.add_argument("study", metavar="FILE", help="the study (TOML or JSON), or the folder with its results")
    parser.add_argument("--results", metavar="FOLDER", help="folder of the results (default: FILE.study)")
    parser.add_argument("--out", metavar="FOLDER", help="output folder of export (default: 'report' in the results)")
    parser.add_argument(
        "--takes",
        type=arguments.positive,
        metavar="N",
        help=f"takes that {VERIFY} makes and judges again (default: {VerifyStudy.takes})",
    )
    parser.add_argument(
        "--listening",
        type=Path,
        metavar="FOLDER",
        help="folder with the trials of listening tests, for the report (default: the lab's)",
    )
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="run on the Ray cluster at ADDRESS; 'auto' for the one that this machine belongs to, 'local' for this "
        "machine alone",
    )
    parser.add_argument(
        "--workers", type=arguments.positive, help="on Ray: number of models to load (default: one per GPU or core)"
    )
    arguments.add_strict(parser)


def run(options: argparse.Namespace, session: Session) -> Result:
    from paretone.studies import results as found
    from paretone.studies.store import StudyDamaged

    if options.action == SET_ASIDE:
        return _set_aside(_folder(options))
    if options.listening is not None and not options.listening.is_dir():
        raise StudyError(f"There is no folder {options.listening} with listening tests; check --listening.")
    try:
        if options.action == "run":
            return _run(options, session)
        _require_begun(options)
        if options.action == VERIFY:
            return _verify(options, session)
        results = found.read(_folder(options))
        return _status(results) if options.action == "status" else _export(results, options)
    except StudyDamaged as error:
        raise StudyError(f"{error} {_how_to_set_aside(_folder(options))}") from error


def _folder(options: argparse.Namespace) -> Path:
    path = Path(options.study)
    if options.results:
        return Path(options.results)
    return path if path.is_dir() else results_folder(path)


def _require_begun(options: argparse.Namespace) -> None:
    """Raise :class:`StudyError` for the file of a study that was never run: what is wrong with it, or how to run it."""
    from paretone.studies import definition
    from paretone.studies.store import DATABASE

    file = Path(options.study)
    if file.is_file() and not os.path.lexists(_folder(options) / DATABASE):
        title = definition.read(file).title
        raise StudyError(f"“{title}” has not been run yet; run it first: paretone study run {shlex.quote(str(file))}")


# --- Damage -----------------------------------------------------------------------------------------------------------
def _how_to_set_aside(folder: Path) -> str:
    return f"To set it aside, run: paretone study {SET_ASIDE} {shlex.quote(str(folder))}"


def _set_aside(folder: Path) -> Result:
    """Move damaged results with audio away; intact ones stay."""
    from paretone.studies import results as found
    from paretone.studies.running import set_aside
    from paretone.studies.store import StudyDamaged
    from paretone.studies.wording import lost_lines

    try:
        results = found.read(folder)
    except StudyDamaged:
        results = None
    if results is not None and not results.damage:
        lost = " ".join(["", *lost_lines(results)])
        raise StudyError(f"The study's file in {folder} is not damaged, so it stays where it is.{lost}")
    backup = set_aside(folder)
    text = f"Moved the damaged results, with audio, to {backup}. 'paretone study run' starts the study over."
    return Result({"folder": str(backup)}, text)


# --- Running ----------------------------------------------------------------------------------------------------------
def _run(options: argparse.Namespace, session: Session) -> Result:
    from paretone.studies import results as found
    from paretone.studies.running import FINISHED, PAUSED
    from paretone.studies.wording import faulty_takes

    if options.workers and not options.ray:
        raise StudyError("--workers needs --ray: without a cluster, this process does everything.")
    progressed = (0, 0)

    def hear(event: Event) -> None:
        nonlocal progressed
        if isinstance(event, Progress):
            progressed = event.done, event.total
        session.terminal.hear(event)

    file = str(Path(options.study).resolve())
    try:
        ended = session.carry_out(RunStudy(JOB, file, str(_folder(options)), options.ray or "", options.workers), hear)
    except Cancelled:
        done, total = progressed
        served = done and any(one.origin == SERVER for one in found.read(_folder(options)).settings)
        kept = "of which all but the replies to an unfinished load" if served else "all of which"
        said = f"Stopped after {grouped(done)} of {grouped(total)} tasks, {kept} are kept; "
        raise Cancelled(f"{said}run the same command to resume." if done else "") from None
    results = found.read(_folder(options))
    answered = _status(results)
    summary = {"state": PAUSED if ended.paused else FINISHED, "made": ended.made, "workers": list(ended.log)}
    summary |= ended.fields
    made = f"{counted(ended.made, 'take was', 'takes were')} made; the results are in {results.folder}."
    summary |= {"evaluation_set": ended.evaluation} if ended.evaluation else {}
    lines = [*filter(None, (made, ended.evaluation)), *ended.log, *ended.found, "", answered.text]
    faulty, takes = faulty_takes(results)
    if options.strict and not takes:
        raise StudyError('--strict needs the judge "faults": add it to the judges of the study.')
    problem = strict([f"in {faulty} of {takes} takes"] if faulty else [], options.strict)
    return Result({**answered.data, **summary}, "\n".join(lines), *problem)


def _verify(options: argparse.Namespace, session: Session) -> Result:
    done = session.carry_out(VerifyStudy(JOB, str(_folder(options)), options.takes or VerifyStudy.takes))
    wrong = [one.title for one in done.checks if one.agrees is False]
    data = {"folder": done.folder, "agrees": not wrong, "checks": [asdict(one) for one in done.checks]}
    lines = [f"{MARKS[one.agrees]} {one.title}: {one.detail}" for one in done.checks]
    problem = f"These do not agree: {', '.join(wrong)}." if wrong else ""
    return Result(data, "\n".join(lines), problem, int(bool(wrong)))


# --- Showing ----------------------------------------------------------------------------------------------------------
def _status(results: Results) -> Result:
    from paretone.studies import results as found
    from paretone.studies.search import answer
    from paretone.studies.wording import answer_lines, search_in

    search = search_in(results)
    data = found.to_json(results)
    lines = [results.title, ""]
    if results.damage:
        lines += [f"The study's file is damaged and read-only: {results.damage}."]
        lines += [_how_to_set_aside(results.folder), ""]
    lines += table_lines([_row(one, results) for one in results.settings])
    lines += ["", *_notes(results)]
    if search is not None:
        answered = answer(search, results.trials)
        lines += ["", *answer_lines(search, results)]
        data = {**data, "answer": [asdict(one) for one in answered.trials]}
    return Result(data, "\n".join(lines))


def _row(one: SettingResult, results: Results) -> dict[str, object]:
    from paretone.studies.wording import figure_text, setting_title, shown, takes_text

    row: dict[str, object] = {"setting": setting_title(one), "takes": takes_text(one)}
    for each in shown(results):
        row[each.label] = figure_text(each, one.figures.get(each.name))
    if one.problem:
        row["problem"] = one.problem
    return row


def _notes(results: Results) -> list[str]:
    from paretone.studies.wording import note_lines, paired_lines, worst_lines

    lines = ["In brackets: 95 % intervals by bootstrap over the sentences. RTF, TTFA and speed-up are medians."]
    lines += [*note_lines(results), *paired_lines(results), *worst_lines(results)]
    lines += [f"Failed: {sentence}" for sentence in results.failures]
    if len(results.machines) > 1:
        lines.append(f"Takes are from {len(results.machines)} machines: compare speeds by speed-up, not by RTF.")
    return lines


def _export(results: Results, options: argparse.Namespace) -> Result:
    from paretone.listening.results import listened
    from paretone.studies.report import require_no_links, write_report
    from paretone.studies.wording import doubt_lines

    place = results.folder / "report" if options.out is None else options.out
    require_no_links(results.folder, Path(place))
    written = write_report(results, made_folder(place), listened(options.listening))
    notes = doubt_lines(results)
    lines = [*notes, *(f"Wrote {path}" for path in written)]
    return Result({"files": [str(path) for path in written], "notes": notes}, "\n".join(lines))
