"""The engine thread with bundled models: what a user does first, in that order."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from paretone.measure.intelligibility import Judge
from paretone.models.base import Utterance
from paretone.models.catalogue import entry, harvard_sentences, voice
from paretone.session.commands import CaptureAttention, LoadModel, ShutDown, Synthesise
from paretone.session.engine_thread import EngineThread
from paretone.session.events import (
    AttentionCaptured,
    AudioReady,
    JobCancelled,
    JobFailed,
    JobFinished,
    ModelLoaded,
    TakeReady,
    Telemetry,
)
from paretone.setting.knobs import Values
from paretone.setting.profile import Evidence, Profile
from paretone.setting.setting import Setting, UsedTechnique
from tests.engine.preparing import calibrate
from tests.engine.recorder import PATIENCE_SECONDS, Gate, Recorder
from tests.engine.running import running
from tests.prompts import short_prompts  # noqa: F401
from tests.voices import SECOND, voice_names
from tests.workload import crossed

MODEL = "f5-mini"
TEXT = "Rice is often served in round bowls."


@pytest.mark.slow
@pytest.mark.usefixtures("short_prompts")
def test_first_session(tmp_path: Path) -> None:
    recorder = Recorder()
    engine = EngineThread(recorder.post)
    engine.start()
    speaker, setting = voice(SECOND), Setting(MODEL, entry(MODEL).options_with(steps=5), seed=11)

    engine.submit(LoadModel(1, MODEL, device="cpu"))
    assert isinstance(recorder.end_of(1), JobFinished)
    info = recorder.of(1, ModelLoaded)[0].info
    assert info.id == MODEL
    assert info.device.startswith("CPU")

    engine.submit(Synthesise(2, TEXT, speaker, setting))
    assert isinstance(recorder.end_of(2), JobFinished)
    baseline = recorder.of(2, TakeReady)[0]
    assert 1 < baseline.take.seconds < 4
    level = np.sqrt(np.mean(baseline.take.samples**2))
    assert level > 0.01, "speech, not silence"

    ditreducio = UsedTechnique("ditreducio", Values(threshold=0.3))
    engine.submit(calibrate(4, (Utterance("Rice.", speaker),), setting.with_technique(ditreducio)))
    assert isinstance(recorder.end_of(4), JobFinished)
    table = recorder.result(4).record.table
    assert 0 < table.skipped_share < 1
    chosen = setting.with_technique(UsedTechnique("ditreducio", ditreducio.knobs, table.fingerprint))

    engine.submit(Synthesise(5, TEXT, speaker, chosen, (table,)))
    assert isinstance(recorder.end_of(5), JobFinished)
    accelerated = recorder.of(5, TakeReady)[0]
    assert len(accelerated.take.samples) == len(baseline.take.samples), "takes must stay aligned"
    assert accelerated.take.measurements.ops_ratio == pytest.approx(table.ops_ratio(accelerated.operations))
    assert not np.array_equal(accelerated.take.samples, baseline.take.samples)
    Profile.of(chosen, info, (table,), Evidence.of(accelerated.take)).save(tmp_path / "p.json")
    alone = Profile.load(tmp_path / "p.json").synthesise(TEXT, device="cpu")
    assert np.array_equal(alone.samples, accelerated.take.samples), "also without the application"

    engine.submit(CaptureAttention(6, TEXT, speaker, setting, layer=info.layers - 1, step=3))
    assert isinstance(recorder.end_of(6), JobFinished)
    maps = recorder.of(6, AttentionCaptured)[0].capture.maps
    assert maps.shape[0] == info.branches
    np.testing.assert_allclose(maps.sum(axis=-1), 1, rtol=1e-3)

    engine.submit(ShutDown(7))
    assert engine.join(PATIENCE_SECONDS)
    assert sum(len(event.samples) for event in recorder.of(2, AudioReady)) == len(baseline.take.samples)
    for event in recorder.events:
        assert type(pickle.loads(pickle.dumps(event))) is type(event)


@pytest.mark.slow
def test_a_text_of_twenty_thousand_characters_is_heard_at_once_and_can_be_cancelled() -> None:
    recorder = Recorder()
    engine = EngineThread(recorder.post)
    engine.start()
    text = ("The swan dive was far short of perfect. " * 600)[:20_000]
    setting = Setting(MODEL, entry(MODEL).options_with(steps=1))
    engine.submit(LoadModel(1, MODEL, device="cpu"))
    gate = Gate(recorder, AudioReady)
    engine.submit(Synthesise(2, text, voice(), setting))
    gate.reached()
    first = recorder.of(2, AudioReady)[0]
    assert 1 < len(first.samples) / first.sample_rate < 5, "the first of many passages"
    engine.cancel(2)
    gate.open()
    assert isinstance(recorder.end_of(2), JobCancelled)
    assert recorder.of(2, Telemetry)[-1].chunks > 100

    engine.submit(Synthesise(3, "🙂🎉", voice(), setting))
    failed = recorder.end_of(3)
    assert isinstance(failed, JobFailed)
    assert "slightly smiling face" in failed.sentence
    engine.submit(ShutDown(4))
    assert engine.join(PATIENCE_SECONDS)


MASKED = "omni-mini"


@pytest.fixture
def engine(recorder: Recorder) -> Iterator[EngineThread]:
    with running(recorder) as engine:
        yield engine


@pytest.mark.slow
def test_what_it_says_is_understood_in_all_voices(engine: EngineThread, recorder: Recorder) -> None:
    pytest.importorskip("pocketsphinx")
    sentences = harvard_sentences()[:2]
    judge = Judge(harvard_sentences())
    engine.submit(LoadModel(1, MASKED, device="cpu"))
    assert isinstance(recorder.end_of(1), JobFinished)
    assert recorder.of(1, ModelLoaded)[0].info.family == "masked"
    recordings = []
    spoken = crossed(voice_names(MASKED), sentences)
    for job, (name, sentence) in enumerate(spoken, 2):
        engine.submit(Synthesise(job, sentence, voice(name, MASKED), Setting(MASKED, entry(MASKED).options_with())))
        assert isinstance(recorder.end_of(job), JobFinished)
        take = recorder.of(job, TakeReady)[0].take
        assert np.sqrt(np.mean(take.samples**2)) > 0.03, "speech, not silence"
        (passage,) = pickle.loads(pickle.dumps(take)).trace.demasking.passages
        assert passage.order.max() == 15
        recordings.append((take.samples, take.sample_rate))
    errors = judge.word_errors([sentence for _, sentence in spoken], recordings)
    assert errors.rate <= 0.1, errors.heard
