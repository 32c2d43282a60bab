"""Manifest: CSV file of recordings to train on, with their texts.

Columns, named in the first line: ``audio`` (a file that libsndfile reads; relative to the manifest) and ``text``;
optional ``phones`` (for models that read phones: ``phone:end`` in seconds, separated by blanks; aligned automatically
if missing), ``voice`` (rows of one voice may be joined into prompt and speech) and ``set`` (``train`` or
``validation``; some rows are held out if missing).

F5-TTS's lists, ``audio|text`` in each line, with or without a first line ``audio_file|text``, are read, too.

A manifest with mistakes is refused before any work, with every line at fault.

A published evaluation set can take the place of the rows that are held out
(:func:`paretone.training.runs.with_validation`).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from itertools import pairwise
from pathlib import Path

from paretone.errors import TrainingError
from paretone.front_end.phones import TimedPhone
from paretone.observer import Check
from paretone.reading import is_regular, legible, read_text, shown
from paretone.wording import listed

REQUIRED = ("audio", "text")
OPTIONAL = ("phones", "voice", "set")
F5_HEADS = ("audio|text", "audio_file|text")
"""First lines of F5-TTS's lists, if they have one."""
TRAIN, VALIDATION = SETS = ("train", "validation")
SHORTEST_SECONDS, LONGEST_SECONDS = 0.3, 30.0
"""Limits of the official dataset."""
KEPT_BACK = 40
"""Without a column ``set``, one row in this many is held out for validation."""
FEWEST = 4
"""Minimum of rows for training and validation."""
LINES_NAMED = 12
"""Maximum of lines listed in an error; further ones are counted."""


@dataclass(frozen=True)
class ManifestRow:
    """One recording and what is said in it."""

    line: int
    """Line number in the manifest, from 1."""
    audio: Path
    text: str
    phones: tuple[TimedPhone, ...] = ()
    voice: str = ""
    held_out: bool = False


def read_manifest(path: Path, check: Check = lambda: None, kept_back: bool = True) -> tuple[ManifestRow, ...]:
    """Rows of a manifest; every recording exists and is long enough.

    ``check`` is called per row and may raise to cancel; ``kept_back``: hold rows out if the manifest does not. Raises
    :class:`TrainingError` with a list of all problems.
    """
    problems: list[tuple[int, str]] = []
    rows = []
    try:
        for line, cells in _cells(path):
            check()
            try:
                rows.append(_row(line, cells, path.parent))
            except ValueError as problem:
                problems.append((line, str(problem)))
    except csv.Error as error:
        raise TrainingError(f"The manifest {path} is not a CSV file ({error}); quote texts that hold commas.") from None
    refuse(path, problems)
    if len(rows) < FEWEST:
        raise TrainingError(f"The manifest {path} lists {len(rows)} recordings; at least {FEWEST} are needed.")
    if not any(row.held_out for row in rows) and kept_back:
        held_out = range(0, len(rows), min(KEPT_BACK, len(rows) // 2))
        rows = [replace(row, held_out=number in held_out) for number, row in enumerate(rows)]
    return tuple(rows)


def require_both(training: Sequence[object], held_out: Sequence[object], least: int = 1) -> None:
    """Raise :class:`TrainingError` if there is nothing to train or to validate on, or fewer than ``least`` in all."""
    if not training or not held_out or len(training) + len(held_out) < least:
        raise TrainingError(
            f"There are {len(training)} utterances to train on and {len(held_out)} to validate on, which is too few: "
            "have the model say more sentences, or give recordings (a manifest), or a corpus of natural speech."
        )


def refuse(path: Path, problems: Sequence[tuple[int, str]]) -> None:
    """Raise :class:`TrainingError` if there are ``problems``, pairs of line number and reason."""
    if problems:
        named = "\n".join(f"  line {line}: {problem}" for line, problem in problems[:LINES_NAMED])
        rest = len(problems) - LINES_NAMED
        more = f"\n  and {rest} more" if rest > 0 else ""
        lines = "1 line" if len(problems) == 1 else f"{len(problems)} lines"
        raise TrainingError(f"The manifest {path} cannot be used; correct or remove {lines}:\n{named}{more}")


def _cells(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Cells of every row by column, and the number of its last line."""
    with legible(TrainingError, "manifest", path):
        file = StringIO(read_text(path, "utf-8-sig"))
    first = file.readline()
    file.seek(0)
    if first.count("|") == 1 and "," not in first.partition("|")[0]:
        reader = csv.reader(file, delimiter="|", quoting=csv.QUOTE_NONE)
        header = list(REQUIRED)
        if first.strip() in F5_HEADS:
            next(reader)
    else:
        reader = csv.reader(file, strict=True)
        header = [name.strip().lower() for name in next(reader, [])]
    if not any(header):
        raise TrainingError(f"The manifest {path} is empty; its first line must name the columns {listed(REQUIRED)}.")
    missing = [name for name in REQUIRED if name not in header]
    strange = [name for name in header if name not in (*REQUIRED, *OPTIONAL)]
    if missing or strange or len(set(header)) < len(header):
        raise TrainingError(
            f"The manifest {path} has the columns {', '.join(header)}, but needs {listed(REQUIRED)}, "
            f"may have {', '.join(OPTIONAL)}, and nothing else; correct its first line."
        )
    for cells in reader:
        if any(cell.strip() for cell in cells):
            # Surplus cells go under "?", which names no column.
            yield reader.line_num, dict(zip([*header, *["?"] * (len(cells) - len(header))], cells, strict=False))


def _row(line: int, cells: dict[str, str], folder: Path) -> ManifestRow:
    """Raises :class:`ValueError` with the reason."""
    import soundfile  # loads a shared library: only when a file is read

    if "?" in cells:
        raise ValueError("it has more cells than there are columns; quote texts that hold commas")
    values = {name: cells.get(name, "").strip() for name in (*REQUIRED, *OPTIONAL)}
    if not values["audio"]:
        raise ValueError("it names no audio file")
    if not values["text"]:
        raise ValueError("it has no text")
    if values["set"] not in ("", *SETS):
        raise ValueError(f"the set is {shown(values['set'])}; known: {', '.join(SETS)}")
    audio = folder / values["audio"]
    if not is_regular(audio):
        raise ValueError(f"there is no file {audio}")
    try:
        information = soundfile.info(audio)
    except (soundfile.LibsndfileError, OSError) as error:
        reason = str(getattr(error, "error_string", None) or error).rstrip(".")
        raise ValueError(f"{audio} is not a recording that can be read ({reason})") from None
    if not SHORTEST_SECONDS <= information.duration <= LONGEST_SECONDS:
        allowed = f"from {SHORTEST_SECONDS} to {LONGEST_SECONDS:.0f} s can be used"
        raise ValueError(f"{audio} lasts {information.duration:.2f} s; {allowed}")
    phones = _phones(values["phones"], information.duration)
    return ManifestRow(line, audio, values["text"], phones, values["voice"], values["set"] == VALIDATION)


def _phones(text: str, duration: float) -> tuple[TimedPhone, ...]:
    pairs = [entry.rpartition(":") for entry in text.split()]
    try:
        ends = [float(end) for _, _, end in pairs]
    except ValueError:
        raise ValueError("its phones are not written as phone:end with the end in seconds") from None
    if not all(phone for phone, _, _ in pairs):
        raise ValueError("its phones are not written as phone:end with the end in seconds")
    # Tolerance for rounding: one spectrogram frame, 11 ms.
    if any(after < before for before, after in pairwise([0.0, *ends])) or (ends and ends[-1] > duration + 0.011):
        raise ValueError(f"its phones do not end one after the other within the {duration:.2f} s of the recording")
    return tuple(zip([phone for phone, _, _ in pairs], [0.0, *ends[:-1]], ends, strict=True)) if pairs else ()
