"""Track when pieces of a synthesis arrive, whether playback would pause, and how many steps fit before that.
Torch-free.

Playback is assumed to begin with the first piece. Steps of a block are planned for a share of the remaining time; the
rest is a reserve. When the reserve is used up, the running block is cut short. No block has fewer than
:data:`FEWEST_STEPS` steps: on a slower machine, playback pauses, which is reported.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

PLANNED_SHARE = 0.8
"""Share of the time until a pause that is planned for a block; other programs run too."""
USED_SHARE = 0.9
"""Share of that time that a running block may use before it is cut short."""
FEWEST_STEPS = 4
"""Minimum steps of a block, however little time is left."""
PLANNED_FROM, CUT_FROM = 4, 2
"""Recent steps that predict the next ones: for a planned block, and for a running one, which may slow down at once."""
LONGEST_UNSAID_PAUSE = 0.05
"""Total pause in seconds below which no remark is made."""


class Pace:
    def __init__(self, started: float, clock: Callable[[], float] = time.perf_counter) -> None:
        """``started`` is the time of the request, by ``clock``."""
        self.started = started
        self._clock = clock
        self._last: float | None = None
        self._ends = 0.0
        """Time at which the delivered audio will have been played."""
        self.pause = 0.0
        """Total pause of playback in seconds."""
        self.first_audio_seconds = 0.0
        """Seconds from the request to the first piece."""
        self.largest_gap = 0.0
        """Longest wait between pieces, in seconds."""
        self._row_seconds: deque[float] = deque(maxlen=PLANNED_FROM)
        """Seconds per network row of the last steps."""
        self._frame_seconds = 0.0
        """Seconds of decoding per frame of the last block."""

    @property
    def pause_so_far(self) -> float:
        """:attr:`pause` including a pause in progress."""
        return self.pause + max(self._clock() - self._ends, 0.0) if self.playing else 0.0

    @property
    def playing(self) -> bool:
        return self._last is not None

    def delivered(self, seconds: float) -> None:
        """Record a piece that lasts ``seconds``."""
        now = self._clock()
        if self._last is None:
            self.first_audio_seconds, self._ends = now - self.started, now
        else:
            self.largest_gap = max(self.largest_gap, now - self._last)
            self.pause += max(now - self._ends, 0.0)
        self._last, self._ends = now, max(self._ends, now) + seconds

    def stepped(self, rows: int, seconds: float) -> None:
        """Record a step over ``rows`` of the network that took ``seconds``."""
        self._row_seconds.append(seconds / rows)

    def decoded(self, frames: int, seconds: float) -> None:
        """Record that decoding a block of ``frames`` took ``seconds``."""
        self._frame_seconds = seconds / frames

    def affordable(self, most: int, rows: int, frames: int) -> int:
        """Steps of ``rows`` each, up to ``most``, that the next block of ``frames`` may take before playback pauses."""
        return min(max(self._fitting(PLANNED_SHARE, PLANNED_FROM, rows, frames, most), FEWEST_STEPS), most)

    def still(self, taken: int, most: int, rows: int, frames: int) -> int:
        """Further steps of the running block after ``taken``, at least one and at most ``most``."""
        return min(max(self._fitting(USED_SHARE, CUT_FROM, rows, frames, most), FEWEST_STEPS - taken, 1), most)

    def _fitting(self, share: float, remembered: int, rows: int, frames: int, otherwise: int) -> int:
        if not self.playing or not self._row_seconds:
            return otherwise
        left = share * (self._ends - self._clock()) - frames * self._frame_seconds
        last = list(self._row_seconds)[-remembered:]
        step = rows * sum(last) / len(last)
        return max(int(left / step), 0) if step > 0 else otherwise

    @property
    def remarks(self) -> tuple[str, ...]:
        if self.pause <= LONGEST_UNSAID_PAUSE:
            return ()
        return (
            f"Streamed playback would have paused for {self.pause:.1f} s in total: this machine is too slow "
            "for these options, or was busy.",
        )


class AssumedPace(Pace):
    """Pace of a machine on which each step takes the same time and everything else none. The number of steps is
    independent of measurements, so a seed reproduces its speech."""

    def __init__(self, step_seconds: float) -> None:
        self._now, self._assumed = 0.0, step_seconds
        super().__init__(0.0, lambda: self._now)

    def stepped(self, rows: int, seconds: float) -> None:
        self._now += self._assumed
        self._row_seconds.append(self._assumed)

    def decoded(self, frames: int, seconds: float) -> None: ...

    def affordable(self, most: int, rows: int, frames: int) -> int:
        return super().affordable(most, 1, frames)

    def still(self, taken: int, most: int, rows: int, frames: int) -> int:
        return most
