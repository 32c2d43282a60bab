"""What a take sounds like, when and on which machine it was made: from a synthesis to a take."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from paretone.errors import PlainError
from paretone.measure.loudness import FULL_SCALE, integrated_loudness, too_loud, true_peak
from paretone.models.base import FLOW, ModelInfo, Synthesis, Voice
from paretone.setting.setting import Setting
from paretone.setting.take import Metrics, Take

# --- Figures of a single recording ------------------------------------------------------------------------------------
# Loudness, clipping, silence.
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


def make_take(
    synthesis: Synthesis,
    text: str,
    voice: Voice,
    setting: Setting,
    machine: str,
    on: str,
    checkpoint: str,
    *,
    name: str = "",
    label: str = "",
    first_audio_seconds: float | None = None,
    peak_memory_bytes: int = 0,
    listen: bool = True,
) -> Take:
    """``synthesis`` of ``text`` by ``voice`` under ``setting`` as a take of now.

    ``machine`` is described in a line and ``on`` is its device (such as ``cpu``); ``checkpoint`` is the SHA-256
    of the model's weights; ``name`` is the take's id, made up
    by default. ``first_audio_seconds`` is by default the model's own, or the whole time. With ``listen``, loudness,
    clipping and silence are measured as well.
    """
    from paretone import device

    measured = synthesis.measurements
    samples = np.ascontiguousarray(synthesis.samples, dtype=np.float32)
    metrics = with_signal_metrics(samples, synthesis.sample_rate) if listen else Metrics()
    return Take(
        id=name or uuid.uuid4().hex,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        text=text,
        voice=voice.id,
        setting=setting,
        sample_rate=synthesis.sample_rate,
        samples=samples,
        measurements=replace(
            measured,
            first_audio_seconds=first_audio_seconds or measured.first_audio_seconds or measured.seconds,
            peak_memory_bytes=peak_memory_bytes,
            device=measured.device or device.title(on),
        ),
        trace=synthesis.trace,
        label=label,
        notes=(*synthesis.notes, *filter(None, (too_loud(metrics.true_peak),))),
        machine=machine,
        metrics=metrics,
        checkpoint=checkpoint,
        unfinished=synthesis.unfinished,
    )
