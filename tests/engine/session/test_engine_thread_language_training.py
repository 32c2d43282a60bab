"""The engine thread measures layers and trains drafts and students, and the loaded model knows them at once."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from paretone.models.base import Utterance
from paretone.models.catalogue import voice
from paretone.models.files.checkpoints import fingerprint
from paretone.models.files.layer_importance import COSINE, DIVERGENCE
from paretone.session.commands import LoadModel, Prepare
from paretone.session.engine_thread import EngineThread
from paretone.session.events import JobCancelled, JobFailed, JobFinished, Prepared, Progress
from paretone.techniques import spade, speculative
from paretone.techniques.spade import ImportanceRequest, StudentRequest
from paretone.techniques.speculative import DraftRequest
from paretone.training.requests import TrainingProgress
from paretone.training.session import CHECKPOINT
from paretone.training.spoken_tokens import write_tokens
from tests.engine.recorder import Recorder, is_of
from tests.engine.running import running
from tests.engine.small_language import write_model
from tests.engine.speaking import setting
from tests.engine.training.test_companions import SENTENCES, utterances


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    return write_model(tmp_path / "model")


@pytest.fixture
def engine(recorder: Recorder, root: Path) -> Iterator[EngineThread]:
    with running(recorder, model=LoadModel(1, "lm-mini", str(root), device="cpu")) as engine:
        yield engine


def work_folder(root: Path, folder: Path) -> str:
    base = fingerprint(root / "model.safetensors")
    write_tokens(folder / f"{base[:8]}-{SENTENCES}-own-speech.npz", utterances())
    return str(folder)


@pytest.mark.slow
def test_layers_are_measured_and_the_model_knows_their_order(engine: EngineThread, recorder: Recorder) -> None:
    spoken = (Utterance("Rice is good.", voice("", "lm-mini")),)
    engine.submit(Prepare(2, spade.NAME, ImportanceRequest(setting(), spoken, (DIVERGENCE, COSINE))))
    assert isinstance(recorder.end_of(2), JobFinished)
    (measured,) = recorder.of(2, Prepared)
    assert pickle.loads(pickle.dumps(measured)) == measured
    assert measured.info.layer_order == measured.result.record.order
    assert Path(measured.result.path).is_file()
    assert recorder.of(2, Progress)

    engine.submit(Prepare(3, spade.NAME, ImportanceRequest(setting(), (), (DIVERGENCE,))))
    failure = recorder.end_of(3)
    assert isinstance(failure, JobFailed) and "at least one utterance" in failure.sentence


@pytest.mark.slow
def test_a_draft_is_trained_as_a_job(engine: EngineThread, recorder: Recorder, root: Path, tmp_path: Path) -> None:
    work = work_folder(root, tmp_path / "work")
    common = {"model": "lm-mini", "work": work, "sentences": SENTENCES, "folder": str(root), "device": "cpu"}
    engine.submit(Prepare(2, speculative.NAME, DraftRequest(lower=1, upper=1, steps=2, **common)))
    assert isinstance(recorder.end_of(2), JobFinished)
    (done,), made = recorder.of(2, Prepared), recorder.result(2)
    assert (done.technique, made.figures["retained"], made.steps) == ("speculative", "0,2", 2)
    assert done.info is not None and done.info.drafts[0].path == made.checkpoint
    told = recorder.reports(2, TrainingProgress)
    assert "acceptance" in told[0].validation and "divergence" in told[1].losses


@pytest.mark.slow
def test_a_student_can_be_cancelled_and_gone_on_with(
    engine: EngineThread, recorder: Recorder, root: Path, tmp_path: Path
) -> None:
    work = work_folder(root, tmp_path / "work")
    common = {
        "model": "lm-mini",
        "work": work,
        "sentences": SENTENCES,
        "folder": str(root),
        "device": "cpu",
        "retained": (0, 2),
    }
    engine.submit(Prepare(2, spade.NAME, StudentRequest(steps=100_000, **common)))
    recorder.wait_for(lambda event: is_of(event, TrainingProgress) and event.job == 2 and event.report.step == 2)
    engine.cancel(2)
    assert isinstance(recorder.end_of(2), JobCancelled)
    assert (Path(work) / CHECKPOINT).is_file()
    reached = recorder.reports(2, TrainingProgress)[-1].step

    engine.submit(Prepare(3, spade.NAME, StudentRequest(steps=reached + 2, resume=True, **common)))
    assert isinstance(recorder.end_of(3), JobFinished)
    (done,) = recorder.of(3, Prepared)
    assert (done.technique, done.result.figures["depth"]) == ("spade", 2)
    assert done.info is not None and done.info.students[0].recovered

    engine.submit(Prepare(4, spade.NAME, StudentRequest(steps=1, **{**common, "model": "f5-mini"})))
    failure = recorder.end_of(4)
    assert isinstance(failure, JobFailed) and "decodes no tokens" in failure.sentence
