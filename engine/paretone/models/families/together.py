"""Speak several scripts at once: their passes through the network are computed together.

Each script is spoken by its own thread, exactly as alone, but only one thread runs at a time: until it needs a pass of
the network, for which it waits. Once all wait, their passes are computed as one (:data:`Together`): products over the
rows of all, one after another without padding, and attention within each. Results therefore equal those of single takes
up to rounding, and scripts may differ in length, voice, seed and passages, and begin and end at any time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from paretone.errors import Cancelled
from paretone.models.base import Piece, Synthesis
from paretone.observer import SILENT, Observer

Together = Callable[[Sequence[Any]], Sequence[Any]]
"""Computes passes from the arguments of each, in order. Equal functions are called once for all that wait for them."""
Ask = Callable[[Together, Any], Any]
"""Asks for a pass, by its function and arguments, and waits for its result."""


@dataclass(frozen=True, eq=False)
class Turn:
    """A script to speak with others. ``done`` gets the :class:`Synthesis`, or the exception that ended it; ``play`` and
    ``observer`` as in :meth:`paretone.models.base.SpeechModel.speak`, called by another thread."""

    script: Any
    done: Callable[[Synthesis | BaseException], None]
    observer: Observer = SILENT
    play: Callable[[Piece], None] = lambda piece: None


class _Speaker:
    """A thread that runs only between :meth:`go_on` and its next pass."""

    def __init__(self, model: Any, turn: Turn) -> None:
        self.asked: tuple[Together, Any] | None = None
        self.ended = False
        self._model, self._spoken = model, turn
        self._answer: tuple[Any, BaseException | None] = None, None
        self._turn, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._out = False
        self._thread = threading.Thread(target=self._speak, name="speaker", daemon=True)
        self._thread.start()

    def go_on(self, found: Any = None, error: BaseException | None = None) -> None:
        """Answer its question; returns once it asks again, or has ended."""
        self.asked, self._answer, self._out = None, (found, error), True
        self._turn.release()
        self._wait()

    def is_over(self) -> bool:
        if self.ended:
            self._thread.join()
        return self.ended

    def stop(self) -> None:
        """Cancel it, and wait for its end."""
        if self._out:
            self._wait()
        while not self.is_over():
            self.go_on(error=Cancelled())

    def _wait(self) -> None:
        self._back.acquire()
        self._out = False

    def _ask(self, together: Together, given: Any) -> Any:
        self.asked = together, given
        self._back.release()
        self._turn.acquire()
        found, error = self._answer
        if error is not None:
            raise error
        return found

    def _speak(self) -> None:
        self._turn.acquire()
        spoken = self._spoken
        try:
            script = self._model.shared(spoken.script, self._ask)
            found: Synthesis | BaseException = self._model.speak(script, spoken.observer, spoken.play)
        except BaseException as error:
            found = error
        try:
            spoken.done(found)
        finally:
            self.ended = True
            self._back.release()


def speak_together(model: Any, following: Callable[[], Turn | None], most: int) -> None:
    """Speak up to ``most`` scripts at once, until ``following``, asked before each pass while there is room, gives no
    further one and all are spoken. ``model`` is a :class:`paretone.models.families.speech.Speech`."""
    speakers: list[_Speaker] = []
    try:
        while True:
            while len(speakers) < most and (turn := following()) is not None:
                speakers.append(_Speaker(model, turn))
                speakers[-1].go_on()
            speakers = [one for one in speakers if not one.is_over()]
            if not speakers:
                return
            _compute(speakers)
    finally:
        for one in speakers:
            one.stop()


def _compute(speakers: Sequence[_Speaker]) -> None:
    """Answer what all ``speakers`` ask, and let each go on."""
    groups: dict[Together, list[_Speaker]] = {}
    for one in speakers:
        if one.asked is not None:
            groups.setdefault(one.asked[0], []).append(one)
    for together, asking in groups.items():
        given = [one.asked[1] for one in asking if one.asked is not None]
        try:
            found: Sequence[Any] = together(given)
        except Exception as error:
            for one in asking:
                one.go_on(error=error)
            continue
        for one, result in zip(asking, found, strict=True):
            one.go_on(result)
