"""``paretone judge``: words, naturalness, similarity to a voice, melody and loudness of recordings."""

from __future__ import annotations

import argparse
from pathlib import Path

from paretone.bench.report import table
from paretone.checks.faults import sentences, strict
from paretone.commands import arguments
from paretone.commands.command import Result
from paretone.commands.terminal import Session
from paretone.measure.evaluation.judges import JUDGES, judge_named
from paretone.measure.metrics import METRICS, metric
from paretone.studies.paired import worst
from paretone.wording import percent

NAME = "judge"
OFFLINE = ("words", "naturalness", "voice", "melody", "faults")
"""Judges that are asked without being named."""
SUMMARY = "Judge recordings: words, naturalness, similarity to a voice, pitch range, loudness."
COLUMNS = {one.name: one.label for one in METRICS if one.judge or one.name in ("loudness", "clipping", "silence")}
"""Column titles by metric."""


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="WAV", help="recordings: WAV, FLAC, OGG, MP3; any rate, channels")
    text = parser.add_mutually_exclusive_group()
    text.add_argument("--text", action="append", help="what all of them say, or one per recording; adds word errors")
    text.add_argument("--text-file", metavar="FILE", help="file with one text per recording, UTF-8; - for stdin")
    parser.add_argument(
        "--reference", type=Path, metavar="WAV", help="recording of the voice they should have; adds voice similarity"
    )
    parser.add_argument(
        "--with",
        dest="further",
        metavar="JUDGE,…",
        default="",
        help=f"further judges, such as whisper,sim-o,utmos ({', '.join(one.name for one in JUDGES)})",
    )
    parser.add_argument(
        "--ground-truth",
        type=Path,
        action="append",
        default=[],
        metavar="WAV",
        help="a person saying the text, one per recording or one for all: the judges' own floor",
    )
    parser.add_argument("--device", choices=arguments.DEVICES, default="auto", help="device of the further judges")
    parser.add_argument(
        "--diversity",
        action="store_true",
        help="the recordings are takes of one sentence in one voice with different seeds: say how much they vary",
    )
    arguments.add_strict(parser)


def run(options: argparse.Namespace, session: Session) -> Result:
    from paretone.device import choose
    from paretone.measure.evaluation.judging import Judgement, Judgements, judge_files
    from paretone.studies.wording import figure_text

    terminal = session.terminal
    terminal.status("Judging")
    paths, texts, reference = [Path(one) for one in options.files], arguments.several_texts(options), options.reference
    asked = tuple(dict.fromkeys(judge_named(one.strip()).name for one in options.further.split(",") if one.strip()))
    further = [one for one in asked if one not in OFFLINE]

    def judged(files: list[Path]) -> Judgements:
        given = reference, further, str(choose(options.device)) if further else "cpu"
        return judge_files(files, texts, *given, terminal.progress, terminal.check)

    floor = judged(options.ground_truth) if options.ground_truth else None
    found = judged(paths)
    shown = [name for name in COLUMNS if any(name in one.figures for one in found.files)]

    def row(one: Judgement) -> dict[str, object]:
        figures = {name: one.figures.get(name) for name in shown}
        texts = {COLUMNS[name]: None if it is None else metric(name).spelt(it) for name, it in figures.items()}
        return {"file": one.file, "seconds": one.seconds, **texts}

    rows = [row(one) for one in found.files if not one.problem]
    if found.means:
        mean: dict[str, object] = {COLUMNS[name]: figure_text(metric(name), found.means.get(name)) for name in shown}
        rows.append({"file": "mean", "seconds": None} | mean)
    for one in floor.files if floor is not None else ():
        rows += [row(one) | {"file": f"ground truth: {one.file}"}] if not one.problem else []
    lines = table(rows)
    if found.means:
        lines += ["", "Mean: with its 95 % bootstrap interval over the recordings; of word errors, over all words."]
    diversity = found.diversity if options.diversity else None
    if diversity is not None:
        lines += ["", f"Diversity: {diversity:.4f}. {metric('diversity').definition}"]
    elif options.diversity:
        needed = "it takes two recordings or more that are voiced at the same places"
        lines += ["", f"Diversity could not be measured: {needed}."]
    wrong = worst((one, one.error_rate) for one in found.files)
    errors = [f"{one.file} {percent(one.error_rate or 0.0)}" for one in wrong]
    unknown = any(one.error_rate is not None for one in found.files) and floor is None
    remarks = [
        *([f"Most errors: {'; '.join(errors)}."] if errors else []),
        *(["The judges' own errors are not known; give --ground-truth, a person saying the text."] if unknown else []),
        *(f"{one.file}: {line}" for one in found.files for line in sentences(one.faults)),
        *dict.fromkeys(reason for one in found.files if texts for reason in one.faults.unavailable),
        *(["Pitch was not compared; give --reference, a recording of the voice."] if texts and not reference else []),
        *(f"Heard in {one.file}: {one.heard or 'nothing'}" for one in found.files if one.figures.get("edits")),
        *(note for one in found.files for note in one.notes),
        *(f"Not judged: {one.problem}" for one in found.files if one.problem),
        *found.missing,
    ]
    data = {
        "files": [
            {**{name: getattr(one, name) for name in ("file", "seconds", "sample_rate")}, **one.figures}
            | {"heard": one.heard, "found": [each.to_json() for each in one.faults.findings]}
            | {"notes": list(one.notes), "problem": one.problem}
            for one in found.files
        ],
        "worst": [one.file for one in wrong],
        "ground_truth": [{"file": one.file, **one.figures} for one in floor.files] if floor is not None else [],
        "means": {
            name: dict(zip(("value", "low", "high", "n"), (*one.ends, one.n), strict=True))
            for name, one in found.means.items()
        },
        **({"diversity": diversity} if options.diversity else {}),
        "definitions": {name: metric(name).definition for name in shown},
        "missing": list(found.missing),
    }
    bad = [one for one in found.files if one.faults.findings or one.problem]
    faulty = [f"{one.file} ({one.faults.summary or 'not judged'})" for one in bad]
    return Result(data, "\n".join([*lines, *([""] if remarks else []), *remarks]), *strict(faulty, options.strict))
