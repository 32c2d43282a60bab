"""Front end of OmniVoice: recordings and passages; the reference before encoding, and speech after decoding.

Source of the latter: ``omnivoice/utils/audio.py`` and ``_post_process_audio`` of k2-fsa/OmniVoice at 468e927 (0.2.1),
which use pydub: its clock is the millisecond, and cutting truncates samples to 16 bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from paretone.audio.mel import resample_prompt
from paretone.audio.prompt import FULL_SCALE, SHORT_PAUSES, Pauses, Track, decibels, spoken_ranges
from paretone.audio.recording import Recording, read_recording
from paretone.errors import SettingError, TextError
from paretone.last_used import VOICES, LastUsed
from paretone.models.base import Voice
from paretone.models.families.passages import Passages
from paretone.models.families.voices import kept_codes, transcript_notes, transcript_of
from paretone.models.files.checkpoints import Shards
from paretone.models.omnivoice.checkpoint import CODEC, OmniVoiceFolder
from paretone.models.omnivoice.config import CHUNK, FASTEST, FRAME_RATE, LONGEST_CANVAS, LONGEST_REFERENCE, SLOWEST
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
from paretone.observer import Check, Status
from paretone.reading import version
from paretone.setting.knobs import Values

SILENT = -50.0
"""Level in dB of full scale below which sound is silence."""
LOOK = 10
"""Milliseconds between checks for silence at the edges."""
REFERENCE_PAUSES, OUTPUT_PAUSES = (200, 100, 200), (500, 100, 100)
"""Maximum length of pauses inside, at the beginning and at the end, in milliseconds."""
QUIET = 0.1
"""RMS to which references are amplified."""
PEAK = 0.5
"""Peak of speech without a reference."""
SHORTEST_CUT, LONGEST_CUT = 3.0, 15.0
"""Bounds of the seconds that remain of a cut reference."""
FADE_SECONDS = PAD_SECONDS = 0.1
"""Fade and silence at both ends of the output, and between chunks of a long text."""


def quantised(samples: np.ndarray) -> np.ndarray:
    """Samples (n,) truncated to 16-bit values."""
    return (np.trunc(np.clip(samples * FULL_SCALE, -FULL_SCALE, FULL_SCALE - 1)) / FULL_SCALE).astype(np.float32)


def without_silence(samples: np.ndarray, rate: int, pause: int, lead: int, trail: int) -> tuple[np.ndarray, int]:
    """Shorten pauses in samples (n,): of those longer than ``pause`` milliseconds that much is kept on either side,
    ``lead`` at the beginning and ``trail`` at the end. Also return the number of samples removed before the first
    sound."""
    track = Track(quantised(samples), rate)
    spoken = spoken_ranges(track, Pauses(pause, SILENT), pause)
    joined = replace(track, samples=track.samples[:0])
    for start, end in spoken:
        joined = joined.joined(track.cut(start, end))
    start = max(_silence(joined) - lead, 0)
    track = joined.cut(start, len(joined))
    backwards = replace(track, samples=track.samples[::-1])
    backwards = backwards.cut(max(_silence(backwards) - trail, 0), len(backwards))
    gone = joined.position(start) + (track.position(spoken[0][0]) if spoken else 0)
    return np.ascontiguousarray(backwards.samples[::-1]), gone


def cut_of(samples: np.ndarray, rate: int) -> float:
    """Seconds at which upstream cuts a long reference (n,) without transcript: where speech resumes after the last
    pause within :data:`LONGEST_CUT`."""
    track = Track(quantised(samples), rate)
    starts = [start for start, _ in spoken_ranges(track, SHORT_PAUSES, 0) if start <= LONGEST_CUT * 1000]
    found = max(starts, default=0) / 1000
    return found if found >= SHORTEST_CUT else min(LONGEST_CUT, len(track) / 1000)


def _silence(track: Track) -> int:
    """Milliseconds of silence at the beginning."""
    starts = np.arange(0, len(track), LOOK)
    loud = decibels(track.levels(starts, LOOK)) >= SILENT
    return min(int(starts[loud.argmax()]) if loud.any() else len(starts) * LOOK, len(track))


def fade_edges(samples: np.ndarray, count: int) -> np.ndarray:
    """Fade samples (n,) in and out over ``count`` samples, at most half."""
    samples, count = samples.copy(), min(count, len(samples) // 2)
    if count:
        rise = np.linspace(0, 1, count, dtype=np.float32)
        samples[:count] *= rise
        samples[-count:] *= rise[::-1]
    return samples


# Joining of OmniVoice's passages: silence cut, levelled, faded at both ends, with silence between and around them.
#
# A single passage on one canvas is processed as upstream. Upstream processes several passages together at the end; here
# each is output when it is done, and without a reference all get the level of the first. Blocks cannot be cut or
# levelled by later audio: they have only fades, the level of a reference if any, and no silence in front, so that
# speech begins with the first sample.


class WholePassages:
    """Joins complete passages. See :class:`paretone.models.families.speech.Joiner`."""

    def __init__(self, rate: int, level: float | None, *, cut: bool) -> None:
        """``level`` is the RMS of the reference; ``cut``: cut silence."""
        self._rate, self._cut = rate, cut
        self._gain = None if level is None else min(level / QUIET, 1.0)
        self._silence, self._fade = int(PAD_SECONDS * rate), int(FADE_SECONDS * rate)
        self._returned = 0
        self.lead = 0

    def begin(self) -> int:
        return self._returned

    def push(self, samples: np.ndarray) -> np.ndarray:
        gone = 0
        if self._cut:
            samples, gone = without_silence(samples, self._rate, *OUTPUT_PAUSES)
        if self._gain is None:
            peak = float(np.abs(samples).max(initial=0.0))
            self._gain = PEAK / peak if peak > 1e-6 else None
        samples = samples * np.float32(1.0 if self._gain is None else self._gain)
        self.lead = self._silence - gone
        return self._given(np.concatenate([self._zeros(), fade_edges(samples, self._fade)]))

    def finish(self) -> np.ndarray:
        return self._given(self._zeros())

    def _zeros(self) -> np.ndarray:
        return np.zeros(self._silence, np.float32)

    def _given(self, samples: np.ndarray) -> np.ndarray:
        self._returned += len(samples)
        return samples


class StreamedPassages:
    """Joins passages that arrive in pieces. See :class:`paretone.models.families.speech.Joiner`."""

    def __init__(self, rate: int, level: float | None) -> None:
        """``level`` is the RMS of the reference."""
        self._gain = np.float32(1.0 if level is None else min(level / QUIET, 1.0))
        self._gap, self._fade = int(PAD_SECONDS * rate), int(FADE_SECONDS * rate)
        self._held = np.zeros(0, np.float32)
        """End of the passage so far, which fades out if nothing follows."""
        self._rising = 0
        """Number of samples of the passage so far, for the fade-in."""
        self._ended: np.ndarray | None = None
        """End of the previous passage, not yet returned."""
        self._returned = 0
        self.lead = 0

    def begin(self) -> int:
        if len(self._held):
            self._ended = np.concatenate([self._faded_out(), np.zeros(self._gap, np.float32)])
        self._rising = 0
        return self._returned + (0 if self._ended is None else len(self._ended))

    def push(self, samples: np.ndarray) -> np.ndarray:
        places = np.arange(self._rising, self._rising + len(samples), dtype=np.float32)
        self._rising += len(samples)
        rising = np.minimum(places / max(self._fade - 1, 1), 1.0).astype(np.float32)
        joined = np.concatenate([self._held, samples * self._gain * rising])
        final = max(len(joined) - self._fade, 0)
        self._held = joined[final:]
        ready = joined[:final]
        if self._ended is not None:
            ready, self._ended = np.concatenate([self._ended, ready]), None
        return self._given(ready)

    def finish(self) -> np.ndarray:
        return self._given(self._faded_out())

    def _faded_out(self) -> np.ndarray:
        held, self._held = self._held, np.zeros(0, np.float32)
        return held * np.linspace(1, 0, len(held), dtype=np.float32)

    def _given(self, samples: np.ndarray) -> np.ndarray:
        self._returned += len(samples)
        return samples


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


class VoiceReader:
    def __init__(self, folder: OmniVoiceFolder, cache: Path, rate: int, hop: int, device: torch.device) -> None:
        """Codes are cached in the folder ``cache``; the codec has ``rate`` samples per second and ``hop`` per frame."""
        self._folder, self._cache, self._rate, self._hop, self._device = folder, cache, rate, hop, device
        self._prompts: LastUsed[OmniVoicePrompt] = LastUsed(VOICES)

    def __call__(
        self, voice: Voice, prepare: bool, check: Check = lambda: None, status: Status = lambda text: None
    ) -> OmniVoicePrompt:
        """Prepare a voice, with pauses cut if ``prepare``; ``check`` may raise to cancel. Raises :class:`TextError`,
        :class:`AudioError`, and :class:`CheckpointError` if the encoder is unusable."""
        key = voice, prepare, version(voice.audio)
        return self._prompts.of(key, lambda: self._read(voice, prepare, check, status))

    def _read(self, voice: Voice, prepare: bool, check: Check, status: Status) -> OmniVoicePrompt:
        recording = read_recording(voice.audio)
        advice = ""
        if recording.seconds > LONGEST_REFERENCE:
            cut = cut_of(recording.samples, recording.sample_rate)
            advice = (
                f" It lasts {recording.seconds:.1f} s, and more than {LONGEST_REFERENCE:g} s do not clone the voice "
                f"better: cut it at a pause, such as at {cut:.1f} s, and transcribe the rest."
            )
        transcript = transcript_of(voice, advice)
        samples = resample_prompt(torch.from_numpy(recording.samples), recording.sample_rate, self._rate).numpy()
        level = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))
        if 0 < level < QUIET:
            samples = samples * np.float32(QUIET / level)
        if prepare:
            samples, _ = without_silence(samples, self._rate, *REFERENCE_PAUSES)
        samples = samples[: len(samples) // self._hop * self._hop]
        codes = self._codes(samples, check, status)
        notes, seconds = list(recording.notes), len(samples) / self._rate
        if seconds > LONGEST_REFERENCE:
            notes.append(
                f"{Path(voice.audio).name}: {seconds:.1f} s are long for a reference: OmniVoice takes longer and "
                "sounds less like it than with 3 to 10 s."
            )
        notes += transcript_notes(voice, _mismatch(voice, transcript, recording))
        said = ended(transcript) if prepare else transcript
        return OmniVoicePrompt(said, codes.to(self._device), level, tuple(notes))

    def _codes(self, samples: np.ndarray, check: Check, status: Status) -> Tensor:
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


def prepare(text: str, prompt: OmniVoicePrompt, options: Values) -> Passages[OmniVoicePassage]:
    """Prepare ``text`` to follow ``prompt``. Raises :class:`TextError` for a text without speech, :class:`SettingError`
    for an invalid description or duration."""
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
    return Passages(tuple(passages), notes)


def _length(text: str, prompt: OmniVoicePrompt, options: Values) -> tuple[int, float]:
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
