"""The engine thread with language and masked models: what it posts, and what it refuses."""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from paretone.models.base import Utterance, Voice
from paretone.models.catalogue import voice
from paretone.session import events
from paretone.session.commands import Cancel, CaptureAttention, ComputeView, DecodePartial, LoadModel, Synthesise
from paretone.session.engine_thread import EngineThread
from paretone.setting.library import Library
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Take
from paretone.techniques import ditreducio
from tests.engine import speaking
from tests.engine.models.official import used
from tests.engine.models.omnivoice import small_release
from tests.engine.recorder import Recorder
from tests.engine.running import running
from tests.engine.session.small_jobs import calibrate

BLOCKS = used("blockwise", block=16, first_block=16, first_steps=2, later_steps=3)


@dataclass(frozen=True)
class Small:
    """A started engine with a small model of a family, loaded by the job 1."""

    engine: EngineThread
    recorder: Recorder
    family: str
    plain: Setting
    streamed: Setting
    """Gives audio piece by piece."""
    voice: Voice
    title: str

    def spoken(self, job: int, text: str, chosen: Setting) -> Take:
        self.recorder.finish(self.engine, Synthesise(job, text, self.voice, chosen))
        return self.recorder.of(job, events.TakeReady)[0].take


@pytest.fixture(scope="module")
def language(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
    recorder = Recorder()
    root = speaking.write_all(tmp_path_factory.mktemp("language") / "model")
    with running(recorder, model=LoadModel(1, "lm-mini", str(root), device="cpu")) as engine:
        plain, drafted = speaking.setting(), speaking.setting(speaking.drafted())
        yield Small(engine, recorder, "language", plain, drafted, voice("", "lm-mini"), "LM mini")


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
    recorder = Recorder()
    root = small_release.write_release(tmp_path_factory.mktemp("masked") / "model")
    with running(recorder, model=LoadModel(1, "OmniVoice", str(root), device="cpu")) as engine:
        plain, blocks = small_release.setting(), small_release.setting(BLOCKS)
        yield Small(engine, recorder, "masked", plain, blocks, voice("", "omni-mini"), "OmniVoice")


@pytest.fixture(params=["language", "masked"])
def small(request: pytest.FixtureRequest) -> Small:
    return request.getfixturevalue(request.param)


def test_a_loaded_model_says_what_it_is(language: Small, masked: Small) -> None:
    info = pickle.loads(pickle.dumps(language.recorder.of(1, events.ModelLoaded)[0].info))
    assert (info.family, info.layers, info.token_rate, info.layer_order) == ("language", 3, 40, (0, 2, 1))
    assert (len(info.drafts), len(info.students)) == (1, 2)
    info = pickle.loads(pickle.dumps(masked.recorder.of(1, events.ModelLoaded)[0].info))
    assert (info.family, info.layers, info.branches, info.sample_rate) == ("masked", 2, 2, 24000)
    assert (info.precisions[0], info.token_rate) == ("float32", None)


def test_audio_comes_in_pieces_and_is_the_take(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    # A fast machine is done before progress is told a second time.
    monkeypatch.setattr("paretone.models.families.language.REPORT_SECONDS", 0.0)
    take = small.spoken(2, speaking.LONG, small.streamed)
    pieces, (ready,) = small.recorder.of(2, events.AudioReady), small.recorder.of(2, events.TakeReady)
    assert len(pieces) > 3 and ready.operations is None
    assert np.array_equal(np.concatenate([one.samples for one in pieces]), take.samples)
    told, progress = small.recorder.of(2, events.Telemetry), small.recorder.of(2, events.Progress)
    assert told[-1].largest_gap_seconds > 0 and take.measurements.pause_seconds is not None
    # Playback waits no longer than pieces take to come.
    assert 0 <= told[-1].pause_seconds <= take.measurements.seconds
    assert take.measurements.first_audio_seconds < take.measurements.seconds
    assert all(one.total == progress[0].total for one in progress)
    assert ("token" if small.family == "language" else "step") in progress[0].text.lower()
    if small.family == "language":
        assert told[-1].tokens <= take.measurements.tokens and any(one.tokens_per_second for one in told)
    else:
        assert told[-1].tokens is None and progress[-1].done == progress[-1].total


def test_tokens_are_told(language: Small) -> None:
    take = language.spoken(3, speaking.LONG, language.streamed)
    pieces, trace = language.recorder.of(3, events.AudioReady), take.trace.decoding
    seen = {one.passage: one.trace.decoding for one in pieces if one.trace is not None}
    assert tuple(seen[number].passages[0] for number in sorted(seen)) == trace.passages
    assert tuple(seen[number].starts[0] for number in sorted(seen)) == trace.starts
    grown = [len(one.trace.decoding.tokens) for one in pieces if one.trace is not None and one.passage == 0]
    assert grown == sorted(grown) and grown[0] < grown[-1]
    assert take.measurements.tokens == len(trace.tokens) > 100


def test_the_grid_is_told_block_by_block_and_kept(masked: Small, tmp_path: Path) -> None:
    take = masked.spoken(3, small_release.LONG, masked.streamed)
    pieces, trace = masked.recorder.of(3, events.AudioReady), take.trace.demasking
    canvases = [one.trace.demasking.passages[0] for one in pieces if one.trace is not None]
    finished = trace.passages
    first = [int((one.order >= 0).sum()) for one in canvases[: len(finished[0].blocks)]]
    assert first == sorted(set(first)) and first[0] < finished[0].order.size, "each block fills in more of it"
    assert np.array_equal(canvases[-1].order, finished[-1].order) and canvases[-1].start == finished[-1].start
    with Library(tmp_path / "takes") as library:
        library.add(take)
        kept = library.load(take.id).trace
    assert kept.decoding is None
    assert (kept.demasking.frame_seconds, kept.demasking.mask) == (trace.frame_seconds, trace.mask)
    (mine,), (theirs,) = kept.demasking.passages, finished
    assert (mine.steps, mine.start, mine.blocks) == (theirs.steps, theirs.start, theirs.blocks)
    assert np.array_equal(mine.codes, theirs.codes) and np.array_equal(mine.order, theirs.order)
    assert np.abs(mine.probability - theirs.probability).max() <= 1e-4


def test_a_part_of_the_grid_is_heard(masked: Small) -> None:
    engine, recorder = masked.engine, masked.recorder
    take = masked.spoken(4, small_release.TEXT, masked.plain)
    (passage,) = take.trace.demasking.passages
    for job, step in ((5, 0), (6, 5)):
        recorder.finish(engine, DecodePartial(job, passage, step, masked.voice, take.setting))
    first, last = (recorder.of(job, events.PartialDecoded)[0] for job in (5, 6))
    assert (first.step, last.step, first.sample_rate) == (0, 5, 24000)
    assert len(first.samples) == len(last.samples) == passage.codes.shape[1] * 960
    assert first.samples.dtype == np.float32
    engine.submit(DecodePartial(7, passage, 6, masked.voice, take.setting))
    assert "no step 7" in recorder.end_of(7).sentence


def test_what_only_flow_models_do_is_refused_with_a_sentence(small: Small) -> None:
    one = Utterance(speaking.TEXT, small.voice)
    calibrated = small.plain.with_technique(UsedTechnique(ditreducio.TECHNIQUE.name))
    small.engine.submit(calibrate(10, one, calibrated))
    small.engine.submit(CaptureAttention(11, speaking.TEXT, small.voice, small.plain, 0, 0))
    small.engine.submit(ComputeView(12, "temporal-redundancy", one, small.plain))
    small.engine.submit(Synthesise(13, speaking.TEXT, small.voice, calibrated))
    for job in (10, 11, 12, 13):
        failed = small.recorder.end_of(job)
        assert isinstance(failed, events.JobFailed) and failed.details == ""
        assert small.title in failed.sentence


def test_a_cancelled_synthesis_leaves_the_model_in_use(small: Small) -> None:
    seen: list[int] = []

    def cancel(event: object) -> None:
        if isinstance(event, events.AudioReady) and event.job == 20:
            seen.append(1)
            small.engine.submit(Cancel(0, 20))

    small.recorder.react = cancel
    small.engine.submit(Synthesise(20, speaking.LONG * 3, small.voice, small.streamed))
    assert isinstance(small.recorder.end_of(20), events.JobCancelled)
    assert len(seen) == 1, "not a single piece more"
    small.spoken(21, speaking.TEXT, small.plain)


def test_after_a_device_was_lost_the_model_is_there_again(masked: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    small_release.fail_once(monkeypatch)
    masked.engine.submit(Synthesise(30, small_release.TEXT, masked.voice, masked.plain))
    failed = masked.recorder.end_of(30)
    assert isinstance(failed, events.JobFailed)
    assert "loaded again" in failed.sentence and "unspecified launch failure" in failed.details
    masked.recorder.wait_for(lambda event: event.job == 0 and "loaded again, on CPU" in getattr(event, "text", ""))
    assert len(masked.recorder.of(0, events.ModelLoaded)) == 1
    masked.spoken(31, small_release.TEXT, masked.plain)
