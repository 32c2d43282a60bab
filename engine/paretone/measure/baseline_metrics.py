"""Measurements of a take against its baseline. Torch-free."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from paretone.audio.spectrogram import drawn_or_heard
from paretone.errors import SettingError
from paretone.measure.distortion import mel_cepstral_distortion
from paretone.measure.fidelity import log_mel_distance
from paretone.measure.pitch import pitch_error
from paretone.measure.timbre import timbre_distance
from paretone.setting.take import Metrics, Take

Sound = tuple[np.ndarray, int]
"""Mono samples and their rate."""
Sounded = tuple[np.ndarray | None, Sound]
"""The spectrogram (frames, bands) that a model drew, if it draws one, and what was heard."""


def with_baseline_metrics(baseline: Take, take: Take) -> Take:
    """``take`` with its figures to ``baseline``, which speaks the same words in the same time from the same noise.

    Raises :class:`SettingError` if the two cannot be compared with each other.
    """
    same = (baseline.text, baseline.voice, baseline.checkpoint) == (take.text, take.voice, take.checkpoint)
    if not same or baseline.setting != take.setting.baseline:
        raise SettingError(
            "The two takes are not of one text, voice, options, seed and weights: neither is the other's baseline."
        )
    for one in (baseline, take):
        if one.unfinished:
            raise SettingError(f"The take was {one.unfinished}: it cannot be compared.")
    distance, metrics = with_difference(take.metrics, _sounded(baseline), _sounded(take))
    return replace(take, fidelity_to=baseline.id, log_mel_distance=distance, metrics=metrics)


def _sounded(take: Take) -> Sounded:
    return take.trace.mel, (take.samples, take.sample_rate)


def with_difference(metrics: Metrics, first: Sounded, second: Sounded) -> tuple[float, Metrics]:
    """The log-mel distance of the second of two takes to the first, and ``metrics`` of the second with its further
    differences from the first. Raises :class:`SettingError` if they differ in length.

    If either has no spectrogram, those of both sounds are compared.
    """
    (one, one_sound), (other, other_sound) = first, second
    if one is None or other is None:
        one = other = None
    mels = drawn_or_heard(one, *one_sound), drawn_or_heard(other, *other_sound)
    return log_mel_distance(*mels), _compared(metrics, mels, (one_sound, other_sound))


def _compared(metrics: Metrics, mels: tuple[np.ndarray, np.ndarray], sounds: tuple[Sound, Sound]) -> Metrics:
    """``metrics`` of the second of two takes with those that compare it with the first: spectrograms (frames, bands)
    and recordings. Raises :class:`SettingError` if they differ in length."""
    (one, rate), (other, _) = sounds
    metrics = replace(
        metrics, mel_cepstral_distortion=mel_cepstral_distortion(*mels), timbre_distance=timbre_distance(*mels)
    )
    try:
        error = pitch_error(one, other, rate)
    except SettingError:
        # A recording of less than a few periods has an envelope, but no melody.
        return metrics
    return replace(metrics, pitch_error=error.semitones, voicing_error=error.voicing)
