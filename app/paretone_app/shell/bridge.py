"""From the engine's thread to Qt's: events become signals.

Lifecycle events cross one by one as queued signals. Progress, telemetry and reports wait in a deque that is drained
twelve times a second: the latest progress and telemetry win, all reports are kept. Draining costs 0.6 µs a message
against 11 µs for a signal, so a fast engine never floods the window."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeGuard, TypeVar

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from paretone.errors import Cancelled, PlainError
from paretone.session.events import Event, PreparationReport, Progress, Telemetry


class Bridge(QObject):
    """``post`` may be called from any thread; the signals are emitted on the thread that owns the bridge."""

    happened = Signal(object)
    """A lifecycle :class:`Event`, after everything posted before it."""
    telemetry = Signal(object)
    progress = Signal(object)
    reports = Signal(object)
    """Tuple of all :class:`PreparationReport` since the last emission."""

    _arrived = Signal(object)
    _figures_wait = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._figures: deque[Event] = deque()
        self._timer = QTimer(self, singleShot=True, interval=1000 // 12)
        self._timer.timeout.connect(self.drain)
        self._arrived.connect(self._deliver, Qt.ConnectionType.QueuedConnection)
        self._figures_wait.connect(self._start_timer, Qt.ConnectionType.QueuedConnection)

    def post(self, event: Event) -> None:
        if isinstance(event, Telemetry | Progress | PreparationReport):
            first = not self._figures
            self._figures.append(event)
            if first:
                self._figures_wait.emit()
        else:
            self._arrived.emit(event)

    @Slot()
    def drain(self) -> None:
        latest: dict[type[Event], Event] = {}
        reports: list[Event] = []
        while self._figures:
            event = self._figures.popleft()
            if isinstance(event, PreparationReport):
                reports.append(event)
            else:
                latest[type(event)] = event
        for kind, signal in ((Progress, self.progress), (Telemetry, self.telemetry)):
            if kind in latest:
                signal.emit(latest[kind])
        if reports:
            self.reports.emit(tuple(reports))

    @Slot()
    def _start_timer(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    @Slot(object)
    def _deliver(self, event: Event) -> None:
        self.drain()
        self.happened.emit(event)


_Found = TypeVar("_Found")


def arrived(found: _Found | BaseException, failed: Callable[[str], object]) -> TypeGuard[_Found]:
    """Whether ``found`` is a result. A :class:`PlainError` goes to ``failed`` as a sentence, others are raised."""
    if isinstance(found, PlainError):
        failed(str(found))
        return False
    if isinstance(found, BaseException):
        raise found
    return True


class Background(QObject):
    """A worker thread whose results arrive on the thread that owns this object."""

    _came_back = Signal(object, object)

    def __init__(self, name: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._ended, self._cancelled = False, threading.Event()
        # Always queued: a result must not arrive within :meth:`run`, before earlier ones.
        self._came_back.connect(self._hand_over, Qt.ConnectionType.QueuedConnection)

    def run(self, work: Callable[[], _Found], done: Callable[[_Found | BaseException], object]) -> None:
        """Call ``work`` in the worker, then ``done`` here, with the result or the exception."""
        self._cancelled.clear()

        def back(future: Future) -> None:
            if not future.cancelled():
                with suppress(RuntimeError):  # The receiver was deleted.
                    self._came_back.emit(done, future.exception() or future.result())

        with suppress(RuntimeError):  # The window closes: start nothing.
            self._worker.submit(work).add_done_callback(back)

    def cancel(self) -> None:
        self._cancelled.set()

    def check(self) -> None:
        """Raise :class:`Cancelled` in the worker after :meth:`cancel`."""
        if self._cancelled.is_set():
            raise Cancelled

    def shut_down(self, wait: bool = True) -> None:
        """End the thread and drop its results; ``wait`` for the running call."""
        self._ended = True
        self.cancel()
        self._worker.shutdown(wait=wait, cancel_futures=True)

    @Slot(object, object)
    def _hand_over(self, done: Callable[[object], object], result: object) -> None:
        if not self._ended:
            done(result)
