"""Training features of a recording and its text: mel frames and token ids, cached in the work folder.

Alignment and spectrograms take far longer than reading, so features are stored in two flat memory-mapped files and an
index. The index is written last: it marks the folder as complete.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
import torch

from paretone.audio.mel import MelFrontEnd, resample_prompt
from paretone.audio.recording import read_recording
from paretone.errors import PlainError, TextError, TrainingError
from paretone.files import explained, write_atomically
from paretone.front_end.phonemiser import default_phonemiser
from paretone.front_end.phones import PhoneVocabulary, labels
from paretone.front_end.reading import NaturalReader
from paretone.models.f5.checkpoint import F5Checkpoint
from paretone.models.f5.config import HOP, MEL_BANDS, NATURAL_PHONES, SAMPLE_RATE
from paretone.models.f5.front_end import PromptLevel
from paretone.models.f5.text import Vocabulary, encode, require_speakable
from paretone.observer import Check
from paretone.reading import shown
from paretone.training.flow_matching import SpeechBatch
from paretone.training.manifest import ManifestRow, refuse

_INDEX, _MELS, _IDS = "index.json", "mel.bin", "ids.bin"


@dataclass(frozen=True)
class Example:
    """One recording as a model sees it."""

    voice: str
    ids: np.ndarray = field(repr=False)
    """(tokens,) integers; one per frame if the model reads phones."""
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

    @property
    def described(self) -> str:
        return f"{len(self.training)} recordings, {self.seconds / 3600:.2f} h"

    def __add__(self, other: Examples) -> Examples:
        return Examples(self.training + other.training, self.held_out + other.held_out)


class RowReader(Protocol):
    def check(self, row: ManifestRow) -> None:
        """Raises :class:`ValueError` if the model cannot read the row's text or phones."""

    def read(self, row: ManifestRow) -> tuple[np.ndarray, np.ndarray]:
        """(tokens,) ids and (frames, bands) mel. Raises :class:`PlainError`."""


class PhoneReader:
    """One phone of natural speech per frame, given by the row or aligned; level and trimming as at synthesis."""

    def __init__(self, vocabulary: PhoneVocabulary) -> None:
        self._vocabulary, self._texts, self._mel = vocabulary, NaturalReader(), MelFrontEnd()

    def check(self, row: ManifestRow) -> None:
        unknown = [phone for phone, _, _ in row.phones if phone not in self._vocabulary.index]
        if unknown:
            raise ValueError(f"the model has no phone {shown(unknown[0])}")
        if not row.phones:
            try:
                default_phonemiser()(row.text)
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


def check_rows(manifest: Path, rows: Sequence[ManifestRow], read: RowReader, check: Check = lambda: None) -> None:
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
    # Everything that the features depend on.
    digest = hashlib.sha256(f"1 {type(read).__name__}".encode())
    for row in rows:
        status = row.audio.stat()
        seen = replace(row, audio=row.audio.resolve())
        digest.update(repr((seen, status.st_size, status.st_mtime_ns)).encode())
    key = digest.hexdigest()
    try:
        if json.loads((folder / _INDEX).read_text(encoding="utf-8"))["key"] == key:
            return _open(folder)
    except (OSError, ValueError, KeyError, TypeError):
        pass  # There is none, or it is incomplete.
    entries, problems = [], []
    with explained(TrainingError, f"The prepared speech could not be written to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _INDEX).unlink(missing_ok=True)
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
        write_atomically(folder / _INDEX, json.dumps({"key": key, "entries": entries}).encode())
    progress(len(rows), len(rows))
    return _open(folder)


def _samples(row: ManifestRow, levelled: bool) -> torch.Tensor:
    recording = read_recording(row.audio)
    samples = torch.from_numpy(recording.samples)
    if levelled:
        samples = PromptLevel.measure(samples).normalised(samples)
    return resample_prompt(samples, recording.sample_rate, SAMPLE_RATE)


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
    """Batch whose items are one recording, or two of one voice joined; a prompt inside one counts as the first."""
    lengths = [sum(one.frames for one in item) for item in items]
    counts = [sum(len(one.ids) for one in item) for item in items]
    mel = torch.zeros(len(items), max(lengths), items[0][0].mel.shape[1])
    ids = torch.full((len(items), max(counts)), -1)
    for row, item in enumerate(items):
        mel[row, : lengths[row]] = torch.from_numpy(np.concatenate([one.mel for one in item]).astype(np.float32))
        ids[row, : counts[row]] = torch.from_numpy(np.concatenate([one.ids for one in item]))
    joins = [item[0].frames if len(item) > 1 else item[0].prompt for item in items]
    return SpeechBatch(mel, ids, torch.tensor(lengths), torch.tensor(joins))


def with_short_prompts(
    items: Iterable[Sequence[Example]], shortest: int, longest: int, generator: torch.Generator
) -> SpeechBatch:
    """Batch of ``items``; of pairs only an excerpt of the first recording, as long in the whole batch, of ``shortest``
    to ``longest`` frames."""

    def share() -> float:
        return float(torch.rand((), generator=generator))

    count = round(shortest * (longest / shortest) ** share())

    def excerpt(one: Example) -> Example:
        first = int(share() * max(one.frames - count + 1, 1))
        return replace(one, ids=one.ids[first : first + count], mel=one.mel[first : first + count])

    return collate([[excerpt(item[0]), *item[1:]] if len(item) > 1 else item for item in items])


def may_join(examples: Sequence[Example]) -> bool:
    """Joining requires one token per frame, named voices, and no prompts."""
    return all(one.voice and len(one.ids) == one.frames and not one.prompt for one in examples)
