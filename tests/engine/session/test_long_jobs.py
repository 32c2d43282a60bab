"""Long jobs of the engine thread: studies, trainings and exports."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from paretone.session import events
from paretone.session.commands import Cancel, ExportProfile, PauseStudy, Prepare, RunStudy
from paretone.session.engine_thread import EngineThread
from paretone.setting.knobs import Values
from paretone.setting.profile import Profile
from paretone.studies.results import read
from paretone.techniques import guidance_free
from paretone.techniques.guidance_free import GuidanceFreeRequest
from paretone.training.requests import TrainingProgress
from paretone.training.session import CHECKPOINT
from tests.engine.export.test_f5_tts import profile
from tests.engine.recorder import Recorder, is_of
from tests.engine.running import running
from tests.engine.studies import small
from tests.engine.training.toy_model import toy_manifest, toy_model
from tests.packages import needs

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
def study_engine(recorder: Recorder) -> Iterator[EngineThread]:
    with running(recorder, small.load) as engine:
        yield engine


@pytest.fixture
def bare(recorder: Recorder) -> Iterator[EngineThread]:
    """An engine that loads models as usual."""
    with running(recorder) as engine:
        yield engine


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


def test_a_study_reports_every_take_and_is_kept(study_engine: EngineThread, recorder: Recorder, file: Path) -> None:
    recorder.finish(study_engine, RunStudy(1, str(file), ""))
    folder = str(file.with_suffix(".study"))
    assert recorder.of(1, events.StudyBegun) == [events.StudyBegun(1, folder, "Small")]
    assert len(recorder.of(1, events.StudyTakeDone)) == 6
    assert recorder.of(1, events.StudyEnded) == [events.StudyEnded(1, folder, False, 6)]
    progress = recorder.of(1, events.Progress)
    assert (progress[-1].done, progress[-1].total, progress[-1].seconds_left) == (6, 6, 0.0)
    assert all(pickle.loads(pickle.dumps(event)) == event for event in recorder.of(1))
    assert sum(one.finished for one in read(folder).settings) == 6
    recorder.finish(study_engine, RunStudy(2, str(file), folder))
    assert recorder.of(2, events.StudyEnded) == [events.StudyEnded(2, folder, False, 0)]


def test_pausing_lets_the_take_under_way_finish(study_engine: EngineThread, recorder: Recorder, file: Path) -> None:
    with recorder.stopped_at(events.StudyTakeDone, study_engine, RunStudy(1, str(file), "")):
        study_engine.submit(PauseStudy(2, 1))
    assert isinstance(recorder.end_of(1), events.JobFinished)
    (ended,) = recorder.of(1, events.StudyEnded)
    assert (ended.paused, ended.made) == (True, 1)
    recorder.finish(study_engine, RunStudy(3, str(file), ""))
    (ended,) = recorder.of(3, events.StudyEnded)
    assert (ended.paused, ended.made) == (False, 5)


def test_cancelling_ends_at_once(study_engine: EngineThread, recorder: Recorder, file: Path) -> None:
    studies = (RunStudy(job, str(file), "") for job in (1, 2))
    with recorder.stopped_at(events.StudyTakeDone, study_engine, *studies):
        study_engine.submit(PauseStudy(3, 2))
        assert isinstance(recorder.end_of(2), events.JobCancelled)
        study_engine.submit(Cancel(4, 1))
    assert isinstance(recorder.end_of(1), events.JobCancelled)
    assert recorder.of(1, events.StudyEnded) == []
    assert sum(one.finished for one in read(file.with_suffix(".study")).settings) == 1


@needs("accelerate")
@pytest.mark.slow
def test_training_is_a_job(bare: EngineThread, recorder: Recorder, tmp_path: Path) -> None:
    manifest, model, work = toy_manifest(tmp_path), toy_model(tmp_path / "model"), tmp_path / "work"

    def command(job: int, **changes: object) -> Prepare:
        values = {"weight": 0.5, "steps": 3, "folder": str(model), "device": "cpu", **changes}
        asked = GuidanceFreeRequest(model="f5-mini", manifest=str(manifest), work=str(work), **values)
        return Prepare(job, guidance_free.NAME, asked)

    bare.submit(command(1, weight=1.0))
    failure = recorder.end_of(1)
    assert isinstance(failure, events.JobFailed) and "between 0 and 1" in failure.sentence
    assert failure.details == ""
    bare.submit(command(2, steps=100_000))
    recorder.wait_for(lambda event: is_of(event, TrainingProgress) and event.job == 2 and event.report.step == 2)
    bare.cancel(2)
    assert isinstance(recorder.end_of(2), events.JobCancelled)
    reached = recorder.reports(2, TrainingProgress)[-1].step
    assert torch.load(work / CHECKPOINT, weights_only=True)["step"] <= reached + 1
    recorder.finish(bare, command(3, steps=reached + 3, resume=True))
    done = recorder.result(3)
    assert done.steps == reached + 3
    assert recorder.of(3, events.Prepared)[0].technique == "guidance_free"
    assert done.figures == Values(weight=0.5, equivalent_guidance=1.0, method="model-guidance")
    assert "guidance 1.00" in done.summary and Path(done.checkpoint).is_file()
    told = recorder.reports(3, TrainingProgress)
    steps = [event for event in told if event.losses]
    assert (steps[-1].step, steps[-1].share) == (reached + 3, 1.0)
    assert told[-1].validation == done.validation and "gap" in done.validation
    assert pickle.loads(pickle.dumps(told[-1])) == told[-1]
    assert recorder.of(2, events.Progress)[-1].text == f"Step {reached}"


def test_exporting_is_a_job(bare: EngineThread, recorder: Recorder, tmp_path: Path) -> None:
    made = profile()
    command = ExportProfile(1, made, "f5-tts", str(tmp_path / "out"))
    assert pickle.loads(pickle.dumps(command)) == command
    recorder.finish(bare, command)
    (told,) = recorder.of(1, events.ProfileExported)
    assert (told.target, told.folder) == ("f5-tts", str(tmp_path / "out"))
    assert sorted(told.files) == sorted(path.name for path in (tmp_path / "out").iterdir())
    assert Profile.load(tmp_path / "out" / "profile.json") == made
    progress = recorder.of(1, events.Progress)[-1]
    assert progress.done == progress.total
    told = [one.text for one in recorder.of(1, events.EngineStatus)]
    assert told == ["Reading the checkpoint", f"Writing to {tmp_path / 'out'}"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "README.md").write_text("My own.")
    bare.submit(ExportProfile(2, made, "f5-tts", str(tmp_path / "mine")))
    failure = recorder.end_of(2)
    assert isinstance(failure, events.JobFailed)
    assert f"{tmp_path / 'mine' / 'README.md'} exists with other content" in failure.sentence
    assert [path.read_text() for path in (tmp_path / "mine").iterdir()] == ["My own."]


def test_a_cancelled_export_leaves_nothing_behind(bare: EngineThread, recorder: Recorder, tmp_path: Path) -> None:
    with recorder.stopped_at(events.Progress, bare, ExportProfile(1, profile(), "f5-tts", str(tmp_path / "out"))):
        assert (tmp_path / "out").is_dir()
        bare.cancel(1)
    assert isinstance(recorder.end_of(1), events.JobCancelled)
    assert list(tmp_path.iterdir()) == []
