"""One run through a listening test, without interim scores: current trial, sounds heard in it, answers. No Qt."""

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
    """A future trial: its item, and the stimulus of each button."""

    item: int
    order: tuple[int, ...]
    repeat: bool = False
    practice: bool = False


class ListeningSession(ABC):
    """Base of all methods. ``trials``: how many, unless the items give the number. A trial with interrupted sound is
    void: recorded, not scored, and asked again at the end. Up to ``practice`` unrecorded practice trials come first.
    ``chance`` is the operating system's random source unless a test replaces it."""

    def __init__(
        self,
        items: Sequence[PreparedItem],
        listener: str,
        method: str,
        trials: int = 0,
        chance: random.Random | None = None,
        name: str = "",
        practice: int = 0,
    ) -> None:
        if not items:
            raise RecordError("No sentence was spoken by all settings to compare.")
        self.items = tuple(items)
        self.method = method
        self._trials = trials
        self._require_settings()
        self.listener = listener
        self.name = name or new_name()
        self._chance = chance or secrets.SystemRandom()
        self.waiting: list[Planned] = list(self._plan())
        self.planned = len(self.waiting)
        """Valid trials of a complete session; fixed from the start."""
        self.valid = 0
        self.void = 0
        self.records: list[TrialRecord] = []
        self.practice: list[Planned] = []
        """All practice trials, done or not."""
        while self.waiting and len(self.practice) < practice:
            more = self._plan()[: practice - len(self.practice)]
            self.practice += [replace(one, repeat=False, practice=True) for one in more]
        self.waiting = self.practice + self.waiting
        self.practised = 0
        self.taught = ""
        """Feedback of the last trial, if it was practice."""
        self.sounding: int | None = None
        self._switches = 0
        self._begin()

    def _require_settings(self) -> None:  # noqa: B027
        """Raise :class:`RecordError` if the method cannot compare the settings of the items."""

    @abstractmethod
    def _plan(self) -> Sequence[Planned]:
        """The trials in order."""

    def _again(self, trial: Planned) -> Planned:
        """The trial that replaces the void ``trial``."""
        return trial

    @property
    def finished(self) -> bool:
        return not self.waiting

    @property
    def trial(self) -> Planned:
        return self.waiting[0]

    @property
    def practising(self) -> bool:
        return not self.finished and self.trial.practice

    @property
    def item(self) -> PreparedItem:
        return self.items[self.trial.item]

    def hear(self, button: int) -> None:
        if not 0 <= button < len(self.trial.order):
            raise ValueError(f"there is no button {button}")
        if self.sounding is not None and button != self.sounding:
            self._switches += 1
        self.sounding = button
        self.heard.add(button)

    @abstractmethod
    def why_not_answer(self) -> str:
        """Why the listener cannot answer yet, as a sentence, or ``""``."""

    def feedback(self, answer: Mapping[str, Any]) -> str:
        """Feedback on an answer to a practice trial, in sentences."""
        return ""

    def _answered(self, answer: Mapping[str, Any], around: TrialConditions) -> TrialRecord | None:
        """Record an answer, unless practice, and go to the next trial."""
        if problem := self.why_not_answer():
            raise RecordError(problem)
        self.taught = self.feedback(answer) if self.practising else ""
        item, trial = self.item, self.waiting.pop(0)
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
            self.waiting.append(self._again(trial))
        else:
            self.valid += 1
        self._begin()
        return record

    def _begin(self) -> None:
        self.sounding = None
        self._switches = 0
        self.heard: set[int] = set()
        """Buttons pressed in this trial."""
        self.heard_whole: set[int] = set()
        """Buttons heard from beginning to end in this trial."""

    def _shuffled(self, count: int) -> list[int]:
        places = list(range(count))
        self._chance.shuffle(places)
        return places

    def _spread(self, trials: int) -> list[int]:
        """An item for each of ``trials``, all equally often, give or take one, in random order."""
        spread: list[int] = []
        while len(spread) < trials:
            spread += self._shuffled(len(self.items))
        return spread[:trials]
