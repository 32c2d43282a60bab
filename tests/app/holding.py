"""A window's engine, held where a test wants it: in the middle of a job, however fast or slow the machine is."""

import threading
from collections.abc import Callable

from paretone.session.events import Event
from tests.engine.recorder import PATIENCE_SECONDS


class Posts:
    """Events that a window's engine posts pass through here."""

    def __init__(self) -> None:
        self._kind: type[Event] = Event
        self._left = 0
        self._free = threading.Event()
        self._free.set()
        self.held = False
        """Whether the engine waits."""

    def to(self, window: Callable[[Event], None]) -> Callable[[Event], None]:
        """A function for an engine to post its events to, which passes them to ``window``."""

        def post(event: Event) -> None:
            window(event)
            if threading.current_thread().name == "engine":
                self._hold(event)

        return post

    def hold_at(self, kind: type[Event], number: int = 1) -> None:
        """Let the engine wait as soon as it has posted ``number`` more events of ``kind``, until :meth:`go_on`."""
        self._free.clear()
        self._kind, self._left = kind, number

    def go_on(self) -> None:
        self._left = 0
        self._free.set()

    def _hold(self, event: Event) -> None:
        if self._left and isinstance(event, self._kind):
            self._left -= 1
            if not self._left:
                self.held = True
                assert self._free.wait(PATIENCE_SECONDS)
                self.held = False
