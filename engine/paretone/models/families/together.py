"""Speak several scripts at once: their passes through the network are computed together.

Each script is spoken by its own thread, exactly as alone, but only one thread runs at a time: until it needs a pass of
the network, for which it waits. Once all wait, their passes are computed as one (:data:`Together`): products over the
rows of all, one after another without padding, and attention within each. Results therefore equal those of single takes
up to rounding, and scripts may differ in length, voice, seed and passages, and begin and end at any time.

On a processor, operators gain little from several threads, texts much: there each of torch's threads speaks a group of
scripts in this way, with its own passes.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch

from paretone.errors import Cancelled
from paretone.models.base import Piece, Synthesis
from paretone.observer import SILENT, Observer

Together = Callable[[Sequence[Any]], Sequence[Any]]
"""Computes passes from the arguments of each, in order. Equal functions are called once for all that wait for them."""
Ask = Callable[[Together, Any], Any]
"""Asks for a pass, by its function and arguments, and waits for its result."""
SWITCH_SECONDS = 1e-4
"""For which Python lets a thread run while others wait."""
_one_is_done = threading.Lock()


@dataclass(frozen=True, eq=False)
class Turn:
    """A script to speak with others. ``done`` gets the :class:`Synthesis`, or the exception that ended it, one
    turn at a time; ``play`` and ``observer`` as in :meth:`paretone.models.base.SpeechModel.speak`. Other threads call
    them."""

    script: Any
    done: Callable[[Synthesis | BaseException], None]
    observer: Observer = SILENT
    play: Callable[[Piece], None] = lambda piece: None


class _Speaker:
    """A thread that runs only between :meth:`go_on` and its next pass."""

    def __init__(self, model: Any, turn: Turn, threads: int) -> None:
        self.asked: tuple[Together, Any] | None = None
        self.ended = False
        self._model, self._spoken, self._threads = model, turn, threads
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
        torch.set_num_threads(self._threads)  # Those of a new thread may be all.
        spoken = self._spoken
        try:
            script = self._model.shared(spoken.script, self._ask)
            found: Synthesis | BaseException = self._model.speak(script, spoken.observer, spoken.play)
        except BaseException as error:
            found = error
        try:
            with _one_is_done:
                spoken.done(found)
        finally:
            self.ended = True
            self._back.release()


def speak_together(model: Any, following: Callable[[], Turn | None], most: int) -> None:
    """Speak up to ``most`` scripts at once, until ``following``, asked before each pass while there is room, gives no
    further one and all are spoken. ``model`` is a :class:`paretone.models.families.speech.Speech`, which says whether
    torch's threads each speak some of the scripts; ``following`` is then called by any of them, one at a time. Raises
    what ``following`` raises."""
    threads, asking, over = torch.get_num_threads(), threading.Lock(), threading.Event()
    groups: list[list[_Speaker]] = [[] for _ in range(min(threads, most) if model.spreads_texts else 1)]
    share = threads // len(groups)
    if len(groups) > 1 and not model.gains_on_one_thread:
        most = len(groups)  # Then the first ones are heard sooner, and the last no later.
    interval = sys.getswitchinterval()
    if len(groups) > 1:  # Or a thread waits 5 ms for one that reads a text, before its next operator.
        sys.setswitchinterval(SWITCH_SECONDS)

    def work(mine: list[_Speaker]) -> None:
        torch.set_num_threads(share)
        try:
            while True:
                mine[:] = [one for one in mine if not one.is_over()]
                # Only with room: a text is read under the lock, and takes longer than a step.
                while over.is_set() or sum(map(len, groups)) < most:
                    with asking:
                        # The thread with the fewest texts takes the next one. All end together: one left over would
                        # leave all further texts to a thread that has ended, and has fewer.
                        fewest = len(mine) == min(map(len, groups)) and sum(map(len, groups)) < most
                        turn = following() if fewest and not over.is_set() else None
                        if over.is_set() or not (turn or any(groups)):
                            over.set()
                            return
                        if turn is None:
                            break
                        # What is compiled would be compiled again for another number of threads.
                        mine.append(_Speaker(model, turn, threads if turn.script.plan.launching.mode else share))
                    mine[-1].go_on()
                _compute(mine)
                if not mine:
                    time.sleep(0.01)  # Then there may be one for it.
        finally:
            over.set()
            for one in mine:
                one.stop()

    try:
        with ThreadPoolExecutor(len(groups), "speaking") as pool:
            others = [pool.submit(work, one) for one in groups[1:]]
            work(groups[0])
            for one in others:
                one.result()  # Raises what it raised.
    finally:
        torch.set_num_threads(threads)
        sys.setswitchinterval(interval)


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
