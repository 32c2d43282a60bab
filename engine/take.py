"""A take: one synthesis under one setting, with what was measured and what was seen inside."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from engine.setting import Setting


@dataclass(frozen=True)
class Measurements:
    """What was measured on one synthesis.

    Seconds are wall seconds; load and warm-up are excluded. The real-time factor is ``seconds / audio_seconds`` with
    *new* audio only (the prompt excluded).
    """

    seconds: float = 0.0
    audio_seconds: float = 0.0
    first_audio_seconds: float = 0.0
    """Seconds from the request to the first audio that can be played (TTFA)."""
    text_seconds: float = 0.0
    backbone_seconds: float = 0.0
    decoder_seconds: float = 0.0
    evaluations: int = 0
    """Backbone evaluations (one evaluation runs all branches)."""
    ops_ratio: float = 1.0
    """Backbone operations over those of the same setting without techniques; see ``OperationCounts``."""
    peak_memory_bytes: int = 0
    device: str = ""

    @property
    def real_time_factor(self) -> float:
        """Wall seconds per second of new audio; 0 when there is no audio."""
        return self.seconds / self.audio_seconds if self.audio_seconds else 0.0


@dataclass(frozen=True)
class Trace:
    """What was seen inside: one entry per chunk and step."""

    step_seconds: tuple[tuple[float, ...], ...] = ()
    chunk_texts: tuple[str, ...] = ()
    chunk_seconds: tuple[float, ...] = ()
    mel: np.ndarray | None = field(default=None, repr=False, compare=False)
    """The generated log-mel spectrogram, (frames, bands), natural logarithm; ``None`` for models without one."""
    computed: tuple[tuple[float, ...], ...] = ()
    """How much of each backbone evaluation was computed, by operations: 1 where nothing was skipped."""


@dataclass(frozen=True)
class Take:
    """One synthesis as people listen to it. ``samples`` are float32 mono."""

    id: str
    created: str
    """UTC, ISO 8601."""
    text: str
    voice: str
    setting: Setting
    sample_rate: int
    samples: np.ndarray = field(repr=False, compare=False)
    measurements: Measurements = field(default_factory=Measurements)
    trace: Trace = field(default_factory=Trace, repr=False, compare=False)
    label: str = ""
    starred: bool = False
    fidelity_to: str = ""
    """Id of the baseline take that ``log_mel_distance`` is measured against, or ``""``."""
    log_mel_distance: float | None = None
    notes: tuple[str, ...] = ()
    machine: str = ""

    @property
    def seconds(self) -> float:
        """Length of the audio in seconds."""
        return len(self.samples) / self.sample_rate
