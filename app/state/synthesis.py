"""Synthesising the selected text: the baseline, and with the techniques in use."""

from __future__ import annotations

import secrets
from functools import partial

from PySide6.QtCore import QObject, Signal

from app.state.artefacts import Artefacts
from app.state.availability import Availability, require
from app.state.comparison import Comparison
from app.state.differences import measured_against, technique_text
from app.state.jobs import Jobs, Kind
from app.state.making import Wanted, wanted_take
from app.state.selection import SEED_LIMIT, Selection
from engine.errors import SettingError
from engine.session.commands import Synthesise, TimeAgain
from engine.session.events import Event, TakeReady, TimedAgain
from engine.setting.setting import Setting
from engine.setting.take import Take, repeated
from engine.techniques import problem


class Synthesis(QObject):
    """Asks for takes, and compares those that arrive."""

    take_added = Signal(object)
    """A finished :class:`Take`, or one of what was finished."""
    timed_again = Signal(str, object)
    """The take with this id was timed again: the :class:`Measurements` of each run."""
    remeasured = Signal(object)
    """A take that was timed again, A or B, with the medians."""

    def __init__(
        self,
        selection: Selection,
        artefacts: Artefacts,
        availability: Availability,
        comparison: Comparison,
        jobs: Jobs,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._selection = selection
        self._artefacts = artefacts
        self._availability = availability
        self._comparison = comparison
        self._jobs = jobs

    def synthesise_baseline(self) -> None:
        """Speak without techniques. Draws a new seed first unless it is locked. Raises when it cannot be done."""
        require(self._availability.why_not_synthesise())
        if not self._selection.seed_locked:
            self._selection.set_seed(secrets.randbelow(SEED_LIMIT))
        self._synthesise(Kind.BASELINE, self._selection.baseline_setting, "Baseline")

    def synthesise_accelerated(self) -> None:
        """Speak with the techniques in use, with the baseline's seed. Raises when it cannot be done."""
        require(self._availability.why_not_accelerate())
        setting = self._selection.setting
        self._synthesise(Kind.ACCELERATED, setting, technique_text(setting))

    def time_again(self) -> None:
        """Time those of A and B again that the loaded model can make. Raises when there is none."""
        require(self.why_not_time_again())
        for take in self._sides:
            if not self._why_not_time(take):
                self._jobs.start(Kind.REPEAT, partial(self._repeat, take.id, self._wanted(take)))

    @staticmethod
    def _repeat(take: str, wanted: Wanted, job: int) -> TimeAgain:
        return TimeAgain(job, wanted.text, wanted.voice, wanted.setting, wanted.artefacts, take=take)

    def why_not_time_again(self) -> str:
        """Why neither A nor B can be timed again, as a sentence, or ``""``."""
        if not self._sides:
            return "Make a take first."
        reasons = [self._why_not_time(take) for take in self._sides]
        return "" if "" in reasons else reasons[0]

    @property
    def _sides(self) -> tuple[Take, ...]:
        """A and B, as far as they are there; a take that is both, once."""
        takes = (self._comparison.take_a, self._comparison.take_b)
        return tuple({take.id: take for take in takes if take is not None}.values())

    def _wanted(self, take: Take) -> Wanted:
        used = ((self._artefacts.source(one.technique), one) for one in take.setting.techniques if one.artefact)
        found = (None if source is None else source.find(entry) for source, entry in used)
        artefacts = tuple(one for one in found if one is not None)
        return wanted_take(self._selection, take.text, take.voice, take.setting, artefacts)

    def _why_not_time(self, take: Take) -> str:
        if take.unfinished:
            return f"The take was {take.unfinished}; only whole takes are timed again."
        try:
            wanted = self._wanted(take)
        except SettingError as error:
            return str(error)
        info = self._selection.info
        if info is None or (take.checkpoint and take.checkpoint != info.fingerprint):
            return "The take was made with other weights than the loaded ones."
        return problem(info, wanted.setting, wanted.artefacts) or ""

    def _synthesise(self, kind: Kind, setting: Setting, label: str) -> None:
        text, voice, artefacts = self._selection.text, self._selection.speaker, self._artefacts.of(setting)
        self._jobs.start(kind, lambda job: Synthesise(job, text, voice, setting, artefacts, label))

    @property
    def baseline_is_current(self) -> bool:
        """Whether A is the baseline of what is selected now."""
        return self._is_current(self._comparison.take_a, self._selection.baseline_setting)

    @property
    def accelerated_is_current(self) -> bool:
        """Whether B was made with the techniques and all else that is selected now."""
        setting = self._selection.setting
        return bool(setting.techniques) and self._is_current(self._comparison.take_b, setting)

    def _is_current(self, take: Take | None, setting: Setting) -> bool:
        chosen = self._selection
        if take is None or take.unfinished or chosen.voice is None or chosen.candidate:
            return False
        if chosen.info is not None and take.checkpoint not in ("", chosen.info.fingerprint):
            return False
        return (take.setting, take.text, take.voice) == (setting, chosen.text, chosen.voice.id)

    def follow(self, event: Event) -> None:
        """Compare a finished take: accelerated ones as B, measured against A; others as A."""
        if isinstance(event, TimedAgain):
            self._take_in(event)
        if not isinstance(event, TakeReady):
            return
        if event.take.unfinished:
            # It is heard among the takes; A and B stay what can be compared.
            self.take_added.emit(event.take)
            return
        accelerated, compared = bool(event.take.setting.techniques), self._comparison
        take = measured_against(event.take, compared.take_a) if accelerated else event.take
        self.take_added.emit(take)
        (compared.set_b if accelerated else compared.set_a)(take)
        self._selection.changed.emit()

    def _take_in(self, event: TimedAgain) -> None:
        """Have the medians of a take that was timed again everywhere."""
        compared = self._comparison
        for take, put in ((compared.take_a, compared.set_a), (compared.take_b, compared.set_b)):
            if take is not None and take.id == event.take:
                put(repeated(take, event.runs))
        known = next((one for one in self._sides if one.id == event.take), None)
        if known is not None:
            self.remeasured.emit(known)
        self.timed_again.emit(event.take, event.runs)
