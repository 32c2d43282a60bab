"""Work that would block the window, done in one thread, one piece after the other."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from PySide6.QtCore import QObject, Qt, Signal, Slot

_Found = TypeVar("_Found")


class Background(QObject):
    """A separate thread. What it does comes back on the thread that owns this object."""

    _came_back = Signal(object, object)

    def __init__(self, name: str, parent: QObject | None = None) -> None:
        """``name`` is the thread's."""
        super().__init__(parent)
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._ended = False
        # Queued always: what is done at once shall not come back within :meth:`run`, before what was asked for earlier.
        self._came_back.connect(self._hand_over, Qt.ConnectionType.QueuedConnection)

    def run(self, work: Callable[[], _Found], done: Callable[[_Found | BaseException], object]) -> None:
        """Do ``work`` in the thread; ``done`` is given, here, what it returns or the exception that it raises."""

        def back(future: Future) -> None:
            if not future.cancelled():
                with suppress(RuntimeError):  # Its receiver was deleted meanwhile.
                    self._came_back.emit(done, future.exception() or future.result())

        with suppress(RuntimeError):  # Nothing begins any more while the window closes.
            self._worker.submit(work).add_done_callback(back)

    def shut_down(self, wait: bool = True) -> None:
        """End the thread; ``wait`` for what it does now. Nothing comes back any more."""
        self._ended = True
        self._worker.shutdown(wait=wait, cancel_futures=True)

    @Slot(object, object)
    def _hand_over(self, done: Callable[[object], object], result: object) -> None:
        if not self._ended:
            done(result)
