"""Jobs are numbered, followed and cancelled."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from paretone.session.commands import Cancel, Command, Hold, LoadModel, Release
from paretone.session.events import EngineHeld, JobCancelled, JobFailed, JobFinished, StudyEnded
from paretone_app.state.jobs import Job, Jobs, Kind, Outcome


def test_each_job_ends_once_with_its_outcome(qtbot: QtBot) -> None:
    sent: list[Command] = []
    jobs = Jobs(sent.append)
    ended: list[tuple[Job, Outcome, str]] = []
    jobs.ended.connect(lambda *one: ended.append(one))
    first, second, third = (jobs.start(Kind.LOAD, lambda job: LoadModel(job, "f5-mini")) for _ in range(3))
    assert [one.job for one in sent] == [first.number, second.number, third.number] == [1, 2, 3]
    assert jobs.busy
    jobs.handle(JobFailed(2, "It is broken; mend it."))
    jobs.handle(JobFinished(1))
    jobs.handle(JobFinished(1))
    jobs.handle(JobCancelled(3))
    assert not jobs.busy
    assert ended == [
        (second, Outcome.FAILED, "It is broken; mend it."),
        (first, Outcome.FINISHED, ""),
        (third, Outcome.CANCELLED, ""),
    ]


def test_a_study_that_was_paused_has_not_finished(qtbot: QtBot) -> None:
    jobs = Jobs(lambda _: None)
    ended: list[Outcome] = []
    jobs.ended.connect(lambda _, outcome, sentence: ended.append(outcome))
    for paused in (True, False):
        job = jobs.start(Kind.STUDY, lambda number: LoadModel(number, "f5-mini"))
        jobs.handle(StudyEnded(job.number, "folder", paused, 3))
        jobs.handle(JobFinished(job.number))
    assert ended == [Outcome.PAUSED, Outcome.FINISHED]


def test_cancelling_asks_for_the_newest_first(qtbot: QtBot) -> None:
    sent: list[Command] = []
    jobs = Jobs(sent.append)
    for _ in range(2):
        jobs.start(Kind.LOAD, lambda job: LoadModel(job, "f5-mini"))
    jobs.cancel_all()
    assert sent[2:] == [Cancel(0, 2), Cancel(0, 1)]
    assert jobs.busy, "a job has ended only when the engine says so"


def test_the_engine_is_held_once_and_says_when_it_rests(qtbot: QtBot) -> None:
    sent: list[Command] = []
    jobs = Jobs(sent.append)
    rests: list[bool] = []
    jobs.paused.connect(lambda: rests.append(True))
    jobs.handle(EngineHeld(0))
    assert rests == [], "nobody asked for it"
    jobs.hold()
    jobs.hold()
    assert jobs.held
    assert sent == [Hold(0)]
    jobs.handle(EngineHeld(0))
    assert rests == [True]
    started = jobs.start(Kind.LOAD, lambda job: LoadModel(job, "f5-mini"))
    assert sent[1:] == [started.command], "it waits in the engine"
    jobs.release()
    jobs.release()
    assert sent[2:] == [Release(0)]
    assert not jobs.held
