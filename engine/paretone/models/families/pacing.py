"""When pieces of a synthesis arrive, whether playback would have to wait, and how many steps fit before it does.
Torch-free.

Playback is assumed to begin with the first piece. Steps of a block are planned for a share of the remaining time; the
rest is a reserve. When the reserve is used up, the running block is cut short. No block has fewer than
:data:`FEWEST_STEPS` steps: on a machine too slow for these, playback pauses, which is reported.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

PLANNED_SHARE = 0.8
"""Share of the time that is left until playback would pause that a block is planned with: other programs run too."""
USED_SHARE = 0.9
"""Share of it that a running block may use before it is cut short."""
FEWEST_STEPS = 4
"""Steps that a block gets however little time is left."""
PLANNED_FROM, CUT_FROM = 4, 2
"""The last few steps say how long the next ones take: of a block that is planned, and of one that runs, where what
has become slower must be seen at once."""
LONGEST_UNSAID_PAUSE = 0.05
"""Seconds that playback may pause in all without a remark."""


class Pace:
    def __init__(self, started: float, clock: Callable[[], float] = time.perf_counter) -> None:
        """``started`` is when the request came, by ``clock``."""
        self.started = started
        self._clock = clock
        self._last: float | None = None
        self._ends = 0.0
        """When what was delivered will have been played."""
        self.pause = 0.0
        """Seconds that playback would have paused in all."""
        self.first_audio_seconds = 0.0
        """From the request to the first piece."""
        self.largest_gap = 0.0
        """The longest wait from one piece to the next, in seconds."""
        self._row_seconds: deque[float] = deque(maxlen=PLANNED_FROM)
        """Seconds of the last steps per row of the network."""
        self._frame_seconds = 0.0
        """Seconds of decoding the last block per frame."""

    @property
    def pause_so_far(self) -> float:
        """:attr:`pause` together with a wait that is not over yet."""
        return self.pause + max(self._clock() - self._ends, 0.0) if self.playing else 0.0

    @property
    def playing(self) -> bool:
        return self._last is not None

    def delivered(self, seconds: float) -> None:
        """A piece has come that lasts ``seconds``."""
        now = self._clock()
        if self._last is None:
            self.first_audio_seconds, self._ends = now - self.started, now
        else:
            self.largest_gap = max(self.largest_gap, now - self._last)
            self.pause += max(now - self._ends, 0.0)
        self._last, self._ends = now, max(self._ends, now) + seconds

    def stepped(self, rows: int, seconds: float) -> None:
        """A step over a number of ``rows`` of the network took ``seconds``."""
        self._row_seconds.append(seconds / rows)

    def decoded(self, frames: int, seconds: float) -> None:
        """Decoding a block of ``frames`` took ``seconds``."""
        self._frame_seconds = seconds / frames

    def affordable(self, most: int, rows: int, frames: int) -> int:
        """Number of steps that the next block of ``frames`` may take before playback would pause, at most ``most``;
        each computes ``rows``."""
        return min(max(self._fitting(PLANNED_SHARE, PLANNED_FROM, rows, frames, most), FEWEST_STEPS), most)

    def still(self, taken: int, most: int, rows: int, frames: int) -> int:
        """Number of further steps of the running block after those ``taken``, at least one and at most ``most``."""
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
    """The pace of a machine on which every step takes the same time and nothing else any: what fits there does not
    depend on what is measured, so that a seed gives the same speech every time."""

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
