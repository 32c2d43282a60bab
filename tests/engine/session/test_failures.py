"""Failures of jobs: a sentence for each, and the engine thread goes on."""

from __future__ import annotations

import pytest

from paretone.models.base import Utterance
from paretone.session.commands import CaptureAttention, Command, LoadModel
from paretone.session.engine_thread import EngineThread
from paretone.session.events import AudioReady, Event, JobFailed, JobFinished, Progress
from paretone.setting.setting import Setting
from tests.engine import small_speech
from tests.engine.preparing import calibrate
from tests.engine.recorder import Gate, Recorder
from tests.engine.session.small_jobs import calibration, loaded, synthesis
from tests.engine.small_speech import VOICE, setting


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (synthesis(2, chosen=Setting("other")), ("'other'", "'small' is loaded", "load 'other' first")),
        (synthesis(2, chosen=setting(steps=0)), ("Steps", "between 1 and 128")),
        (synthesis(2, text=small_speech.ENDLESS), ("ran out of memory while synthesising", "shorter text")),
        (
            calibrate(2, (Utterance(small_speech.ENDLESS, VOICE),), setting()),
            ("ran out of memory while calibrating", "shorter"),
        ),
        (LoadModel(2, "small", folder="/nowhere"), ("/nowhere/weights is missing", "choose another")),
        (LoadModel(2, "small", variant="huge"), ("ran out of memory while loading", "unload the current model first")),
        (LoadModel(2, "small", device="abacus"), ("no device named 'abacus'", "auto, cuda, mps, cpu")),
        (LoadModel(2, "small", variant="strange"), ("unexpected went wrong while loading the model: KeyError", "log")),
        (CaptureAttention(2, "One.", VOICE, setting(), layer=99, step=0), ("no layer 100",)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Command) else "",
)
def test_failure_says_what_to_do_and_the_engine_goes_on(
    engine: EngineThread, recorder: Recorder, command: Command, words: tuple[str, ...]
) -> None:
    loaded(engine, recorder)
    engine.submit(command)
    engine.submit(synthesis(3))
    failed = recorder.end_of(2)
    assert isinstance(failed, JobFailed)
    for word in words:
        assert word in failed.sentence
    assert "\n" not in failed.sentence
    assert failed.sentence.endswith(".")
    assert isinstance(recorder.end_of(3), JobFinished), "the model loaded before is still there"


def test_unforeseen_error_leaves_its_traceback(engine: EngineThread, recorder: Recorder) -> None:
    engine.submit(LoadModel(1, "small", variant="strange"))
    failed = recorder.end_of(1)
    assert "Traceback" in failed.details
    assert "an error that nobody foresaw" in failed.details


def test_foreseen_error_has_no_traceback(engine: EngineThread, recorder: Recorder) -> None:
    engine.submit(synthesis(1))
    assert recorder.end_of(1).details == ""


@pytest.mark.parametrize("command", [synthesis(2), calibration(2)], ids=["synthesis", "calibration"])
def test_weights_that_are_not_numbers(engine: EngineThread, recorder: Recorder, command: Command) -> None:
    engine.submit(LoadModel(1, "small", variant="damaged"))
    engine.submit(command)
    failed = recorder.end_of(2)
    assert isinstance(failed, JobFailed)
    assert failed.details == ""
    assert "precision" in failed.sentence
    assert not recorder.of(2, AudioReady), "noise must not be played"


def test_every_piece_is_checked_whatever_the_adapter_does(engine: EngineThread, recorder: Recorder) -> None:
    engine.submit(LoadModel(1, "small", variant="careless"))
    engine.submit(synthesis(2))
    assert recorder.end_of(2).sentence == (
        "The model produced invalid numbers (NaN) for piece 1 at 4 steps in float32; "
        "try more steps or less guidance, or download the checkpoint again."
    )
    assert not recorder.of(2, AudioReady)


def test_front_end_that_fails_does_not_stop_the_engine(engine: EngineThread, recorder: Recorder) -> None:
    loaded(engine, recorder)

    def fail(event: Event) -> None:
        raise RuntimeError("the window is gone")

    recorder.react = fail
    engine.submit(synthesis(2))
    assert isinstance(recorder.end_of(2), JobFinished)


def test_commands_that_cannot_be_taken(engine: EngineThread, recorder: Recorder) -> None:
    with pytest.raises(TypeError, match="Command is not a command that can be carried out"):
        engine.submit(Command(7))
    with pytest.raises(ValueError, match="numbered from 1"):
        engine.submit(LoadModel(0, "small"))
    loaded(engine, recorder)
    gate = Gate(recorder, Progress)
    engine.submit(synthesis(2))
    engine.submit(synthesis(3))
    gate.reached()
    for taken in (2, 3):
        with pytest.raises(ValueError, match=f"{taken} is taken"):
            engine.submit(synthesis(taken))
    gate.open()
    assert isinstance(recorder.end_of(3), JobFinished)
