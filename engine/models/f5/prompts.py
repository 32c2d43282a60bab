"""From a voice to a prompt: the recording read, levelled, resampled and turned into mel frames."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from engine.audio.mel import MelFrontEnd
from engine.audio.prompt import prepare_prompt
from engine.audio.prompt_resampling import resample
from engine.audio.recording import read_recording
from engine.errors import TextError
from engine.models.base import Voice
from engine.models.f5.config import HOP, SAMPLE_RATE
from engine.models.f5.duration import PromptLevel, prompt_frames
from engine.models.f5.passages import Prompt


@dataclass(frozen=True)
class _Key:
    """What a prompt depends on; a recording that was changed on disk is read again."""

    voice: Voice
    changed: int


class PromptReader:
    """Reads voices, and remembers the last one: users change the text far more often than the voice."""

    def __init__(self, mel: MelFrontEnd, whole_frames: bool) -> None:
        """With ``whole_frames`` recordings are cut to a multiple of a frame and have no frame beyond (the bundled
        models, which have one token a frame); otherwise the spectrogram has one frame more than the duration rule
        counts (upstream)."""
        self._mel = mel
        self._whole_frames = whole_frames
        self._last: tuple[_Key, Prompt] | None = None

    def __call__(self, voice: Voice) -> Prompt:
        """The prompt of ``voice``. Raises :class:`engine.errors.AudioError` and :class:`engine.errors.TextError`."""
        if not voice.transcript.strip():
            raise TextError(
                f"The voice {voice.title or voice.id!r} has no transcript; write down what the recording says."
            )
        path = Path(voice.audio)
        key = _Key(voice, path.stat().st_mtime_ns if path.is_file() else 0)
        if self._last is None or self._last[0] != key:
            self._last = key, self._read(voice)
        return self._last[1]

    def _read(self, voice: Voice) -> Prompt:
        recording = read_recording(voice.audio)
        if not voice.phones:  # Phones with times are measured on the recording as it is.
            recording = prepare_prompt(recording)
        samples = torch.from_numpy(recording.samples)
        level = PromptLevel.measure(samples)
        samples = resample(level.normalised(samples), recording.sample_rate, SAMPLE_RATE)
        frames = prompt_frames(len(samples))
        mel = self._mel(samples[: frames * HOP] if self._whole_frames else samples)
        if self._whole_frames:
            mel = mel[:, :frames]
        return Prompt(voice, mel, frames, level, samples, recording.seconds, recording.notes)
