"""What lanes show beyond waveforms, computed by a worker: what is in view first, never while a take is timed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QImage

from paretone.audio.spectrogram import levels
from paretone.figures.scatter import Scale
from paretone.measure.loudness import signal_metrics
from paretone.measure.pitch import log_pitch
from paretone.setting.take import Metrics, Take
from paretone_app.shell.bridge import Background

Wanted = Mapping[Hashable, Callable[[], object]]
"""What to compute, by its key."""
RANGE_DECIBELS = 70.0
"""Range of spectrograms below the take's loudest band."""
DIFFERENCE_DECIBELS = 20.0
"""Ends of the colour scale of a difference (±)."""
BANDS = Scale(-0.5, 99.5)
"""All bands of :func:`paretone.audio.spectrogram.band_frequency`."""
WINDOW_SECONDS = 0.043
"""Longest analysis window; a closer look in time has a shorter one."""


@dataclass(frozen=True)
class Part:
    """A part of a spectrogram: its time in seconds, its bands, and its size."""

    time: Scale
    columns: int
    bands: Scale
    rows: int

    def levels(self, samples: np.ndarray, rate: int) -> np.ndarray:
        """Decibels (columns, rows), from the lowest frequency."""
        step = (self.time.high - self.time.low) / self.columns
        nearer = (BANDS.high - BANDS.low) / (self.bands.high - self.bands.low)
        # Closer in time: shorter windows; closer in frequency: longer ones.
        window = float(np.clip(8 * step, 0.006, WINDOW_SECONDS) * min(3.0, nearer))
        times = self.time.low + (np.arange(self.columns) + 0.5) * step
        return levels(samples, rate, times, np.linspace(self.bands.low, self.bands.high, self.rows + 1), window)


@dataclass(frozen=True, eq=False)
class Facts:
    """Of a whole take."""

    metrics: Metrics
    levels: np.ndarray = field(repr=False)
    """A coarse spectrogram: decibels (columns, rows)."""
    pitch: np.ndarray = field(repr=False)
    """See :func:`paretone.measure.pitch.log_pitch`."""
    top: float
    """Decibels of the loudest band."""

    @classmethod
    def of(cls, take: Take) -> Facts:
        known = take.metrics if take.metrics.true_peak is not None else signal_metrics(take.samples, take.sample_rate)
        whole = Part(Scale(0.0, take.seconds), max(1, min(1024, round(200 * take.seconds))), BANDS, 100)
        found = whole.levels(take.samples, take.sample_rate)
        return cls(known, found, log_pitch(take.samples, take.sample_rate), float(found.max()))


class Tile(NamedTuple):
    levels: np.ndarray
    image: QImage


def painted(found: np.ndarray, lowest: float, highest: float, colours: np.ndarray) -> Tile:
    """``found``, decibels (columns, rows), in ``colours`` (n,) uint32 from ``lowest`` to ``highest``."""
    scaled = (found - lowest) * ((len(colours) - 1) / (highest - lowest))
    pixels = np.ascontiguousarray(colours[np.clip(scaled, 0, len(colours) - 1).astype(np.uint8)].T[::-1])
    rows, columns = pixels.shape
    image = QImage(pixels.data, columns, rows, 4 * columns, QImage.Format.Format_RGB32).copy()
    return Tile(found.astype(np.float16), image)


class Finder(QObject):
    """Computes pieces in a worker, one after the other, and keeps them. Those no longer wanted are not begun."""

    found = Signal(object)
    """The key of a result."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._background = Background("lanes", self)
        self._background.run(int, lambda _: None)  # Its thread begins with the panel, not in the midst of work.
        self._kept: OrderedDict[Hashable, object] = OrderedDict()
        self._wanted: Wanted = {}
        self._running = self._held = False

    def get(self, key: Hashable) -> object:
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def want(self, pieces: Wanted) -> None:
        """Compute these instead of what was wanted before, the first ones first."""
        self._wanted = pieces
        self._next()

    def hold(self, held: bool) -> None:
        """Begin nothing while ``held``: a take is being timed."""
        self._held = held
        self._next()

    @property
    def busy(self) -> bool:
        return self._running or any(key not in self._kept for key in self._wanted)

    def shut_down(self, wait: bool) -> None:
        self._wanted = {}
        self._background.shut_down(wait)

    def _next(self) -> None:
        key = next((one for one in self._wanted if one not in self._kept), None)
        if key is not None and not self._running and not self._held:
            self._running = True
            self._background.run(self._wanted[key], lambda found: self._keep(key, found))

    def _keep(self, key: Hashable, found: object) -> None:
        self._running = False
        self._kept[key] = None if isinstance(found, BaseException) else found
        while len(self._kept) > 256:
            self._kept.popitem(last=False)
        self._next()
        if isinstance(found, BaseException):
            raise found
        self.found.emit(key)
