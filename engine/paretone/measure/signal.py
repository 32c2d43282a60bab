"""Figures of a single recording (loudness, clipping, silence), and whether it can be played. Torch-free."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from paretone.errors import PlainError
from paretone.measure.loudness import FULL_SCALE, integrated_loudness, true_peak
from paretone.models.base import FLOW, ModelInfo
from paretone.setting.setting import Setting
from paretone.setting.take import Metrics

FRAME_SECONDS, HOP_SECONDS = 0.02, 0.01
SILENT_BELOW = -40.0
"""dB of a frame below the loudest one."""
SILENT_AT = -70.0
"""dB of full scale at which a frame is silent however quiet the others are: the absolute gate of ITU-R BS.1770."""


def with_signal_metrics(samples: np.ndarray, rate: int, metrics: Metrics = Metrics()) -> Metrics:
    """``metrics`` with what can be measured on mono ``samples`` (n,) at ``rate`` Hz alone."""
    loudness, peak = integrated_loudness(samples, rate).lufs, true_peak(samples)
    return replace(
        metrics,
        loudness=float(loudness) if np.isfinite(loudness) else None,
        true_peak=float(peak) if np.isfinite(peak) else None,
        clipping=clipping(samples),
        silence=silence(samples, rate),
    )


def clipping(samples: np.ndarray) -> float:
    """The share of ``samples`` (n,) at :data:`FULL_SCALE` or beyond; 0 for none."""
    return float(np.mean(np.abs(samples) >= FULL_SCALE)) if len(samples) else 0.0


def silence(samples: np.ndarray, rate: int) -> float:
    """The share of frames of 20 ms, every 10 ms, whose root mean square is 40 dB below that of the loudest frame, or
    below -70 dB of full scale; 1 for a recording shorter than a frame.

    The threshold is relative, so that a quiet take has no more silence than the same take louder.
    """
    length, hop = round(FRAME_SECONDS * rate), round(HOP_SECONDS * rate)
    if len(samples) < length:
        return 1.0
    sums = np.concatenate([[0.0], np.cumsum(np.asarray(samples, np.float64) ** 2)])
    starts = np.arange(0, len(samples) - length + 1, hop)
    powers = np.maximum(sums[starts + length] - sums[starts], 0.0) / length
    threshold = max(powers.max() * 10 ** (SILENT_BELOW / 10), 10 ** (SILENT_AT / 10))
    return float(np.mean(powers < threshold))


def audible(samples: np.ndarray, what: str, setting: Setting, info: ModelInfo) -> np.ndarray:
    """``samples`` as contiguous float32. Raises :class:`PlainError` that names ``what`` if they are no numbers."""
    require_finite(samples, what, setting, info)
    return np.ascontiguousarray(samples, dtype=np.float32)


def require_finite(values: np.ndarray, what: str, setting: Setting, info: ModelInfo) -> None:
    """Raise :class:`PlainError` if ``values``, which are ``what``, are not all numbers."""
    if np.isfinite(values).all():
        return
    steps = setting.options.get("steps")
    remedies = ["more steps" if steps is not None else "other options"]
    if info.family == FLOW:
        remedies.append("less guidance")
    if info.precision != "float32":
        remedies.append("full precision (float32)")
    at = f" at {steps} steps" if steps is not None else ""
    raise PlainError(
        f"The model produced invalid numbers (NaN) for {what}{at} in {info.precision}; "
        f"try {' or '.join(remedies)}, or download the checkpoint again."
    )
