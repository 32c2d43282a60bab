"""What a take is measured to be beside its baseline. Torch-free."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine.errors import SettingError
from engine.measure.distortion import mel_cepstral_distortion
from engine.measure.fidelity import log_mel_distance
from engine.measure.pitch import pitch_error
from engine.take import Metrics, Take

Sound = tuple[np.ndarray, int]
"""Mono samples and their rate."""


def against(baseline: Take, take: Take) -> Take:
    """``take`` with its figures to ``baseline``, which speaks the same words in the same time from the same noise.

    Raises :class:`SettingError` where the two cannot be held against each other.
    """
    if (baseline.text, baseline.voice) != (take.text, take.voice) or baseline.setting != take.setting.baseline:
        raise SettingError(
            "The two takes are not of one text, voice, options and seed: neither is the other's baseline."
        )
    if baseline.trace.mel is None or take.trace.mel is None:
        raise SettingError("These takes have no spectrograms that could be held against each other.")
    distance = log_mel_distance(baseline.trace.mel, take.trace.mel)
    sounds = (baseline.samples, baseline.sample_rate), (take.samples, take.sample_rate)
    metrics = compared(take.metrics, (baseline.trace.mel, take.trace.mel), sounds)
    return replace(take, fidelity_to=baseline.id, log_mel_distance=distance, metrics=metrics)


def compared(metrics: Metrics, mels: tuple[np.ndarray, np.ndarray], sounds: tuple[Sound, Sound]) -> Metrics:
    """``metrics`` of the second of two takes with what it is beside the first: spectrograms (frames, bands) and
    recordings. Raises :class:`SettingError` where they differ in length."""
    (one, rate), (other, _) = sounds
    metrics = replace(metrics, mel_cepstral_distortion=mel_cepstral_distortion(*mels))
    try:
        error = pitch_error(one, other, rate)
    except SettingError:
        # A recording of less than a few periods has an envelope, but no melody.
        return metrics
    return replace(metrics, pitch_error=error.semitones, voicing_error=error.voicing)
