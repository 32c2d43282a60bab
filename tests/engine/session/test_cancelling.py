"""Jobs of the engine thread are cancelled, at work and while they wait, or held: nothing computes until a release."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from paretone.errors import Cancelled, PlainError, SettingError
from paretone.measure.fidelity import with_baseline_metrics
from paretone.models import load_model
from paretone.models.base import Synthesis, Voice, finished_part
from paretone.models.catalogue import entry, voice
from paretone.models.families.speech import Speech
from paretone.observer import Observer
from paretone.session import events
from paretone.session.commands import Cancel, CaptureAttention, Command, Hold, LoadModel, Release, RunStudy, TimeAgain
from paretone.session.engine_thread import EngineThread
from paretone.session.events import AudioReady, JobCancelled, Progress, TakeReady, TimedAgain
from paretone.session.executor import Executor, RunningJob
from paretone.session.jobs import StudyObserver
from paretone.setting.library import Library
from paretone.setting.setting import Setting
from paretone.speaking import synthesise
from paretone.techniques.ditreducio.record import Trial
from tests.engine import small_speech, speaking
from tests.engine.recorder import Recorder, is_of
from tests.engine.running import running
from tests.engine.session.small_jobs import LOAD, calibration, loaded, synthesis
from tests.engine.small_omni_mini import write_model as write_omni_mini
from tests.engine.small_speech import VOICE, setting


@pytest.fixture
def engine(engine: EngineThread, recorder: Recorder) -> EngineThread:
    loaded(engine, recorder)
    return engine


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (synthesis(2, chosen=setting(steps=100)), events.Progress),
        (synthesis(2, text="A. " * 100), events.AudioReady),
        (calibration(2, steps=30), Trial),
        (CaptureAttention(2, "One.", VOICE, setting(steps=100), layer=0, step=99), events.Progress),
    ],
    ids=["step", "chunk", "trial", "attention"],
)
def test_a_cancel_acts_within_one_step(engine: EngineThread, recorder: Recorder, command: Command, kind: type) -> None:
    with recorder.stopped_at(kind, engine, command):
        engine.submit(Cancel(0, 2))
    assert isinstance(recorder.end_of(2), events.JobCancelled)
    seen = [event for event in recorder.of(2) if is_of(event, kind)]
    assert len(seen) == 1, "the step at which it was cancelled is the last"
    assert bool(recorder.of(2, events.TakeReady)) == (kind is events.AudioReady), "only what was finished is a take"
    assert not recorder.of(2, events.Prepared)


def test_cancel_while_waiting(engine: EngineThread, recorder: Recorder) -> None:
    with recorder.stopped_at(events.Progress, engine, *(synthesis(job) for job in (2, 3, 4))):
        engine.submit(Cancel(0, 3))
        assert recorder.of(3) == [events.JobCancelled(3)], "at once, not when its turn comes"
    assert isinstance(recorder.end_of(4), events.JobFinished)
    assert recorder.of(3) == [events.JobCancelled(3)]
    assert isinstance(recorder.end_of(2), events.JobFinished)


def test_cancelling_twice_or_after_the_end_ends_once(engine: EngineThread, recorder: Recorder) -> None:
    with recorder.stopped_at(events.Progress, engine, synthesis(2)):
        engine.cancel(2)
        engine.cancel(2)
    recorder.end_of(2)
    for target in (1, 2, 99):
        engine.submit(Cancel(0, target))
    engine.submit(synthesis(3))
    assert isinstance(recorder.end_of(3), events.JobFinished), "a cancelled job must not take the next one with it"


def held_in_the_middle(engine: EngineThread, recorder: Recorder) -> None:
    """Hold the engine while it calibrates, and wait until it rests."""
    with recorder.stopped_at(Trial, engine, calibration(2)):
        engine.submit(Hold(0))
        assert not [one for one in recorder.events if isinstance(one, events.EngineHeld)], "it still computes"
    recorder.wait_for_kind(events.EngineHeld)


def test_a_running_job_waits_and_goes_on(engine: EngineThread, recorder: Recorder) -> None:
    held_in_the_middle(engine, recorder)
    before = len(recorder.events)
    time.sleep(0.3)
    assert len(recorder.events) == before, "nothing happens meanwhile"
    assert isinstance(recorder.events[-1], events.EngineHeld)
    engine.submit(Release(0))
    assert isinstance(recorder.end_of(2), events.JobFinished)
    assert len(recorder.reports(2, Trial)) > 1
    assert sum(isinstance(one, events.EngineHeld) for one in recorder.events) == 1


def test_a_job_that_rests_can_be_cancelled(engine: EngineThread, recorder: Recorder) -> None:
    held_in_the_middle(engine, recorder)
    engine.submit(Cancel(0, 2))
    assert isinstance(recorder.end_of(2), events.JobCancelled)


def test_an_engine_that_rests_can_be_shut_down(recorder: Recorder) -> None:
    with running(recorder, small_speech.load, LOAD) as engine:
        held_in_the_middle(engine, recorder)
    assert isinstance(recorder.end_of(2), events.JobCancelled)


def test_a_take_is_finished_first_as_a_rest_would_be_in_its_figures(engine: EngineThread, recorder: Recorder) -> None:
    with recorder.stopped_at(events.Telemetry, engine, synthesis(2)):
        engine.submit(Hold(0))
    recorder.wait_for_kind(events.EngineHeld)
    kinds = [type(one) for one in recorder.events]
    assert kinds.index(events.TakeReady) < kinds.index(events.EngineHeld)
    assert kinds.index(events.JobFinished) < kinds.index(events.EngineHeld)


def test_nothing_begins_while_the_engine_is_held(engine: EngineThread, recorder: Recorder) -> None:
    engine.submit(Hold(0))
    engine.submit(Hold(0))
    recorder.wait_for_kind(events.EngineHeld)
    engine.submit(synthesis(2))
    engine.submit(LoadModel(3, "small"))
    time.sleep(0.2)
    assert recorder.of(2) == []
    engine.submit(Cancel(0, 3))
    assert recorder.of(3) == [events.JobCancelled(3)]
    engine.submit(Release(0))
    assert isinstance(recorder.end_of(2), events.JobFinished)
    assert sum(isinstance(one, events.EngineHeld) for one in recorder.events) == 1


def test_a_study_rests_between_takes(engine: EngineThread, recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A held study waits between takes and then continues as if it had not been held."""
    seen: list[bool] = []

    def carry_out(executor, command, post, cancelled, pausing) -> None:
        observer = StudyObserver(RunningJob(command.job, post, cancelled, pausing))
        observer.status("between takes")
        engine.hold()
        observer.check()  # In the middle of a take: it goes on.
        seen.append(observer.pausing())

    recorder.wait_for_kind(events.EngineReady)
    monkeypatch.setattr(Executor, "carry_out", carry_out)
    engine.submit(RunStudy(2, "none.toml", ""))
    recorder.wait_for_kind(events.EngineHeld)
    assert seen == []
    engine.submit(Release(0))
    assert isinstance(recorder.end_of(2), events.JobFinished)
    assert seen == [False]


# --- What is left of a take -------------------------------------------------------------------------------------------
TEXT = "One. Two. Three. Four. Five."


class _Until(Observer):
    """Cancels, or fails with ``error``, at the first step of a passage."""

    def __init__(self, passage: int, error: BaseException | None = None, step: int = 0) -> None:
        self._passage, self._error, self._step = passage, error or Cancelled(), step

    def step(self, report: object) -> None:
        if report.chunk == self._passage and report.step >= self._step:
            raise self._error


def _omni_mini(root: Path) -> tuple[Speech, Voice, Setting]:
    write_omni_mini(root)
    chosen = Setting("omni-mini", entry("omni-mini").options_with(by_sentence=True, steps=4))
    return load_model("omni-mini", folder=str(root), device="cpu"), voice("", "omni-mini"), chosen


def _lm_mini(root: Path) -> tuple[Speech, Voice, Setting]:
    return speaking.load(speaking.write_all(root)), voice("", "lm-mini"), speaking.setting(cross_fade=0.02)


def _f5(root: Path) -> tuple[Speech, Voice, Setting]:
    model = small_speech.load("small", "", "", "cpu", lambda text: None, lambda: None)
    return model, small_speech.VOICE, small_speech.setting(cross_fade=0.004)


@pytest.mark.parametrize(
    ("made", "length"), [(_f5, 1), (_lm_mini, 4), (_omni_mini, 1)], ids=["flow", "language", "masked"]
)
def test_finished_passages_go_with_what_ended_the_rest(
    made: Callable[[Path], tuple[Speech, Voice, Setting]], length: int, tmp_path: Path
) -> None:
    model, speaker, chosen = made(tmp_path / "model")
    text = " ".join([speaking.LONG] * length)

    def spoken(observer: Observer) -> Synthesis:
        return synthesise(model, text, speaker, chosen, (), observer)

    whole = spoken(Observer())
    passages = len(whole.trace.chunk_texts)
    assert passages >= 3
    # Late in a passage some of its audio may have been delivered, which is not part of what is finished.
    with pytest.raises(Cancelled) as stopped:
        spoken(_Until(2, step=2))
    part = finished_part(stopped.value)
    assert part.unfinished == f"cancelled after 2 of {passages} passages"
    assert "the rest of the text is missing" in part.notes[-1]
    assert part.trace.chunk_texts == whole.trace.chunk_texts[:2]
    assert part.trace.chunk_seconds == whole.trace.chunk_seconds[:2]
    fade = round(float(chosen.options.get("cross_fade", 0.0)) * part.sample_rate)
    assert abs(len(part.samples) / part.sample_rate - sum(whole.trace.chunk_seconds[:2])) < 0.2
    alike = len(part.samples) - fade
    assert np.array_equal(part.samples[:alike], whole.samples[:alike]), "as in the whole, up to the cross-fade"
    measured = part.measurements
    assert measured.audio_seconds == len(part.samples) / part.sample_rate
    assert measured.seconds > 0 and measured.cpu_seconds > 0
    with pytest.raises(Cancelled) as stopped:
        spoken(_Until(0))
    assert finished_part(stopped.value) is None, "nothing was finished"


def test_an_error_keeps_what_was_finished_before(tmp_path: Path) -> None:
    model, speaker, chosen = _f5(tmp_path)
    with pytest.raises(PlainError) as stopped:
        synthesise(model, TEXT, speaker, chosen, (), _Until(3, PlainError("The disk melted.")))
    part = finished_part(stopped.value)
    assert part.unfinished == "failed after 3 of 5 passages"
    assert "The disk melted" in part.notes[-1]


def test_a_cancelled_synthesis_is_a_take_of_what_was_finished_which_is_compared_with_nothing(
    engine: EngineThread, recorder: Recorder, tmp_path: Path
) -> None:
    def react(event: object) -> None:
        if isinstance(event, AudioReady) and len(recorder.of(2, AudioReady)) == 2:
            engine.cancel(2)

    recorder.react = react
    engine.submit(synthesis(2, text=TEXT))
    assert isinstance(recorder.end_of(2), JobCancelled)
    (ready,) = recorder.of(2, TakeReady)
    take = ready.take
    assert (take.text, take.unfinished) == (TEXT, "cancelled after 2 of 5 passages")
    pieces = [event.samples for event in recorder.of(2, AudioReady)]
    assert np.array_equal(np.concatenate(pieces), take.samples), "all that was heard"
    with Library(tmp_path) as library:
        summary = library.add(take)
        assert (summary.unfinished, summary.notes) == (take.unfinished, take.notes)
        assert library.load(take.id).unfinished == take.unfinished
    recorder.react = lambda event: None
    recorder.finish(engine, synthesis(3, text=TEXT))
    whole = recorder.of(3, TakeReady)[0].take
    for baseline, other in ((take, whole), (whole, take)):
        with pytest.raises(SettingError, match="cancelled after 2 of 5 passages"):
            with_baseline_metrics(baseline, other)


def test_cancelling_at_the_very_end_gives_the_whole_take(engine: EngineThread, recorder: Recorder) -> None:
    with recorder.stopped_at(AudioReady, engine, synthesis(2)):
        engine.cancel(2)
    recorder.end_of(2)
    assert recorder.of(2, TakeReady)[0].take.unfinished == ""


# --- Timing again -----------------------------------------------------------------------------------------------------
def test_a_take_is_timed_again_with_progress_and_without_sound(engine: EngineThread, recorder: Recorder) -> None:
    recorder.finish(engine, TimeAgain(2, "One. Two.", VOICE, setting(), take="a take", times=3))
    (timed,) = recorder.of(2, TimedAgain)
    assert timed.take == "a take" and len(timed.runs) == 3
    assert all(one.seconds > 0 and one.audio_seconds == timed.runs[0].audio_seconds for one in timed.runs)
    progress = recorder.of(2, Progress)
    assert (progress[-1].done, progress[-1].total) == (300, 300)
    assert [one.done for one in progress] == sorted(one.done for one in progress)
    assert progress[-1].text == "Repeat 3 of 3"
    assert not recorder.of(2, AudioReady) and not recorder.of(2, TakeReady)
