"""A take while it is being made: its samples and its spectrogram so far."""

from __future__ import annotations

import numpy as np

from paretone.audio.spectrogram import HOP, RATE, log_mel
from paretone_app.features.listen.plots import Picture


class ComingTake:
    """Grows with every piece. Spectrograms of pieces are joined as they come; the finished take is drawn anew."""

    def __init__(self, side: str, rate: int) -> None:
        """``side`` is ``"A"`` or ``"B"``; ``rate`` is in hertz."""
        self.side = side
        self._rate = rate
        self._samples = np.zeros(0, np.float32)
        self._mel = log_mel(self._samples, rate)

    def add(self, samples: np.ndarray) -> None:
        """More samples, (n,)."""
        self._samples = np.concatenate((self._samples, np.asarray(samples, np.float32)))
        wanted = round(len(self._samples) / self._rate * RATE / HOP)
        more = log_mel(samples, self._rate)[: max(0, wanted - len(self._mel))]
        self._mel = np.concatenate((self._mel, more))

    @property
    def picture(self) -> Picture | None:
        """What there is, or ``None`` if that is nothing yet."""
        return Picture(self._samples, self._rate, self._mel) if len(self._samples) and len(self._mel) else None
