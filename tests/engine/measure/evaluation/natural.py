"""Natural speech for judges, and what is done to it."""

from functools import cache

import numpy as np
import pytest

RATE = 24_000
TEXT = "The birch canoe slid on the smooth planks."


@cache
def speech(text: str = TEXT, pitch: float = 1.0, formant: float = 1.0) -> np.ndarray:
    """``text`` as the teacher of the natural models says it, (n,) at 24 kHz."""
    for package in ("hibari", "onnx", "onnxruntime"):
        pytest.importorskip(package)
    from paretone.training.natural_corpus import Manner

    return _teacher().speak(text, Manner(pitch=pitch, formant=formant))[0].samples


@cache
def _teacher() -> object:
    from paretone.training.natural_teacher import NaturalTeacher

    return NaturalTeacher()


def noisy(samples: np.ndarray, decibels: float = 15.0) -> np.ndarray:
    """With white noise that many dB below the speech."""
    noise = np.random.default_rng(0).standard_normal(len(samples))
    return (samples + noise * samples.std() * 10 ** (-decibels / 20)).astype(np.float32)


def muffled(samples: np.ndarray, hertz: float = 1500.0) -> np.ndarray:
    """Without what is above ``hertz``."""
    spectrum = np.fft.rfft(samples)
    spectrum[np.fft.rfftfreq(len(samples), 1 / RATE) > hertz] = 0.0
    return np.fft.irfft(spectrum, len(samples)).astype(np.float32)


def with_dropouts(samples: np.ndarray, seconds: float = 0.02, every: float = 0.1) -> np.ndarray:
    """With silence in the place of 20 ms of every 100."""
    return np.where(np.arange(len(samples)) / RATE % every < seconds, 0.0, samples).astype(np.float32)
