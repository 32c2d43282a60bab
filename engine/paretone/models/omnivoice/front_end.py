"""Front end of OmniVoice: recordings and passages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from paretone.audio.mel import resample_prompt
from paretone.audio.recording import Recording, read_recording
from paretone.errors import SettingError, TextError
from paretone.last_used import LastUsed
from paretone.models.base import Voice
from paretone.models.families.voices import changed, kept_codes, transcript_notes, transcript_of
from paretone.models.files.checkpoints import Shards
from paretone.models.omnivoice.checkpoint import CODEC, OmniVoiceFolder
from paretone.models.omnivoice.config import CHUNK, FASTEST, FRAME_RATE, LONGEST_CANVAS, LONGEST_REFERENCE, SLOWEST
from paretone.models.omnivoice.sound import QUIET, REFERENCE_PAUSES, cut_of, without_silence
from paretone.models.omnivoice.text import (
    chunks,
    ended,
    expected_frames,
    instruct,
    is_chinese,
    is_spoken,
    language,
    sentences,
    weight,
)
from paretone.setting.knobs import Values


@dataclass(frozen=True)
class OmniVoicePrompt:
    """Prompt of the speech; empty without a voice."""

    transcript: str = ""
    codes: Tensor | None = field(default=None, repr=False)
    """(codebooks, frames), on the model's device."""
    level: float | None = None
    """RMS of the original recording."""
    notes: tuple[str, ...] = ()

    @property
    def frames(self) -> int:
        return 0 if self.codes is None else self.codes.shape[1]


@dataclass(frozen=True)
class Reference:
    transcript: str
    codes: Tensor = field(repr=False)
    level: float
    notes: tuple[str, ...]


class VoiceReader:
    """Reads voices, and caches the last one."""

    def __init__(self, folder: OmniVoiceFolder, cache: Path, rate: int, hop: int, device: torch.device) -> None:
        """Codes are cached in the folder ``cache``; the codec has ``rate`` samples per second and ``hop`` per frame."""
        self._folder, self._cache, self._rate, self._hop, self._device = folder, cache, rate, hop, device
        self._references: LastUsed[Reference] = LastUsed(1)

    def __call__(
        self,
        voice: Voice,
        prepare: bool,
        check: Callable[[], None] = lambda: None,
        status: Callable[[str], None] = lambda text: None,
    ) -> Reference:
        """Prepare a voice, with pauses cut if ``prepare``; ``check`` may raise to cancel.

        Raises :class:`TextError`, :class:`paretone.errors.AudioError`, and :class:`paretone.errors.CheckpointError` if
        the encoder is unusable.
        """
        key = voice, prepare, changed(voice.audio)
        return self._references.of(key, lambda: self._read(voice, prepare, check, status))

    def _read(self, voice: Voice, prepare: bool, check: Callable[[], None], status: Callable[[str], None]) -> Reference:
        recording = read_recording(voice.audio)
        transcript = transcript_of(voice, _advice(recording))
        samples = resample_prompt(torch.from_numpy(recording.samples), recording.sample_rate, self._rate).numpy()
        level = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))
        if 0 < level < QUIET:
            samples = samples * np.float32(QUIET / level)
        if prepare:
            samples, _ = without_silence(samples, self._rate, *REFERENCE_PAUSES)
        samples = samples[: len(samples) // self._hop * self._hop]
        codes = self._codes(samples, check, status)
        notes = (
            *recording.notes,
            *_long(voice, len(samples) / self._rate),
            *transcript_notes(voice, _mismatch(voice, transcript, recording)),
        )
        return Reference(ended(transcript) if prepare else transcript, codes.to(self._device), level, notes)

    def _codes(self, samples: np.ndarray, check: Callable[[], None], status: Callable[[str], None]) -> Tensor:
        """(codebooks, frames), on the CPU."""

        def encode() -> np.ndarray:
            status("Encoding the voice …")
            encoder = self._folder.encoder(self._device)
            check()
            with torch.inference_mode():
                codes = encoder(torch.from_numpy(samples)[None].to(self._device))[0]
            return codes.cpu().numpy().astype(np.int32)

        fingerprint = Shards.find(self._folder.root / CODEC).fingerprint(check)
        return torch.from_numpy(kept_codes(self._cache, samples, fingerprint, encode, 2)).long()


def _advice(recording: Recording) -> str:
    if recording.seconds <= LONGEST_REFERENCE:
        return ""
    return (
        f" It lasts {recording.seconds:.1f} s, and more than {LONGEST_REFERENCE:g} s do not clone the voice better: "
        f"cut it at a pause, such as at {cut_of(recording.samples, recording.sample_rate):.1f} s, and transcribe "
        "the rest."
    )


def _long(voice: Voice, seconds: float) -> tuple[str, ...]:
    """Remark on a long recording, of which ``seconds`` remain."""
    if seconds <= LONGEST_REFERENCE:
        return ()
    return (
        f"{Path(voice.audio).name}: {seconds:.1f} s are long for a reference: OmniVoice takes longer and sounds less "
        "like it than with 3 to 10 s.",
    )


def _mismatch(voice: Voice, transcript: str, recording: Recording) -> str:
    """Sentence on a transcript that is too long or too short for its recording, or ``""``."""
    pace = weight(transcript) / recording.seconds
    if SLOWEST <= pace <= FASTEST:
        return ""
    amount, manner = ("long", "fast") if pace > FASTEST else ("short", "slow")
    expected = expected_frames(transcript) / FRAME_RATE
    return (
        f"The transcript of {Path(voice.audio).name} is too {amount} for its {recording.seconds:.1f} s: so much text "
        f"usually takes about {expected:.1f} s. If the two do not fit, speech is too {manner} and may lack its end."
    )


# Passages of OmniVoice: a text, or a chunk of a long one, and the length of its canvas.


MOST_STRETCHED = 5.0
"""Maximum factor between the requested and the estimated duration."""


@dataclass(frozen=True)
class OmniVoicePassage:
    text: str
    frames: int
    speed: float
    """Divisor of its estimated length."""
    language: str | None
    instruct: str | None

    def after(self, first: OmniVoicePassage) -> OmniVoicePassage:
        """The passage with its length at the pace of the ``first`` one."""
        return replace(self, frames=expected_frames(self.text, first.text, first.frames, self.speed))


@dataclass(frozen=True)
class OmniVoicePassages:
    passages: tuple[OmniVoicePassage, ...]
    notes: tuple[str, ...] = ()


def prepare(text: str, prompt: OmniVoicePrompt, options: Values) -> OmniVoicePassages:
    """Prepare ``text`` to follow ``prompt``.

    Raises :class:`TextError` for a text without speech, and :class:`SettingError` for an invalid description or
    duration.
    """
    text = text.strip()
    if not is_spoken(text):
        raise TextError("There is nothing to speak in this text; type a sentence.")
    language_id, notes = language(str(options["language"]))
    described = instruct(str(options["instruct"]), chinese=is_chinese(text))
    frames, speed = _length(text, prompt, options)
    pieces = [text]
    if options["by_sentence"]:
        pieces = [one for one in sentences(text) if is_spoken(one)]
    elif frames > LONGEST_CANVAS * FRAME_RATE:
        pieces = [one for one in chunks(text, int(CHUNK * FRAME_RATE * len(text) / frames)) if is_spoken(one)]
    lengths = [frames]
    if len(pieces) > 1:
        lengths = [expected_frames(one, prompt.transcript, prompt.frames, speed) for one in pieces]
    passages = (
        OmniVoicePassage(one, length, speed, language_id, described)
        for one, length in zip(pieces, lengths, strict=True)
    )
    return OmniVoicePassages(tuple(passages), notes)


def _length(text: str, prompt: OmniVoicePrompt, options: Values) -> tuple[int, float]:
    """Frames of the whole text, and the resulting speed."""
    wanted = float(options["duration"])
    if not wanted:
        speed = float(options["speed"])
        return expected_frames(text, prompt.transcript, prompt.frames, speed), speed
    usual = expected_frames(text, prompt.transcript, prompt.frames)
    frames = max(1, int(wanted * FRAME_RATE))
    if not 1 / MOST_STRETCHED <= frames / usual <= MOST_STRETCHED:
        raise SettingError(
            f"A duration of {wanted:g} s is too far from what this text usually takes ({usual / FRAME_RATE:.1f} s): "
            f"choose {usual / FRAME_RATE / MOST_STRETCHED:.1f} to {usual / FRAME_RATE * MOST_STRETCHED:.1f} s, or 0 "
            "for the usual."
        )
    return frames, usual / frames
