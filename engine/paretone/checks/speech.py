"""The speech that is checked: samples with everything known about them, and what several checks measure. Torch-free.
All measurements are made once, on first use; a ten-second take needs some ten milliseconds."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from paretone.audio.recording import read_recording
from paretone.errors import AudioError
from paretone.measure.pitch import FEWEST, log_pitch
from paretone.models.base import Synthesis, Voice
from paretone.reading import until_changed
from paretone.setting.take import Take

LEVEL_SECONDS = 0.01
FRAME_SECONDS = 2 * LEVEL_SECONDS
FLOOR = 1e-10
"""Power added before logarithms: −100 dB of full scale."""
VOWELS = frozenset("AIOWYiuæɐɑɔəɛɜɪʊʌᵊᵻ")
PITCH_RATE = 6000


@dataclass(frozen=True, eq=False)
class Speech:
    """Mono ``samples`` (n,) at ``rate`` Hz that should say ``text``."""

    samples: np.ndarray = field(repr=False)
    rate: int
    text: str = ""
    seams: tuple[float, ...] = ()
    """Seconds at which passages, blocks or chunks were joined."""
    prompt: Speech | None = None
    """The voice's recording, with its transcript."""
    similarity: float | None = None
    """Cosine of the speaker embeddings of speech and prompt, if it was measured."""

    @cached_property
    def raw(self) -> np.ndarray:
        """Samples (n,) float32, with zeros for those that are not numbers."""
        return np.where(np.isfinite(self.samples), self.samples, 0).astype(np.float32)

    @cached_property
    def sound(self) -> np.ndarray:
        """:attr:`raw` around zero: a constant offset is no gap, no loop and no speech."""
        return self.raw - self.raw.mean() if len(self.raw) else self.raw

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate

    @cached_property
    def levels(self) -> np.ndarray:
        """Decibels of full scale of each 10 ms, (frames,)."""
        frames = self._frames(1)
        return 10 * np.log10(np.einsum("ij,ij->i", frames, frames) / frames.shape[1] + FLOOR)

    def _frames(self, tens: int) -> np.ndarray:
        """Sound in frames of ``tens`` times 10 ms, (frames, samples)."""
        width = tens * max(1, round(LEVEL_SECONDS * self.rate))
        return self.sound[: len(self.sound) // width * width].reshape(-1, width)

    @cached_property
    def loud(self) -> float:
        """Level of the loud parts in decibels: 90th percentile of all frames within 40 dB of the loudest."""
        near = self.levels[self.levels > self.levels.max(initial=-100.0) - 40]
        return float(np.percentile(near, 90)) if len(near) else -100.0

    @cached_property
    def speaking(self) -> np.ndarray:
        """Whether each 10 ms is speech: at most 30 dB below the loud parts, (frames,) bool."""
        return self.levels > max(self.loud - 30.0, -75.0)

    @cached_property
    def span(self) -> tuple[float, float]:
        """Start and end of the speech in seconds; both 0 without speech."""
        found = runs(self.speaking)
        return (found[0][0] * LEVEL_SECONDS, found[-1][1] * LEVEL_SECONDS) if found else (0.0, 0.0)

    def pauses(self, shortest: float) -> list[tuple[int, int]]:
        """Frames, start and end, of runs of at least ``shortest`` seconds without speech."""
        return [one for one in runs(~self.speaking) if (one[1] - one[0]) * LEVEL_SECONDS >= shortest]

    @property
    def last_sound(self) -> str:
        """Last phoneme of the text, or ``""``."""
        return re.sub(r"\W", "", "".join(_phonemes(self.text)[-1:]))[-1:]

    @cached_property
    def pace(self) -> float | None:
        """Usual length of the text's sounds (by which takes of different texts differ least) over that of the speech
        without pauses of more than 0.2 s; ``None`` without text that can be counted."""
        vowels = syllables(self.text)
        spoken = len(self.levels) - sum(end - start for start, end in self.pauses(0.2))
        if not vowels or not spoken:
            return None
        consonants = sum(map(str.isalpha, "".join(_phonemes(self.text)))) - vowels
        # Last sounds are longer by 0.2 s in all.
        return (0.08 * vowels + 0.05 * consonants + 0.2) / (LEVEL_SECONDS * spoken)

    @cached_property
    def spectra(self) -> np.ndarray:
        """Power spectra of frames of 20 ms, (frames, bins)."""
        frames = self._frames(2)
        found = np.fft.rfft(frames * np.hanning(frames.shape[1]).astype(np.float32), axis=1)
        return (found.real**2 + found.imag**2) / frames.shape[1]

    @property
    def bin_hertz(self) -> float:
        return self.rate / self._frames(2).shape[1]

    @property
    def speaking_frames(self) -> np.ndarray:
        """Whether each of :attr:`spectra` is speech, (frames,) bool."""
        return np.logical_or.reduce(self.speaking[: len(self.speaking) // 2 * 2].reshape(-1, 2), axis=1)

    @cached_property
    def narrow(self) -> tuple[np.ndarray, int]:
        """Sound at about :data:`PITCH_RATE`, averaged over neighbouring samples, and its rate in Hz."""
        factor = max(1, round(self.rate / PITCH_RATE))
        samples = self.sound[: len(self.sound) // factor * factor].reshape(-1, factor).mean(1)
        return samples, round(self.rate / factor)

    @cached_property
    def pitch(self) -> float | None:
        """Median fundamental frequency in hertz; ``None`` with less than 0.2 s of voice."""
        curve = log_pitch(*self.narrow)
        voiced = curve[curve > 0]
        return float(np.exp(np.median(voiced))) if len(voiced) >= FEWEST else None


def runs(marked: np.ndarray) -> list[tuple[int, int]]:
    """Start and end of each run of true values in ``marked`` (n,)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(np.int8)))
    return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]


def syllables(text: str) -> int:
    """Syllables of an English text as it is read; 0 for other languages and without words."""
    return sum(one in VOWELS for sentence in _phonemes(text) for one in sentence)


@lru_cache(maxsize=256)
def _phonemes(text: str) -> tuple[str, ...]:
    """Sentences of an English text as they are read; none for other languages and without words."""
    # Imported on use: the window needs neither before it is painted.
    from paretone.front_end.phonemiser import default_phonemiser
    from paretone.front_end.speakable import is_english

    if not re.search(r"\w", text) or not is_english(text):
        return ()
    return tuple(default_phonemiser().read(text).sentences)


@lru_cache(maxsize=64)
def spoken_words(text: str) -> tuple[tuple[str, str], ...]:
    """Words of an English text as they are read, with their phones in the aligner's notation."""
    from paretone.front_end.alignment import aligner_phones
    from paretone.front_end.phonemiser import default_phonemiser

    read = [(one.text, aligner_phones(one.phonemes)) for one in default_phonemiser().read(text).words]
    return tuple((word, phones) for word, phones in read if phones)


def seams_of(take: Take | Synthesis) -> tuple[float, ...]:
    """Seconds at which the take's passages and the blocks within them were joined."""
    trace, found = take.trace, list[float]()
    seconds = len(take.samples) / take.sample_rate
    if trace.decoding is not None:
        found += trace.decoding.starts[1:]
    elif trace.demasking is not None:
        for number, passage in enumerate(trace.demasking.passages):
            found += [passage.start] if number else []
            found += [passage.start + one.start * trace.demasking.frame_seconds for one in passage.blocks[1:]]
    elif len(trace.chunk_seconds) > 1:
        # Passages of a flow fade into each other by equal parts; a seam is the middle of the fade.
        overlap = (sum(trace.chunk_seconds) - seconds) / (len(trace.chunk_seconds) - 1)
        ends = np.cumsum(trace.chunk_seconds[:-1]) - overlap * np.arange(len(trace.chunk_seconds) - 1)
        found += (ends - overlap / 2).tolist()
    return tuple(one for one in found if 0 < one < seconds)


def speech_of(take: Take | Synthesis, text: str, voice: Voice | None = None) -> Speech:
    """``take`` of ``text`` as speech to check; ``voice``: its voice, whose recording it is compared with."""
    prompt = None if voice is None else prompt_of(voice.audio, voice.transcript)
    similarity = take.metrics.voice_similarity if isinstance(take, Take) else None
    return Speech(take.samples, take.sample_rate, text, seams_of(take), prompt, similarity)


@until_changed(16)
def prompt_of(audio: str, transcript: str = "") -> Speech | None:
    """The recording at ``audio`` to compare with; ``None`` if it cannot be read."""
    try:
        recording = read_recording(audio)
    except AudioError:
        return None
    return Speech(recording.samples, recording.sample_rate, transcript)
