"""The engine thread with the bundled masked model: it speaks so that it is understood, and is made as a job."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine.measure.intelligibility import Judge
from engine.models.catalogue import entry, harvard_sentences, voice
from engine.models.minis.omni_mini.checkpoint import OmniMiniFolder
from engine.session.engine_thread import EngineThread
from engine.session.messages import (
    JobCancelled,
    JobFinished,
    LoadModel,
    ModelLoaded,
    ShutDown,
    Synthesise,
    TakeReady,
    TrainModel,
)
from engine.setting.setting import Setting
from engine.training import corpora
from engine.training.requests import BundledRequest, TrainingProgress
from engine.training.session import CHECKPOINT
from tests.engine.recorder import PATIENCE_SECONDS, Recorder

MODEL = "omni-mini"
needs_flite = pytest.mark.skipif(shutil.which("flite") is None, reason="flite is not installed")


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def engine(recorder: Recorder) -> Iterator[EngineThread]:
    running = EngineThread(recorder.post)
    running.start()
    yield running
    running.submit(ShutDown(99))
    assert running.join(PATIENCE_SECONDS)


@pytest.mark.slow
def test_what_it_says_is_understood_in_both_voices(engine: EngineThread, recorder: Recorder) -> None:
    pytest.importorskip("pocketsphinx")
    sentences = harvard_sentences()[:2]
    judge = Judge(harvard_sentences())
    engine.submit(LoadModel(1, MODEL, device="cpu"))
    assert isinstance(recorder.end_of(1), JobFinished)
    assert recorder.of(1, ModelLoaded)[0].info.family == "masked"
    recordings = []
    for job, (name, sentence) in enumerate(((name, one) for name in ("slt", "rms") for one in sentences), 2):
        engine.submit(Synthesise(job, sentence, voice(name), Setting(MODEL, entry(MODEL).options_with())))
        assert isinstance(recorder.end_of(job), JobFinished)
        take = recorder.of(job, TakeReady)[0].take
        assert np.sqrt(np.mean(take.samples**2)) > 0.03, "speech, not silence"
        (passage,) = pickle.loads(pickle.dumps(take)).trace.demasking.passages
        assert passage.order.max() == 15
        recordings.append((take.samples, take.sample_rate))
    errors = judge.word_errors([*sentences, *sentences], recordings)
    assert errors.rate <= 0.1, errors.heard


@needs_flite
@pytest.mark.slow
def test_it_is_made_as_a_job_that_can_be_stopped_and_resumed(
    engine: EngineThread, recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpora, "HELD_OUT", 1)
    command = {"model": MODEL, "work": str(tmp_path / "run"), "sentences": 6, "device": "cpu"}
    engine.submit(TrainModel(1, BundledRequest(**command, minutes=60)))
    recorder.wait_for_kind(TrainingProgress, 1)
    engine.cancel(1)
    assert isinstance(recorder.end_of(1), JobCancelled)
    assert (tmp_path / "run" / CHECKPOINT).is_file()
    done = recorder.reports(1, TrainingProgress)[-1].step
    engine.submit(TrainModel(2, BundledRequest(**command, steps=done + 2, resume=True)))
    assert isinstance(recorder.end_of(2), JobFinished)
    made = recorder.result(2)
    assert made.steps >= done + 2
    assert set(made.validation) == {"cross_entropy", "first", "second"}
    assert OmniMiniFolder(Path(made.checkpoint)).network().config.transformer.layers == 8
