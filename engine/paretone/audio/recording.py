"""Reading a reference recording, with everything that can be wrong with one. Torch-free."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from paretone.errors import AudioError
from paretone.reading import first_line, require_regular
from paretone.wording import beyond

SHORTEST_SECONDS = 0.3
LONGEST_SECONDS = 60.0
SILENT_PEAK = 1e-4
"""Peaks below this, −80 dB of full scale, are silence: little more than the last bit of a 16-bit file."""
USUAL_RATES = 16000
"""Recordings below this rate sound muffled, and so will the speech."""


_OTHER_FORMATS = (
    (4, b"ftyp", "an MPEG-4 file (m4a, mp4, AAC)"),
    (0, b"\xff\xf1", "an AAC file"),
    (0, b"\xff\xf9", "an AAC file"),
    (0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "a Windows Media file (WMA)"),
    (0, b"\x1a\x45\xdf\xa3", "a Matroska or WebM file"),
    (0, b"#!AMR", "an AMR file"),
    (0, b"MAC ", "a Monkey's Audio file"),
)
"""Sound that people have and libsndfile does not read, by the first bytes from a place on."""


@dataclass(frozen=True)
class Recording:
    """A mono recording: ``samples`` float32, about −1 to 1."""

    samples: np.ndarray = field(repr=False)
    sample_rate: int
    notes: tuple[str, ...] = ()
    """Notes on changes during reading, as sentences."""

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return len(self.samples) / self.sample_rate


def read_recording(path: Path | str, longest: float = LONGEST_SECONDS) -> Recording:
    """Read any file that libsndfile knows (WAV, FLAC, OGG, MP3, AIFF …), mixed to mono.

    Raises :class:`AudioError` when it is missing, no audio, empty, shorter than 0.3 s, longer than ``longest`` seconds,
    silent, or holds values that are not numbers.
    """
    import soundfile  # loads a shared library: only when a file is read

    path = Path(path)
    try:
        require_regular(path)
    except FileNotFoundError:
        raise AudioError(f"The recording {path} is missing; choose another file.") from None
    except OSError as error:
        raise AudioError(f"The recording {path} cannot be read: {first_line(error)}.") from None
    try:
        with soundfile.SoundFile(path) as file:
            rate, frames = file.samplerate, file.frames
            _require_length(path, frames, rate, longest)
            channels = file.read(dtype="float32", always_2d=True)
    except (soundfile.LibsndfileError, OSError) as error:
        reason = getattr(error, "error_string", None) or error
        raise AudioError(_unreadable(path, str(reason).rstrip("."))) from None
    _require_length(path, len(channels), rate, longest)
    if not np.isfinite(channels).all():
        raise AudioError(f"The recording {path} holds values that are not numbers; export it again from your editor.")
    if np.abs(channels).max() < SILENT_PEAK:
        raise AudioError(f"The recording {path} is silent; choose a recording of speech.")
    notes = []
    samples = channels[:, 0]
    if channels.shape[1] > 1:
        samples = channels.mean(axis=1)
        notes.append(f"{path.name}: {channels.shape[1]} channels were mixed to one.")
        if np.abs(samples).max() < SILENT_PEAK:
            raise AudioError(f"The channels of {path} cancel each other out; export one of them alone.")
    if rate < USUAL_RATES:
        notes.append(f"{path.name}: recorded at {rate / 1000:g} kHz, so the speech will sound muffled.")
    if np.abs(samples).max() > 1.0:
        notes.append(f"{path.name}: louder than full scale.")
    return Recording(np.ascontiguousarray(samples), rate, tuple(notes))


def _unreadable(path: Path, reason: str) -> str:
    """Why libsndfile does not read a file, and what to do, as a sentence."""
    with suppress(OSError), path.open("rb") as file:
        start = file.read(16)
        for at, mark, name in _OTHER_FORMATS:
            if start[at : at + len(mark)] == mark:
                return (
                    f"{path} is {name}, which Paretone cannot read; convert it to WAV or FLAC, for example with: "
                    f"ffmpeg -i {shlex.quote(path.name)} {shlex.quote(path.stem + '.wav')}"
                )
    return f"{path} is not a recording that can be read ({reason}); choose a WAV, FLAC, OGG or MP3 file."


def _require_length(path: Path, frames: int, rate: int, longest: float) -> None:
    if frames <= 0:
        raise AudioError(f"The recording {path} is empty; choose another file.")
    seconds = frames / rate
    if seconds < SHORTEST_SECONDS:
        raise AudioError(f"The recording {path} lasts {seconds:.2f} s; at least {SHORTEST_SECONDS} s are needed.")
    if seconds > longest:
        advice = ", best 5 to 12 s" if longest == LONGEST_SECONDS else ""
        raise AudioError(f"The recording {path} lasts {beyond(seconds)}; cut it to {longest:.0f} s or less{advice}.")
