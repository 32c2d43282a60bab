"""Synthesising the selected text: the baseline, and with the techniques in use."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject, Signal, Slot

from paretone.errors import SettingError
from paretone.models.base import ModelInfo
from paretone.session.commands import Synthesise, TimeAgain
from paretone.session.events import AudioReady, Event, TakeReady, TimedAgain
from paretone.setting.compatibility import are_others
from paretone.setting.setting import Artefact, Setting
from paretone.setting.take import DecodingTrace, DemaskingTrace, Take, Trace, repeated
from paretone.techniques import problem
from paretone_app.state.artefacts import Artefacts
from paretone_app.state.availability import Availability, require
from paretone_app.state.comparison import Comparison
from paretone_app.state.differences import measured_against, other_weights, technique_text
from paretone_app.state.jobs import Job, Jobs, Kind, Outcome
from paretone_app.state.making import Wanted, wanted_take
from paretone_app.state.selection import SEED_LIMIT, Selection

STREAM_SIDES = {Kind.BASELINE: "A", Kind.ACCELERATED: "B"}
"""Which side the take of a job is for."""


class Coming(QObject):
    """The take that is being made and heard. It grows by whole pieces of sound."""

    changed = Signal()
    """More of it is known, another one is made, or it is finished or given up."""

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._job = 0
        self._passages: dict[int, Trace] = {}
        self.side = ""
        """``"A"`` or ``"B"``; ``""`` if there is none."""
        self.trace = Trace()
        """What was seen inside."""
        jobs.ended.connect(self._job_ended)

    def follow(self, event: Event) -> None:
        """Take in a piece; the finished take takes its place."""
        if isinstance(event, AudioReady):
            job = self._jobs.find(event.job)
            side = STREAM_SIDES.get(job.kind, "") if job is not None else ""
            if side:
                self._add(event, side)
        elif isinstance(event, TakeReady):
            self._forget()

    def _add(self, event: AudioReady, side: str) -> None:
        if event.job != self._job:
            self._job, self._passages = event.job, {}
        if event.trace is not None:
            self._passages[event.passage] = event.trace
        self.side, self.trace = side, _joined([self._passages[number] for number in sorted(self._passages)])
        self.changed.emit()

    @Slot(object)
    def _job_ended(self, job: Job) -> None:
        if job.number == self._job:
            self._forget()

    def _forget(self) -> None:
        if self.side:
            self._job, self._passages, self.side, self.trace = 0, {}, "", Trace()
            self.changed.emit()


def _joined(passages: list[Trace]) -> Trace:
    """One trace of the traces of single passages."""
    decodings: list[DecodingTrace] = [one.decoding for one in passages if one.decoding is not None]
    demaskings: list[DemaskingTrace] = [one.demasking for one in passages if one.demasking is not None]
    trace = Trace()
    if decodings:
        decoding = replace(
            decodings[0],
            passages=tuple(cycles for one in decodings for cycles in one.passages),
            starts=tuple(start for one in decodings for start in one.starts),
            run_away=tuple(ran for one in decodings for ran in one.run_away),
        )
        trace = replace(trace, decoding=decoding)
    if demaskings:
        canvases = tuple(canvas for one in demaskings for canvas in one.passages)
        trace = replace(trace, demasking=replace(demaskings[0], passages=canvases))
    return trace


_KNOWN = 4
"""Answers kept: more than A and B, of a model before and after it is loaded again."""


class Synthesis(QObject):
    """Asks for takes, and compares those that arrive."""

    take_added = Signal(object)
    """A finished :class:`Take`, or one of what was finished."""
    timed_again = Signal(str, object)
    """The take with this id was timed again: the :class:`Measurements` of each run."""
    remeasured = Signal(object)
    """A take that was timed again, A or B, with the medians."""
    timing_ended = Signal(str)
    """Nothing is timed again any more: which of A and B was left out, and what a cancelled job has kept, in sentences;
    ``""`` if both were timed as asked."""

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
        self._found: dict[str, Artefact] = {}
        """Artefacts of takes, by fingerprint."""
        self._resolved: tuple[tuple[tuple[object, ...], str], ...] = ()
        """Last answers of :meth:`_problem`, with what was asked."""
        self._remarks: list[str] = []
        """What is to be said once timing ends."""
        self._runs: dict[int, int] = {}
        """Number of finished runs, by job."""
        jobs.ended.connect(self._job_ended)

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
        self._remarks = [self.left_out()]
        for take in self._sides.values():
            if not self._why_not_time(take):
                self._jobs.start(Kind.REPEAT, partial(self._repeat, take.id, self._wanted(take)))

    @staticmethod
    def _repeat(take: str, wanted: Wanted, job: int) -> TimeAgain:
        return TimeAgain(job, wanted.text, wanted.voice, wanted.setting, wanted.artefacts, take=take)

    def why_not_time_again(self) -> str:
        """Why neither A nor B can be timed again, in sentences, or ``""``."""
        reasons = self._reasons()
        return "" if "" in reasons.values() else _refusals(reasons) or "Make a take first."

    def left_out(self) -> str:
        """Which of A and B cannot be timed again while the other can, and why, in sentences, or ``""``."""
        reasons = self._reasons()
        return _refusals(reasons) if "" in reasons.values() else ""

    def _reasons(self) -> dict[str, str]:
        """Why A and B cannot be timed again, or ``""``, by side."""
        return {side: self._why_not_time(take) for side, take in self._sides.items()}

    @property
    def _sides(self) -> dict[str, Take]:
        """A and B, as far as they are there; a take that is both, once."""
        sides = {"A": self._comparison.take_a, "B": self._comparison.take_b}
        takes = {side: take for side, take in sides.items() if take is not None}
        return {"A and B": takes["A"]} if len({one.id for one in takes.values()}) < len(takes) else takes

    def _wanted(self, take: Take) -> Wanted:
        used = [one for one in take.setting.techniques if one.artefact]
        for one in used:
            source = self._artefacts.source(one.technique)
            found = source.find(one) if source is not None and one.artefact not in self._found else None
            if found is not None:
                self._found[one.artefact] = found
        artefacts = tuple(self._found[one.artefact] for one in used if one.artefact in self._found)
        return wanted_take(self._selection, take.text, take.voice, take.setting, artefacts)

    def _why_not_time(self, take: Take) -> str:
        if take.unfinished:
            return f"The take was {take.unfinished}; only whole takes are timed again."
        try:
            wanted = self._wanted(take)
            loaded = self._selection.loaded
        except SettingError as error:
            return str(error)
        if others := other_weights(take.checkpoint, loaded.all_weights):
            return f"The take {others}."
        return self._problem(loaded, wanted)

    def _problem(self, info: ModelInfo, wanted: Wanted) -> str:
        """Why the loaded model refuses the setting, as a sentence, or ``""``. Every refresh asks for it, and a plan is
        resolved once per setting and artefacts of a loaded model."""
        asked = (info, wanted.setting, *wanted.artefacts)
        for known, reason in self._resolved:
            if len(known) == len(asked) and all(one is other for one, other in zip(known, asked, strict=True)):
                return reason
        reason = problem(info, wanted.setting, wanted.artefacts) or ""
        self._resolved = (*self._resolved[1 - _KNOWN :], (asked, reason))
        return reason

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
        if chosen.info is not None and are_others(take.checkpoint, chosen.info.all_weights):
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
        known = next((one for one in self._sides.values() if one.id == event.take), None)
        if known is not None:
            self.remeasured.emit(known)
        self._runs[event.job] = len(event.runs)
        self.timed_again.emit(event.take, event.runs)

    @Slot(object, object)
    def _job_ended(self, job: Job, outcome: Outcome) -> None:
        if job.kind is not Kind.REPEAT or not isinstance(job.command, TimeAgain):
            return
        runs, name = self._runs.pop(job.number, 0), job.command.take
        if runs and outcome is not Outcome.FINISHED:
            side, known = next(((side, one) for side, one in self._sides.items() if one.id == name), ("A take", None))
            kept = f"{side} {outcome.value} after {runs} of {job.command.times} repeats, which are kept"
            now = f": its times are now those of {_of_repeats(len(known.repeats))}" if known is not None else ""
            self._remarks.append(f"Timing {kept}{now}.")
        if all(one.kind is not Kind.REPEAT for one in self._jobs.running):
            remarks, self._remarks = " ".join(filter(None, self._remarks)), []
            self.timing_ended.emit(remarks)


def _refusals(reasons: Mapping[str, str]) -> str:
    return " ".join(f"{side} cannot be timed again. {reason}" for side, reason in reasons.items() if reason)


def _of_repeats(number: int) -> str:
    return "one repeat" if number == 1 else f"{number} repeats, as medians"
