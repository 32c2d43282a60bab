"""The engine thread with the bundled masked model: what it says is understood."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import numpy as np
import pytest

from paretone.measure.intelligibility import Judge
from paretone.models.catalogue import entry, harvard_sentences, voice
from paretone.session.commands import LoadModel, Synthesise
from paretone.session.engine_thread import EngineThread
from paretone.session.events import (
    JobFinished,
    ModelLoaded,
    TakeReady,
)
from paretone.setting.setting import Setting
from tests.engine.recorder import Recorder
from tests.engine.running import running
from tests.prompts import short_prompts  # noqa: F401
from tests.voices import voice_names
from tests.workload import crossed, only_in_full

MASKED = "omni-mini"


@pytest.fixture
def engine(recorder: Recorder) -> Iterator[EngineThread]:
    with running(recorder) as engine:
        yield engine


@only_in_full("speech")
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
