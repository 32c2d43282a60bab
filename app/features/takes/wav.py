"""Writing takes as WAV files: 32-bit float, so that the file holds the very samples that were heard."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine import files
from engine.errors import AudioError


def write_wav(path: Path, samples: np.ndarray, rate: int) -> None:
    """Write mono float32 ``samples``, (n,), at ``rate`` hertz. Raises :class:`AudioError` when it cannot be written."""
    try:
        files.write_atomically(path, files.wav(samples, rate))
    except OSError as error:
        raise AudioError(f"{path} could not be written: {files.reason(error)}.") from error
