"""Speech to train on, made by ``flite``: clips with their phones and the exact time of each.

``flite -psdur`` prints when every phone ends, so the alignment is not estimated but known. Clips are trimmed, brought
to 24 kHz and to the level of an F5 prompt, and kept in a work folder in shards; a shard that is there already is not
made again, so an interrupted run continues where it stopped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import soundfile
import torch

from engine import locks
from engine.audio.mel import MelFrontEnd
from engine.audio.resampling import resample
from engine.errors import PlainError
from engine.front_end.phones import PAUSE
from engine.front_end.timed_phone import TimedPhone
from engine.models.catalogue import judged_sentences
from engine.models.f5.config import HOP, SAMPLE_RATE
from engine.training.corpus import Corpus as Corpus
from engine.training.sentences import PROMPT, training_sentences

VOICES = ("slt", "rms")
FLITE_RATE = 16_000
"""Sample rate of these voices. Everything above its half stays empty in the corpus, see the stop band of
:mod:`engine.audio.resampling`."""
LEVEL = 0.1
"""Root mean square of every clip: the level to which F5-TTS brings a prompt."""
LEAD, TAIL = 0.02, 0.05
"""Seconds of silence kept before the first and after the last phone."""
SHARD = 100
"""Clips a shard."""
CORPUS = "corpus"
"""Folder, next to work folders, that holds the corpus of the bundled models."""
SENTENCES = 3_400
"""Sentences of every voice in it."""
HELD_OUT = 60
"""Clips of every voice that are validated on and never trained on."""


@dataclass(frozen=True)
class Clip:
    """One sentence of one voice; ``samples`` are 24 kHz float32, a whole number of hops, ``mel`` (frames, 100)."""

    voice: str
    text: str
    phones: tuple[TimedPhone, ...]
    samples: np.ndarray = field(repr=False)
    mel: np.ndarray = field(repr=False)

    @property
    def frames(self) -> int:
        return len(self.mel)


def speak(sentence: str, voice: str) -> Clip:
    """Let ``flite`` say a sentence. Raises :class:`PlainError` when it is not installed or fails."""
    program = shutil.which("flite")
    if program is None:
        raise PlainError("The program flite, which speaks the training corpus, is missing; run: apt install flite")
    with tempfile.TemporaryDirectory(prefix="paretone-flite-") as folder:
        target = Path(folder) / "clip.wav"
        command = [program, "-voice", voice, "-psdur", "-t", sentence, "-o", str(target)]
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        if outcome.returncode or not target.exists() or not outcome.stdout.strip():
            raise PlainError(f"flite could not say {sentence!r} as {voice}: {outcome.stderr.strip() or 'no output'}.")
        spoken, rate = soundfile.read(target, dtype="float64")
    if rate != FLITE_RATE:
        raise PlainError(
            f"flite gave audio at {rate} Hz where {FLITE_RATE} was expected; use one of {', '.join(VOICES)}."
        )
    return _clip(sentence, voice, spoken, rate, _phone_ends(outcome.stdout))


def _phone_ends(printed: str) -> list[tuple[str, float]]:
    """Phones from the output of ``-psdur``: ``phone:end`` in seconds, separated by blanks. ``axr`` is another name for
    ``er``."""
    pairs = (entry.rsplit(":", 1) for entry in printed.split())
    return [("er" if phone == "axr" else phone, float(end)) for phone, end in pairs]


def _clip(sentence: str, voice: str, spoken: np.ndarray, rate: int, ends: list[tuple[str, float]]) -> Clip:
    start = max(0.0, ends[0][1] - LEAD) if ends[0][0] == PAUSE else 0.0
    stop = (ends[-2][1] if ends[-1][0] == PAUSE else ends[-1][1]) + TAIL
    samples = resample(spoken[int(start * rate) : int(stop * rate)], rate, SAMPLE_RATE)
    samples = (samples * (LEVEL / max(1e-4, float(np.sqrt(np.mean(samples**2)))))).clip(-0.99, 0.99)
    frames = len(samples) // HOP
    samples = samples[: frames * HOP].astype(np.float32)
    mel = MelFrontEnd()(torch.from_numpy(samples))[0, :frames].numpy().astype(np.float16)
    return Clip(voice, sentence, _trimmed(ends, start, frames * HOP / SAMPLE_RATE), samples, mel)


def _trimmed(ends: list[tuple[str, float]], start: float, duration: float) -> tuple[TimedPhone, ...]:
    """Phone times counted from ``start``, covering the clip's duration without a gap."""
    phones: list[TimedPhone] = []
    previous = 0.0
    for phone, end in ends:
        end = min(end - start, duration)
        if end > previous + 1e-6:
            phones.append((phone, round(previous, 4), round(end, 4)))
            previous = end
    if previous < duration:
        phones.append((PAUSE, round(previous, 4), duration))
    return tuple(phones)


def prepare_corpus(
    folder: Path,
    sentences_per_voice: int = SENTENCES,
    voices: Sequence[str] = VOICES,
    excluded: Sequence[str] = (),
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Corpus[Clip]:
    """Make what is missing of the corpus in ``folder`` and open all of it.

    Every voice has its own sentences. ``progress`` is called with finished and total clips.
    Raises :class:`PlainError` when flite is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    count = sentences_per_voice + HELD_OUT
    sentences = training_sentences(count * len(voices), excluded=excluded)
    shards = [
        _Shard(folder, voice, start, tuple(sentences[number * count : (number + 1) * count][start : start + SHARD]))
        for number, voice in enumerate(voices)
        for start in range(0, count, SHARD)
    ]
    if not all(shard.is_complete() for shard in shards):
        # Two trainings may want the same corpus: the second one waits for the first and then finds it made.
        with locks.held(folder / "making.sqlite", lambda: progress(0, count * len(voices))):
            _make(shards, workers, progress)
    training, held_out = [], []
    for voice in voices:
        clips = [clip for shard in shards if shard.voice == voice for clip in shard.open()]
        held_out += clips[:HELD_OUT]
        training += clips[HELD_OUT:]
    return Corpus(tuple(training), tuple(held_out), "flite")


def flite_corpus(folder: Path, sentences: int, progress: Callable[[int, int], None]) -> Corpus[Clip]:
    """The corpus of every bundled model; the sentences that models are judged by are not in it."""
    return prepare_corpus(folder, sentences, excluded=[PROMPT, *judged_sentences()], progress=progress)


def _make(shards: Sequence[_Shard], workers: int | None, progress: Callable[[int, int], None]) -> None:
    """Make those that are missing."""
    missing = [shard for shard in shards if not shard.is_complete()]
    total = sum(len(shard.sentences) for shard in shards)
    done = total - sum(len(shard.sentences) for shard in missing)
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        making = {pool.submit(shard.make): shard for shard in missing}
        try:
            for finished in as_completed(making):
                finished.result()
                done += len(making[finished].sentences)
                progress(done, total)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


@dataclass(frozen=True)
class _Shard:
    """Some sentences of one voice on disk: audio and mels of all clips in a row, and a JSON file that says which
    stretch belongs to which sentence. The JSON file is written last: with it the shard is complete."""

    folder: Path
    voice: str
    start: int
    sentences: tuple[str, ...]

    def _path(self, ending: str) -> Path:
        return self.folder / f"{self.voice}-{self.start:05d}.{ending}"

    def is_complete(self) -> bool:
        try:
            index = json.loads(self._path("json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return [entry["text"] for entry in index] == list(self.sentences)

    def make(self) -> None:
        self._path("json").unlink(missing_ok=True)
        clips = [speak(sentence, self.voice) for sentence in self.sentences]
        np.save(self._path("samples.npy"), np.concatenate([clip.samples for clip in clips]))
        np.save(self._path("mel.npy"), np.concatenate([clip.mel for clip in clips]))
        index = [{"text": clip.text, "frames": clip.frames, "phones": clip.phones} for clip in clips]
        unfinished = self._path("json.part")
        unfinished.write_text(json.dumps(index), encoding="utf-8")
        unfinished.replace(self._path("json"))

    def open(self) -> list[Clip]:
        samples = np.load(self._path("samples.npy"), mmap_mode="r")
        mels = np.load(self._path("mel.npy"), mmap_mode="r")
        clips, first = [], 0
        for entry in json.loads(self._path("json").read_text(encoding="utf-8")):
            last = first + entry["frames"]
            phones = tuple((phone, start, end) for phone, start, end in entry["phones"])
            clips.append(Clip(self.voice, entry["text"], phones, samples[first * HOP : last * HOP], mels[first:last]))
            first = last
        return clips
