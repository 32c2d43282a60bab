"""When pieces of a synthesis come, whether playback would have to wait, and what time that leaves. Torch-free."""

from __future__ import annotations

import time
from collections.abc import Callable

SAFETY = 0.8
"""Share of the time that is left until playback would pause that may be planned with: other programs run too."""
FEWEST_STEPS = 4
"""Steps that a block gets however little time is left."""
LONGEST_UNSAID_PAUSE = 0.05
"""Seconds that playback may pause in all without a remark."""


class Pace:
    """Follows one synthesis. Playback is taken to begin with the first piece."""

    def __init__(self, started: float, clock: Callable[[], float] = time.perf_counter) -> None:
        """``started`` is when the request came, by ``clock``."""
        self.started = started
        self._clock = clock
        self._last: float | None = None
        self._ends = 0.0
        """When what was delivered will have been played."""
        self._pause = 0.0
        self.first_audio_seconds = 0.0
        """From the request to the first piece."""
        self.largest_gap = 0.0
        """The longest wait from one piece to the next, in seconds."""
        self._step_seconds = self._decoder_seconds = 0.0

    def delivered(self, seconds: float) -> None:
        """A piece has come that lasts ``seconds``."""
        now = self._clock()
        if self._last is None:
            self.first_audio_seconds, self._ends = now - self.started, now
        else:
            self.largest_gap = max(self.largest_gap, now - self._last)
            self._pause += max(now - self._ends, 0.0)
        self._last, self._ends = now, max(self._ends, now) + seconds

    def measured(self, steps: int, step_seconds: float, decoder_seconds: float) -> None:
        """What the last block took: so many steps, in all so long, and its decoding."""
        if steps:
            self._step_seconds, self._decoder_seconds = step_seconds / steps, decoder_seconds

    def affordable(self, most: int) -> int:
        """How many steps the next block may take before playback would pause, at most ``most``."""
        if self._last is None or not self._step_seconds:
            return most
        left = SAFETY * (self._ends - self._clock()) - self._decoder_seconds
        return min(max(int(left / self._step_seconds), FEWEST_STEPS), most)

    @property
    def pause(self) -> float:
        """Seconds that playback would have paused in all."""
        return self._pause

    @property
    def remarks(self) -> tuple[str, ...]:
        """What belongs on a take, as sentences."""
        if self._pause <= LONGEST_UNSAID_PAUSE:
            return ()
        return (
            f"Played as it came, the speech would have paused for {self._pause:.1f} s in all: this machine is too slow "
            "for these options, or was busy.",
        )
