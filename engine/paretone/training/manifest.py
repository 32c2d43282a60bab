"""Manifest: CSV file of recordings to train on, with their texts.

Columns, named in the first line: ``audio`` (a file that libsndfile reads; relative to the manifest) and ``text``;
optional ``phones`` (for models that read phones: ``phone:end`` in seconds, separated by blanks; aligned automatically
if missing), ``voice`` (rows of one voice may be joined into prompt and speech) and ``set`` (``train`` or
``validation``; some rows are held out if missing).

F5-TTS's lists, ``audio|text`` in each line, with or without a first line ``audio_file|text``, are read, too.

A manifest with mistakes is refused before any work, with every line at fault.
"""

from __future__ import annotations

import csv
import hashlib
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Protocol, TextIO

import numpy as np
import torch

from paretone.audio.mel import MelFrontEnd, resample_prompt
from paretone.audio.recording import read_recording
from paretone.errors import PlainError, TextError, TrainingError
from paretone.files import reason
from paretone.front_end.phones import PhoneVocabulary, TimedPhone, labels
from paretone.front_end.reading import NaturalReader
from paretone.models.f5.checkpoint import NATURAL_PHONES, F5Checkpoint
from paretone.models.f5.config import HOP, MEL_BANDS, SAMPLE_RATE
from paretone.models.f5.front_end import PromptLevel
from paretone.models.f5.text import Vocabulary, encode, require_speakable
from paretone.reading import is_regular, require_regular, shown
from paretone.training.flow_matching import SpeechBatch
from paretone.wording import listed

_INDEX, _MELS, _IDS = "index.json", "mel.bin", "ids.bin"


@dataclass(frozen=True)
class Example:
    """One recording as a model sees it."""

    voice: str
    ids: np.ndarray = field(repr=False)
    """(tokens,) int64; one per frame if the model reads phones."""
    mel: np.ndarray = field(repr=False)
    """(frames, bands) float16."""
    prompt: int = 0
    """Frames of prompt at the beginning."""

    @property
    def frames(self) -> int:
        return len(self.mel)


@dataclass(frozen=True)
class Examples:
    training: tuple[Example, ...]
    held_out: tuple[Example, ...]

    @property
    def seconds(self) -> float:
        return sum(one.frames - one.prompt for one in self.training) * HOP / SAMPLE_RATE

    def __add__(self, other: Examples) -> Examples:
        return Examples(self.training + other.training, self.held_out + other.held_out)


class RowReader(Protocol):
    """Reader of rows for one model. ``joins``: whether rows of one voice may be joined into one item."""

    joins: bool

    def check(self, row: ManifestRow) -> None:
        """Raises :class:`ValueError` if the model cannot read the row's text or phones."""

    def read(self, row: ManifestRow) -> tuple[np.ndarray, np.ndarray]:
        """(tokens,) ids and (frames, bands) mel. Raises :class:`PlainError`."""


class PhoneReader:
    """One phone of natural speech per frame, given by the row or aligned; level and trimming as for prompts at
    synthesis."""

    joins = True

    def __init__(self, vocabulary: PhoneVocabulary) -> None:
        self._vocabulary = vocabulary
        self._texts = NaturalReader()
        self._mel = MelFrontEnd()

    def check(self, row: ManifestRow) -> None:
        unknown = [phone for phone, _, _ in row.phones if phone not in self._vocabulary.index]
        if unknown:
            raise ValueError(f"the model has no phone {shown(unknown[0])}")
        if not row.phones:
            try:
                self._texts.text(row.text)
            except TextError as error:
                raise ValueError(str(error)) from None

    def read(self, row: ManifestRow) -> tuple[np.ndarray, np.ndarray]:
        samples = _samples(row, levelled=True)
        frames = len(samples) // HOP
        phones = row.phones or self._texts.heard(samples.numpy(), SAMPLE_RATE, row.text).phones
        ids = labels(phones, frames, self._vocabulary, SAMPLE_RATE, HOP)
        return ids, self._mel(samples[: frames * HOP])[0, :frames].numpy()


class CharacterReader:
    """As in the official training: the text's own tokens, and the spectrogram at the recording's own level."""

    joins = False

    def __init__(self, vocabulary: Vocabulary | None, tokenizer: str) -> None:
        self._encode = partial(encode, vocabulary=vocabulary, tokenizer=tokenizer)
        self._mel = MelFrontEnd()

    def check(self, row: ManifestRow) -> None:
        try:
            require_speakable(row.text, self._encode(row.text))
        except TextError as error:
            raise ValueError(str(error)) from None

    def read(self, row: ManifestRow) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self._encode(row.text).ids, np.int64), self._mel(_samples(row, levelled=False))[0].numpy()


def reader(checkpoint: F5Checkpoint) -> RowReader:
    """Row reader for the model of ``checkpoint``. Raises :class:`paretone.errors.CheckpointError`."""
    folder = checkpoint.path.parent
    if checkpoint.text_front_end == NATURAL_PHONES:
        return PhoneReader(PhoneVocabulary.load(folder / "vocab.txt"))
    if checkpoint.tokenizer == "byte":
        return CharacterReader(None, "byte")
    vocabulary = Vocabulary.read(folder / "vocab.txt")
    vocabulary.require_entries(checkpoint.config.text_num_embeds, str(folder / "vocab.txt"))
    return CharacterReader(vocabulary, checkpoint.tokenizer)


def check_rows(
    manifest: Path, rows: Sequence[ManifestRow], read: RowReader, check: Callable[[], None] = lambda: None
) -> None:
    """Raise :class:`TrainingError` with all lines that the model cannot read."""
    problems = []
    for row in rows:
        check()
        try:
            read.check(row)
        except ValueError as problem:
            problems.append((row.line, str(problem)))
    refuse(manifest, problems)


def prepare(
    manifest: Path,
    rows: Sequence[ManifestRow],
    read: RowReader,
    folder: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Examples:
    """Open the features of ``rows`` in ``folder``; compute them first unless they are there.

    ``progress`` is called with finished and total rows and may raise to cancel. Raises :class:`TrainingError` with all
    unusable recordings, and for a full disk.
    """
    key = _key(rows, read)
    if not _complete(folder, key):
        try:
            _write(manifest, rows, read, folder, key, progress)
        except OSError as error:
            raise TrainingError(f"The prepared speech could not be written to {folder}: {reason(error)}.") from error
    return _open(folder)


def _samples(row: ManifestRow, levelled: bool) -> torch.Tensor:
    recording = read_recording(row.audio)
    samples = torch.from_numpy(recording.samples)
    if levelled:
        samples = PromptLevel.measure(samples).normalised(samples)
    return resample_prompt(samples, recording.sample_rate, SAMPLE_RATE)


def _key(rows: Sequence[ManifestRow], read: RowReader) -> str:
    """Hash of everything that the features depend on."""
    digest = hashlib.sha256(f"1 {type(read).__name__}".encode())
    for row in rows:
        status = row.audio.stat()
        seen = replace(row, audio=row.audio.resolve())
        digest.update(repr((seen, status.st_size, status.st_mtime_ns)).encode())
    return digest.hexdigest()


def _complete(folder: Path, key: str) -> bool:
    try:
        return json.loads((folder / _INDEX).read_text(encoding="utf-8"))["key"] == key
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _write(
    manifest: Path,
    rows: Sequence[ManifestRow],
    read: RowReader,
    folder: Path,
    key: str,
    progress: Callable[[int, int], None],
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _INDEX).unlink(missing_ok=True)
    entries, problems = [], []
    with (folder / _MELS).open("wb") as mels, (folder / _IDS).open("wb") as tokens:
        for number, row in enumerate(rows):
            progress(number, len(rows))
            try:
                ids, mel = read.read(row)
            except PlainError as error:
                problems.append((row.line, str(error)))
                continue
            tokens.write(ids.astype(np.int32).tobytes())
            mels.write(mel.astype(np.float16).tobytes())
            entries.append([row.voice, row.held_out, len(mel), len(ids)])
    refuse(manifest, problems)
    unfinished = folder / (_INDEX + ".part")
    unfinished.write_text(json.dumps({"key": key, "entries": entries}), encoding="utf-8")
    unfinished.replace(folder / _INDEX)
    progress(len(rows), len(rows))


def _open(folder: Path) -> Examples:
    mels = np.memmap(folder / _MELS, np.float16, "r").reshape(-1, MEL_BANDS)
    tokens = np.memmap(folder / _IDS, np.int32, "r")
    training: list[Example] = []
    held_out: list[Example] = []
    frame = token = 0
    for voice, is_held_out, frames, count in json.loads((folder / _INDEX).read_text(encoding="utf-8"))["entries"]:
        ids = tokens[token : token + count].astype(np.int64)
        (held_out if is_held_out else training).append(Example(voice, ids, mels[frame : frame + frames]))
        frame, token = frame + frames, token + count
    return Examples(tuple(training), tuple(held_out))


def collate(items: Sequence[Sequence[Example]]) -> SpeechBatch:
    """Batch whose items are one recording, or two of one voice joined; a prompt inside a recording counts as the
    first."""
    lengths = [sum(one.frames for one in item) for item in items]
    counts = [sum(len(one.ids) for one in item) for item in items]
    mel = torch.zeros(len(items), max(lengths), items[0][0].mel.shape[1])
    ids = torch.full((len(items), max(counts)), -1)
    for row, item in enumerate(items):
        mel[row, : lengths[row]] = torch.from_numpy(np.concatenate([one.mel for one in item]).astype(np.float32))
        ids[row, : counts[row]] = torch.from_numpy(np.concatenate([one.ids for one in item]))
    joins = [item[0].frames if len(item) > 1 else item[0].prompt for item in items]
    return SpeechBatch(mel, ids, torch.tensor(lengths), torch.tensor(joins))


def validation_batches(examples: Sequence[Example], count: int) -> list[SpeechBatch]:
    """About ``count`` fixed items: a recording after another of its voice, if recordings may be joined."""
    draw = random.Random(3)
    joins = may_join(examples)
    items = []
    for one in examples[:: max(1, len(examples) // count)]:
        others = [other for other in examples if joins and other.voice == one.voice and other is not one]
        items.append([draw.choice(others), one] if others else [one])
    items.sort(key=lambda item: sum(one.frames for one in item))
    return [collate(items[start : start + 8]) for start in range(0, len(items), 8)]


def may_join(examples: Sequence[Example]) -> bool:
    """Joining requires one token per frame, named voices, and no prompts."""
    return all(one.voice and len(one.ids) == one.frames and not one.prompt for one in examples)


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


def read_manifest(path: Path, check: Callable[[], None] = lambda: None) -> tuple[ManifestRow, ...]:
    """Rows of a manifest; every recording exists and is long enough.

    ``check`` is called per row and may raise to cancel. Raises :class:`TrainingError` with a list of all problems.
    """
    problems: list[tuple[int, str]] = []
    rows = []
    try:
        require_regular(path)
        with path.open(encoding="utf-8-sig", newline="") as file:
            for line, cells in _cells(file, path):
                check()
                try:
                    rows.append(_row(line, cells, path.parent))
                except ValueError as problem:
                    problems.append((line, str(problem)))
    except FileNotFoundError:
        raise TrainingError(f"There is no manifest {path}; check the path.") from None
    except OSError as error:
        raise TrainingError(f"The manifest {path} cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise TrainingError(f"The manifest {path} is not UTF-8; save it as UTF-8.") from None
    except csv.Error as error:
        raise TrainingError(f"The manifest {path} is not a CSV file ({error}); quote texts that hold commas.") from None
    refuse(path, problems)
    if len(rows) < FEWEST:
        raise TrainingError(f"The manifest {path} lists {len(rows)} recordings; at least {FEWEST} are needed.")
    return _with_validation(rows, path)


def refuse(path: Path, problems: Sequence[tuple[int, str]]) -> None:
    """Raise :class:`TrainingError` if there are ``problems``, pairs of line number and reason."""
    if problems:
        named = "\n".join(f"  line {line}: {problem}" for line, problem in problems[:LINES_NAMED])
        rest = len(problems) - LINES_NAMED
        more = f"\n  and {rest} more" if rest > 0 else ""
        lines = "1 line" if len(problems) == 1 else f"{len(problems)} lines"
        raise TrainingError(f"The manifest {path} cannot be used; correct or remove {lines}:\n{named}{more}")


def _cells(file: TextIO, path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Cells of every row by column, and the number of its last line."""
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
    if any(not phone for phone, _, _ in pairs):
        raise ValueError("its phones are not written as phone:end with the end in seconds")
    # Tolerance for rounding: one spectrogram frame, 11 ms.
    if any(after < before for before, after in pairwise([0.0, *ends])) or (ends and ends[-1] > duration + 0.011):
        raise ValueError(f"its phones do not end one after the other within the {duration:.2f} s of the recording")
    return tuple(zip([phone for phone, _, _ in pairs], [0.0, *ends[:-1]], ends, strict=True)) if pairs else ()


def _with_validation(rows: list[ManifestRow], path: Path) -> tuple[ManifestRow, ...]:
    if not any(row.held_out for row in rows):
        kept_back = set(range(0, len(rows), min(KEPT_BACK, len(rows) // 2)))
        rows = [
            ManifestRow(row.line, row.audio, row.text, row.phones, row.voice, number in kept_back)
            for number, row in enumerate(rows)
        ]
    if all(row.held_out for row in rows):
        raise TrainingError(f"The manifest {path} has rows to validate on only; put {TRAIN!r} in the column 'set'.")
    return tuple(rows)
