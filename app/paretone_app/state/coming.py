"""What is known of a take while it is made: which side it is for, and what was seen inside up to now."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Signal, Slot

from paretone.session.events import AudioReady, Event, TakeReady
from paretone.setting.take import DecodingTrace, DemaskingTrace, Trace
from paretone_app.state.jobs import Job, Jobs, Kind

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
