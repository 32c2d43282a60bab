"""Speech as a file of the kind that its name asks for, and as small Ogg files for pages. Torch-free."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from paretone import files
from paretone.errors import AudioError, PlainError
from paretone.measure.loudness import headroom, turned_down
from paretone.wording import grouped

KINDS = {".wav": ("WAV", "FLOAT"), ".flac": ("FLAC", "PCM_24"), ".ogg": ("OGG", "VORBIS"), ".mp3": ("MP3", "")}
"""Format and subtype in libsndfile, by endings of names. A name without an ending is a WAV file's."""
_READ = {
    ending: form
    for form, names in {
        "WAV": ".wav",
        "FLAC": ".flac",
        "OGG": ".ogg .oga .opus",
        "MP3": ".mp3",
        "AIFF": ".aif .aiff",
        "AU": ".au",
        "CAF": ".caf",
        "W64": ".w64",
    }.items()
    for ending in names.split()
}
"""Format in libsndfile of files that are read, by their endings."""
SOUND = frozenset((*_READ, *".m4a .mp4 .aac .wma .webm .amr".split()))
"""Endings of sound, also of what libsndfile never reads."""
COMPRESSIONS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Compression levels of Vorbis, the best quality first."""


def readable() -> tuple[str, ...]:
    """Endings of the sound that can be read here."""
    import soundfile

    known = soundfile.available_formats()
    return tuple(ending for ending, form in _READ.items() if form in known)


def writable() -> tuple[str, ...]:
    """Endings of the sound that can be written here."""
    return tuple(filter(_is_writable, KINDS))


def _is_writable(ending: str) -> bool:
    import soundfile

    form, subtype = KINDS[ending]
    return bool(soundfile.check_format(form, subtype or None))


def require_kind(path: Path) -> None:
    """Raise :class:`PlainError` if sound cannot be written to a file of this name."""
    _kind(path)


def write_sound(path: Path, samples: np.ndarray, rate: int) -> tuple[str, ...]:
    """Write mono float32 ``samples`` (n,) at ``rate`` Hz, as the ending of ``path`` says; remarks, as sentences.

    WAV files hold exactly the samples. In the other kinds, which end at full scale, what is louder is scaled by one
    factor. Raises :class:`PlainError`.
    """
    kind = _kind(path)
    if kind == ".wav":
        files.write_wav(path, samples, rate)
        return ()
    factor = headroom(samples)
    remarks: tuple[str, ...] = ()
    if cut := turned_down(factor):
        remarks = (
            f"{path.name} is {cut:.1f} dB quieter than the speech, which is beyond full scale; .wav keeps its level.",
        )
    form, subtype = KINDS[kind]
    files.write(path, _encoded(samples * np.float32(factor), rate, form, subtype))
    return remarks


def ogg(samples: np.ndarray, rate: int, most: int) -> bytes:
    """Mono ``samples`` (n,) at ``rate`` Hz as Ogg Vorbis, in the best quality that takes at most ``most`` bytes.

    Speech beyond full scale is turned down. Raises :class:`AudioError` if even the lowest quality takes more.
    """
    content, fitting = b"", samples * np.float32(headroom(samples))
    for compression in COMPRESSIONS:
        content = _encoded(fitting, rate, "OGG", "VORBIS", compression)
        if len(content) <= most:
            return content
    raise AudioError(
        f"{len(samples) / rate:.1f} s of speech take {grouped(len(content))} bytes as Ogg, and {grouped(most)} are "
        "allowed; choose a shorter text."
    )


def _kind(path: Path) -> str:
    ending = "" if path is files.STANDARD_OUTPUT or _flows(path) else path.suffix.lower()
    if not ending or ending == ".wav":
        return ".wav"
    if ending not in KINDS:
        raise PlainError(f"{path.name} ends in none of {', '.join(writable())}; choose one of these endings.")
    if not _is_writable(ending):
        raise PlainError(f"{path.name}: the libsndfile here cannot write {ending[1:].upper()}; choose .wav or .flac.")
    return ending


def _flows(path: Path) -> bool:
    """Whether this is a pipe or device, whose name says nothing of what is in it, unless it has one of the endings."""
    try:
        return files.flows(path) and path.suffix.lower() not in KINDS
    except OSError:
        return False


def _encoded(samples: np.ndarray, rate: int, form: str, subtype: str, compression: float | None = None) -> bytes:
    import soundfile

    content = io.BytesIO()
    try:
        with soundfile.SoundFile(
            content, "w", rate, 1, subtype or None, format=form, compression_level=compression
        ) as file:
            # Second by second: the encoder keeps what it is given at once on the stack.
            for start in range(0, len(samples), rate):
                file.write(samples[start : start + rate])
    except soundfile.LibsndfileError as error:
        raise PlainError(f"Sound of {rate} Hz cannot be written as {form} ({error}); choose .wav.") from None
    return content.getvalue()
