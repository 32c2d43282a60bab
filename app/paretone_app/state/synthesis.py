"""Synthesis of the selected text, and of takes wanted for measurements only."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from PySide6.QtCore import QObject, Signal

from paretone.errors import SettingError
from paretone.models import catalogue
from paretone.models.base import ModelInfo, Voice
from paretone.session.commands import Command, MakeTake, Synthesise, TimeAgain
from paretone.session.events import AudioReady, Event, JobFailed, TakeMade, TakeReady, TimedAgain
from paretone.setting.compatibility import are_others
from paretone.setting.setting import Artefact, Setting
from paretone.setting.take import DecodingTrace, DemaskingTrace, Take, Trace, repeated
from paretone.techniques import problem
from paretone_app.state.artefacts import Artefacts
from paretone_app.state.availability import Availability, require
from paretone_app.state.comparison import Comparison
from paretone_app.state.differences import measured_against, model_title, other_weights, technique_text
from paretone_app.state.jobs import IdleWork, Job, Jobs, Kind, Outcome, Piece
from paretone_app.state.selection import SEED_LIMIT, Selection


@dataclass(frozen=True)
class Wanted:
    """A take to make, with the artefacts named by its setting; missing ones are prepared."""

    text: str
    voice: Voice
    setting: Setting
    artefacts: tuple[Artefact, ...] = ()

    @classmethod
    def of(cls, command: Synthesise) -> Wanted:
        return cls(command.text, command.voice, command.setting, command.artefacts)

    def command(self, number: int) -> MakeTake:
        label = technique_text(self.setting)
        return MakeTake(number, self.text, self.voice, self.setting, self.artefacts, label)

    def again(self, take: str, number: int) -> TimeAgain:
        return TimeAgain(number, self.text, self.voice, self.setting, self.artefacts, take=take)


def why_not_loaded(model: str) -> str:
    """How to get ``model`` loaded, as a sentence."""
    known = any(one.id == model for one in catalogue.models())
    return "Load that model first (menu Model)." if known else "That model is not there any more."


def wanted_take(
    selection: Selection,
    text: str,
    voice: str,
    setting: Setting,
    artefacts: tuple[Artefact, ...] = (),
    checkpoint: str = "",
) -> Wanted:
    """Request for a take of ``text`` in the voice with id ``voice`` under ``setting``, with the weights
    ``checkpoint`` if given. Raises :class:`SettingError` if the loaded model cannot make it."""
    info = selection.info if selection.ready else None
    if info is None or info.id != setting.model:
        raise SettingError(f"It is of {model_title(setting.model)}. {why_not_loaded(setting.model)}")
    if others := other_weights(checkpoint, info.all_weights):
        raise SettingError(f"What it belongs to {others}; load {info.title} from the folder of those.")
    found = next((one for one in selection.voices if one.id == voice), None)
    if found is None:
        raise SettingError(f"{info.title} has no voice “{voice.rpartition('/')[2]}”, so it cannot be made.")
    return Wanted(text, found, setting, artefacts)


class Making(QObject):
    """Makes takes without playback: from :meth:`ask` as jobs of the queue, from :meth:`ahead` at idle times."""

    take_made = Signal(object)
    changed = Signal()
    """Another take is under way, the queue changed, or a take failed."""

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._waiting: tuple[Wanted, ...] = ()
        self.idle = IdleWork(jobs, self)
        self.idle.happened.connect(self._note)
        self.problems: dict[Wanted, str] = {}
        self.artefacts: dict[str, Artefact] = {}
        jobs.ended.connect(self._job_ended)
        jobs.changed.connect(self._queue_changed)

    @property
    def waiting(self) -> tuple[Wanted, ...]:
        """Requests not made yet, the one under way first."""
        asked = (one.command for one in self._jobs.all if one.kind is Kind.MAKE)
        return tuple(Wanted.of(one) for one in asked if isinstance(one, Synthesise))

    def ask(self, wanted: Sequence[Wanted]) -> None:
        """Queue these, unless they wait already."""
        there = set(self.waiting)
        for one in wanted:
            self.problems.pop(one, None)
        self._jobs.start_all(Kind.MAKE, [one.command for one in dict.fromkeys(wanted) if one not in there])
        self.changed.emit()

    def _queue_changed(self) -> None:
        if self.waiting != self._waiting:
            self._waiting = self.waiting
            self.changed.emit()

    def ahead(self, wanted: Sequence[Wanted]) -> None:
        """Make these, in order, at idle times; replaces the earlier list."""
        self.idle.replace([Piece(one, one.command) for one in wanted if one not in self.problems])

    def try_again(self) -> None:
        """Forget failures: a model was loaded."""
        self.problems.clear()
        self.changed.emit()

    def follow(self, event: Event) -> None:
        self.idle.follow(event)
        job = self._jobs.find(event.job)
        if isinstance(event, TakeMade) and job is not None and job.kind is Kind.MAKE:
            self._keep(event)

    def _keep(self, event: TakeMade) -> None:
        self.artefacts.update((one.fingerprint, one) for one in event.artefacts)
        self.take_made.emit(event.take)

    def _note(self, wanted: Wanted, event: Event) -> None:
        if isinstance(event, TakeMade):
            self._keep(event)
        elif isinstance(event, JobFailed):
            self.problems[wanted] = event.sentence
            self.changed.emit()

    def _job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if job.kind is Kind.MAKE and isinstance(job.command, Synthesise) and outcome is Outcome.FAILED:
            self.problems[Wanted.of(job.command)] = sentence
            self.changed.emit()


STREAM_SIDES = {Kind.BASELINE: "A", Kind.ACCELERATED: "B"}


class Coming(QObject):
    """Trace of the take being made and heard, passage by passage."""

    changed = Signal()
    """The trace grew, another take started, or the take was finished or dropped."""

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._job = 0
        self._passages: dict[int, Trace] = {}
        self.side = ""
        """``"A"`` or ``"B"``; ``""`` if no take is being made."""
        self.trace = Trace()
        jobs.ended.connect(self._job_ended)

    def follow(self, event: Event) -> None:
        job = self._jobs.find(event.job)
        if isinstance(event, AudioReady) and job is not None and job.kind in STREAM_SIDES:
            if event.job != self._job:
                self._job, self._passages = event.job, {}
            if event.trace is not None:
                self._passages[event.passage] = event.trace
            traces = [self._passages[number] for number in sorted(self._passages)]
            self.side, self.trace = STREAM_SIDES[job.kind], _joined(traces)
            self.changed.emit()
        elif isinstance(event, TakeReady):
            self._forget()

    def _job_ended(self, job: Job) -> None:
        if job.number == self._job:
            self._forget()

    def _forget(self) -> None:
        if self.side:
            self._job, self._passages, self.side, self.trace = 0, {}, "", Trace()
            self.changed.emit()


def _joined(passages: list[Trace]) -> Trace:
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
"""Cached answers: more than A and B, for a model before and after a reload."""


class Synthesis(QObject):
    """Requests takes, and makes the new ones A or B."""

    take_added = Signal(object)
    """A finished :class:`Take`, or the finished part of one."""
    timed_again = Signal(str, object)
    """Id of a take, and the :class:`Measurements` of its new runs."""
    remeasured = Signal(object)
    """A take timed again, A or B, with the medians."""
    timing_ended = Signal(str)
    """Timing ended: which of A and B was left out, and what a cancelled job kept, in sentences, or ``""``."""

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
        self._selection, self._artefacts, self._availability = selection, artefacts, availability
        self._comparison, self._jobs = comparison, jobs
        self._found: dict[str, Artefact] = {}
        self._resolved: tuple[tuple[tuple[object, ...], str], ...] = ()
        """Last answers of :meth:`_problem`, by arguments."""
        self._remarks: list[str] = []
        self._runs: dict[int, int] = {}
        jobs.complete = self._completed
        jobs.ended.connect(self._job_ended)

    def synthesise_baseline(self) -> None:
        """Speak without techniques; draw a new seed first unless locked. Raises :class:`SettingError`."""
        require(self._availability.why_not_speak())
        if not self._selection.seed_locked:
            self._selection.set_seed(secrets.randbelow(SEED_LIMIT))
        self._synthesise(Kind.BASELINE, self._selection.baseline_setting, "Baseline")

    def synthesise_accelerated(self) -> None:
        """Speak with the techniques in use and the baseline's seed. Raises :class:`SettingError` if not possible."""
        require(self._availability.why_not_accelerate())
        setting = self._selection.setting
        self._synthesise(Kind.ACCELERATED, setting, technique_text(setting))

    def time_again(self) -> None:
        """Time A and B again, as far as the loaded model can. Raises :class:`SettingError` if it can make neither."""
        require(self.why_not_time_again())
        self._remarks = [self.left_out()]
        for take in self._sides.values():
            if not self._why_not_time(take):
                self._jobs.start(Kind.REPEAT, partial(self._wanted(take).again, take.id))

    def why_not_time_again(self) -> str:
        """Why neither A nor B can be timed again, in sentences, or ``""``."""
        reasons = self._reasons()
        return "" if "" in reasons.values() else _refusals(reasons) or "Make a take first."

    def left_out(self) -> str:
        """Which of A and B cannot be timed again although the other can, with the reason, in sentences, or ``""``."""
        reasons = self._reasons()
        return _refusals(reasons) if "" in reasons.values() else ""

    def _reasons(self) -> dict[str, str]:
        return {side: self._why_not_time(take) for side, take in self._sides.items()}

    @property
    def _sides(self) -> dict[str, Take]:
        """The takes A and B that exist; one entry if both are the same take."""
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
        """Why the loaded model refuses the setting, or ``""``; cached: resolving is slow, and every refresh asks."""
        asked = (info, wanted.setting, *wanted.artefacts)
        for known, reason in self._resolved:
            if len(known) == len(asked) and all(one is other for one, other in zip(known, asked, strict=True)):
                return reason
        reason = problem(info, wanted.setting, wanted.artefacts) or ""
        self._resolved = (*self._resolved[1 - _KNOWN :], (asked, reason))
        return reason

    def _synthesise(self, kind: Kind, setting: Setting, label: str) -> None:
        voice, artefacts = self._selection.speaker, self._artefacts.of(setting)
        awaited = self._availability.awaited() if setting.techniques else None
        after = 0
        if awaited is not None:
            after, setting = awaited[0].number, setting.with_technique(awaited[1])
            artefacts = self._artefacts.of(setting.without(awaited[1].technique))

        def command(text: str, number: int) -> Synthesise:
            return Synthesise(number, text, voice, setting, artefacts, label)

        self._jobs.start_all(kind, [partial(command, text) for text in self._selection.texts], after)

    def _completed(self, job: Job) -> Command:
        command = job.command
        return self._artefacts.with_made(command, job.after) if isinstance(command, Synthesise) else command

    @property
    def baseline_is_current(self) -> bool:
        return self._is_current(self._comparison.take_a, self._selection.baseline_setting)

    @property
    def accelerated_is_current(self) -> bool:
        """Whether B was made with the current selection and its techniques."""
        setting = self._selection.setting
        return bool(setting.techniques) and self._is_current(self._comparison.take_b, setting)

    def _is_current(self, take: Take | None, setting: Setting) -> bool:
        chosen = self._selection
        if take is None or take.unfinished or chosen.voice is None or chosen.candidate:
            return False
        if chosen.info is not None and are_others(take.checkpoint, chosen.info.all_weights):
            return False
        return (take.setting, take.text, take.voice) == (setting, chosen.texts[-1], chosen.voice.id)

    def follow(self, event: Event) -> None:
        if isinstance(event, TimedAgain):
            self._take_in(event)
        if not isinstance(event, TakeReady):
            return
        if event.take.unfinished:
            # Partial takes are listed, but do not become A or B.
            self.take_added.emit(event.take)
            return
        accelerated, compared = bool(event.take.setting.techniques), self._comparison
        take = measured_against(event.take, compared.take_a) if accelerated else event.take
        self.take_added.emit(take)
        (compared.set_b if accelerated else compared.set_a)(take)
        self._selection.changed.emit()

    def _take_in(self, event: TimedAgain) -> None:
        compared = self._comparison
        for take, put in ((compared.take_a, compared.set_a), (compared.take_b, compared.set_b)):
            if take is not None and take.id == event.take:
                put(repeated(take, event.runs))
        known = next((one for one in self._sides.values() if one.id == event.take), None)
        if known is not None:
            self.remeasured.emit(known)
        self._runs[event.job] = len(event.runs)
        self.timed_again.emit(event.take, event.runs)

    def _job_ended(self, job: Job, outcome: Outcome) -> None:
        if job.kind is not Kind.REPEAT or not isinstance(job.command, TimeAgain):
            return
        runs, name = self._runs.pop(job.number, 0), job.command.take
        if runs and outcome is not Outcome.FINISHED:
            side, known = next(((side, one) for side, one in self._sides.items() if one.id == name), ("A take", None))
            kept = f"{side} {outcome.value} after {runs} of {job.command.times} repeats, which are kept"
            if known is not None:
                number = len(known.repeats)
                repeats = "one repeat" if number == 1 else f"{number} repeats, as medians"
                kept += f": its times are now those of {repeats}"
            self._remarks.append(f"Timing {kept}.")
        if all(one.kind is not Kind.REPEAT for one in self._jobs.all):
            remarks, self._remarks = " ".join(filter(None, self._remarks)), []
            self.timing_ended.emit(remarks)


def _refusals(reasons: Mapping[str, str]) -> str:
    return " ".join(f"{side} cannot be timed again. {reason}" for side, reason in reasons.items() if reason)
