"""The engine thread with a masked model: what it posts, and what it refuses."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from paretone.models.base import Utterance
from paretone.models.catalogue import voice
from paretone.models.kernels.fused_masked import MaskedRun
from paretone.session.commands import Cancel, CaptureAttention, ComputeView, DecodePartial, LoadModel, Synthesise
from paretone.session.engine_thread import EngineThread
from paretone.session.events import (
    AudioReady,
    JobCancelled,
    JobFailed,
    JobFinished,
    ModelLoaded,
    PartialDecoded,
    Progress,
    TakeReady,
    Telemetry,
)
from paretone.setting.library import Library
from paretone.techniques import ditreducio
from tests.engine.models.omnivoice.small_release import LONG, TEXT, setting, used, write_release
from tests.engine.preparing import calibrate
from tests.engine.recorder import Recorder
from tests.engine.running import running

BLOCKS = used("blockwise", block=16, first_block=16, first_steps=2, later_steps=3)


@pytest.fixture(scope="module")
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture(scope="module")
def engine(recorder: Recorder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineThread]:
    """An engine in which the small release is loaded by the job 1."""
    root = write_release(tmp_path_factory.mktemp("worker") / "model")
    with running(recorder, model=LoadModel(1, "OmniVoice", str(root), device="cpu")) as engine:
        yield engine


def test_a_loaded_model_says_what_it_is(engine: EngineThread, recorder: Recorder) -> None:
    info = pickle.loads(pickle.dumps(recorder.of(1, ModelLoaded)[0].info))
    assert (info.family, info.layers, info.branches, info.sample_rate) == ("masked", 2, 2, 24000)
    assert info.precisions[0] == "float32"
    assert info.token_rate is None


def test_audio_comes_in_blocks_and_the_take_tells_how_it_was_filled_in(
    engine: EngineThread, recorder: Recorder, tmp_path: Path
) -> None:
    engine.submit(Synthesise(2, LONG, voice("", "omni-mini"), setting(BLOCKS)))
    assert isinstance(recorder.end_of(2), JobFinished)
    pieces, ready = recorder.of(2, AudioReady), recorder.of(2, TakeReady)[0]
    assert len(pieces) > 3
    assert np.array_equal(np.concatenate([one.samples for one in pieces]), ready.take.samples)
    assert ready.operations is None
    canvases = [one.trace.demasking.passages[0] for one in pieces if one.trace is not None]
    finished = ready.take.trace.demasking.passages
    first = [int((one.order >= 0).sum()) for one in canvases[: len(finished[0].blocks)]]
    assert first == sorted(set(first)) and first[0] < finished[0].order.size, "each block fills in more of it"
    assert np.array_equal(canvases[-1].order, finished[-1].order) and canvases[-1].start == finished[-1].start
    told = recorder.of(2, Telemetry)
    assert told[-1].tokens is None
    assert told[-1].largest_gap_seconds > 0
    # Playback waits no longer than pieces take to come.
    assert 0 <= told[-1].pause_seconds <= ready.take.measurements.seconds
    assert ready.take.measurements.pause_seconds is not None
    progress = recorder.of(2, Progress)
    assert all(one.total == progress[0].total for one in progress)
    assert progress[-1].done == progress[-1].total
    assert "step" in progress[0].text.lower()
    trace = ready.take.trace.demasking
    with Library(tmp_path / "takes") as library:
        library.add(ready.take)
        kept = library.load(ready.take.id).trace
    assert kept.decoding is None
    assert (kept.demasking.frame_seconds, kept.demasking.mask) == (trace.frame_seconds, trace.mask)
    (mine,), (theirs,) = kept.demasking.passages, trace.passages
    assert (mine.steps, mine.start, mine.blocks) == (theirs.steps, theirs.start, theirs.blocks)
    assert np.array_equal(mine.codes, theirs.codes)
    assert np.array_equal(mine.order, theirs.order)
    assert np.abs(mine.probability - theirs.probability).max() <= 1e-4


def test_a_part_of_the_grid_is_heard(engine: EngineThread, recorder: Recorder) -> None:
    engine.submit(Synthesise(3, TEXT, voice("", "omni-mini"), setting()))
    assert isinstance(recorder.end_of(3), JobFinished)
    take = recorder.of(3, TakeReady)[0].take
    (passage,) = take.trace.demasking.passages
    for job, step in ((4, 0), (5, 5)):
        engine.submit(DecodePartial(job, passage, step, voice("", "omni-mini"), take.setting))
        assert isinstance(recorder.end_of(job), JobFinished)
    first, last = (recorder.of(job, PartialDecoded)[0] for job in (4, 5))
    assert (first.step, last.step, first.sample_rate) == (0, 5, 24000)
    assert len(first.samples) == len(last.samples) == passage.codes.shape[1] * 960
    assert first.samples.dtype == np.float32
    engine.submit(DecodePartial(6, passage, 6, voice("", "omni-mini"), take.setting))
    assert "There is no step 7" in recorder.end_of(6).sentence


def test_what_only_flow_models_do_is_refused_with_a_sentence(engine: EngineThread, recorder: Recorder) -> None:
    one = Utterance(TEXT, voice("", "omni-mini"))
    calibrated = setting(used(ditreducio.TECHNIQUE.name))
    engine.submit(calibrate(10, (one,), calibrated))
    engine.submit(CaptureAttention(11, TEXT, voice("", "omni-mini"), setting(), 0, 0))
    engine.submit(ComputeView(12, "temporal-redundancy", one, setting()))
    engine.submit(Synthesise(13, TEXT, voice("", "omni-mini"), calibrated))
    for job in (10, 11, 12, 13):
        failed = recorder.end_of(job)
        assert isinstance(failed, JobFailed)
        assert failed.details == ""
        assert "OmniVoice" in failed.sentence


def test_a_cancelled_synthesis_leaves_the_model_in_use(engine: EngineThread, recorder: Recorder) -> None:
    seen: list[int] = []

    def cancel(event: object) -> None:
        if isinstance(event, AudioReady) and event.job == 20:
            seen.append(1)
            engine.submit(Cancel(0, 20))

    recorder.react = cancel
    engine.submit(Synthesise(20, LONG, voice("", "omni-mini"), setting(BLOCKS)))
    assert isinstance(recorder.end_of(20), JobCancelled)
    # Not a single piece more.
    assert len(seen) == 1
    engine.submit(Synthesise(21, TEXT, voice("", "omni-mini"), setting()))
    assert isinstance(recorder.end_of(21), JobFinished)


def test_after_a_device_was_lost_the_model_is_there_again(
    engine: EngineThread, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = iter([RuntimeError("CUDA error: unspecified launch failure")])
    scores = MaskedRun.scores

    def fail_once(self: MaskedRun, *given: object) -> object:
        for error in failures:
            raise error
        return scores(self, *given)

    monkeypatch.setattr(MaskedRun, "scores", fail_once)
    engine.submit(Synthesise(30, TEXT, voice("", "omni-mini"), setting()))
    failed = recorder.end_of(30)
    assert isinstance(failed, JobFailed)
    assert failed.sentence.startswith("The graphics card failed while synthesising; the model is loaded again")
    assert "unspecified launch failure" in failed.details
    recorder.wait_for(lambda event: event.job == 0 and "was loaded again, on CPU" in getattr(event, "text", ""))
    assert len(recorder.of(0, ModelLoaded)) == 1
    engine.submit(Synthesise(31, TEXT, voice("", "omni-mini"), setting()))
    assert isinstance(recorder.end_of(31), JobFinished)
