"""A synthesis that is cancelled or fails after some passages: these become a take that says so. And takes that are
timed again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from paretone.errors import Cancelled, PlainError, SettingError
from paretone.measure.fidelity import with_baseline_metrics
from paretone.models.base import Synthesis, Voice, finished_part
from paretone.models.catalogue import voice
from paretone.models.families.speech import Speech
from paretone.observer import Observer
from paretone.session.commands import TimeAgain
from paretone.session.engine_thread import EngineThread
from paretone.session.events import AudioReady, JobCancelled, Progress, TakeReady, TimedAgain
from paretone.setting.library import Library
from paretone.setting.setting import Setting
from paretone.setting.take import Take
from paretone.speaking import synthesise
from tests.engine import small_speech, speaking
from tests.engine.recorder import Gate, Recorder
from tests.engine.session.small_jobs import loaded, synthesis
from tests.engine.small_omni_mini import write_model as write_omni_mini

TEXT = "One. Two. Three. Four. Five."


class _Until(Observer):
    """Cancels, or fails with ``error``, at the first step of a passage."""

    def __init__(self, passage: int, error: BaseException | None = None, step: int = 0) -> None:
        self._passage, self._error, self._step = passage, error or Cancelled(), step

    def step(self, report: object) -> None:
        if report.chunk == self._passage and report.step >= self._step:
            raise self._error


def _omni_mini(root: Path) -> tuple[Speech, Voice, Setting]:
    from paretone.models import load_model
    from paretone.models.catalogue import entry

    write_omni_mini(root)
    chosen = Setting("omni-mini", entry("omni-mini").options_with(by_sentence=True, steps=4))
    return load_model("omni-mini", folder=str(root), device="cpu"), voice("", "omni-mini"), chosen


def _lm_mini(root: Path) -> tuple[Speech, Voice, Setting]:
    chosen = speaking.setting(cross_fade=0.02)
    return speaking.load(speaking.write_all(root)), voice("", "lm-mini"), chosen


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
    assert part.notes[-1] == f"Cancelled after 2 of {passages} passages: the rest of the text is missing."
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
    assert part.notes[-1] == "Failed after 3 of 5 passages: The disk melted."


def _cancelled_take(engine: EngineThread, recorder: Recorder) -> Take:
    loaded(engine, recorder)
    heard = 0

    def react(event: object) -> None:
        nonlocal heard
        heard += isinstance(event, AudioReady)
        if heard == 2:
            engine.cancel(2)

    recorder.react = react
    engine.submit(synthesis(2, text=TEXT))
    assert isinstance(recorder.end_of(2), JobCancelled)
    (ready,) = recorder.of(2, TakeReady)
    return ready.take


def test_a_cancelled_synthesis_is_a_take_of_what_was_finished_which_is_compared_with_nothing(
    engine: EngineThread, recorder: Recorder, tmp_path: Path
) -> None:
    take = _cancelled_take(engine, recorder)
    assert take.unfinished == "cancelled after 2 of 5 passages"
    assert take.text == TEXT
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
    loaded(engine, recorder)
    gate = Gate(recorder, AudioReady)
    engine.submit(synthesis(2))
    gate.reached()
    engine.cancel(2)
    gate.open()
    recorder.end_of(2)
    assert recorder.of(2, TakeReady)[0].take.unfinished == ""


# --- Timing again -----------------------------------------------------------------------------------------------------
def _time_again(job: int, times: int) -> TimeAgain:
    return TimeAgain(job, "One. Two.", small_speech.VOICE, small_speech.setting(), take="a take", times=times)


def test_a_take_is_timed_again_with_progress_and_without_sound(engine: EngineThread, recorder: Recorder) -> None:
    loaded(engine, recorder)
    recorder.finish(engine, _time_again(2, 3))
    (timed,) = recorder.of(2, TimedAgain)
    assert timed.take == "a take"
    assert len(timed.runs) == 3
    assert all(one.seconds > 0 and one.audio_seconds == timed.runs[0].audio_seconds for one in timed.runs)
    progress = recorder.of(2, Progress)
    assert (progress[-1].done, progress[-1].total) == (300, 300)
    assert [one.done for one in progress] == sorted(one.done for one in progress)
    assert progress[-1].text == "Repeat 3 of 3"
    assert not recorder.of(2, AudioReady)
    assert not recorder.of(2, TakeReady)
