"""From a voice to a prompt: the recording read, levelled, resampled and turned into mel frames."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from pathlib import Path

import torch

from paretone.audio.mel import MelFrontEnd
from paretone.audio.prompt_resampling import resample
from paretone.audio.recording import read_recording
from paretone.errors import TextError
from paretone.front_end import transcripts
from paretone.front_end.speakable import unread_transcript
from paretone.models.base import Voice
from paretone.models.f5.config import HOP, SAMPLE_RATE
from paretone.models.f5.duration import PromptLevel, prompt_frames
from paretone.models.f5.passages import Prompt
from paretone.models.families.voices import Remembered, changed, transcript_of


class PromptReader:
    """Reads voices, and remembers the last one."""

    def __init__(self, mel: MelFrontEnd, whole_frames: bool, phones: Container[str] | None = None) -> None:
        """With ``whole_frames`` recordings are cut to a multiple of a frame and have no frame beyond (the bundled
        models, which have one token a frame); otherwise the spectrogram has one frame more than the duration rule
        counts (upstream). ``phones``: those that the model knows; a voice whose phones are others is as one without."""
        self._mel = mel
        self._whole_frames = whole_frames
        self._phones = phones
        self._prompts: Remembered[Prompt] = Remembered()

    def __call__(self, voice: Voice) -> Prompt:
        """The prompt of ``voice``. Raises :class:`paretone.errors.AudioError` and :class:`TextError`."""
        transcript = transcript_of(voice)
        if self._phones is not None:
            if any(phone not in self._phones for phone, _, _ in voice.phones):
                voice = replace(voice, phones=())
            if not voice.phones and (reason := unread_transcript(transcript)):
                raise TextError(reason)
        return self._prompts.of((voice, changed(voice.audio)), lambda: self._read(voice))

    def _read(self, voice: Voice) -> Prompt:
        recording, name = read_recording(voice.audio), Path(voice.audio).name
        if not voice.phones:  # Phones with times are measured on the recording as it is.
            recording, said = transcripts.fitted(recording, voice.transcript, name)
            voice = replace(voice, transcript=said)
        samples = torch.from_numpy(recording.samples)
        level = PromptLevel.measure(samples)
        samples = resample(level.normalised(samples), recording.sample_rate, SAMPLE_RATE)
        frames, notes = prompt_frames(len(samples)), recording.notes
        if not voice.phones:
            heard = transcripts.hear(samples.numpy(), SAMPLE_RATE, voice.transcript)
            notes = (*notes, *transcripts.remarks(heard, name))
        mel = self._mel(samples[: frames * HOP] if self._whole_frames else samples)
        if self._whole_frames:
            mel = mel[:, :frames]
        return Prompt(voice, mel, frames, level, samples, recording.seconds, notes)
