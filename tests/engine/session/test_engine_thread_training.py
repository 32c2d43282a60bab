"""The engine thread trains: progress, the result, cancelling within a step, and going on."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch

from paretone.session.commands import Prepare, ShutDown
from paretone.session.engine_thread import EngineThread
from paretone.session.events import JobCancelled, JobFailed, JobFinished, Prepared, Progress
from paretone.setting.knobs import Values
from paretone.techniques import guidance_free
from paretone.techniques.guidance_free import GuidanceFreeRequest
from paretone.training.requests import TrainingProgress
from paretone.training.session import CHECKPOINT
from tests.engine.recorder import PATIENCE_SECONDS, Recorder, is_of
from tests.engine.training.toy_model import toy_manifest, toy_model
from tests.packages import needs

pytestmark = needs("accelerate")


@pytest.mark.slow
def test_training_is_a_job(tmp_path: Path) -> None:
    recorder = Recorder()
    engine = EngineThread(recorder.post)
    engine.start()
    manifest, model, work = toy_manifest(tmp_path), toy_model(tmp_path / "model"), tmp_path / "work"

    def command(job: int, **changes: object) -> Prepare:
        values = {"weight": 0.5, "steps": 3, "folder": str(model), "device": "cpu", **changes}
        asked = GuidanceFreeRequest(model="f5-mini", manifest=str(manifest), work=str(work), **values)
        return Prepare(job, guidance_free.NAME, asked)

    engine.submit(command(1, weight=1.0))
    failure = recorder.end_of(1)
    assert isinstance(failure, JobFailed)
    assert "between 0 and 1" in failure.sentence
    assert failure.details == ""

    engine.submit(command(2, steps=100_000))
    recorder.wait_for(lambda event: is_of(event, TrainingProgress) and event.job == 2 and event.report.step == 2)
    engine.cancel(2)
    assert isinstance(recorder.end_of(2), JobCancelled)
    reached = recorder.reports(2, TrainingProgress)[-1].step
    assert torch.load(work / CHECKPOINT, weights_only=True)["step"] <= reached + 1

    engine.submit(command(3, steps=reached + 3, resume=True))
    assert isinstance(recorder.end_of(3), JobFinished)
    done = recorder.result(3)
    assert done.steps == reached + 3
    assert recorder.of(3, Prepared)[0].technique == "guidance_free"
    assert done.figures == Values(weight=0.5, equivalent_guidance=1.0, method="model-guidance")
    assert "guidance 1.00" in done.summary
    assert Path(done.checkpoint).is_file()

    told = recorder.reports(3, TrainingProgress)
    steps = [event for event in told if event.losses]
    assert [event.step for event in steps][-1] == reached + 3
    assert steps[-1].share == 1.0
    assert told[-1].validation == done.validation
    assert "gap" in done.validation
    assert pickle.loads(pickle.dumps(told[-1])) == told[-1]
    assert recorder.of(2, Progress)[-1].text == "Preparing speech"

    engine.submit(ShutDown(4))
    assert engine.join(PATIENCE_SECONDS)
