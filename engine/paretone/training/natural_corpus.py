"""Natural training speech from a teacher: mels, latents and timed phones in hundreds of voices.

A voice is a pitch factor and a formant scale applied to the teacher's voice. Pitch range, tempo, and emphasis on a word
vary from sentence to sentence without a label: for a model, the text leaves them open. An utterance is a function of
the corpus's seed and its number, so that shards can be made in any order and by several runs; existing shards are kept.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from paretone import database
from paretone.audio.mel import MelFrontEnd
from paretone.errors import TrainingError
from paretone.files import explained, write_atomically
from paretone.front_end.phones import TimedPhone, timed_phones
from paretone.front_end.reading import EMPHASISED, STRENGTHS, TEMPOS
from paretone.models.catalogue import judged_sentences
from paretone.models.minis.natural_decoder import (
    FORMANT,
    FORMANT_MEAN,
    FORMANT_SCALE,
    HOP,
    LEVEL_MEAN,
    SAMPLE_RATE,
    VOICE,
)
from paretone.reading import parsed_json, read_text
from paretone.training.batches import Corpus
from paretone.training.sentences import PROMPT, corpus_sentences

NATURAL_CORPUS = "voice-corpus"
"""Folder of the corpus, next to work folders."""
SHARD = 100
"""Utterances per shard."""
PITCHES, FORMANTS = (0.82, 1.15), (0.92, 1.05)
"""Ranges of the voices' factors on the teacher's pitch and formants."""
RANGES = (0.6, 1.5)
"""Range of the utterances' factors on the pitch range."""
PITCH_DEVIATION = 0.02
"""Standard deviation of the logarithm of a voice's pitch over its utterances."""
_PLAN, _LOCK = "plan.json", "making.sqlite"


@dataclass(frozen=True)
class CorpusOptions:
    voices: int = 320
    sentences: int = 20
    held_out_voices: int = 12
    """Voices held out from training, with held-out sentences."""
    held_out_sentences: int = 8
    seed: int = 1

    @property
    def utterances(self) -> int:
        return self.voices * self.sentences + self.held_out_voices * self.held_out_sentences


@dataclass(frozen=True)
class Manner:
    pitch: float = 1.0
    formant: float = 1.0
    pitch_range: float = 1.0
    tempo: float = 1.0
    emphasis: float | None = None
    """Place of the emphasised word, as a share of the words; ``None``: no emphasis."""
    strength: float = 0.0
    """Strength of the emphasis, from 0 to 1."""
    seed: int = 0


@dataclass(frozen=True)
class SpokenSentence:
    symbols: tuple[str, ...]
    lengths: tuple[int, ...]
    """Latent frames per symbol."""
    latents: np.ndarray = field(repr=False)
    """(frames, 34) float32."""
    samples: np.ndarray = field(repr=False)
    """(n,) float32 at 24 kHz."""


class Speaker(Protocol):
    """Teacher; see :class:`paretone.training.natural_teacher.NaturalTeacher`."""

    def speak(self, text: str, delivery: Manner) -> list[SpokenSentence]:
        """The sentences of ``text``."""


@dataclass(frozen=True)
class NaturalClip:
    voice: str
    text: str
    formant: float
    phones: tuple[TimedPhone, ...]
    mel: np.ndarray = field(repr=False)
    """(mel frames, 100) float16: F5-TTS's front end at its prompt level."""
    latents: np.ndarray = field(repr=False)
    """(latent frames, 34) float16."""

    @property
    def frames(self) -> int:
        return len(self.mel)


@dataclass(frozen=True)
class PlannedSentence:
    voice: str
    text: str
    delivery: Manner
    held_out: bool


def planned(options: CorpusOptions) -> list[PlannedSentence]:
    """All utterances of a corpus: training first, then held out."""
    counts = ((options.voices, options.sentences), (options.held_out_voices, options.held_out_sentences))
    texts = iter(corpus_sentences(options.utterances, options.seed, [PROMPT, *judged_sentences()]))
    utterances: list[PlannedSentence] = []
    for part, (voices, sentences) in enumerate(counts):
        for number in range(voices):
            draw = np.random.default_rng([options.seed, part, number])
            pitch, formant = draw.uniform(*PITCHES), draw.uniform(*FORMANTS)
            for _ in range(sentences):
                delivery = _delivery(np.random.default_rng([options.seed, len(utterances)]), pitch, formant)
                utterances.append(PlannedSentence(f"{'vh'[part]}{number:03d}", next(texts), delivery, bool(part)))
    return utterances


def _delivery(draw: np.random.Generator, pitch: float, formant: float) -> Manner:
    emphasis, strength = draw.uniform(), draw.uniform(*STRENGTHS)
    return Manner(
        pitch=float(pitch * np.exp(draw.normal(0, PITCH_DEVIATION))),
        formant=float(formant),
        pitch_range=draw.uniform(*RANGES),
        tempo=draw.uniform(*TEMPOS),
        emphasis=emphasis if draw.uniform() < EMPHASISED else None,
        strength=strength,
        seed=int(draw.integers(2**31)),
    )


def make_corpus(
    folder: Path,
    options: CorpusOptions,
    teacher: Callable[[], Speaker],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Corpus[NaturalClip]:
    """Open the corpus in ``folder``; make missing parts first.

    ``teacher`` is called if parts are missing; ``progress`` is called with finished and total utterances and may raise
    to cancel. Raises :class:`TrainingError` if ``folder`` holds a corpus of other options, or cannot be written.
    """
    utterances = planned(options)
    with explained(TrainingError, f"The corpus could not be written to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        with database.held(folder / _LOCK, lambda: progress(0, len(utterances))):
            path, content = folder / _PLAN, json.dumps(asdict(options), indent=1).encode() + b"\n"
            if not path.exists():
                write_atomically(path, content)
            elif path.read_bytes() != content:
                raise TrainingError(f"{path} describes another corpus; choose another folder, or the same options.")
            speaker: Speaker | None = None
            for start in range(0, len(utterances), SHARD):
                shard, wanted = _Shard(folder, start), utterances[start : start + SHARD]
                if shard.holds(wanted):  # No progress: it says nothing about the time that the others take.
                    continue
                speaker = speaker or teacher()

                def spoken(place: int, start: int = start) -> None:
                    progress(start + place, len(utterances))

                shard.make(wanted, speaker, spoken)
                progress(start + len(wanted), len(utterances))
    return open_corpus(folder)


def open_corpus(folder: Path) -> Corpus[NaturalClip]:
    """Open a complete corpus. Raises :class:`TrainingError` if it is incomplete."""
    try:
        options = CorpusOptions(**parsed_json(read_text(folder / _PLAN)))
        shards = [_Shard(folder, start) for start in range(0, options.utterances, SHARD)]
        clips = [one for shard in shards for one in shard.open()]
    except (OSError, ValueError, TypeError, KeyError, EOFError) as error:
        why = f"{type(error).__name__}: {error}"
        if isinstance(error, OSError) and error.strerror:
            why = f"{Path(error.filename or folder).name}: {error.strerror.partition(';')[0]}"
        raise TrainingError(
            f"{folder} holds no complete corpus ({why}); make it: paretone train voice-corpus --work {folder}"
        ) from None
    return Corpus(
        tuple(clip for clip, held_out in clips if not held_out),
        tuple(clip for clip, held_out in clips if held_out),
        "hibari-tts",
    )


def known_options(folder: Path) -> CorpusOptions | None:
    """Options of the corpus in ``folder``, complete or not; ``None`` without one."""
    try:
        return CorpusOptions(**json.loads((folder / _PLAN).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


@dataclass(frozen=True)
class _Shard:
    """Consecutive utterances on disk: concatenated mels and latents, and a JSON file with each clip's frames. The JSON
    file is written last: it marks the shard as complete."""

    folder: Path
    start: int
    """Number of the first utterance."""

    def _path(self, ending: str) -> Path:
        return self.folder / f"{self.start:06d}.{ending}"

    def _index(self) -> dict[str, list]:
        return json.loads(self._path("json").read_text(encoding="utf-8"))

    def holds(self, utterances: Sequence[PlannedSentence]) -> bool:
        """Complete, and made of ``utterances``."""
        try:
            return bool(self._arrays()) and self._index()["utterances"] == _listed(utterances)
        except (OSError, ValueError, KeyError, TypeError, EOFError):
            return False

    def _arrays(self) -> list[np.ndarray]:
        """Mels and latents, which stay on the disk."""
        return [np.load(self._path(ending), mmap_mode="r") for ending in ("mel.npy", "latents.npy")]

    def make(self, utterances: Sequence[PlannedSentence], teacher: Speaker, spoken: Callable[[int], None]) -> None:
        """Synthesise ``utterances`` with ``teacher``; ``spoken`` is called with the number finished."""
        self._path("json").unlink(missing_ok=True)
        front_end = MelFrontEnd()
        clips, mels, latents = [], [], []
        for place, utterance in enumerate(utterances):
            spoken(place)
            for one in teacher.speak(utterance.text, utterance.delivery):
                samples = torch.from_numpy(one.samples) * math.exp(LEVEL_MEAN)
                mel = front_end(samples)[0].numpy().astype(np.float16)
                mels.append(mel)
                latents.append(one.latents.astype(np.float16))
                clips.append([place, len(mel), len(one.latents), one.symbols, one.lengths])
        np.save(self._path("mel.npy"), np.concatenate(mels))
        np.save(self._path("latents.npy"), np.concatenate(latents))
        write_atomically(self._path("json"), json.dumps({"utterances": _listed(utterances), "clips": clips}).encode())

    def open(self) -> list[tuple[NaturalClip, bool]]:
        """Every clip, and whether it is held out."""
        index = self._index()
        mels, latents = self._arrays()
        clips, mel, latent = [], 0, 0
        for place, mel_frames, frames, symbols, lengths in index["clips"]:
            voice, text, delivery, held_out = index["utterances"][place]
            clip = NaturalClip(
                voice,
                text,
                Manner(**delivery).formant,
                timed_phones(symbols, lengths, HOP / SAMPLE_RATE),
                mels[mel : mel + mel_frames],
                latents[latent : latent + frames],
            )
            clips.append((clip, held_out))
            mel, latent = mel + mel_frames, latent + frames
        return clips


def _listed(utterances: Sequence[PlannedSentence]) -> list[list]:
    return [[one.voice, one.text, asdict(one.delivery), one.held_out] for one in utterances]


def voice_frames(clip: NaturalClip) -> Tensor:
    """Voice frames (latent frames, 36) of ``clip`` at the level of an F5 prompt."""
    frames = torch.zeros(len(clip.latents), VOICE)
    frames[:, :FORMANT] = torch.from_numpy(clip.latents.astype(np.float32))
    frames[:, FORMANT] = (clip.formant - FORMANT_MEAN) / FORMANT_SCALE
    return frames
