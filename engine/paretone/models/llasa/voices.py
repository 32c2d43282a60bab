"""A voice as LLaSA is given it: the codes of a recording, and what the recording says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch

from paretone.audio.prompt_resampling import resample
from paretone.audio.recording import read_recording
from paretone.errors import AudioError, CheckpointError
from paretone.front_end.numbers import spell_numbers
from paretone.models.base import Voice
from paretone.models.families.voices import Remembered, changed, transcript_notes, transcript_of
from paretone.models.llasa.codec_encoder import VoiceEncoder
from paretone.models.llasa.config import LONGEST_REFERENCE, USUAL_RATE
from paretone.models.llasa.xcodec2 import SAMPLE_RATE
from paretone.wording import beyond

SLOWEST, FASTEST = USUAL_RATE / 3, USUAL_RATE * 2.5
"""Bytes of text a second between which a transcript may fit its recording."""


@dataclass(frozen=True)
class LlasaPrompt:
    """Prompt that the speech continues; empty without a voice."""

    transcript: str = ""
    codes: tuple[int, ...] = field(default=(), repr=False)
    rate: float = USUAL_RATE
    """Bytes of text that are spoken in a second."""
    notes: tuple[str, ...] = ()

    def seconds(self, text: str) -> float:
        """Expected seconds of ``text``."""
        return spoken_bytes(text) / self.rate


def spoken_bytes(text: str) -> int:
    """Length of ``text`` read aloud, numbers as words."""
    written = spell_numbers(text) if any(map(str.isdigit, text)) else text
    return len(written.encode())


class VoiceReader:
    """Reads voices, and remembers the last one."""

    def __init__(self, encoder: VoiceEncoder, codes: int) -> None:
        """``codes`` is how many codes the language model knows."""
        self._encoder = encoder
        self._codes = codes
        self._prompts: Remembered[LlasaPrompt] = Remembered()

    def __call__(
        self,
        voice: Voice,
        check: Callable[[], None] = lambda: None,
        status: Callable[[str], None] = lambda text: None,
    ) -> LlasaPrompt:
        """The voice made ready; ``check`` may raise to cancel.

        Raises :class:`AudioError`, :class:`TextError`, and :class:`CheckpointError` where the encoder cannot be used.
        """
        return self._prompts.of((voice, changed(voice.audio)), lambda: self._read(voice, check, status))

    def _read(self, voice: Voice, check: Callable[[], None], status: Callable[[str], None]) -> LlasaPrompt:
        transcript = transcript_of(voice)
        recording = read_recording(voice.audio)
        if recording.seconds > LONGEST_REFERENCE:
            raise AudioError(
                f"The recording {voice.audio} lasts {beyond(recording.seconds)}, but LLaSA has room for "
                f"{LONGEST_REFERENCE:.0f} s besides the new speech; cut it, and its transcript, best to 5 to 12 s."
            )
        samples = resample(torch.from_numpy(recording.samples), recording.sample_rate, SAMPLE_RATE)
        codes = self._encoder(samples.numpy(), status, check)
        if max(codes) >= self._codes:
            raise CheckpointError(
                f"XCodec2 gives the code {max(codes)}, but the language model knows {self._codes} of them: they do not "
                "belong together. Download both again."
            )
        rate = spoken_bytes(transcript) / recording.seconds
        mismatch = ""
        if not SLOWEST <= rate <= FASTEST:
            mismatch = (
                f"The transcript of {Path(voice.audio).name} is too {'long' if rate > FASTEST else 'short'} for its "
                f"{recording.seconds:.1f} s; where it does not fit, LLaSA repeats or drops words."
            )
        notes = (*recording.notes, *transcript_notes(voice, mismatch))
        return LlasaPrompt(transcript, codes, min(max(rate, SLOWEST), FASTEST), notes)
