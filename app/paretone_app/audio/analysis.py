"""Analysis of takes before a comparison, in a worker thread: spectrograms, and gains for equal loudness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from PySide6.QtCore import QObject, QTimer, Signal

from paretone.audio.spectrogram import log_mel
from paretone.measure.loudness import headroom, matching_gains
from paretone.setting.take import Take
from paretone_app.audio.sound import Envelope
from paretone_app.shell.bridge import Background

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Analysis:
    """Analysis of two takes, either of which may be missing."""

    takes: tuple[Take | None, Take | None] = (None, None)
    mels: tuple[np.ndarray | None, np.ndarray | None] = (None, None)
    envelopes: tuple[Envelope | None, Envelope | None] = (None, None)
    gains: tuple[float, float] = (1.0, 1.0)
    """Linear gains that make A and B equally loud."""
    exact: bool = True
    """False when a take is too short for the gated measurement."""
    headroom: float = 1.0
    """Linear gain at which neither A nor B clips."""


class Analyser(QObject):
    """Analyses takes in the background. ``prepare`` is called there with the samples and rate of each new take."""

    done = Signal(object)
    """The :class:`Analysis` of the takes requested last; outdated ones are dropped."""
    failed = Signal()

    def __init__(self, prepare: Callable[[np.ndarray, int], object], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._prepare = prepare
        self._wanted: tuple[Take | None, Take | None] = (None, None)
        self._last = Analysis()
        self._serial = 0
        self.busy = False
        """Whether a requested analysis is pending."""
        self._background = Background("listen", self)
        self._submission = QTimer(self, singleShot=True, interval=0)
        self._submission.timeout.connect(self._begin)

    def analyse(self, takes: tuple[Take | None, Take | None]) -> None:
        self._wanted = takes
        self._serial += 1
        self.busy = True
        self._submission.start()

    def run(self, work: Callable[[], _Found], done: Callable[[_Found | BaseException], object]) -> None:
        """Run other work in the same thread, as :meth:`paretone_app.shell.bridge.Background.run`."""
        self._background.run(work, done)

    def shut_down(self, wait: bool) -> None:
        self._submission.stop()
        self._background.shut_down(wait)

    def _begin(self) -> None:
        serial, takes, previous = self._serial, self._wanted, self._last
        self._background.run(
            lambda: analysed(takes, previous, self._prepare), lambda analysis: self._take_over(serial, analysis)
        )

    def _take_over(self, serial: int, analysis: Analysis | BaseException) -> None:
        if serial != self._serial:
            return
        self.busy = False
        if isinstance(analysis, BaseException):
            self.failed.emit()
            raise analysis
        self._last = analysis
        self.done.emit(analysis)


def analysed(
    takes: tuple[Take | None, Take | None], previous: Analysis, prepare: Callable[[np.ndarray, int], object]
) -> Analysis:
    """Analyse ``takes``, reusing results in ``previous``."""

    def mel_of(take: Take | None) -> np.ndarray | None:
        known = next((mel for one, mel in zip(previous.takes, previous.mels, strict=True) if one is take), None)
        if take is None or known is not None:
            return known
        prepare(take.samples, take.sample_rate)
        return log_mel(take.samples, take.sample_rate)

    def envelope_of(take: Take | None) -> Envelope | None:
        known = next(
            (outline for one, outline in zip(previous.takes, previous.envelopes, strict=True) if one is take), None
        )
        return known if take is None or known is not None else Envelope(take.sample_rate, take.samples)

    first, second = takes
    mels = mel_of(first), mel_of(second)
    envelopes = envelope_of(first), envelope_of(second)
    room = min((headroom(take.samples) for take in takes if take is not None), default=1.0)
    if first is None or second is None:
        return Analysis(takes, mels, envelopes, (room, room), True, room)
    match = matching_gains([(take.samples, take.sample_rate) for take in (first, second)])
    of_first, of_second = (10 ** (gain / 20) for gain in match.gains)
    return Analysis(takes, mels, envelopes, (of_first, of_second), match.exact, room)
