"""Writing takes as WAV files: 32-bit float, so that the file holds the very samples that were heard."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine.errors import AudioError


def write_wav(path: Path, samples: np.ndarray, rate: int) -> None:
    """Write mono float32 ``samples``, (n,), at ``rate`` hertz. Raises :class:`AudioError` when it cannot be written."""
    import soundfile  # Imported here: it takes longer than the window may.

    try:
        soundfile.write(path, samples, rate, subtype="FLOAT", format="WAV")
    except (OSError, RuntimeError) as error:
        raise AudioError(f"{path} cannot be written ({error}); choose another folder or free some space.") from error
