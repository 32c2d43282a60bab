"""The engine thread with a speech language model: what it posts, and what it refuses."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from paretone.models.base import Utterance
from paretone.models.catalogue import voice
from paretone.session.commands import Cancel, CaptureAttention, ComputeView, LoadModel, Synthesise
from paretone.session.engine_thread import EngineThread
from paretone.session.events import (
    AudioReady,
    JobCancelled,
    JobFailed,
    JobFinished,
    ModelLoaded,
    Progress,
    TakeReady,
    Telemetry,
)
from paretone.setting.library import Library
from paretone.setting.setting import UsedTechnique
from paretone.techniques import ditreducio
from tests.engine.preparing import calibrate
from tests.engine.recorder import Recorder
from tests.engine.running import running
from tests.engine.speaking import LONG, TEXT, drafted, setting, write_all


@pytest.fixture(scope="module")
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture(scope="module")
def engine(recorder: Recorder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineThread]:
    """An engine in which the small language model is loaded by the job 1."""
    root = write_all(tmp_path_factory.mktemp("worker") / "model")
    with running(recorder, model=LoadModel(1, "lm-mini", str(root), device="cpu")) as engine:
        yield engine


def test_a_loaded_model_says_what_was_trained_of_it(engine: EngineThread, recorder: Recorder) -> None:
    info = pickle.loads(pickle.dumps(recorder.of(1, ModelLoaded)[0].info))
    assert (info.family, info.layers, info.token_rate) == ("language", 3, 40)
    assert len(info.drafts) == 1
    assert len(info.students) == 2
    assert info.layer_order == (0, 2, 1)


def test_audio_comes_in_pieces_and_the_take_tells_its_tokens(
    engine: EngineThread, recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A fast machine is done before progress is told a second time.
    monkeypatch.setattr("paretone.models.families.language.REPORT_SECONDS", 0.0)
    engine.submit(Synthesise(2, LONG, voice("", "lm-mini"), setting(drafted())))
    assert isinstance(recorder.end_of(2), JobFinished)
    pieces, ready = recorder.of(2, AudioReady), recorder.of(2, TakeReady)[0]
    assert len(pieces) > 3
    assert np.array_equal(np.concatenate([one.samples for one in pieces]), ready.take.samples)
    assert ready.operations is None
    trace, measured = ready.take.trace.decoding, ready.take.measurements
    seen = {one.passage: one.trace.decoding for one in pieces if one.trace is not None}
    assert tuple(seen[number].passages[0] for number in sorted(seen)) == trace.passages
    assert tuple(seen[number].starts[0] for number in sorted(seen)) == trace.starts
    grown = [len(one.trace.decoding.tokens) for one in pieces if one.trace is not None and one.passage == 0]
    assert grown == sorted(grown) and grown[0] < grown[-1]
    assert measured.tokens == len(trace.tokens) > 100
    assert measured.first_audio_seconds < measured.seconds
    told = recorder.of(2, Telemetry)
    assert told[-1].tokens <= measured.tokens
    assert any(one.tokens_per_second for one in told)
    assert told[-1].largest_gap_seconds > 0
    progress = recorder.of(2, Progress)
    assert all(one.total == progress[0].total for one in progress)
    assert "token" in progress[0].text.lower()
    with Library(tmp_path / "takes") as library:
        library.add(ready.take)
        kept = library.load(ready.take.id)
    assert kept.measurements == measured
    assert kept.trace.decoding.tokens == trace.tokens
    assert kept.trace.decoding.outcomes == trace.outcomes
    assert kept.trace.decoding.seconds_of == trace.seconds_of
    for mine, theirs in zip(kept.trace.decoding.cycles, trace.cycles, strict=True):
        assert mine.drafted == theirs.drafted
        assert mine.acceptance == pytest.approx(theirs.acceptance, abs=1e-4)
        assert mine.target_seconds == pytest.approx(theirs.target_seconds, abs=1e-6)


def test_what_only_flow_models_do_is_refused_with_a_sentence(engine: EngineThread, recorder: Recorder) -> None:
    one = Utterance(TEXT, voice("", "lm-mini"))
    used = setting().with_technique(UsedTechnique(ditreducio.TECHNIQUE.name))
    engine.submit(calibrate(3, (one,), used))
    engine.submit(CaptureAttention(4, TEXT, voice("", "lm-mini"), setting(), 0, 0))
    engine.submit(ComputeView(5, "temporal-redundancy", one, setting()))
    engine.submit(Synthesise(6, TEXT, voice("", "lm-mini"), used))
    for job in (3, 4, 5, 6):
        failed = recorder.end_of(job)
        assert isinstance(failed, JobFailed)
        assert failed.details == ""
        assert "LM mini" in failed.sentence


def test_a_cancelled_synthesis_leaves_the_model_in_use(engine: EngineThread, recorder: Recorder) -> None:
    seen: list[int] = []

    def cancel(event: object) -> None:
        if isinstance(event, AudioReady) and event.job == 7:
            seen.append(1)
            engine.submit(Cancel(0, 7))

    recorder.react = cancel
    engine.submit(Synthesise(7, LONG * 3, voice("", "lm-mini"), setting()))
    assert isinstance(recorder.end_of(7), JobCancelled)
    # Not a single piece more.
    assert len(seen) == 1
    engine.submit(Synthesise(8, TEXT, voice("", "lm-mini"), setting()))
    assert isinstance(recorder.end_of(8), JobFinished)
