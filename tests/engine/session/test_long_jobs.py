"""Studies as jobs of the engine: progress, pause, cancel, and what is kept."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from paretone.session.commands import Cancel, PauseStudy, RunStudy
from paretone.session.engine_thread import EngineThread
from paretone.session.events import (
    JobCancelled,
    JobFailed,
    JobFinished,
    Progress,
    StudyBegun,
    StudyEnded,
    StudyTakeDone,
)
from paretone.studies.results import read
from tests.engine.recorder import Gate, Recorder
from tests.engine.running import running
from tests.engine.studies import small

STUDY = """
title = "Small"
sentences = ["One sentence.", "Another one."]
[options]
steps = 4
cross_fade = 0.0
[grid]
steps.steps = ["off", 2, 3]
"""


@pytest.fixture
def engine(recorder: Recorder) -> Iterator[EngineThread]:
    with running(recorder, small.load) as engine:
        yield engine


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


def test_a_study_reports_every_take_and_is_kept_next_to_its_file(
    engine: EngineThread, recorder: Recorder, file: Path
) -> None:
    engine.submit(RunStudy(1, str(file), ""))
    assert isinstance(recorder.end_of(1), JobFinished)
    folder = str(file.with_suffix(".study"))
    assert recorder.of(1, StudyBegun) == [StudyBegun(1, folder, "Small")]
    takes = recorder.of(1, StudyTakeDone)
    assert len(takes) == 6
    assert recorder.of(1, StudyEnded) == [StudyEnded(1, folder, False, 6)]
    progress = recorder.of(1, Progress)
    assert (progress[-1].done, progress[-1].total, progress[-1].seconds_left) == (6, 6, 0.0)
    assert all(pickle.loads(pickle.dumps(event)) == event for event in recorder.of(1))
    assert sum(one.finished for one in read(folder).settings) == 6
    engine.submit(RunStudy(2, str(file), folder))
    assert isinstance(recorder.end_of(2), JobFinished)
    assert recorder.of(2, StudyEnded) == [StudyEnded(2, folder, False, 0)]


def test_pausing_lets_the_take_under_way_finish(engine: EngineThread, recorder: Recorder, file: Path) -> None:
    gate = Gate(recorder, StudyTakeDone)
    engine.submit(RunStudy(1, str(file), ""))
    gate.reached()
    engine.submit(PauseStudy(2, 1))
    gate.open()
    assert isinstance(recorder.end_of(1), JobFinished)
    (ended,) = recorder.of(1, StudyEnded)
    assert (ended.paused, ended.made) == (True, 1)
    engine.submit(RunStudy(3, str(file), ""))
    assert isinstance(recorder.end_of(3), JobFinished)
    (ended,) = recorder.of(3, StudyEnded)
    assert (ended.paused, ended.made) == (False, 5)


def test_cancelling_ends_at_once(engine: EngineThread, recorder: Recorder, file: Path) -> None:
    gate = Gate(recorder, StudyTakeDone)
    engine.submit(RunStudy(1, str(file), ""))
    engine.submit(RunStudy(2, str(file), ""))
    gate.reached()
    engine.submit(PauseStudy(3, 2))
    assert isinstance(recorder.end_of(2), JobCancelled)
    engine.submit(Cancel(4, 1))
    gate.open()
    assert isinstance(recorder.end_of(1), JobCancelled)
    assert recorder.of(1, StudyEnded) == []
    assert sum(one.finished for one in read(file.with_suffix(".study")).settings) == 1


def test_a_study_that_makes_no_sense_fails_with_a_sentence(
    engine: EngineThread, recorder: Recorder, file: Path
) -> None:
    file.write_text(STUDY.replace("steps.steps", "stepz.steps"), encoding="utf-8")
    engine.submit(RunStudy(1, str(file), ""))
    failure = recorder.end_of(1)
    assert isinstance(failure, JobFailed)
    assert "There is no technique named 'stepz'" in failure.sentence
    assert not file.with_suffix(".study").exists()
