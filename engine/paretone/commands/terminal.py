"""Jobs of commands: running them, showing them in a terminal, and cancelling them by signals."""

from __future__ import annotations

import _thread
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from paretone import errors, models
from paretone.commands import output
from paretone.errors import Cancelled, SettingError
from paretone.models.base import SpeechModel
from paretone.observer import RemainingTime
from paretone.own_process import handling
from paretone.reading import printable, shortened
from paretone.session.commands import Command, LoadModel
from paretone.session.events import Caution, EngineStatus, Event, Progress
from paretone.wording import percent

if TYPE_CHECKING:
    from paretone.session.executor import Executor

BAR_WIDTH = 24
_ERASE = "\r\x1b[K"
LINES_SHARE = 0.25
"""Share of progress per line if lines cannot be overwritten."""
LONG_SECONDS = 60.0
"""Longer jobs announce their estimate at once."""
GRACE_SECONDS = 1.0
"""Time to notice a signal; after it the command is interrupted anywhere."""


class Terminal:
    """Writes a job's progress to ``stream``. On a screen it draws one bar with an estimate; in a file or pipe it writes
    few lines. Every method raises :class:`Cancelled` once ``cancelled`` is set."""

    def __init__(self, cancelled: threading.Event, quiet: bool = False, stream: TextIO | None = None) -> None:
        self.cancelled = cancelled
        self._quiet = quiet
        self._stream = stream or sys.stderr
        self._screen = self._stream.isatty()
        self._activity = ""
        self._drawn = False
        self.begin()
        self.cautioned: set[str] = set()

    def check(self) -> None:
        if self.cancelled.is_set():
            raise Cancelled

    def status(self, text: str) -> None:
        self.check()
        self._activity = text
        if not self._screen:
            self._write(f"{text}\n")
        else:
            self._draw(text)

    def wait(self, text: str) -> None:
        """Name the awaited event once, even if called repeatedly."""
        self.check()
        if self._activity != text:
            self.status(text)

    def hear(self, event: Event) -> None:
        if isinstance(event, EngineStatus):
            self.status(event.text)
        elif isinstance(event, Caution):
            self.caution(event.sentence)
        elif isinstance(event, Progress):
            self.progress(event.done, event.total, event.seconds_left)

    def begin(self) -> None:
        self._remaining = RemainingTime()
        self._share = 0.0
        self._estimated = False
        self.remark = ""
        """Shown after the estimate."""

    def progress(self, done: float, total: float, left: float | None = None) -> None:
        """Show ``done`` of ``total`` units of the job, and the seconds ``left``: its estimate, or by the pace."""
        self.check()
        estimate = self._remaining.update(done, total)
        left = estimate if left is None else left
        share = done / total
        if not self._screen:
            # In a file the estimate would otherwise appear only after a quarter of the work.
            first = left is not None and left >= LONG_SECONDS and not self._estimated
            if first or share >= self._share + LINES_SHARE or self._share < share == 1:
                self._estimated, self._share = self._estimated or first, share
                self._write(f"  {percent(share)}{_left(left)}\n")
            return
        # The end is cut off on a narrow screen: what matters least.
        width = min(shutil.get_terminal_size().columns // 10, BAR_WIDTH)
        bar = "█" * round(width * share)
        remark = f", {self.remark}" if self.remark else ""
        self._draw(f"{bar:░<{width}} {percent(share):>5}{_left(left)}{remark}  {self._activity}")

    def clear(self) -> None:
        """Remove the bar, so that further output starts on an empty line."""
        if self._drawn:
            self._control(_ERASE)
            self._drawn = False

    def say(self, text: str) -> None:
        """Write lines that must be read, even if progress is hidden."""
        self.check()
        self.clear()
        self._stream.write(f"{printable(text)}\n")
        self._stream.flush()

    def caution(self, sentence: str) -> None:
        """Write ``sentence``, once only."""
        if sentence not in self.cautioned:
            self.cautioned.add(sentence)
            self.say(sentence)

    def _draw(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        self._control(f"{_ERASE}{shortened(printable(text), width)}")
        self._drawn = True

    def _write(self, text: str) -> None:
        if not self._quiet:
            self._stream.write(printable(text))
            self._stream.flush()

    def _control(self, text: str) -> None:
        """Write text with our control characters."""
        if not self._quiet:
            write = self._stream.controls if isinstance(self._stream, output.Errors) else self._stream.write
            write(text)
            self._stream.flush()


Outcome = TypeVar("Outcome", bound=Event)
JOB = 1
"""Number of all jobs: the command line has one at a time."""


class Session:
    """Carries out commands with the window's executor, which is imported on first use. The terminal shows progress."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal

    def carry_out(self, command: Command, hear: Callable[[Event], None] | None = None) -> Any:
        """Carry out ``command``; returns its last event. ``hear`` receives all events before it, in place of
        :meth:`Terminal.hear`. Raises the job's errors, and :class:`paretone.errors.Cancelled`."""
        self.terminal.begin()
        try:
            return self.executor.carry_out(command, hear or self.terminal.hear, self.terminal.cancelled)
        except KeyboardInterrupt as interruption:
            # The command's message after a cancelled job, such as on kept parts, applies here as well.
            raise Cancelled from interruption

    def finished(self, command: Command, kind: type[Outcome]) -> tuple[list[Outcome], Exception | None]:
        """The events of ``kind``, which have results, and the error that ended ``command`` early."""
        found: list[Outcome] = []

        def hear(event: Event) -> None:
            if isinstance(event, kind):
                found.append(event)
            else:
                self.terminal.hear(event)

        try:
            self.carry_out(command, hear)
        except Exception as error:
            return found, error
        return found, None

    def load(
        self, model: str, folder: str = "", variant: str = "", device: str = "auto", vocoder: str = ""
    ) -> SpeechModel:
        self.terminal.status(f"Loading {model}")
        self.carry_out(LoadModel(JOB, model, folder, variant, device, vocoder))
        return self.model

    @property
    def model(self) -> SpeechModel:
        if self.executor.model is None:
            raise SettingError("No model is loaded.")
        return self.executor.model

    @property
    def machine(self) -> str:
        return self.executor.machine

    @cached_property
    def executor(self) -> Executor:
        from paretone.session.executor import Executor  # Imports torch.

        # Looked up on use, so that a replacement takes effect.
        return Executor(models.load_model)


class Cancellation(threading.Event):
    """Cancellation event of a command; records whether the main thread has seen it set."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = threading.Event()

    def is_set(self) -> bool:
        cancelled = super().is_set()
        if cancelled and threading.current_thread() is threading.main_thread():
            self.seen.set()
        return cancelled


@contextmanager
def cancelling() -> Iterator[Cancellation]:
    """Event set by the first signal. The second one raises :class:`KeyboardInterrupt` at once; so does the first after
    :data:`GRACE_SECONDS` unless the main thread has seen it: long imports never check."""
    cancelled = Cancellation()
    insisting: list[threading.Timer] = []

    def cancel(number: int) -> None:
        _note(number)
        if insisting:
            raise KeyboardInterrupt
        cancelled.set()
        insisting.append(threading.Timer(GRACE_SECONDS, insist, (number,)))
        insisting[0].daemon = True
        insisting[0].start()

    def insist(number: int) -> None:
        if cancelled.seen.is_set():
            return
        if hasattr(signal, "pthread_kill"):
            # This wakes the main thread from waiting.
            signal.pthread_kill(threading.main_thread().ident or 0, number)
        else:
            _thread.interrupt_main(signal.Signals(number))

    with handling(cancel):
        try:
            yield cancelled
        finally:
            cancelled.seen.set()
            for one in insisting:
                one.cancel()
                one.join()


@contextmanager
def terminable() -> Iterator[None]:
    """Make all signals raise :class:`KeyboardInterrupt` like Ctrl-C; :func:`exit_code` distinguishes them."""

    def interrupt(number: int) -> None:
        _note(number)
        raise KeyboardInterrupt

    _note(signal.SIGINT)
    with handling(interrupt):
        yield


def exit_code(number: int = 0) -> int:
    """Exit code after the signal ``number``, or the last one, as in shells: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + (number or _last_signal)


def ending(stopped: Exception | None, done: str, activity: str) -> tuple[str, int]:
    """Sentences that ``stopped`` ended ``activity`` with a part ``done``, and the exit code; ``""`` and 0: no error."""
    if stopped is None:
        return "", 0
    if isinstance(stopped, Cancelled):
        return f"Cancelled {done}", exit_code(stopped.signal)
    return f"Failed {done} {errors.sentence(stopped, activity)}", errors.exit_code(stopped)


_last_signal: int = signal.SIGINT


def _note(number: int) -> None:
    global _last_signal
    _last_signal = number


def _left(seconds: float | None) -> str:
    if seconds is None or seconds < 1:
        return ""
    if seconds < 100:
        return f", about {seconds:.0f} s left"
    return f", about {seconds / 60:.0f} min left"
