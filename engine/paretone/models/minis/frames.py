"""Frames of the bundled models, and the phones that sound in tokens of several frames. Torch-free."""

from __future__ import annotations

import numpy as np

SAMPLE_RATE = 24000
HOP = 256
"""Samples of a mel frame."""


def token_phones(frames: np.ndarray, stride: int) -> np.ndarray:
    """One phone per frame (n,) to one per token (n // stride,): that of the frame after the token's middle. What
    does not fill a token is left out."""
    whole = len(frames) // stride * stride
    return frames[:whole][stride // 2 :: stride]
