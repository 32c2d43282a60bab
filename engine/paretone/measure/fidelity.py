"""Distances of a take from its baseline: log-mel distance, mel-cepstral distortion, timbre, time-warped. Torch-free."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np

from paretone.audio.spectrogram import drawn_or_heard
from paretone.errors import SettingError
from paretone.measure.pitch import pitch_error
from paretone.setting.take import Metrics, Take

LENGTH_TOLERANCE = 1
"""Tolerated difference in frames of takes with the same duration (rounding)."""


def log_mel_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Mean absolute difference of two natural-log Vocos mel spectrograms (frames, bands), in natural-log units: 0.1
    means that magnitudes differ by 10 % on average.

    Meaningful only for takes from the same noise with the same duration, whose frames correspond one to one. Raises
    :class:`SettingError` for lengths that differ by more than a frame, other shapes, and values that are not finite.
    """
    one, other = shared_frames(first, second, "log-mel distance")
    return float(np.mean(np.abs(one - other)))


def shared_frames(first: np.ndarray, second: np.ndarray, figure: str) -> tuple[np.ndarray, np.ndarray]:
    """Common frames of two spectrograms (frames, bands) in double precision; ``figure`` names the comparison in errors.
    Raises like :func:`log_mel_distance`."""
    _require_same_bands(first, second, "cannot be compared")
    shared = min(len(first), len(second))
    if abs(len(first) - len(second)) > LENGTH_TOLERANCE or shared == 0:
        raise SettingError(
            f"The takes have {len(first)} and {len(second)} frames, so their frames cannot be paired; "
            f"the {figure} compares takes of the same text, voice, speed and seed."
        )
    one, other = first[:shared].astype(np.float64), second[:shared].astype(np.float64)
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise SettingError("A spectrogram has values that are not numbers, so its distance cannot be measured.")
    return one, other


def _require_same_bands(first: np.ndarray, second: np.ndarray, problem: str, frames: bool = False) -> None:
    alike = first.ndim == second.ndim == 2 and first.shape[1] == second.shape[1]
    if not alike or (frames and not (len(first) and len(second))):
        raise SettingError(
            f"Spectrograms of shapes {first.shape} and {second.shape} {problem}; both need the same mel bands"
            f"{', and frames' if frames else ''}."
        )


# --- Mel-cepstral distortion ------------------------------------------------------------------------------------------
# Distance between the spectral envelopes of two takes.
#
# Source: R. F. Kubichek, "Mel-cepstral distance measure for objective speech quality assessment", 1993. Figures of this
# kind depend on the cepstrum's definition and are comparable only under the same one, which here is:
#
# The natural-log mel magnitudes x of a frame (here those of the vocoder, 100 bands) are a sum of cosines over them,
# ``x_b = c_0 + Σ_d c_d cos(π d (b + ½) / bands)``. Of these, c_1 to c_13 are the envelope, c_0 is the level, and the
# others are detail. The distortion of a frame is ``10 / ln 10 · √(2 Σ_d (c_d − c'_d)²)``, the root mean square
# difference of the two envelopes over the bands, in dB. The figure of a take is the mean over its frames.
ORDER = 13


def mel_cepstral_distortion(first: np.ndarray, second: np.ndarray) -> float:
    """Distortion in dB between corresponding frames of natural-log mel spectrograms (frames, bands). Raises like
    :func:`log_mel_distance`."""
    one, other = shared_frames(first, second, "mel-cepstral distortion")
    difference = (one - other) @ cosines(first.shape[1])
    return float(10.0 / math.log(10.0) * np.mean(np.sqrt(2.0 * np.sum(difference**2, axis=1))))


@functools.lru_cache(maxsize=4)
def cosines(bands: int) -> np.ndarray:
    """Matrix (bands, ORDER) from a log-mel spectrum to its c_1 to c_13; fewer columns for fewer bands."""
    degrees = np.arange(1, min(ORDER, bands - 1) + 1)
    return np.cos(np.pi * np.outer(np.arange(bands) + 0.5, degrees) / bands) * 2.0 / bands


# --- Timbre -----------------------------------------------------------------------------------------------------------
# Timbre distance of two recordings of the same words, by their long-term spectral envelopes.
#
# A frame's envelope is that of mel-cepstral distortion (cosines 1 to 13 of the log-mel spectrum, without level and
# detail). It is averaged over all frames less than 40 dB below the loudest; the distance is the root mean square
# difference of two such averages over the bands, in dB.
#
# Unlike mel-cepstral distortion it ignores timing, so takes of different lengths are comparable, and unlike a learned
# speaker judge it needs no weights. It does not judge speakers: words count, so both must say the same ones, and melody
# does not. For scale: the original speech of the two bundled voices, same sentences, is 4.7 dB apart.
AUDIBLE = 40.0
"""Frames quieter than this many dB below the loudest are ignored."""


def timbre_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Timbre distance in dB of natural-log mel spectrograms (frames, bands) of the same words. Raises
    :class:`SettingError` for other shapes."""
    _require_same_bands(first, second, "have no timbres that could be compared", frames=True)
    return float(10.0 / math.log(10.0) * np.sqrt(2.0 * np.sum((_envelope(first) - _envelope(second)) ** 2)))


def _envelope(mel: np.ndarray) -> np.ndarray:
    """Mean c_1 to c_13 of the audible frames of ``mel`` (frames, bands)."""
    mel = mel.astype(np.float64)
    levels = 10.0 * np.log10(np.sum(np.exp(2.0 * mel), axis=1))
    return (mel[levels > levels.max() - AUDIBLE] @ cosines(mel.shape[1])).mean(0)


# --- Time-warped distance ---------------------------------------------------------------------------------------------
# Distance from a recording of the same words with other timing: dynamic time warping (Sakoe and Chiba, 1978) pairs the
# frames before comparison.
def warped_log_mel_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Mean absolute difference of two natural-log mel spectrograms (frames, bands) and (other frames, bands) along the
    best frame alignment, in natural-log units. Raises :class:`SettingError` for spectrograms without frames or with
    different bands."""
    _require_same_bands(first, second, "cannot be aligned", frames=True)
    costs = np.stack([np.abs(row - second).mean(1) for row in first.astype(np.float64)])
    path = best_path(costs)
    return float(costs[path[:, 0], path[:, 1]].mean())


def best_path(costs: np.ndarray) -> np.ndarray:
    """Monotonic alignment (pairs, 2) from the first to the last frames with the smallest sum of ``costs`` (n, m)."""
    rows, columns = costs.shape
    # Cumulative costs by antidiagonal, which depend only on the previous two: entry i + 1 of a line is row i. Edges are
    # infinite.
    sums = np.full((rows + columns - 1, rows + 1), np.inf)
    sums[0, 1] = costs[0, 0]
    for line in range(1, rows + columns - 1):
        row = np.arange(max(0, line - columns + 1), min(rows, line + 1))
        before = np.minimum(sums[line - 1, row], sums[line - 1, row + 1])
        if line > 1:
            before = np.minimum(before, sums[line - 2, row])
        sums[line, row + 1] = costs[row, line - row] + before
    path = [(rows - 1, columns - 1)]
    while path[-1] != (0, 0):
        row, column = path[-1]
        steps = [(row - 1, column - 1), (row - 1, column), (row, column - 1)]
        path.append(min((one for one in steps if min(one) >= 0), key=lambda one: sums[sum(one), one[0] + 1]))
    return np.array(path[::-1])


# --- Take against baseline --------------------------------------------------------------------------------------------
Sound = tuple[np.ndarray, int]
"""Mono samples and their rate."""
Sounded = tuple[np.ndarray | None, Sound]
"""The spectrogram (frames, bands) drawn by the model, if any, and the audio."""


def with_baseline_metrics(baseline: Take, take: Take) -> Take:
    """``take`` with its figures relative to ``baseline``, which has the same words, durations and noise. Raises
    :class:`SettingError` if the two are not comparable."""
    same = (baseline.text, baseline.voice, baseline.checkpoint) == (take.text, take.voice, take.checkpoint)
    if not same or baseline.setting != take.setting.baseline:
        raise SettingError(
            "The two takes are not of one text, voice, options, seed and weights: neither is the other's baseline."
        )
    for one in (baseline, take):
        if one.unfinished:
            raise SettingError(f"The take was {one.unfinished}: it cannot be compared.")
    distance, metrics = with_difference(
        take.metrics, *((one.trace.mel, (one.samples, one.sample_rate)) for one in (baseline, take))
    )
    return replace(take, fidelity_to=baseline.id, log_mel_distance=distance, metrics=metrics)


def with_difference(metrics: Metrics, first: Sounded, second: Sounded) -> tuple[float, Metrics]:
    """Log-mel distance between two takes, and ``metrics`` of the second with its further differences from the first.
    Raises :class:`SettingError` if they differ in length. If either has no spectrogram, spectrograms of both sounds are
    compared."""
    (one, one_sound), (other, other_sound) = first, second
    if one is None or other is None:
        one = other = None
    mels = drawn_or_heard(one, *one_sound), drawn_or_heard(other, *other_sound)
    distance = log_mel_distance(*mels)
    metrics = replace(
        metrics, mel_cepstral_distortion=mel_cepstral_distortion(*mels), timbre_distance=timbre_distance(*mels)
    )
    try:
        error = pitch_error(one_sound[0], other_sound[0], one_sound[1])
    except SettingError:
        # A recording shorter than a few periods has an envelope, but no pitch.
        return distance, metrics
    return distance, replace(metrics, pitch_error=error.semitones, voicing_error=error.voicing)
