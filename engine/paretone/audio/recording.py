"""Reading a voice's recording, with all its possible faults; writing speech in the format of a suffix. Torch-free."""

from __future__ import annotations

import io
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from paretone import files
from paretone.errors import AudioError, PlainError
from paretone.measure.loudness import headroom, turned_down
from paretone.reading import first_line, legible, require_regular
from paretone.wording import beyond, grouped

SHORTEST_SECONDS = 0.3
LONGEST_SECONDS = 60.0
SILENT_PEAK = 1e-4
"""Peaks below this, −80 dB of full scale, are silence: little more than the last bit of a 16-bit file."""
USUAL_RATES = 16000
"""Recordings below this rate sound muffled, and so does the speech."""


_OTHER_FORMATS = (
    (4, b"ftyp", "an MPEG-4 file (m4a, mp4, AAC)"),
    (0, b"\xff\xf1", "an AAC file"),
    (0, b"\xff\xf9", "an AAC file"),
    (0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "a Windows Media file (WMA)"),
    (0, b"\x1a\x45\xdf\xa3", "a Matroska or WebM file"),
    (0, b"#!AMR", "an AMR file"),
    (0, b"MAC ", "a Monkey's Audio file"),
)
"""Common sound formats that libsndfile cannot read, by first bytes at an offset."""


@dataclass(frozen=True)
class Recording:
    """A mono recording: ``samples`` float32, about −1 to 1."""

    samples: np.ndarray = field(repr=False)
    sample_rate: int
    notes: tuple[str, ...] = ()
    """Notes on changes during reading, as sentences."""

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.sample_rate


def read_recording(path: Path | str, longest: float = LONGEST_SECONDS) -> Recording:
    """Read any file that libsndfile knows (WAV, FLAC, OGG, MP3, AIFF …), mixed to mono. Raises :class:`AudioError` if
    it is missing, not audio, empty, shorter than 0.3 s, longer than ``longest`` seconds, silent, or not finite."""
    import soundfile  # loads a shared library: only when a file is read

    path = Path(path)
    with legible(AudioError, "recording", path):
        require_regular(path)
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
    sounding = channels[:, np.abs(channels).max(axis=0) >= SILENT_PEAK]
    heard, of = sounding.shape[1], channels.shape[1]
    if not heard:
        raise AudioError(f"The recording {path} is silent; choose a recording of speech.")
    notes = [f"{path.name}: silent channels were left out ({of - heard} of {of})."] if heard < of else []
    samples = sounding[:, 0]
    if heard > 1:
        samples = sounding.mean(axis=1)
        notes.append(f"{path.name}: {heard} channels were mixed to one.")
        if np.abs(samples).max() < SILENT_PEAK:
            raise AudioError(f"The channels of {path} cancel each other out; export one of them alone.")
    if rate < USUAL_RATES:
        notes.append(f"{path.name}: recorded at {rate / 1000:g} kHz, so the speech will sound muffled.")
    if np.abs(samples).max() > 1.0:
        notes.append(f"{path.name}: louder than full scale.")
    return Recording(np.ascontiguousarray(samples), rate, tuple(notes))


def _unreadable(path: Path, reason: str) -> str:
    """Sentence on why libsndfile cannot read a file, and the remedy."""
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


KINDS = {".wav": ("WAV", "FLOAT"), ".flac": ("FLAC", "PCM_24"), ".ogg": ("OGG", "VORBIS"), ".mp3": ("MP3", "")}
"""libsndfile's format and subtype of writable files, by suffix. A name without a suffix is a WAV file's."""
_FORMATS = "wav WAV, flac FLAC, ogg OGG, oga OGG, opus OGG, mp3 MP3, aif AIFF, aiff AIFF, au AU, caf CAF, w64 W64"
_READ = {f".{ending}": form for ending, form in map(str.split, _FORMATS.split(", "))}
"""libsndfile's format of readable files, by suffix."""
SOUND = frozenset((*_READ, *".m4a .mp4 .aac .wma .webm .amr".split()))
"""Suffixes of sound files, including those that libsndfile cannot read."""
COMPRESSIONS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Compression levels of Vorbis, best quality first."""


def readable_kinds() -> tuple[str, ...]:
    import soundfile

    known = soundfile.available_formats()
    return tuple(ending for ending, form in _READ.items() if form in known)


def writable_kinds() -> tuple[str, ...]:
    return tuple(filter(_is_writable, KINDS))


def _is_writable(ending: str) -> bool:
    import soundfile

    form, subtype = KINDS[ending]
    return bool(soundfile.check_format(form, subtype or None))


def write_sound(path: Path, samples: np.ndarray, rate: int) -> tuple[str, ...]:
    """Write mono float32 ``samples`` (n,) at ``rate`` Hz in the format of the suffix of ``path``; returns remarks. WAV
    files hold exactly the samples. For other formats, which end at full scale, louder audio is scaled by one factor.
    Raises :class:`PlainError`."""
    kind = require_kind(path)
    if kind == ".wav":
        files.write_wav(path, samples, rate)
        return ()
    factor = headroom(samples)
    form, subtype = KINDS[kind]
    files.write(path, encoded(samples * np.float32(factor), rate, form, subtype))
    return _quieter(path, factor)


def _quieter(path: Path, factor: float) -> tuple[str, ...]:
    if not (cut := turned_down(factor)):
        return ()
    return (f"{path.name} is {cut:.1f} dB quieter than the speech, which is beyond full scale; .wav keeps its level.",)


def join_sound(pieces: Sequence[Path], path: Path) -> tuple[str, ...]:
    """Write the mono WAV files ``pieces``, one after another, to ``path`` as :func:`write_sound` would, block by block.
    Raises :class:`PlainError`."""
    import soundfile

    kind = require_kind(path)
    factor = 1.0 if kind == ".wav" else min(headroom(soundfile.read(one, dtype="float32")[0]) for one in pieces)
    form, subtype = KINDS[kind]
    unfinished = pieces[0].with_name(f"whole{kind}")
    try:
        rate = soundfile.info(pieces[0]).samplerate
        with soundfile.SoundFile(unfinished, "w", rate, 1, subtype or None, format=form) as whole:
            for piece in pieces:
                for block in soundfile.blocks(piece, rate, dtype="float32"):
                    whole.write(block * np.float32(factor))
        unfinished.replace(path)
    except (soundfile.LibsndfileError, OSError) as error:
        raise PlainError(f"The parts could not be joined to {path}: {first_line(error)}.") from error
    return _quieter(path, factor)


def ogg(samples: np.ndarray, rate: int, most: int) -> bytes:
    """Mono ``samples`` (n,) at ``rate`` Hz as Ogg Vorbis, in the best quality within ``most`` bytes. Speech beyond full
    scale is attenuated. Raises :class:`AudioError` if even the lowest quality is too large."""
    content, fitting = b"", samples * np.float32(headroom(samples))
    for compression in COMPRESSIONS:
        content = encoded(fitting, rate, "OGG", "VORBIS", compression)
        if len(content) <= most:
            return content
    raise AudioError(
        f"{len(samples) / rate:.1f} s of speech take {grouped(len(content))} bytes as Ogg, and {grouped(most)} are "
        "allowed; choose a shorter text."
    )


def require_kind(path: Path) -> str:
    """Suffix of the format that ``path`` gets, or :class:`PlainError` if sound cannot be written in it."""
    ending = "" if path is files.STANDARD_OUTPUT or _flows(path) else path.suffix.lower()
    if not ending or ending == ".wav":
        return ".wav"
    if ending not in KINDS:
        raise PlainError(f"{path.name} ends in none of {', '.join(writable_kinds())}; choose one of these endings.")
    if not _is_writable(ending):
        raise PlainError(f"{path.name}: the libsndfile here cannot write {ending[1:].upper()}; choose .wav or .flac.")
    return ending


def _flows(path: Path) -> bool:
    """Whether a path is a pipe or device without a known suffix, whose name does not give a format."""
    try:
        return files.flows(path) and path.suffix.lower() not in KINDS
    except OSError:
        return False


def encoded(samples: np.ndarray, rate: int, form: str, subtype: str, compression: float | None = None) -> bytes:
    """Mono ``samples`` (n,) at ``rate`` Hz as a file of libsndfile's ``form`` and ``subtype`` (``""``: its default).
    Raises :class:`PlainError`."""
    import soundfile

    content = io.BytesIO()
    try:
        with soundfile.SoundFile(
            content, "w", rate, 1, subtype or None, format=form, compression_level=compression
        ) as file:
            # Second by second: the encoder keeps each block on the stack.
            for start in range(0, len(samples), rate):
                file.write(samples[start : start + rate])
    except soundfile.LibsndfileError as error:
        raise PlainError(f"Sound of {rate} Hz cannot be written as {form} ({error}); choose .wav.") from None
    return content.getvalue()
