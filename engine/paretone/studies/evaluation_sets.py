"""Sentences of studies, and evaluation sets as they are published: texts with prompts and perhaps recordings of people
saying them. Torch-free.

* **LibriSpeech-PC test-clean, cross-sentence**: six fields between tabs, id, seconds and text of the prompt, then of
  the sentence to speak. The recordings are LibriSpeech's, ``speaker/chapter/id.flac`` in a separate folder.
* **Seed-TTS**, test-en, test-zh and its hard cases (``meta.lst``, ``hardcase.lst``): four or five fields between bars,
  id, text and recording of the prompt, text to speak, and optionally its recording, by default ``wavs/id.wav`` next to
  the list. A fifth field that names no recording is an instruction, as in lists of instructed speech.
* **CSV** with a first line that names its columns: ``text``, ``prompt`` (a recording), ``transcript`` (what it says),
  and optionally ``recording`` and ``instruction``.
* **Recordings with their texts**, F5-TTS's ``audio|text`` or a CSV with ``audio``, ``text`` and optionally ``voice``:
  every text is spoken in the voice of the row before it (of its voice), the first in that of the last.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

from paretone.errors import StudyError
from paretone.models.base import Utterance, Voice
from paretone.models.voices import own_voice, with_folder
from paretone.reading import decoded, is_regular, legible, read_bytes, shown
from paretone.setting.setting import Setting
from paretone.training.manifest import F5_HEADS
from paretone.wording import grouped, listed

PUBLISHED = {
    "09811d521effa4eeb1da655f7379de97343b2f5ea86d829ec7ccb8656758a10f": "librispeech_pc_test_clean_cross_sentence.lst"
}
"""Names of lists by the SHA-256 of the published file."""
KNOWN = {
    "librispeech_pc_test_clean_cross_sentence.lst": ("LibriSpeech-PC test-clean, cross-sentence", 1127),
    "en/meta.lst": ("Seed-TTS test-en", 1088),
    "zh/meta.lst": ("Seed-TTS test-zh", 2020),
    "zh/hardcase.lst": ("Seed-TTS test-zh, hard cases", 400),
}
"""Titles and published numbers of lines by the end of a list's path."""
_SOUND = (".wav", ".flac", ".mp3", ".ogg", ".m4a")
_PAIRS = ("text", "prompt", "transcript"), ("recording", "instruction")
_RECORDINGS = ("audio", "text"), ("voice",)
"""Required and optional columns of both kinds of CSV."""


@dataclass(frozen=True)
class StudySentence:
    """A text, its speaker, and a recording of a person saying it, if any."""

    text: str
    voice: Voice
    reference: str = ""
    """Path of the recording, or ``""``."""
    instruction: str = ""
    """For models with the option ``instruction``, in place of the setting's; ``""``: that of the setting."""

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits, equal for equal texts in equal voices; the user's own recordings are compared by
        path, so that studies of earlier versions continue."""
        named = [self.text, with_folder(self.voice), *([self.instruction] if self.instruction else [])]
        return hashlib.sha256(json.dumps(named, ensure_ascii=False).encode()).hexdigest()[:16]

    def instructed(self, setting: Setting) -> Setting:
        """``setting`` with the sentence's instruction, if its model follows any."""
        if not self.instruction or "instruction" not in setting.options:
            return setting
        return replace(setting, options=setting.options.replace(instruction=self.instruction))

    @property
    def utterance(self) -> Utterance:
        return Utterance(self.text, self.voice)


@dataclass(frozen=True)
class EvaluationSet:
    path: Path
    sha256: str
    """Of the list's bytes, hexadecimal."""
    rows: tuple[StudySentence, ...]

    @property
    def title(self) -> str:
        """Title of a known set, otherwise the file's name."""
        return self._known[0] if self._known else self.path.name

    @property
    def _known(self) -> tuple[str, int] | None:
        path = self.path.as_posix()
        return next((one for end, one in KNOWN.items() if f"/{path}".endswith(f"/{end}")), None)

    @property
    def checked(self) -> str:
        """What the hash says about the list, as a clause."""
        if self.sha256 in PUBLISHED:
            return "as published"
        if self.path.name in PUBLISHED.values():
            return "not as published: its SHA-256 differs"
        if self._known and self._known[1] != len(self.rows):
            return f"not as published: that has {grouped(self._known[1])} lines"
        if self._known is None:
            return "a list of no known set, recorded and not checked"
        return "its published SHA-256 is not known here, so it is recorded and not checked"

    @cached_property
    def hours(self) -> tuple[float, float]:
        """Hours of the different prompts, and of the recordings of the texts; unreadable ones count as 0."""
        prompts = {one.voice.audio for one in self.rows}
        recordings = {one.reference for one in self.rows if one.reference}
        first, second = (sum(map(_seconds, paths)) / 3600 for paths in (prompts, recordings))
        return first, second

    @property
    def words(self) -> str:
        """Title, number of lines, hours and hash, as a sentence."""
        prompts, recordings = self.hours
        recorded = sum(bool(one.reference) for one in self.rows)
        parts = [f"{grouped(len(self.rows))} lines", f"{prompts:.2f} h of prompts"]
        parts += [f"{recordings:.2f} h of recordings of {grouped(recorded)} of the texts"] if recorded else []
        instructed = sum(bool(one.instruction) for one in self.rows)
        parts += [f"instructions in {grouped(instructed)} lines"] if instructed else []
        return f"{self.title}: {', '.join(parts)}; SHA-256 {self.sha256[:12]}…, {self.checked}."


@lru_cache(maxsize=100_000)
def _seconds(path: str) -> float:
    import soundfile

    try:
        return float(soundfile.info(path).duration)
    except (OSError, RuntimeError):
        return 0.0


def read_evaluation(path: Path, audio: Path | None = None, sha256: str = "") -> EvaluationSet:
    """The list at ``path``; ``audio``: folder of LibriSpeech's recordings; ``sha256``: wanted hash of the list. Raises
    :class:`StudyError` with the line at fault, the first missing recording, or both hashes if they differ."""
    with legible(StudyError, "list", path):
        content = read_bytes(path)
        text = decoded(content, "utf-8-sig")
    found = hashlib.sha256(content).hexdigest()
    if sha256 and sha256 != found:
        raise StudyError(
            f"The list {path} has changed: its SHA-256 is {found}, and {sha256} was wanted; get that list, or remove "
            "manifest_sha256 from the study."
        )
    lines = text.splitlines()
    rows = _from_csv(lines, path) if path.suffix == ".csv" and "|" not in next(iter(lines), "") else None
    rows = [*(_from_lines(lines, path, audio) if rows is None else rows)]
    if not rows:
        raise StudyError(f"The list {path} is empty; choose the list as it was published.")
    for row in rows:
        if not Path(row.voice.audio).is_file():
            raise StudyError(
                f"The recording {row.voice.audio} of the list {path} is missing; check where its audio lies."
            )
    return EvaluationSet(path, found, tuple(rows))


def _from_lines(lines: Sequence[str], path: Path, audio: Path | None) -> Iterator[StudySentence]:
    recordings: list[tuple[str, str, str]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or (number == 1 and line.strip() in F5_HEADS):
            continue
        parts = line.strip("\n").split("\t")
        if len(parts) == 6:
            yield _librispeech(parts, path, number, audio)
        elif len(parts := line.strip().split("|")) in (4, 5):
            yield _seed_tts(parts, path)
        elif len(parts) == 2:
            recordings.append((parts[0].strip(), parts[1].strip(), ""))
        else:
            raise StudyError(
                f"Line {number} of {path} has neither six fields between tabs (LibriSpeech-PC) nor four or five "
                "(Seed-TTS) or two (audio|text) between bars; choose the list as it was published."
            )
    yield from _paired(recordings, path)


def _librispeech(parts: list[str], path: Path, number: int, audio: Path | None) -> StudySentence:
    if audio is None:
        raise StudyError(f"{path} is a list of LibriSpeech; give the folder of its recordings (manifest_audio).")
    prompt, _, transcript, spoken, _, text = parts

    def recording(name: str) -> str:
        pieces = name.split("-")
        if len(pieces) != 3:
            raise StudyError(f"Line {number} of {path}: {shown(name)} is not speaker-chapter-number.")
        return str(audio / pieces[0] / pieces[1] / f"{name}.flac")

    return StudySentence(text.strip(), own_voice(recording(prompt), transcript.strip()), recording(spoken))


def _seed_tts(parts: list[str], path: Path) -> StudySentence:
    name, transcript, prompt, text, *rest = (one.strip() for one in parts)
    last = rest[0] if rest else ""
    instructs = bool(last) and not last.casefold().endswith(_SOUND) and not is_regular(path.parent / last)
    spoken = path.parent / (f"wavs/{name}.wav" if instructs or not last else last)
    reference = str(spoken) if spoken.is_file() else ""
    return StudySentence(text, own_voice(str(path.parent / prompt), transcript), reference, last if instructs else "")


def _from_csv(lines: Sequence[str], path: Path) -> Iterator[StudySentence]:
    reader = csv.reader(lines, strict=True)
    header = [name.strip().lower() for name in next(reader, [])]
    fits = [
        set(needed) <= set(header) <= {*needed, *more} and len(set(header)) == len(header)
        for needed, more in (_PAIRS, _RECORDINGS)
    ]
    if not any(fits):
        kinds = " or ".join(f"{listed(needed)} (and {listed(more)})" for needed, more in (_PAIRS, _RECORDINGS))
        raise StudyError(f"{path} has the columns {', '.join(header) or 'none'}, but needs {kinds}.")
    recordings: list[tuple[str, str, str]] = []
    try:
        for cells in reader:
            if not any(cells):
                continue
            if len(cells) != len(header):
                raise ValueError(f"it has {len(cells)} cells, not {len(header)}; quote texts that hold commas")
            values = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
            wanted = _PAIRS[0] if fits[0] else _RECORDINGS[0]
            if empty := [name for name in wanted if not values[name] and name != "transcript"]:
                raise ValueError(f"no {listed(empty)}")
            if not fits[0]:
                recordings.append((values["audio"], values["text"], values.get("voice", "")))
                continue
            voice = own_voice(str(path.parent / values["prompt"]), values["transcript"])
            spoken = values.get("recording", "")
            reference = str(path.parent / spoken) if spoken else ""
            yield StudySentence(values["text"], voice, reference, values.get("instruction", ""))
    except (csv.Error, ValueError) as error:
        raise StudyError(f"Line {reader.line_num} of {path} cannot be used: {error}.") from error
    yield from _paired(recordings, path)


def _paired(recordings: Sequence[tuple[str, str, str]], path: Path) -> Iterator[StudySentence]:
    """Each text in the voice of the row before it with the same voice's name: (audio, text, voice) of each row."""
    last = {voice: (audio, text) for audio, text, voice in recordings}
    for audio, text, voice in recordings:
        prompt, transcript = last[voice]
        if prompt == audio:
            raise StudyError(
                f"{path} has a single recording{f' of {shown(voice)}' if voice else ''}; a text is spoken in the voice "
                "of another recording, so give two or more."
            )
        last[voice] = audio, text
        yield StudySentence(text, own_voice(str(path.parent / prompt), transcript), str(path.parent / audio))
