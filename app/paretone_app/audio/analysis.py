"""Analysis of takes before a comparison, in a worker thread: outlines, and gains for equal loudness."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QObject, QTimer, Signal

from paretone.measure.loudness import headroom, matching_gains
from paretone.setting.take import Take
from paretone_app.audio.sound import Envelope
from paretone_app.shell.bridge import Background


@dataclass(frozen=True)
class Analysis:
    """Analysis of two or more takes, any of which may be missing."""

    takes: tuple[Take | None, ...] = (None, None)
    envelopes: tuple[Envelope | None, ...] = (None, None)
    gains: tuple[float, ...] = (1.0, 1.0)
    """Linear gains that make them equally loud."""
    exact: bool = True
    """False when a take is too short for the gated measurement."""
    headroom: float = 1.0
    """Linear gain at which none clips."""


class Analyser(QObject):
    """Analyses takes in the background. ``prepare`` is called there with the samples and rate of each new take."""

    done = Signal(object)
    """The :class:`Analysis` of the takes requested last; outdated ones are dropped."""
    failed = Signal()

    def __init__(self, prepare: Callable[[np.ndarray, int], object], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._prepare = prepare
        self._wanted: tuple[Take | None, ...] = (None, None)
        self._last = Analysis()
        self._serial = 0
        self.busy = False
        self.background = Background("listen", self)
        """The thread; other work with sounds may run there."""
        self._submission = QTimer(self, singleShot=True, interval=0)
        self._submission.timeout.connect(self._begin)

    def analyse(self, takes: tuple[Take | None, ...]) -> None:
        self._wanted = takes
        self._serial += 1
        self.busy = True
        self._submission.start()

    def shut_down(self) -> None:
        self._submission.stop()
        self.background.shut_down()

    def _begin(self) -> None:
        serial, takes, previous = self._serial, self._wanted, self._last
        self.background.run(
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
    takes: tuple[Take | None, ...], previous: Analysis, prepare: Callable[[np.ndarray, int], object]
) -> Analysis:
    """Analyse ``takes``, reusing results in ``previous``."""
    known = {id(one): outline for one, outline in zip(previous.takes, previous.envelopes, strict=True)}
    outlines: list[Envelope | None] = []
    for take in takes:
        outline = None if take is None else known.get(id(take))
        if take is not None and outline is None:
            prepare(take.samples, take.sample_rate)
            outline = Envelope(take.sample_rate, take.samples)
        outlines.append(outline)
    envelopes, there = tuple(outlines), [take for take in takes if take is not None]
    room = min((headroom(take.samples) for take in there), default=1.0)
    if len(there) < 2:
        return Analysis(takes, envelopes, (room,) * len(takes), True, room)
    match = matching_gains([(take.samples, take.sample_rate) for take in there])
    matched = iter(match.gains)
    gains = tuple(room if take is None else 10 ** (next(matched) / 20) for take in takes)
    return Analysis(takes, envelopes, gains, match.exact, room)
