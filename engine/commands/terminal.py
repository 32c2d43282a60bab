"""Progress of a running job in a terminal, and cancelling it by Ctrl-C. Standard output is left to results."""

from __future__ import annotations

import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from engine.errors import Cancelled
from engine.session.events import EngineStatus, Event, Progress
from engine.session.progress import RemainingTime
from engine.wording import percent

BAR_WIDTH = 24
LINES_SHARE = 0.25
"""If lines cannot be overwritten, one is written per this share of progress."""


class Terminal:
    """Writes what a job does to ``stream``.

    On a screen it draws one bar with an estimate; in a file or pipe it writes few lines. Every method raises
    :class:`Cancelled` once ``cancelled`` is set.
    """

    def __init__(self, cancelled: threading.Event, quiet: bool = False, stream: TextIO | None = None) -> None:
        self.cancelled = cancelled
        self._quiet = quiet
        self._stream = stream or sys.stderr
        self._screen = self._stream.isatty()
        self._activity = ""
        self._drawn = False
        self._remaining = RemainingTime()
        self._share = 0.0
        self.remark = ""
        """Shown after the bar."""

    def check(self) -> None:
        """Raise when the job was cancelled."""
        if self.cancelled.is_set():
            raise Cancelled

    def status(self, text: str) -> None:
        """Begin another part of the job."""
        self.check()
        self._activity = text
        if not self._screen:
            self._write(f"{text}\n")
        else:
            self._draw(text)

    def hear(self, event: Event) -> None:
        """Show what a job of the executor says."""
        if isinstance(event, EngineStatus):
            self.status(event.text)
        elif isinstance(event, Progress):
            self.progress(event.done, event.total, event.seconds_left)

    def begin(self) -> None:
        """Start a separate bar for what comes next."""
        self._remaining = RemainingTime()
        self._share = 0.0
        self.remark = ""

    def progress(self, done: int, total: int, left: float | None = None) -> None:
        """Show how much is done, in units of the job's own; ``left`` are the seconds that it will take, where the job
        knows better than the pace of the last ones."""
        self.check()
        estimate = self._remaining.update(done, total)
        left = estimate if left is None else left
        share = done / total
        if not self._screen:
            if share >= self._share + LINES_SHARE or self._share < share == 1:
                self._share = share
                self._write(f"  {percent(share)}{_left(left)}\n")
            return
        filled = round(BAR_WIDTH * share)
        remark = f", {self.remark}" if self.remark else ""
        self._draw(
            f"{'█' * filled}{'░' * (BAR_WIDTH - filled)} {percent(share):>5}{_left(left)}  {self._activity}{remark}",
        )

    def clear(self) -> None:
        """Take the bar away, so that what follows starts on an empty line."""
        if self._drawn:
            self._write("\r\x1b[K")
            self._drawn = False

    def say(self, text: str) -> None:
        """Write lines that must be read, also where progress is not shown."""
        self.check()
        self.clear()
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def _draw(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        self._write(f"\r\x1b[K{text[:width]}")
        self._drawn = True

    def _write(self, text: str) -> None:
        if not self._quiet:
            self._stream.write(text)
            self._stream.flush()


@contextmanager
def cancelling() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets; the second one raises :class:`KeyboardInterrupt` at once."""
    cancelled = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield cancelled
        return

    def interrupted(number: int, frame: object) -> None:
        if cancelled.is_set():
            raise KeyboardInterrupt
        cancelled.set()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield cancelled
    finally:
        signal.signal(signal.SIGINT, before)


def _left(seconds: float | None) -> str:
    if seconds is None or seconds < 1:
        return ""
    if seconds < 100:
        return f", about {seconds:.0f} s left"
    return f", about {seconds / 60:.0f} min left"
