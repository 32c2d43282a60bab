"""What is known of a take while it is made."""

from __future__ import annotations

import numpy as np

from paretone.models.base import Voice
from paretone.session.commands import Command, Synthesise
from paretone.session.events import AudioReady, JobCancelled, TakeReady
from paretone.setting.setting import Setting
from paretone.setting.take import DecodingCycle, DecodingTrace, Take, Trace
from paretone_app.state.jobs import Jobs, Kind
from paretone_app.state.synthesis import Coming

VOICE = Voice("anna", "Anna", "anna.wav", "A prompt.")


def trace(start: float, *tokens: int) -> Trace:
    cycles = tuple(DecodingCycle((token,)) for token in tokens)
    return Trace(decoding=DecodingTrace(25.0, 64, (cycles,), (start,), (False,)))


def piece(job: int, passage: int, seen: Trace | None) -> AudioReady:
    return AudioReady(job, np.zeros(10, np.float32), 24000, passage, seen)


def started(kind: Kind) -> tuple[Coming, Jobs, int]:
    sent: list[Command] = []
    jobs = Jobs(sent.append)
    coming = Coming(jobs)
    job = jobs.start(kind, lambda number: Synthesise(number, "A text.", VOICE, Setting("lm-mini")))
    return coming, jobs, job.number


def test_passages_grow_and_follow_one_another() -> None:
    coming, _, job = started(Kind.ACCELERATED)
    for event in (piece(job, 0, trace(0.0, 1)), piece(job, 0, trace(0.0, 1, 2)), piece(job, 1, trace(0.5, 3))):
        coming.follow(event)
    decoding = coming.trace.decoding
    assert coming.side == "B" and decoding is not None
    assert (decoding.tokens, decoding.starts, decoding.seconds_of) == ((1, 2, 3), (0.0, 0.5), (0.0, 0.04, 0.5))


def test_a_take_without_tokens_has_a_side_alone() -> None:
    coming, _, job = started(Kind.BASELINE)
    coming.follow(piece(job, 0, None))
    assert (coming.side, coming.trace.decoding, coming.trace.demasking) == ("A", None, None)


def test_the_finished_take_and_a_cancelled_one_end_it() -> None:
    coming, jobs, job = started(Kind.BASELINE)
    coming.follow(piece(job, 0, trace(0.0, 1)))
    take = Take("one", "2026-11-23", "A text.", "anna", Setting("lm-mini"), 24000, np.zeros(10, np.float32))
    coming.follow(TakeReady(job, take))
    assert (coming.side, coming.trace) == ("", Trace())
    coming.follow(piece(job, 0, trace(0.0, 1)))
    jobs.handle(JobCancelled(job))
    assert coming.side == ""


def test_sound_of_another_job_is_no_take() -> None:
    coming, _, job = started(Kind.PARTIAL)
    coming.follow(piece(job, 0, trace(0.0, 1)))
    assert coming.side == ""
