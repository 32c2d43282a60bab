"""Long texts of ``paretone speak``: with ``--by-line`` a file per line of a text or row of a manifest, otherwise one
file, made in parts.

Each finished line or part is appended to ``manifest.jsonl`` in its folder before the next begins, so a book needs the
memory of one, and the same command goes on after a kill.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from paretone import files
from paretone.audio.recording import join_sound, require_kind, write_sound
from paretone.checks.faults import checked, sentences, strict
from paretone.checks.speech import speech_of
from paretone.commands import arguments, output
from paretone.commands.command import Result
from paretone.commands.subtitles import Timed, sentence_times, write_srt
from paretone.commands.terminal import Session
from paretone.errors import Cancelled, SettingError, TextError
from paretone.front_end import MOST_CHARACTERS
from paretone.front_end.speakable import LARGEST_TEXT, PART_CHARACTERS, has_letters, parts
from paretone.reading import first_line, legible, read_text
from paretone.session.commands import Synthesise
from paretone.wording import counted, grouped

MANIFEST = "manifest.jsonl"
FIRST_WORDS = 5
"""Words of a line in its file's name."""
_LONGEST_NAME = 48


def declare(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("many lines")
    group.add_argument(
        "--by-line",
        action="store_true",
        help="a file per line of --text-file, named by number and first words, in the folder --out; lines that are "
        f"there are not made again ({MANIFEST})",
    )
    group.add_argument(
        "--manifest",
        metavar="FILE",
        help="texts for --by-line: CSV with a column text and, if wanted, name; or JSON lines with these fields",
    )
    group.add_argument("--srt", metavar="FILE", help="subtitles: of each sentence, or with --by-line of each line")
    group.add_argument("--format", choices=("wav", "flac", "ogg", "mp3"), help="files of --by-line (default: wav)")


@dataclass(frozen=True)
class Line:
    """A text to speak and the file's name without ending."""

    text: str
    name: str


def wanted(options: argparse.Namespace) -> tuple[Line, ...]:
    """Lines of the arguments. Raises :class:`TextError` and :class:`SettingError`."""
    _require_one_text_alone(options, "--by-line")
    if options.manifest is not None:
        if options.text is not None or options.text_file is not None:
            raise SettingError("--manifest has the texts; leave out --text and --text-file.")
        rows = _rows(options.manifest)
    elif options.text_file is not None:
        rows = [(text, "") for text in arguments.typed_lines(options.text_file)]
    else:
        raise SettingError("--by-line needs --text-file or --manifest with the lines.")
    for number, (text, _) in enumerate(rows, 1):
        if len(text) > MOST_CHARACTERS:
            raise TextError(
                f"Line {number} has {grouped(len(text))} characters, and {grouped(MOST_CHARACTERS)} is the limit of a "
                "line; leave out --by-line to speak the whole text into one file."
            )
    digits = max(3, len(str(len(rows))))
    named = [
        Line(text, name or f"{number:0{digits}}-{_first_words(text)}") for number, (text, name) in enumerate(rows, 1)
    ]
    names = Counter(one.name.casefold() for one in named)
    if twice := next((one.name for one in named if names[one.name.casefold()] > 1), ""):
        raise TextError(f"Two rows of {options.manifest} have the name {twice}; give each its own.")
    return tuple(named)


def _require_one_text_alone(options: argparse.Namespace, what: str) -> None:
    for flag in ("repeat", "codebooks", "keep_profile"):
        if getattr(options, flag):
            raise SettingError(f"--{flag.replace('_', '-')} is for one short text, not for {what}; leave one out.")


def _first_words(text: str) -> str:
    words = re.findall(r"[^\W_]+(?:'[^\W_]+)*", text.lower())[:FIRST_WORDS]
    return "-".join(words).replace("'", "")[:_LONGEST_NAME].rstrip("-") or "line"


def _rows(file: str) -> list[tuple[str, str]]:
    """Text and name of each row of a manifest."""
    with legible(TextError, "manifest", file):
        content = read_text(file, "utf-8-sig", LARGEST_TEXT)
    try:
        if content.lstrip().startswith("{"):
            found = [json.loads(line) for line in content.split("\n") if line.strip()]
        else:
            found = list(csv.DictReader(io.StringIO(content)))
    except (ValueError, csv.Error) as error:
        raise TextError(f"The manifest {file} is neither CSV nor JSON lines: {first_line(error)}.") from error
    rows = []
    for number, row in enumerate(found, 1):
        text, name = (row.get(field) or "" for field in ("text", "name")) if isinstance(row, dict) else ("", "")
        if not isinstance(text, str) or not has_letters(text):
            raise TextError(f"Row {number} of the manifest {file} has no text; it needs a field text.")
        if not isinstance(name, str) or (name and not re.fullmatch(r"[\w][\w .-]*", name)):
            raise TextError(f"Row {number} of {file}: its name must be letters, digits, blanks, dots or dashes.")
        rows.append((text.strip(), name.strip()))
    if not rows:
        raise TextError(f"The manifest {file} has no rows; write one text in each.")
    return rows


@dataclass(frozen=True)
class Job:
    """How lines and parts are spoken."""

    options: argparse.Namespace
    session: Session
    spoken: Synthesise
    """Voice, setting and artefacts of all."""
    checkpoint: str
    subtitles: Path | None


def speak(lines: tuple[Line, ...], job: Job) -> Result:
    """Speak what is missing of ``lines``, each into its file in the folder ``--out``."""
    place = output.folder(job.options.out)
    made, new = _made(lines, place, f".{job.options.format or 'wav'}", job)
    times = [[(one["text"], 0.0, one["seconds"])] for one in made]
    return _result(made, new, job, times, f"{counted(new, 'line', 'lines')} to {place}", folder=str(place))


def speak_long(text: str, out: Path, job: Job) -> Result:
    """Speak a long text into the file ``out``, in parts whose files are kept next to it until all are there."""
    _require_one_text_alone(job.options, "a text of this length")
    if files.flows(out):
        raise SettingError("A text of this length needs a file for --out, so that it can go on after a stop.")
    place = output.folder(out.with_name(f"{out.name}.parts"))
    named = tuple(Line(one, f"{number:05}") for number, one in enumerate(parts(text, PART_CHARACTERS), 1))
    made, new = _made(named, place, ".wav", job)
    pieces = [place / one["file"] for one in made]
    notes = join_sound(pieces, out)
    for piece in (*pieces, place / MANIFEST):
        piece.unlink()
    with suppress(OSError):  # Parts of another setting may be there.
        place.rmdir()
    wrote = f"{counted(new, 'part', 'parts')} to {out}"
    return _result(made, new, job, [one["times"] for one in made], wrote, notes, out=str(out))


def _made(lines: tuple[Line, ...], place: Path, ending: str, job: Job) -> tuple[list[dict[str, Any]], int]:
    """The manifest's row of each line, and how many were spoken now."""
    require_kind(place / f"x{ending}")
    done = {one["file"]: one for one in _journal(place / MANIFEST)}
    made: list[dict[str, Any]] = []
    new, began, voice = 0, time.monotonic(), job.spoken.voice
    # All that decides how a text sounds.
    prints = job.spoken.setting.fingerprint, voice.audio or voice.id, job.checkpoint
    identity = json.dumps([*prints, *(one.fingerprint for one in job.spoken.artefacts)])
    for number, line in enumerate(lines, 1):
        path = place / f"{line.name}{ending}"
        key = hashlib.sha256(f"{identity}\n{line.text}".encode()).hexdigest()[:16]
        known = done.get(path.name)
        if known is None or known["key"] != key or not path.is_file():
            try:
                take = job.session.carry_out(replace(job.spoken, text=line.text)).take
            except Cancelled:
                done = f"Stopped after {len(made)} of {len(lines)} files, all of which are kept in {place}; "
                raise Cancelled(f"{done}run the same command to go on." if made else "") from None
            speech = speech_of(take, line.text, voice)
            faults = checked(speech)
            notes = [*take.notes, *write_sound(path, take.samples, take.sample_rate)]
            known = {
                "file": path.name,
                "text": line.text,
                "seconds": round(len(take.samples) / take.sample_rate, 3),
                "real_time_factor": round(take.measurements.real_time_factor, 4),
                "seed": take.setting.seed,
                "notes": notes,
                "faults": [one.to_json() for one in faults.findings],
                "times": [(one, round(a, 3), round(b, 3)) for one, a, b in sentence_times(speech)],
                "key": key,
            }
            files.append_line(place / MANIFEST, json.dumps(known, ensure_ascii=False))
            new += 1
            if not getattr(job.options, "quiet", False):
                left = (time.monotonic() - began) / new * (len(lines) - number)
                more = f", about {left / 60:.0f} min left" if left > 90 else ""
                job.session.terminal.say(f"{number} of {len(lines)}: {path.name}, {known['seconds']:.1f} s{more}")
            for said in sentences(faults):
                job.session.terminal.say(f"{path.name}: {said}")
        made.append(known)
    return made, new


def _result(
    made: list[dict[str, Any]],
    new: int,
    job: Job,
    times: list[list[Timed]],
    wrote: str,
    notes: tuple[str, ...] = (),
    **data: object,
) -> Result:
    """``times`` of the subtitles within each row."""
    starts = [0.0, *accumulate(one["seconds"] for one in made)]
    if job.subtitles is not None:
        write_srt(
            job.subtitles,
            ((said, start + a, start + b) for start, row in zip(starts, times, strict=False) for said, a, b in row),
        )
        notes = (*notes, f"Wrote the subtitles to {job.subtitles}.")
    kept = f"; {len(made) - new} were there" if new < len(made) else ""
    data |= {"lines": made, "new": new, "seconds": starts[-1], "srt": job.subtitles and str(job.subtitles)}
    faulty = [one["file"] for one in made if one.get("faults")]
    text = f"Wrote {wrote}{kept}: {starts[-1]:.1f} s of speech in all."
    return Result(data, "\n".join([text, *notes]), *strict(faulty, job.options.strict))


def _journal(path: Path) -> Iterator[dict[str, Any]]:
    """Finished lines of earlier runs; a last one that a kill cut off is passed over."""
    for row in path.read_text("utf-8", "replace").split("\n") if path.is_file() else ():
        with suppress(ValueError):
            found = json.loads(row)
            if isinstance(found, dict) and {"file", "text", "seconds", "key"} <= set(found):
                yield found
