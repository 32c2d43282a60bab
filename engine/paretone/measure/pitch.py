"""Fundamental frequency, and pitch differences between takes. Torch-free.

The method is YIN: A. de Cheveigné and H. Kawahara, "YIN, a fundamental frequency estimator for speech and music", 2002,
steps 1 to 5 (without the local search for the best estimate). This suffices for comparing takes of one voice: both have
the same estimator's errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paretone.errors import SettingError

LOWEST, HIGHEST = 60.0, 500.0
"""Range of a voice's fundamental frequency in Hz."""
HOP_SECONDS = 0.01
THRESHOLD = 0.15
"""A frame is voiced if the normalised difference function falls below this."""
QUIET = -45.0
"""dB below the loudest frame at which a frame counts as unvoiced: noise floors can be periodic."""
BLOCK = 512
"""Frames per batch, which bounds memory for long recordings."""
LENGTH_TOLERANCE = 0.02
"""Tolerated difference in seconds of takes with the same duration (rounding)."""


@dataclass(frozen=True)
class PitchError:
    semitones: float | None
    """Root mean square difference over the frames voiced in both; ``None`` without such frames."""
    voicing: float
    """Share of all frames voiced in exactly one of the two."""
    frames: int
    """Number of frames voiced in both."""


def pitch_error(first: np.ndarray, second: np.ndarray, rate: int) -> PitchError:
    """Pitch difference of mono ``second`` (n,) at ``rate`` Hz from ``first``, frame by frame. Meaningful only for the
    same words with the same timing. Raises :class:`SettingError` for lengths that differ by more than 20 ms and for
    recordings shorter than a frame."""
    if abs(len(first) - len(second)) > LENGTH_TOLERANCE * rate:
        raise SettingError(
            f"The takes last {len(first) / rate:.2f} s and {len(second) / rate:.2f} s, so their pitch cannot be "
            "compared frame by frame; compare takes of one text, voice, speed and seed."
        )
    shared = min(len(first), len(second))
    one, other = (fundamental(samples[:shared], rate) for samples in (first, second))
    voiced = (one > 0) & (other > 0)
    differences = 12.0 * np.log2(other[voiced] / one[voiced])
    semitones = float(np.sqrt(np.mean(differences**2))) if voiced.any() else None
    return PitchError(semitones, float(np.mean((one > 0) != (other > 0))), int(voiced.sum()))


def fundamental(samples: np.ndarray, rate: int) -> np.ndarray:
    """Hz of each frame of mono ``samples`` (n,), 10 ms apart; 0 if unvoiced. A frame compares a window of two longest
    periods with itself, shifted by up to one longest period. Raises :class:`SettingError` for fewer samples than a
    frame."""
    longest, shortest = int(rate / LOWEST), int(rate / HIGHEST)
    window, hop = 2 * longest, round(HOP_SECONDS * rate)
    span = window + longest
    if len(samples) < span:
        raise SettingError(
            f"The recording lasts {len(samples) / rate:.3f} s, but measuring pitch needs {span / rate:.3f} s."
        )
    samples = np.asarray(samples, np.float64)
    starts = np.arange(0, len(samples) - span + 1, hop)
    found = [
        _periods(samples, part, window, longest, shortest)
        for part in np.split(starts, range(BLOCK, len(starts), BLOCK))
    ]
    periods, powers = (np.concatenate(parts) for parts in zip(*found, strict=True))
    voiced = (periods > 0) & (powers > max(powers.max() * 10 ** (QUIET / 10), 1e-12))
    return np.where(voiced, rate / np.where(voiced, periods, 1.0), 0.0)


def _periods(
    samples: np.ndarray, starts: np.ndarray, window: int, longest: int, shortest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Periods by YIN, in samples, of the frames at ``starts``, 0 if unvoiced, and the frames' powers."""
    frames = samples[starts[:, None] + np.arange(window + longest)]
    differences = _differences(frames, window, longest)
    # Equation 8: divided by the mean of the differences at all shorter lags.
    sums = np.maximum(np.cumsum(differences[:, 1:], axis=1), 1e-20)
    normalised = np.ones_like(differences)
    normalised[:, 1:] = differences[:, 1:] * np.arange(1, longest + 1) / sums
    # Step 4: the first lag below the threshold before a rise is the bottom of the first dip; 0 if there is none.
    below = normalised < THRESHOLD
    below[:, :shortest] = False
    rising = np.ones_like(below)
    rising[:, :-1] = normalised[:, 1:] >= normalised[:, :-1]
    bottoms = below & rising
    lags = np.where(bottoms.any(1), bottoms.argmax(1), 0)
    # Step 5: the minimum of a parabola through that lag and its neighbours.
    places = np.maximum(lags, 1)
    rows, last = np.arange(len(places)), normalised.shape[1] - 1
    before, after = normalised[rows, places - 1], normalised[rows, np.minimum(places + 1, last)]
    curve = before - 2.0 * normalised[rows, places] + after
    offsets = np.where(curve > 1e-12, 0.5 * (before - after) / np.where(curve > 1e-12, curve, 1.0), 0.0)
    offsets = np.where(places < last, offsets.clip(-0.5, 0.5), 0.0)
    return np.where(lags > 0, places + offsets, 0.0), (frames[:, :window] ** 2).mean(1)


def _differences(frames: np.ndarray, window: int, longest: int) -> np.ndarray:
    """YIN's equation 6 for lags 0 to ``longest``: Σ (x_j − x_(j+lag))² over the window, by one correlation a frame."""
    size = 1 << (frames.shape[1] + window - 1).bit_length()
    spectrum = np.fft.rfft(frames, size)
    correlation = np.fft.irfft(spectrum * np.conj(np.fft.rfft(frames[:, :window], size)), size)[:, : longest + 1]
    sums = np.concatenate([np.zeros((len(frames), 1)), np.cumsum(frames**2, axis=1)], axis=1)
    lags = np.arange(longest + 1)
    moved = sums[:, lags + window] - sums[:, lags]
    return np.maximum(moved[:, :1] + moved - 2.0 * correlation, 0.0)


# --- Melody -----------------------------------------------------------------------------------------------------------
# Liveliness of a take's melody, and its variation over seeds.
#
# Few steps and strong guidance give an average reading, clear and always the same. Predicted naturalness does not fall
# with that; these two figures do.
#
# * **Pitch range** of a take: the standard deviation of the natural logarithm of the fundamental frequency over its
#   voiced frames. 0.16 is 2.8 semitones.
# * **Diversity** of takes of one sentence and voice with different seeds: the standard deviation over the takes in each
#   frame voiced in all of them, mean over these frames. Takes of different length are first stretched to one length,
#   from first to last voiced frame; differences in timing then count as well.
#
# The fundamental frequency is YIN's, without frames more than a factor of 1.8 from the take's median, which are mostly
# octave errors. YIN misses steep glides, so pitch ranges are about 30 % lower than those of the vocoder's input curve.
FURTHEST = 0.6
"""Natural logarithm of the largest ratio of a frame's frequency to the median."""
FEWEST = 20
"""Minimum of voiced frames (10 ms) for a figure."""
SAME_LENGTH = 2
"""Tolerated difference in frames of takes with the same timing (rounding)."""


def log_pitch(samples: np.ndarray, rate: int) -> np.ndarray:
    """Natural logarithm of the fundamental frequency in Hz of each frame of mono ``samples`` (n,), 10 ms apart,
    (frames,); 0 where unvoiced. Empty for recordings shorter than a few periods."""
    try:
        found = fundamental(samples, rate)
    except SettingError:
        return np.zeros(0)
    curve = np.where(found > 0, np.log(np.maximum(found, 1.0)), 0.0)
    voiced = curve > 0
    if voiced.any():
        curve[np.abs(curve - np.median(curve[voiced])) > FURTHEST] = 0.0
    return curve


def mean_pitch(curve: np.ndarray) -> float:
    """Geometric mean of the fundamental frequency in Hz of a :func:`log_pitch` curve; NaN if nothing is voiced."""
    voiced = curve[curve > 0]
    return float(np.exp(voiced.mean())) if len(voiced) else float("nan")


def pitch_range(curve: np.ndarray) -> float | None:
    """Pitch range of a :func:`log_pitch` curve; ``None`` for less than 0.2 s of voice."""
    voiced = curve[curve > 0]
    return float(voiced.std()) if len(voiced) >= FEWEST else None


def diversity(curves: Sequence[np.ndarray]) -> float | None:
    """Diversity of takes by their curves, (frames,) each; ``None`` for fewer than two takes or too few frames voiced in
    all. The standard deviation is that of a sample (n - 1), so it does not grow with the number of takes."""
    if len(curves) < 2:
        return None
    lengths = [len(one) for one in curves]
    if max(lengths) - min(lengths) <= SAME_LENGTH:
        together = np.array([one[: min(lengths)] for one in curves])
    else:
        cut = [np.trim_zeros(one) for one in curves]
        length = round(float(np.mean([len(one) for one in cut])))
        places = np.arange(length) + 0.5
        stretched = (one[(places * len(one) / length).astype(int)] if len(one) else np.zeros(length) for one in cut)
        together = np.array([*stretched])
    voiced = (together > 0).all(0)
    if voiced.sum() < FEWEST:
        return None
    return float(together[:, voiced].std(0, ddof=1).mean())
