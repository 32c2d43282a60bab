"""Requests to stop a training: Ctrl-C and termination."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stop_requests() -> Iterator[threading.Event]:
    """An event that Ctrl-C or a termination request sets. The second Ctrl-C interrupts at once.

    Outside the main thread, where signals cannot be taken, nothing sets it.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    earlier = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, frame: object) -> None:
        asked.set()
        signal.signal(signal.SIGINT, earlier[signal.SIGINT])

    for one in earlier:
        signal.signal(one, ask)
    try:
        yield asked
    finally:
        for one, handler in earlier.items():
            signal.signal(one, handler)
