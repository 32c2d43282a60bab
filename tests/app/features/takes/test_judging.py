"""Takes are judged while nothing else is to be done, and give way to everything else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from paretone.audio.recording import read_recording
from paretone.models.catalogue import voice
from paretone.models.voices import own_voice
from paretone.session.commands import Cancel, Command, JudgeTake, LoadModel, ShutDown
from paretone.session.engine_thread import EngineThread
from paretone.session.events import Event, JobCancelled, JobFailed, JobFinished, TakeJudged
from paretone_app.features.takes.presenter import TakeJudging, voice_of
from paretone_app.state.jobs import Jobs, Kind
from tests.app.features.takes.test_panel import take
from tests.engine import small_speech
from tests.judges import only_words  # noqa: F401
from tests.voices import FIRST

SUBMITTED = list[Command]


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> SUBMITTED:
    monkeypatch.setattr("paretone_app.state.jobs.IDLE_MILLISECONDS", 10)
    return []


@pytest.fixture
def jobs(submitted: SUBMITTED, qtbot: QtBot) -> Jobs:
    return Jobs(submitted.append)


@pytest.fixture
def judged(jobs: Jobs) -> TakeJudging:
    made = TakeJudging(jobs)
    yield made
    made.shut_down()


def test_takes_are_judged_one_after_the_other_which_is_no_job(
    judged: TakeJudging, jobs: Jobs, submitted: SUBMITTED, qtbot: QtBot
) -> None:
    said: list[tuple[str, dict]] = []
    judged.judged.connect(lambda one, figures: said.append((one, figures)))
    for index in range(2):
        judged.add(take(index))
    for index in range(2):
        qtbot.waitUntil(lambda index=index: len(submitted) == index + 1)
        command = submitted[index]
        assert isinstance(command, JudgeTake) and command.take == take(index).id
        np.testing.assert_array_equal(command.samples, take(index).samples)
        assert not jobs.busy
        judged.follow(TakeJudged(command.job, command.take, {"naturalness": 4.0}))
        judged.follow(JobFinished(command.job))
    assert said == [(take(index).id, {"naturalness": 4.0}) for index in range(2)]


def test_a_job_that_begins_goes_first(judged: TakeJudging, jobs: Jobs, submitted: SUBMITTED, qtbot: QtBot) -> None:
    judged.add(take(0))
    qtbot.waitUntil(lambda: bool(submitted))
    first = submitted[0].job
    job = jobs.start(Kind.LOAD, lambda number: LoadModel(number, "f5-mini"))
    assert [type(one) for one in submitted[1:]] == [LoadModel, Cancel]
    assert submitted[-1].target == first
    judged.follow(JobCancelled(first))
    qtbot.wait(50)
    assert len(submitted) == 3, "the job still runs"
    jobs.handle(JobFinished(job.number))
    qtbot.waitUntil(lambda: len(submitted) == 4)
    assert submitted[-1].take == take(0).id


def test_nothing_is_judged_while_somebody_listens(
    judged: TakeJudging, jobs: Jobs, submitted: SUBMITTED, qtbot: QtBot
) -> None:
    jobs.hold()
    judged.add(take(0))
    qtbot.wait(50)
    assert not any(isinstance(one, JudgeTake) for one in submitted)
    jobs.release()
    qtbot.waitUntil(lambda: isinstance(submitted[-1], JudgeTake))


def test_what_fails_once_is_not_tried_with_every_take(judged: TakeJudging, submitted: SUBMITTED, qtbot: QtBot) -> None:
    for index in range(3):
        judged.add(take(index))
    qtbot.waitUntil(lambda: bool(submitted))
    judged.follow(JobFailed(submitted[0].job, "The file of weights is damaged."))
    qtbot.wait(50)
    assert len(submitted) == 1


def test_the_engine_judges_takes_of_any_model(
    only_words: None,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    qtbot: QtBot,
) -> None:
    monkeypatch.setattr("paretone_app.state.jobs.IDLE_MILLISECONDS", 10)
    events: list[Event] = []
    engine = EngineThread(events.append, small_speech.load)
    engine.start()
    judged, said = TakeJudging(Jobs(engine.submit)), []
    judged.judged.connect(lambda one, figures: said.append((one, figures)))
    faults = []
    judged.checked.connect(lambda one, findings: faults.append((one, findings)))
    heard = read_recording(voice(FIRST).audio)
    samples = np.concatenate([heard.samples, np.zeros(2 * heard.sample_rate, np.float32)])
    text = voice(FIRST).transcript
    spoken = replace(take(0), samples=samples, sample_rate=heard.sample_rate, text=text, voice=FIRST)
    try:
        judged.add(spoken)
        qtbot.waitUntil(lambda: any(isinstance(one, JobFinished | JobFailed) for one in events))
    finally:
        judged.shut_down()
        engine.submit(ShutDown(99))
        engine.join()
    for event in events:
        judged.follow(event)
    ((one, figures),) = said
    assert one == spoken.id
    assert 0 < figures["pitch_range"] < 1
    ((_, findings),) = faults
    assert figures["faults"] == len(findings) == 1 and findings[0].fault == "silence"
    assert findings[0].start == pytest.approx(heard.seconds, abs=0.6)


def test_the_voice_of_a_take_is_found() -> None:
    assert voice_of(replace(take(0), voice=FIRST)) == voice(FIRST, "f5-mini")
    mine = own_voice("/home/me.wav")
    assert voice_of(replace(take(0), voice=mine.id), [voice(FIRST), mine]) == mine
    assert voice_of(replace(take(0), voice=mine.id), [voice(FIRST)]) is None
    assert voice_of(replace(take(0), voice="gone")) is None
