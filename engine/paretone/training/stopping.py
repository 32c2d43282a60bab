"""Requests to stop a training: Ctrl-C and termination."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class StopRequest(threading.Event):
    """Set by the signal ``number``."""

    number = 0


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """An event that Ctrl-C or a termination request sets. The second one raises :class:`KeyboardInterrupt` at once.

    Outside the main thread, where signals cannot be taken, nothing sets it.
    """
    asked = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    earlier = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, frame: object) -> None:
        if asked.number:
            raise KeyboardInterrupt
        asked.number = number
        asked.set()

    for one in earlier:
        signal.signal(one, ask)
    try:
        yield asked
    finally:
        for one, handler in earlier.items():
            signal.signal(one, handler)
