"""The same word in two sounds of one sentence whose timing differs: where to go on in the other one. Their spectrograms
are paired by dynamic time warping; from the place found there one goes back to where the syllable begins."""

from __future__ import annotations

import numpy as np

from paretone.audio.spectrogram import log_mel
from paretone.measure.fidelity import best_path

_POOLED = 2
"""Frames of the spectrogram that are taken together."""
FRAME_SECONDS = _POOLED * 256 / 24_000
_MOST = 400
"""Frames of a sound that are paired, at most: a third of a tenth of a second of work."""
_BACK = 0.4
"""Seconds that a syllable's beginning lies before the place, at most."""
_FALL = 1.6
"""By how much it is quieter there than in between, in natural-log mel units (14 dB)."""


def frames_of(samples: np.ndarray, rate: int) -> np.ndarray:
    """The spectrogram of mono ``samples`` by which two sounds are paired: (frames, bands), natural-log mel, one frame
    for each :data:`FRAME_SECONDS`."""
    mel = log_mel(samples, rate)
    short = -len(mel) % _POOLED
    return np.pad(mel, ((0, short), (0, 0)), mode="edge").reshape(-1, _POOLED, mel.shape[1]).mean(1)


def same_place(one: np.ndarray, other: np.ndarray, seconds: float) -> float:
    """Where in ``other`` is heard what ``one`` says at ``seconds``: the beginning of that syllable, in seconds. Both
    are as :func:`frames_of` makes them."""
    if not len(one) or not len(other):
        return 0.0
    # The work grows with the product of both lengths: long sounds are paired by fewer frames.
    every = -(-max(len(one), len(other)) // _MOST)
    first, second = one[::every], other[::every]
    path = best_path(np.stack([np.abs(row - second).mean(1) for row in first]))
    frame = min(int(seconds / FRAME_SECONDS) // every, len(first) - 1)
    # Of several partners of a frame, the first: rather hear a little again than miss some.
    return _beginning(other, every * int(path[path[:, 0] == frame, 1].min())) * FRAME_SECONDS


def _beginning(frames: np.ndarray, at: int) -> int:
    """The last quiet frame before ``at`` after which it got louder; ``at`` itself if there is none near."""
    loudness = np.log(np.exp(frames.astype(np.float64)).mean(1))
    first = max(0, at - round(_BACK / FRAME_SECONDS))
    peak = loudness[at]
    for frame in range(at, first - 1, -1):
        peak = max(peak, loudness[frame])
        if loudness[frame] <= peak - _FALL:
            return frame
    return at
