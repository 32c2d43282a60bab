"""Common part of voice readers. Torch-free."""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np

from paretone.audio.recording import read_recording
from paretone.errors import AudioError, TextError
from paretone.files import write_atomically
from paretone.front_end import transcripts
from paretone.front_end.writing import spell_numbers
from paretone.models.base import Voice
from paretone.reading import until_changed

USUAL_RATE = 14.0
"""Default bytes of text spoken per second, without a voice: 14 letters, or 4.7 Chinese characters."""
SLOWEST, FASTEST = USUAL_RATE / 3, USUAL_RATE * 2.5
"""Bounds of the bytes of text per second for which a transcript may fit its recording."""


def spoken_bytes(text: str) -> int:
    """Length of ``text`` in bytes, with numbers as words."""
    return len((spell_numbers(text) if any(map(str.isdigit, text)) else text).encode())


def spoken_rate(transcript: str, seconds: float, recording: str, title: str) -> tuple[float, str]:
    """Bytes per second of a ``recording`` within the bounds, and why its transcript may not fit, or ``""``."""
    rate, mismatch = spoken_bytes(transcript) / seconds, ""
    if not SLOWEST <= rate <= FASTEST:
        mismatch = (
            f"The transcript of {recording} is too {'long' if rate > FASTEST else 'short'} for its {seconds:.1f} s; "
            f"where it does not fit, {title} repeats or drops words."
        )
    return min(max(rate, SLOWEST), FASTEST), mismatch


def transcript_notes(voice: Voice, mismatch: str = "") -> tuple[str, ...]:
    """Why a voice's recording may not say its transcript, in sentences: the model's own finding ``mismatch``, else
    :func:`paretone.front_end.transcripts.remarks`."""
    if mismatch:
        return (mismatch,)
    heard = _heard(voice.audio, " ".join(voice.transcript.split()))
    return transcripts.remarks(heard, Path(voice.audio).name) if heard is not None else ()


@until_changed(16)
def _heard(audio: str, transcript: str) -> transcripts.Hearing | None:
    """``None`` for an unreadable recording, which is reported elsewhere."""
    try:
        recording = read_recording(audio)
    except AudioError:
        return None
    return transcripts.hear(recording.samples, recording.sample_rate, transcript)


def transcript_of(voice: Voice, advice: str = "") -> str:
    """The voice's transcript on one line. Raises :class:`TextError` with ``advice`` if it is empty."""
    transcript = " ".join(voice.transcript.split())
    if not transcript:
        error = TextError(
            f"The voice {voice.title or voice.id!r} has no transcript; write down what the recording says.{advice}"
        )
        error.lacks_transcript = True
        raise error
    return transcript


def kept_codes(
    folder: Path, samples: np.ndarray, encoder: str, make: Callable[[], np.ndarray], axes: int
) -> np.ndarray:
    """Codes of (n,) ``samples``, int32 with this number of ``axes``: cached in ``folder``, else made by ``make``. The
    key is the samples and the fingerprint of the ``encoder``, so the encoder is loaded only for new voices."""
    digest = hashlib.sha256(np.ascontiguousarray(samples, np.float32).tobytes())
    digest.update(encoder.encode())
    path = folder / f"{digest.hexdigest()}.npy"
    with contextlib.suppress(OSError, ValueError, EOFError):
        found = np.load(path, allow_pickle=False)
        if found.ndim == axes and found.dtype == np.int32:
            return found
    codes, content = make(), io.BytesIO()
    np.save(content, codes, allow_pickle=False)
    # If the folder is not writable, the next start encodes the voice again.
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content.getvalue())
    return codes
