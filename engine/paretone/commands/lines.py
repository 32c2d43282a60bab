"""``paretone speak --by-line``: a file per line of a text or row of a manifest, resumed where it was stopped.

Each finished line is appended to ``manifest.jsonl`` in the folder before the next begins, so a book needs the memory of
one line, and the same command goes on after a kill.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from paretone import files
from paretone.audio.recording import require_kind, write_sound
from paretone.checks.faults import Checked, sentences, strict
from paretone.commands import arguments, output
from paretone.commands.command import Result
from paretone.commands.terminal import Session
from paretone.errors import SettingError, TextError
from paretone.front_end.speakable import LARGEST_TEXT
from paretone.reading import first_line, read_text
from paretone.setting.setting import Setting
from paretone.setting.take import Take
from paretone.wording import counted

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
    group.add_argument("--srt", metavar="FILE", help="subtitles of the lines, one after another, with --by-line")
    group.add_argument("--format", choices=("wav", "flac", "ogg", "mp3"), help="files of --by-line (default: wav)")


@dataclass(frozen=True)
class Line:
    """A text to speak and the file's name without ending."""

    text: str
    name: str


def wanted(options: argparse.Namespace) -> tuple[Line, ...]:
    """Lines of the arguments. Raises :class:`TextError` and :class:`SettingError`."""
    for flag in ("repeat", "codebooks", "keep_profile"):
        if getattr(options, flag):
            raise SettingError(f"--{flag.replace('_', '-')} is for one text; leave out --by-line.")
    if options.manifest is not None:
        if options.text is not None or options.text_file is not None:
            raise SettingError("--manifest has the texts; leave out --text and --text-file.")
        rows = _rows(options.manifest)
    elif options.text_file is not None:
        rows = [(text, "") for text in arguments.typed_lines(options.text_file)]
    else:
        raise SettingError("--by-line needs --text-file or --manifest with the lines.")
    digits = max(3, len(str(len(rows))))
    named = [
        Line(text, name or f"{number:0{digits}}-{_first_words(text)}") for number, (text, name) in enumerate(rows, 1)
    ]
    names = [one.name.casefold() for one in named]
    twice = (
        next((one.name for one in named if names.count(one.name.casefold()) > 1), "")
        if len(set(names)) < len(names)
        else ""
    )
    if twice:
        raise TextError(f"Two rows of {options.manifest} have the name {twice}; give each its own.")
    return tuple(named)


def _first_words(text: str) -> str:
    words = re.findall(r"[^\W_]+(?:'[^\W_]+)*", text.lower())[:FIRST_WORDS]
    return "-".join(words).replace("'", "")[:_LONGEST_NAME].rstrip("-") or "line"


def _rows(file: str) -> list[tuple[str, str]]:
    """Text and name of each row of a manifest."""
    try:
        content = read_text(file, "utf-8-sig", LARGEST_TEXT)
    except OSError as error:
        raise TextError(f"The manifest {file} could not be read: {files.reason(error)}.") from error
    except UnicodeDecodeError as error:
        raise TextError(f"The manifest {file} is not UTF-8; save it as UTF-8.") from error
    try:
        if content.lstrip().startswith("{"):
            found = [json.loads(line) for line in content.splitlines() if line.strip()]
        else:
            found = list(csv.DictReader(io.StringIO(content)))
    except (ValueError, csv.Error) as error:
        raise TextError(f"The manifest {file} is neither CSV nor JSON lines: {first_line(error)}.") from error
    rows = []
    for number, row in enumerate(found, 1):
        text, name = (row.get(field) or "" for field in ("text", "name")) if isinstance(row, dict) else ("", "")
        if not isinstance(text, str) or not text.strip():
            raise TextError(f"Row {number} of the manifest {file} has no text; it needs a field text.")
        if not isinstance(name, str) or (name and not re.fullmatch(r"[\w][\w .-]*", name)):
            raise TextError(
                f"Row {number} of the manifest {file}: its name must be letters, digits, blanks, dots or dashes."
            )
        rows.append((text.strip(), name.strip()))
    if not rows:
        raise TextError(f"The manifest {file} has no rows; write one text in each.")
    return rows


def speak(
    lines: tuple[Line, ...],
    options: argparse.Namespace,
    session: Session,
    identity: str,
    spoken: Callable[[str], Take],
    check: Callable[[Take], Checked],
) -> Result:
    """Speak what is missing of ``lines``. ``identity``: of voice and setting; ``spoken`` makes a take, and ``check``
    finds its faults."""
    place = output.folder(options.out)
    subtitles = None if options.srt is None else output.writable(options.srt)
    ending = f".{options.format or 'wav'}"
    require_kind(place / f"x{ending}")
    done = {one["file"]: one for one in _journal(place / MANIFEST)}
    made: list[dict[str, Any]] = []
    new = 0
    for number, line in enumerate(lines, 1):
        path = place / f"{line.name}{ending}"
        key = hashlib.sha256(f"{identity}\n{line.text}".encode()).hexdigest()[:16]
        known = done.get(path.name)
        if known is None or known["key"] != key or not path.is_file():
            take = spoken(line.text)
            faults = check(take)
            notes = [*take.notes, *write_sound(path, take.samples, take.sample_rate)]
            known = {
                "file": path.name,
                "text": line.text,
                "seconds": round(len(take.samples) / take.sample_rate, 3),
                "real_time_factor": round(take.measurements.real_time_factor, 4),
                "seed": take.setting.seed,
                "notes": notes,
                "faults": [one.to_json() for one in faults.findings],
                "key": key,
            }
            _append(place / MANIFEST, known)
            new += 1
            if not getattr(options, "quiet", False):
                session.terminal.say(f"{number} of {len(lines)}: {path.name}, {known['seconds']:.1f} s")
            for said in sentences(faults)[1:]:
                session.terminal.say(f"{path.name}: {said}")
        made.append(known)
    if subtitles is not None:
        files.write(subtitles, _srt(made).encode())
    seconds = sum(one["seconds"] for one in made)
    kept = f"; {len(made) - new} were there" if new < len(made) else ""
    text = f"Wrote {counted(new, 'line', 'lines')} to {place}{kept}: {seconds:.1f} s of speech in all."
    more = [] if subtitles is None else [f"Wrote the subtitles to {subtitles}."]
    data = {"folder": str(place), "lines": made, "new": new, "seconds": seconds, "srt": subtitles and str(subtitles)}
    faulty = [one["file"] for one in made if one.get("faults")]
    return Result(data, "\n".join([text, *more]), *strict(faulty, options.strict))


def _journal(path: Path) -> Iterator[dict[str, Any]]:
    """Finished lines of earlier runs; a last one that a kill cut off is passed over."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for row in file:
            try:
                found = json.loads(row)
            except ValueError:
                continue
            if isinstance(found, dict) and {"file", "text", "seconds", "key"} <= set(found):
                yield found


def _append(path: Path, row: dict[str, Any]) -> None:
    with path.open("ab") as file:
        if file.tell() and not _ends_with_line(path):
            file.write(b"\n")
        file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _ends_with_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _srt(made: list[dict[str, Any]]) -> str:
    import srt

    start, found = 0.0, []
    for number, one in enumerate(made, 1):
        end = start + one["seconds"]
        found.append(srt.Subtitle(number, timedelta(seconds=start), timedelta(seconds=end), one["text"]))
        start = end
    return str(srt.compose(found))


def identity_of(setting: Setting, voice: str, checkpoint: str, artefacts: tuple[str, ...]) -> str:
    """What decides how a text sounds."""
    return json.dumps([setting.fingerprint, voice, checkpoint, *artefacts])
