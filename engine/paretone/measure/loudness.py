"""Figures of a single recording: loudness, true peak, clipping, silence; and playability. Torch-free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paretone.errors import PlainError
from paretone.models.base import FLOW, ModelInfo
from paretone.setting.setting import Setting
from paretone.setting.take import Metrics

BLOCK_SECONDS = 0.4
OVERLAP = 4
"""Blocks begin a quarter of their length apart."""
ABSOLUTE_GATE = -70.0
RELATIVE_GATE = -10.0
"""Blocks this many dB quieter than the mean of the others are ignored."""
OFFSET = -0.691
"""Calibration: a full-scale 997 Hz sine in one channel has -3.01 LUFS."""
HIGHEST_PEAK = -1.0
"""Maximum peak of level-matched takes, in dB relative to full scale."""

FILTER_RATE = 48000
SHELF = ((1.53512485958697, -2.69169618940638, 1.19839281085285), (1.0, -1.69065929318241, 0.73248077421585))
HIGH_PASS = ((1.0, -2.0, 1.0), (1.0, -1.99004745483398, 0.99007225036621))
"""The two stages of the K-weighting at 48 kHz: numerators and denominators of BS.1770-5, annex 1, tables 1 and 2."""

FULL_SCALE = 1.0 - 2.0**-15
"""Largest value of 16-bit audio: values at or above it clip in playback and in 16-bit files."""
WORTH_SAYING = 0.05
"""dB over full scale from which a sentence mentions attenuation: less would read 0.0 dB."""

OVERSAMPLING = 4
PEAK_TAPS = 32
"""Input samples per interpolated sample."""


@dataclass(frozen=True)
class Loudness:
    lufs: float
    """Minus infinity for silence."""
    gated: bool
    """False for a recording shorter than one block, which is measured as a whole."""


def integrated_loudness(samples: np.ndarray, rate: int) -> Loudness:
    """Loudness of mono ``samples`` (n,) at ``rate`` Hz, full scale 1."""
    weighted = _k_weighted(np.asarray(samples, np.float64), rate)
    block, step = round(BLOCK_SECONDS * rate), round(BLOCK_SECONDS * rate / OVERLAP)
    if len(weighted) < block:
        return Loudness(_lufs(np.mean(weighted**2)) if len(weighted) else -np.inf, gated=False)
    sums = np.concatenate([[0.0], np.cumsum(weighted**2)])
    starts = np.arange(0, len(weighted) - block + 1, step)
    powers = (sums[starts + block] - sums[starts]) / block
    loud = powers[powers > 10 ** ((ABSOLUTE_GATE - OFFSET) / 10)]
    if not len(loud):
        return Loudness(-np.inf, gated=True)
    gate = np.mean(loud) * 10 ** (RELATIVE_GATE / 10)
    return Loudness(_lufs(np.mean(loud[loud > gate])), gated=True)


def _lufs(power: float) -> float:
    return OFFSET + 10.0 * float(np.log10(power)) if power > 0 else -np.inf


def _k_weighted(samples: np.ndarray, rate: int) -> np.ndarray:
    """``samples`` filtered in the frequency domain with the 48 kHz filters' response, independent of the rate, with
    half a second of padding for the ringing. Above 24 kHz the response at 24 kHz is used."""
    length = 1 << (len(samples) + rate // 2 - 1).bit_length()
    frequencies = np.minimum(np.arange(length // 2 + 1) * rate / length, FILTER_RATE / 2)
    delay = np.exp(-2j * np.pi * frequencies / FILTER_RATE)
    response = np.ones(len(delay), complex)
    for numerator, denominator in (SHELF, HIGH_PASS):
        response *= np.polyval(numerator[::-1], delay) / np.polyval(denominator[::-1], delay)
    return np.fft.irfft(np.fft.rfft(samples, length) * response, length)[: len(samples)]


def true_peak(samples: np.ndarray) -> float:
    """Highest level at and between samples (n,), in dB of full scale; interpolated fourfold (BS.1770-5, annex 2)."""
    if not len(samples):
        return -np.inf
    samples = np.asarray(samples, np.float64)
    highest = np.max(np.abs(samples))
    places = np.arange(PEAK_TAPS) - PEAK_TAPS // 2
    for phase in range(1, OVERSAMPLING):
        distance = places + phase / OVERSAMPLING
        taps = np.sinc(distance) * np.kaiser(2 * PEAK_TAPS + 1, 6.0)[np.round(PEAK_TAPS + 2 * distance).astype(int)]
        highest = max(highest, np.max(np.abs(np.convolve(samples, taps / taps.sum()))))
    return 20.0 * float(np.log10(highest)) if highest > 0 else -np.inf


def headroom(samples: np.ndarray) -> float:
    """Factor, at most 1, that brings the true peak of mono ``samples`` (n,) within full scale, for playback and integer
    files. No limiting or clipping; float files keep the samples."""
    return min(1.0, FULL_SCALE * 10 ** (-true_peak(samples) / 20))


def turned_down(factor: float) -> float:
    """Attenuation in dB of a ``factor`` of :func:`headroom`; 0 if it would read 0.0."""
    decibels = -20.0 * float(np.log10(factor))
    return decibels if decibels >= WORTH_SAYING else 0.0


def too_loud(peak: float | None) -> str:
    """Sentence that :func:`headroom` attenuates a take with the true ``peak``; ``""`` below :data:`WORTH_SAYING`."""
    if peak is None or peak < WORTH_SAYING:
        return ""
    return (
        f"The true peak is {peak:.1f} dB above full scale: for playback and in 16-bit files the take is turned down by "
        "as much; files of floats keep its level."
    )


@dataclass(frozen=True)
class LevelMatch:
    gains: tuple[float, ...]
    """Gain in dB per take; 0 for silent ones."""
    target: float
    """LUFS of every take after its gain; minus infinity if all are silent."""
    exact: bool
    """False if a take is too short for gating, so that its level is a plain mean."""
    levels: tuple[float, ...]
    """LUFS of each take before its gain."""


def gain_to(target: float, samples: np.ndarray, rate: int) -> float:
    """Gain in dB that brings mono ``samples`` to ``target`` LUFS, or their true peak to :data:`HIGHEST_PEAK`."""
    level = integrated_loudness(samples, rate).lufs
    return min(target - level, HIGHEST_PEAK - true_peak(samples)) if np.isfinite(level) else 0.0


def matching_gains(takes: Sequence[tuple[np.ndarray, int]]) -> LevelMatch:
    """Gains that bring takes, pairs of mono samples and rate, to the level of the quietest; lower if a true peak would
    exceed :data:`HIGHEST_PEAK`. No limiting or clipping."""
    measured = [integrated_loudness(samples, rate) for samples, rate in takes]
    levels = tuple(one.lufs for one in measured)
    audible = [one for one in levels if np.isfinite(one)]
    if not audible:
        return LevelMatch((0.0,) * len(measured), -np.inf, True, levels)
    target = min(audible)
    excess = max(
        true_peak(samples) + target - one.lufs - HIGHEST_PEAK
        for (samples, _), one in zip(takes, measured, strict=True)
        if np.isfinite(one.lufs)
    )
    target -= max(0.0, excess)
    gains = tuple(target - one.lufs if np.isfinite(one.lufs) else 0.0 for one in measured)
    return LevelMatch(gains, target, all(one.gated for one in measured), levels)


FRAME_SECONDS, HOP_SECONDS = 0.02, 0.01
SILENT_BELOW = -40.0
"""Level of silent frames in dB relative to the loudest frame."""
SILENT_AT = -70.0
"""Level in dB of full scale at which a frame is silent in any case: the absolute gate of ITU-R BS.1770."""


def signal_metrics(samples: np.ndarray, rate: int) -> Metrics:
    """Metrics of mono ``samples`` (n,) at ``rate`` Hz alone."""
    loudness, peak = integrated_loudness(samples, rate).lufs, true_peak(samples)
    return Metrics(
        loudness=float(loudness) if np.isfinite(loudness) else None,
        true_peak=float(peak) if np.isfinite(peak) else None,
        clipping=clipping(samples),
        silence=silence(samples, rate),
    )


def clipping(samples: np.ndarray) -> float:
    """Share of ``samples`` (n,) at or beyond :data:`FULL_SCALE`; 0 for an empty array."""
    return float(np.mean(np.abs(samples) >= FULL_SCALE)) if len(samples) else 0.0


def silence(samples: np.ndarray, rate: int) -> float:
    """Share of silent frames (20 ms, every 10 ms): root mean square 40 dB below the loudest frame's, or below -70 dB of
    full scale; 1 for a recording shorter than a frame. The threshold is relative: a take's level does not change its
    share."""
    length, hop = round(FRAME_SECONDS * rate), round(HOP_SECONDS * rate)
    if len(samples) < length:
        return 1.0
    sums = np.concatenate([[0.0], np.cumsum(np.asarray(samples, np.float64) ** 2)])
    starts = np.arange(0, len(samples) - length + 1, hop)
    powers = np.maximum(sums[starts + length] - sums[starts], 0.0) / length
    threshold = max(powers.max() * 10 ** (SILENT_BELOW / 10), 10 ** (SILENT_AT / 10))
    return float(np.mean(powers < threshold))


def audible(samples: np.ndarray, what: str, setting: Setting, info: ModelInfo) -> np.ndarray:
    """``samples`` as contiguous float32. Raises :class:`PlainError`, which names ``what``, if they are not finite."""
    require_finite(samples, what, setting, info)
    return np.ascontiguousarray(samples, dtype=np.float32)


def require_finite(values: np.ndarray, what: str, setting: Setting, info: ModelInfo) -> None:
    """Raise :class:`PlainError`, which names ``what``, unless all ``values`` are finite."""
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
