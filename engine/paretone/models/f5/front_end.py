"""Front end of F5: voices to prompts, and texts to passages with token ids and a duration.

Two text front ends exist: characters (official models: characters and pinyin for ids, UTF-8 bytes for the duration) and
phones (the bundled model: natural speech, one phone per mel frame; reasons in ``resources/docs/bundled-models.md``).
Duration and loudness follow the official rules around the sampler (``infer/utils_infer.py``).
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from paretone.audio.mel import MelFrontEnd, resample_prompt
from paretone.audio.recording import read_recording
from paretone.errors import AudioError, TextError
from paretone.front_end import transcripts
from paretone.front_end.alignment import Alignment, alignment_notes
from paretone.front_end.phones import PhoneVocabulary, TimedPhone, labels
from paretone.front_end.pronunciations import HowToRead
from paretone.front_end.reading import NaturalReader
from paretone.front_end.speakable import other_language, unread_transcript
from paretone.last_used import VOICES, LastUsed
from paretone.models.base import Voice
from paretone.models.f5.config import HOP, SAMPLE_RATE
from paretone.models.f5.text import (
    Vocabulary,
    encode,
    finished_transcript,
    maximum_bytes,
    require_readable,
    require_speakable,
    spaced_transcript,
    split,
    split_for_streaming,
)
from paretone.models.families.passages import Passages
from paretone.models.families.voices import transcript_of
from paretone.reading import version

TARGET_LEVEL = 0.1
"""RMS to which quieter prompts are amplified."""
LONGEST_FRAMES = 65536
"""The sampler's limit, including the prompt."""
SHORT_TEXT_BYTES = 10
SHORT_TEXT_SPEED = 0.3
"""Texts below this number of bytes are spoken at this speed, overriding the requested one."""


def total_frames(prompt: int, transcript: str, text: str, speed: float) -> int:
    """Frames to sample, including the prompt: as many per UTF-8 byte of ``text`` as the ``prompt`` has per byte of its
    ``transcript`` (finished and spaced), divided by ``speed``."""
    spoken, known = len(text.encode()), len(transcript.encode())
    if spoken < SHORT_TEXT_BYTES:
        speed = SHORT_TEXT_SPEED
    return prompt + int(prompt / known * spoken / speed)


def sampled_frames(requested: int, prompt_mel_frames: int, text_ids: int) -> int:
    """Frames actually sampled: at least one more than the prompt's and than the text's ids, at most 65,536."""
    return min(max(max(text_ids, prompt_mel_frames) + 1, requested), LONGEST_FRAMES)


@dataclass(frozen=True)
class PromptLevel:
    """The loudness rule: amplify a quiet prompt to the model's training level, and attenuate the speech accordingly."""

    level: float
    """RMS of the prompt before resampling, in float32."""

    @classmethod
    def measure(cls, samples: Tensor) -> PromptLevel:
        """Measure mono float samples of any shape. Raises :class:`AudioError` if they are silent or not numbers."""
        level = torch.sqrt(torch.mean(torch.square(samples.float()))).item()
        if not 0.0 < level < float("inf"):
            raise AudioError("The reference recording is silent or damaged; choose a recording of speech.")
        return cls(level)

    @property
    def raised(self) -> bool:
        return self.level < TARGET_LEVEL

    def normalised(self, samples: Tensor) -> Tensor:
        """The prompt at the target level if it is quieter, else unchanged."""
        return samples * TARGET_LEVEL / self.level if self.raised else samples

    def restored(self, samples: Tensor) -> Tensor:
        """Generated speech at the prompt's original level."""
        return samples * self.level / TARGET_LEVEL if self.raised else samples


@dataclass(frozen=True, eq=False)
class Prompt:
    """Equal only to itself."""

    voice: Voice
    mel: Tensor = field(repr=False)
    """(1, frames, bands) natural-log mel of the recording, on the CPU."""
    frames: int
    """Frames to cut before the new speech; ``mel`` may have one more."""
    level: PromptLevel
    samples: Tensor = field(repr=False)
    """(n,) recording as input of the model, 24 kHz."""
    seconds: float
    """Length before resampling to 24 kHz."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Passage:
    """One piece of text for the sampler."""

    text: str
    ids: Tensor = field(repr=False)
    """(1, tokens) vocabulary positions of prompt and new text."""
    frames: int
    """Frames to sample, including the prompt's."""
    timed: tuple[TimedPhone, ...] = field(default=(), repr=False)
    """Phones of the new text in time, if the front end times them."""


class TextFrontEnd(Protocol):
    def passages(self, text: str, prompt: Prompt, how: HowToRead) -> Passages[Passage]:
        """Cut ``text`` into passages for ``prompt``. Raises :class:`paretone.errors.TextError`."""


class PromptReader:
    """Reads voices, and caches the last ones."""

    def __init__(self, phones: Container[str] | None = None) -> None:
        """``phones``: those of a bundled model, with one token per frame, for which recordings and their mel are cut to
        complete frames; a voice with other phones is treated as one without. Without them, the spectrogram has one
        frame more than in the duration rule (upstream)."""
        self._phones, self._mel = phones, MelFrontEnd()
        self._prompts: LastUsed[Prompt] = LastUsed(VOICES)

    def __call__(self, voice: Voice) -> Prompt:
        """Prompt of ``voice``. Raises :class:`paretone.errors.AudioError` and :class:`TextError`."""
        transcript = transcript_of(voice)
        if self._phones is not None:
            if any(phone not in self._phones for phone, _, _ in voice.phones):
                voice = replace(voice, phones=())
            if not voice.phones and (reason := unread_transcript(transcript)):
                raise TextError(reason)
        return self._prompts.of((voice, version(voice.audio)), lambda: self._read(voice))

    def _read(self, voice: Voice) -> Prompt:
        recording, name = read_recording(voice.audio), Path(voice.audio).name
        if not voice.phones:  # Timed phones refer to the original recording.
            recording, said = transcripts.fitted(recording, voice.transcript, name)
            voice = replace(voice, transcript=said)
        samples = torch.from_numpy(recording.samples)
        level = PromptLevel.measure(samples)
        samples = resample_prompt(level.normalised(samples), recording.sample_rate, SAMPLE_RATE)
        frames, notes = len(samples) // HOP, recording.notes
        if not voice.phones:
            heard = transcripts.hear(samples.numpy(), SAMPLE_RATE, voice.transcript)
            notes = (*notes, *transcripts.remarks(heard, name))
        mel = self._mel(samples) if self._phones is None else self._mel(samples[: frames * HOP])[:, :frames]
        return Prompt(voice, mel, frames, level, samples, recording.seconds, notes)


class CharacterFrontEnd:
    """Reads like the official package. ``vocabulary`` is ``None`` for the byte tokenizer."""

    def __init__(self, vocabulary: Vocabulary | None, tokenizer: str) -> None:
        self._vocabulary = vocabulary
        self._tokenizer = tokenizer

    def passages(self, text: str, prompt: Prompt, how: HowToRead) -> Passages[Passage]:
        """Cut and encode ``text`` like the official package; for a quick start with a shorter first passage, and
        with clauses broken that are too long for one passage."""
        whole = encode(text, self._vocabulary, self._tokenizer)
        require_speakable(text, whole)
        finished = finished_transcript(prompt.voice.transcript)
        transcript = spaced_transcript(finished)
        require_readable(finished, encode(finished, self._vocabulary, self._tokenizer))
        budget = maximum_bytes(finished, prompt.seconds, how.speed)
        pieces = split_for_streaming(text, budget, break_long=True) if how.quick_start else split(text, budget)
        passages = []
        for piece in pieces:
            ids = encode(transcript + piece, self._vocabulary, self._tokenizer).ids
            requested = total_frames(prompt.frames, transcript, piece, how.speed)
            frames = sampled_frames(requested, prompt.mel.shape[1], len(ids))
            passages.append(Passage(piece, torch.tensor([ids]), frames))
        notes = [whole.note] if whole.unknown else []
        if not whole.unknown and (found := other_language(text)):
            notes.append(
                f"The text {found}. The model's vocabulary has all of its letters, so it is spoken; whether it learned "
                "the language is up to the checkpoint."
            )
        return Passages(tuple(passages), tuple(notes))


VOCABULARY = "vocab.txt"
"""File in the model's folder."""


class FramePhones:
    """Reads English as one phone per mel frame, with the phones and lengths of natural speech."""

    def __init__(self, folder: Path) -> None:
        self._vocabulary = PhoneVocabulary.load(folder / VOCABULARY)
        self._reader = NaturalReader()
        self._alignments: LastUsed[Alignment] = LastUsed(1)

    @property
    def phones(self) -> tuple[str, ...]:
        return self._vocabulary.phones

    def passages(self, text: str, prompt: Prompt, how: HowToRead) -> Passages[Passage]:
        pieces, notes = self._reader.pieces(text, how)
        # One phone per frame for the recording: measured, or aligned from the transcript.
        prompt_ids = self.labels(prompt.voice.phones or self._aligned(prompt).phones, prompt.frames)
        passages = []
        for piece in pieces:
            ids = np.concatenate([prompt_ids, self.labels(piece.phones, piece.mel_frames)])
            passages.append(Passage(piece.text, torch.from_numpy(ids)[None], len(ids), piece.phones))
        heard = () if prompt.voice.phones else alignment_notes(self._aligned(prompt))
        return Passages(tuple(passages), (*notes, *heard))

    def labels(self, phones: Sequence[TimedPhone], count: int) -> np.ndarray:
        """(count,) phone at each mel frame, by its number in the vocabulary."""
        return labels(phones, count, self._vocabulary, SAMPLE_RATE, HOP)

    def _aligned(self, prompt: Prompt) -> Alignment:
        def hear() -> Alignment:
            return self._reader.heard(prompt.samples.numpy(), SAMPLE_RATE, prompt.voice.transcript)

        return self._alignments.of(prompt, hear)
