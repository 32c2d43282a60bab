"""Speech as small Ogg files, for pages. Torch-free."""

from __future__ import annotations

import io

import numpy as np

from engine.errors import AudioError
from engine.measure.loudness import headroom

COMPRESSIONS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Compression levels of Vorbis, the best quality first."""


def ogg(samples: np.ndarray, rate: int, most: int) -> bytes:
    """Mono ``samples`` (n,) at ``rate`` Hz as Ogg Vorbis, in the best quality that takes at most ``most`` bytes.

    Speech beyond full scale is turned down. Raises :class:`AudioError` if even the lowest quality takes more.
    """
    content, fitting = b"", samples * np.float32(headroom(samples))
    for compression in COMPRESSIONS:
        content = _encoded(fitting, rate, compression)
        if len(content) <= most:
            return content
    raise AudioError(
        f"{len(samples) / rate:.1f} s of speech take {len(content):,} bytes as Ogg, and {most:,} are allowed; choose a "
        "shorter text."
    )


def _encoded(samples: np.ndarray, rate: int, compression: float) -> bytes:
    import soundfile

    content = io.BytesIO()
    with soundfile.SoundFile(content, "w", rate, 1, "VORBIS", format="OGG", compression_level=compression) as file:
        # Second by second: the encoder keeps what it is given at once on the stack.
        for start in range(0, len(samples), rate):
            file.write(samples[start : start + rate])
    return content.getvalue()
