"""One run through a listening test: which trial is on, what was heard in it, and what was answered.

Pure: neither Qt nor sound. A session is fixed beforehand; nothing in it can be read out about how well it goes.
"""

from __future__ import annotations

import random
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from paretone.listening.trials import RecordError, TrialConditions, TrialRecord, new_name
from paretone_app.listening.stimuli import PreparedItem


@dataclass(frozen=True)
class Planned:
    """One trial to come: which item, and which of its stimuli each button plays."""

    item: int
    order: tuple[int, ...]
    repeat: bool = False
    practice: bool = False
    """Whether it is there to get to know the test: nothing of it is kept."""


class ListeningSession(ABC):
    """Common to all methods. ``chance`` is the operating system's own unless a test replaces it.

    A trial whose sound was interrupted is void: it is recorded, counts for nothing and is asked again at the end.
    Up to ``practice`` trials for getting to know the test come first; of these nothing is recorded.
    """

    method: str

    def __init__(
        self,
        items: Sequence[PreparedItem],
        listener: str,
        chance: random.Random | None = None,
        name: str = "",
        practice: int = 0,
    ) -> None:
        if not items:
            raise RecordError("No sentence was spoken by all settings to compare.")
        self.items = tuple(items)
        self.listener = listener
        self.name = name or new_name()
        self._chance = chance or secrets.SystemRandom()
        self._waiting: list[Planned] = list(self._plan())
        self.planned = len(self._waiting)
        """Valid trials that make the session complete; fixed from the beginning."""
        self.valid = 0
        """Valid trials answered."""
        self.void = 0
        self.records: list[TrialRecord] = []
        self.practice: list[Planned] = []
        """All trials of practice, done or not."""
        while self._waiting and len(self.practice) < practice:
            more = self._plan()[: practice - len(self.practice)]
            self.practice += [replace(one, repeat=False, practice=True) for one in more]
        self._waiting = self.practice + self._waiting
        self.practised = 0
        self.taught = ""
        """Feedback of the last trial, if it was practice."""
        self._sounding: int | None = None
        self._switches = 0
        self._begin()

    @abstractmethod
    def _plan(self) -> Sequence[Planned]:
        """The trials, in the order they are asked."""

    def _again(self, trial: Planned) -> Planned:
        """The trial that replaces ``trial``, which was void."""
        return trial

    # --- The trial that is on ----------------------------------------------------------------------------------------
    @property
    def finished(self) -> bool:
        return not self._waiting

    @property
    def trial(self) -> Planned:
        return self._waiting[0]

    @property
    def practising(self) -> bool:
        return not self.finished and self.trial.practice

    @property
    def item(self) -> PreparedItem:
        return self.items[self.trial.item]

    @property
    def sounding(self) -> int | None:
        return self._sounding

    def hear(self, button: int) -> None:
        """Button ``button`` is heard from now on."""
        if not 0 <= button < len(self.trial.order):
            raise ValueError(f"there is no button {button}")
        if self._sounding is not None and button != self._sounding:
            self._switches += 1
        self._sounding = button
        self.heard.add(button)

    def heard_to_the_end(self, button: int) -> None:
        """Button ``button`` has sounded from beginning to end."""
        self.heard_whole.add(button)

    @abstractmethod
    def why_not_answer(self) -> str:
        """Why the listener cannot answer yet, as a sentence, or ``""``."""

    def feedback(self, answer: Mapping[str, Any]) -> str:
        """Feedback on this answer to the current trial, if it is practice, in sentences."""
        return ""

    def _answered(self, answer: Mapping[str, Any], around: TrialConditions) -> TrialRecord | None:
        """Take down an answer, unless it was practice, and continue with the next trial."""
        problem = self.why_not_answer()
        if problem:
            raise RecordError(problem)
        self.taught = self.feedback(answer) if self.practising else ""
        item, trial = self.item, self._waiting.pop(0)
        if trial.practice:
            self.practised += 1
            self._begin()
            return None
        void = around.underruns > 0
        record = TrialRecord(
            self.name,
            self.method,
            self.listener,
            len(self.records) + 1,
            self.planned,
            item.record,
            tuple(one.record for one in item.stimuli),
            trial.order,
            answer,
            self._switches,
            around,
            void,
            trial.repeat,
        )
        self.records.append(record)
        if void:
            self.void += 1
            self._waiting.append(self._again(trial))
        else:
            self.valid += 1
        self._begin()
        return record

    def _begin(self) -> None:
        self._sounding = None
        self._switches = 0
        self.heard: set[int] = set()
        """Buttons that were pressed in this trial."""
        self.heard_whole: set[int] = set()
        """Buttons that sounded from beginning to end in this trial."""

    # --- Drawing lots ------------------------------------------------------------------------------------------------
    def _shuffled(self, count: int) -> list[int]:
        places = list(range(count))
        self._chance.shuffle(places)
        return places

    def _spread(self, trials: int) -> list[int]:
        """An item for each of ``trials``: each as often as the others, give or take one, in random order."""
        spread: list[int] = []
        while len(spread) < trials:
            spread += self._shuffled(len(self.items))
        return spread[:trials]
