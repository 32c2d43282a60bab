"""Speak several scripts at once: their passes through the network are computed together.

Each script is spoken by the same code as alone, in a greenlet, which pauses where that code needs a pass of the network
and later continues with its result. Once all have paused, their passes are computed as one (:data:`Together`): products
over the rows of all, one after another without padding, and attention within each. Results therefore equal those of
single takes up to rounding, and scripts may differ in length, voice, seed and passages, and begin and end at any time.

On a processor, operators gain little from several threads, texts much: there each of torch's threads speaks a group of
scripts in this way, with its own passes. Where passes gain nothing from each other, it speaks one script after another,
and threads without a script help the others.
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
from greenlet import greenlet

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
    """Speaks a script until its next pass, in the thread that asks it to. With ``alone`` it computes its passes itself,
    and goes on to its end or until ``over``. ``threads`` says how many of torch's it may use."""

    def __init__(self, model: Any, turn: Turn, threads: Callable[[], int], over: threading.Event, alone: bool) -> None:
        self.asked: tuple[Together, Any] | None = None
        """The pass that it waits for; ``None`` once it has ended."""
        self._model, self._spoken, self._threads, self._over, self._alone = model, turn, threads, over, alone
        self._flow = greenlet(self._speak)
        self.go_on()

    def go_on(self, found: Any = None, error: BaseException | None = None) -> None:
        """Answer its question; returns once it asks again, or has ended."""
        self.asked = None
        torch.set_num_threads(self._threads())
        self.asked = self._flow.switch(found) if error is None else self._flow.throw(error)

    def stop(self) -> None:
        """Cancel it, and wait for its end."""
        while self.asked is not None:
            self.go_on(error=Cancelled())

    def _ask(self, together: Together, given: Any) -> Any:
        if self._alone:
            if self._over.is_set():
                raise Cancelled
            torch.set_num_threads(self._threads())
            return together([given])[0]
        with torch.inference_mode(False):  # A thread has one mode, and this script's is not that of the others.
            return self._flow.parent.switch((together, given))

    def _speak(self, _: None) -> None:
        try:
            script = self._model.shared(self._spoken.script, self._ask)
            found: Synthesis | BaseException = self._model.speak(script, self._spoken.observer, self._spoken.play)
        except Exception as error:
            found = error
        with _one_is_done:
            self._spoken.done(found)


def speak_together(model: Any, following: Callable[[], Turn | None], most: int) -> None:
    """Speak up to ``most`` scripts at once, until ``following``, asked before each pass while there is room, gives no
    further one and all are spoken. ``model`` is a :class:`paretone.models.families.speech.Speech`, which says whether
    torch's threads each speak some of the scripts; ``following`` is then called by any of them, one at a time. Raises
    what ``following`` raises."""
    threads, asking, over = torch.get_num_threads(), threading.Lock(), threading.Event()
    groups = min(threads, most) if model.spreads_texts else 1
    texts, rests = [0] * groups, [False] * groups
    alone, interval = groups > 1 and not model.gains_on_one_thread, sys.getswitchinterval()
    if alone:
        most = groups  # Then the first ones are heard sooner, and the last no later.
    if groups > 1:  # Or a thread waits 5 ms for one that reads a text, before its next operator.
        sys.setswitchinterval(SWITCH_SECONDS)

    def share() -> int:
        if groups > 1 and not alone:  # Passes run on one thread; short operators between them lose with more.
            return 1
        return threads // max(1, rests.count(False))

    def taken(group: int) -> Turn | None:
        """The next script, if there is one and it is for this group."""
        if sum(texts) >= most:  # Asked without the lock, under which a text is read, longer than a step.
            return None
        with asking:
            # The group with the fewest texts takes the next one.
            if over.is_set() or texts[group] > min(texts) or sum(texts) >= most:
                return None
            turn = following()
            texts[group] += turn is not None
            if not any(texts):
                # All end together: one left over would leave all further texts to a thread that has ended.
                over.set()
            return turn

    def work(group: int) -> None:
        mine: list[_Speaker] = []
        try:
            while not over.is_set():
                while (turn := taken(group)) is not None:
                    # What is compiled would be compiled again for another number of threads.
                    compiled, rests[group] = turn.script.plan.launching.mode is not None, False
                    mine.append(_Speaker(model, turn, (lambda: threads) if compiled else share, over, alone))
                if not mine:
                    rests[group] = True
                    time.sleep(0.01)  # Then there may be one for it.
                    continue
                torch.set_num_threads(share())
                _compute(mine)
                mine = [one for one in mine if one.asked is not None]
                texts[group] = len(mine)
        finally:
            over.set()
            for one in mine:
                one.stop()

    try:
        with ThreadPoolExecutor(groups, "speaking") as pool:
            others = [pool.submit(work, group) for group in range(1, groups)]
            work(0)
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
