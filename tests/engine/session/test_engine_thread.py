"""The engine thread: what jobs post and in which order, shutting down, what it imports."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from paretone.models.f5.config import HOP, SAMPLE_RATE
from paretone.session import events
from paretone.session.commands import CaptureAttention, Command, LoadModel, MakeTake, ShutDown, Synthesise
from paretone.session.engine_thread import EngineThread
from paretone.setting.knobs import Values
from paretone.setting.setting import UsedTechnique
from paretone.techniques.ditreducio.record import Calibrated, Similarities, Trial
from tests.engine import small_speech
from tests.engine.recorder import PATIENCE_SECONDS, Recorder
from tests.engine.session.small_jobs import LOAD, calibration, loaded, synthesis
from tests.engine.small_speech import VOICE, setting
from tests.workload import workload


# --- What jobs post --------------------------------------------------------------------------------------------------
def test_the_engine_announces_itself_and_its_model(engine: EngineThread, recorder: Recorder) -> None:
    ready = recorder.wait_for_kind(events.EngineReady)
    assert recorder.events[0] == events.EngineStatus(0, "Loading PyTorch…")
    assert ready.device in ready.devices and ready.devices[-1] == "cpu" and "torch 2" in ready.machine
    loaded(engine, recorder)
    assert [type(event) for event in recorder.of(1)] == [events.EngineStatus, events.ModelLoaded, events.JobFinished]
    model = recorder.of(1, events.ModelLoaded)[0]
    assert (model.info.id, model.info.device) == ("small", "cpu") and model.seconds > 0


def test_synthesis_streams_and_ends_with_a_take(engine: EngineThread, recorder: Recorder) -> None:
    loaded(engine, recorder)
    recorder.finish(engine, Synthesise(2, "One. Two. Three.", VOICE, setting(steps=5), label="mine"))
    posted = recorder.of(2)
    steps = [(event.chunk, event.step) for event in posted if isinstance(event, events.Telemetry)]
    assert list(dict.fromkeys(steps)) == [(chunk, step) for chunk in range(3) for step in range(5)]
    progress, pieces = recorder.of(2, events.Progress), recorder.of(2, events.AudioReady)
    assert [(one.done, one.total) for one in progress] == [(done, 15) for done in range(1, 16)]
    assert progress[6].text == "Chunk 2 of 3, step 2 of 5"
    first = posted.index(pieces[0])
    assert sum(isinstance(event, events.Progress) for event in posted[:first]) == 5, "the first piece plays after one"
    before = [event for event in posted[:first] if isinstance(event, events.Telemetry) and event.audio_seconds == 0]
    assert before and all(event.first_audio_seconds is None for event in before)
    chunk_seconds = 12 * HOP / SAMPLE_RATE
    shown = [event.elapsed_seconds / event.real_time_factor for event in before]
    assert shown == pytest.approx([chunk_seconds * done / 5 for done in range(1, 6)], rel=1e-6)
    last = recorder.of(2, events.Telemetry)[-1]
    assert last.real_time_factor == pytest.approx(last.elapsed_seconds / last.audio_seconds)
    assert last.memory_bytes > 0
    ready = posted[-2]
    assert isinstance(ready, events.TakeReady)
    take = ready.take
    np.testing.assert_array_equal(take.samples, np.concatenate([piece.samples for piece in pieces]))
    assert take.samples.dtype == np.float32
    assert (take.text, take.voice, take.label) == ("One. Two. Three.", "noise", "mine")
    assert (take.setting, take.notes) == (setting(steps=5), ("Read by the test.",))
    assert len(take.id) == 32 and take.created.endswith("+00:00") and "torch" in take.machine
    measured = take.measurements
    assert measured.largest_gap_seconds > 0 and measured.pause_seconds is not None
    assert measured.device == recorder.of(1, events.ModelLoaded)[0].info.device
    assert 0 < last.first_audio_seconds == measured.first_audio_seconds < measured.seconds
    assert measured.peak_memory_bytes >= last.memory_bytes
    assert last.audio_seconds == pytest.approx(take.seconds) and measured.audio_seconds == take.seconds
    assert ready.operations.layers == small_speech.LAYERS


def test_calibration_shows_every_trial(engine: EngineThread, recorder: Recorder) -> None:
    loaded(engine, recorder)
    recorder.finish(engine, calibration(2))
    ready = recorder.result(2)
    assert isinstance(ready, Calibrated)
    assert tuple(recorder.reports(2, Trial)) == ready.record.trials
    known = [np.isfinite(one.values).sum() for one in recorder.reports(2, Similarities)]
    assert known == [small_speech.LAYERS * step for step in range(1, 5)], "snapshots, not one array that changes"
    done = [event.done for event in recorder.of(2, events.Progress)]
    assert done == sorted(done)
    assert ready.record.machine and ready.record.created.endswith("+00:00")
    assert ready.operations.branches == 2 and ready.seconds > 0


def test_attention_is_captured(engine: EngineThread, recorder: Recorder) -> None:
    loaded(engine, recorder)
    recorder.finish(engine, CaptureAttention(2, "One sentence.", VOICE, setting(), layer=1, step=2))
    captured = recorder.of(2, events.AttentionCaptured)[0].capture
    assert (captured.layer, captured.step, captured.prompt_frames) == (1, 2, small_speech.PROMPT_FRAMES)
    np.testing.assert_allclose(captured.maps.sum(axis=-1), 1, rtol=1e-5)


def test_jobs_run_in_order_on_one_thread(engine: EngineThread, recorder: Recorder) -> None:
    for command in [LOAD, synthesis(2), calibration(3), synthesis(4), LoadModel(5, "small"), synthesis(6)]:
        engine.submit(command)
    recorder.end_of(6)
    assert [event.job for event in recorder.events if isinstance(event, events.ENDINGS)] == [1, 2, 3, 4, 5, 6]
    assert recorder.threads == {"engine"}


# --- Shutting down ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("command", "kind"),
    [(LoadModel(2, "small"), events.EngineStatus), (calibration(2, steps=30), Trial)],
    ids=["loading", "calibration"],
)
def test_shut_down_cancels_everything(recorder: Recorder, command: Command, kind: type) -> None:
    engine = EngineThread(recorder.post, small_speech.load)
    engine.start()
    loaded(engine, recorder)
    with recorder.stopped_at(kind, engine, command, synthesis(3)):
        engine.submit(ShutDown(4))
        assert not engine.join(0)
    assert engine.join(PATIENCE_SECONDS)
    assert recorder.events[-2:] == [events.JobCancelled(2), events.JobCancelled(3)]
    engine.submit(synthesis(5))
    assert recorder.events[-1] == events.JobCancelled(5), "whoever waits for a job must hear of its end"


def test_shut_down_before_anything_else(recorder: Recorder) -> None:
    engine = EngineThread(recorder.post, small_speech.load)
    engine.submit(synthesis(1))
    engine.submit(ShutDown(2))
    assert engine.join(), "a thread that never started is not waited for"
    engine.start()
    assert engine.join(PATIENCE_SECONDS)
    assert recorder.events[-1] == events.JobCancelled(1)


@pytest.mark.slow
def test_many_engines_leave_no_thread_behind() -> None:
    before = set(threading.enumerate())
    for number in range(workload(50, 4)):
        recorder = Recorder()
        engine = EngineThread(recorder.post, small_speech.load)
        engine.start()
        engine.submit(LOAD)
        engine.submit(calibration(2))
        if number % 2:
            recorder.wait_for_kind(Trial)
        engine.submit(ShutDown(3))
        assert engine.join(PATIENCE_SECONDS)
        assert isinstance(recorder.end_of(2), events.JobCancelled | events.JobFinished)
    # Less may be left than before: threads of earlier tests end when they like.
    assert set(threading.enumerate()) <= before


# --- The walls -------------------------------------------------------------------------------------------------------
def run_python(code: str) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr


def test_engine_without_torch_says_so(tmp_path: Path) -> None:
    broken = tmp_path / "torch"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise OSError('libgomp.so.1: cannot open shared object file')\n")
    run_python(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from paretone.session.commands import LoadModel, ShutDown\n"
        "from paretone.session.events import JobFailed\n"
        "from paretone.session.engine_thread import EngineThread\n"
        "events = []\n"
        "engine = EngineThread(events.append)\n"
        "engine.start()\n"
        "engine.submit(LoadModel(1, 'small'))\n"
        "while not any(isinstance(one, JobFailed) for one in events): engine.join(0.01)\n"
        "engine.submit(ShutDown(2))\n"
        "assert engine.join(60)\n"
        "failed = next(one for one in events if isinstance(one, JobFailed))\n"
        "assert failed.sentence == 'PyTorch could not be started (OSError: libgomp.so.1: cannot open shared object '"
        "'file); set Paretone up again.', failed.sentence\n"
    )


MODELS = workload(("f5-mini", "megatts3-mini", "lm-mini", "omni-mini"), ("f5-mini", "lm-mini"))


@pytest.mark.slow
def test_engine_at_work_imports_neither_a_window_nor_torchs_compiler() -> None:
    # The import of the compiler takes seconds, and of sympy a third of one, which the first sound would wait for.
    run_python(
        "import sys\n"
        "import paretone.cli, paretone.setting.library, paretone.setting.profile\n"
        "from paretone.session.commands import LoadModel, ShutDown\n"
        "from paretone.session.events import ENDINGS, JobFinished\n"
        "from paretone.session.engine_thread import EngineThread\n"
        "events = []\n"
        "engine = EngineThread(events.append)\n"
        "engine.start()\n"
        f"for job, name in enumerate({MODELS!r}, 1):\n"
        "    engine.submit(LoadModel(job, name, device='cpu'))\n"
        "    ends = []\n"
        "    while not ends:\n"
        "        engine.join(0.01)\n"
        "        ends = [one for one in events if isinstance(one, ENDINGS)][job - 1:]\n"
        "    assert isinstance(ends[0], JobFinished), ends[0]\n"
        "    found = {'torch._dynamo', 'sympy'} & set(sys.modules)\n"
        "    assert not found, (name, found)\n"
        "engine.submit(ShutDown(0))\n"
        "assert engine.join(60) and 'torch' in sys.modules\n"
        "windows = ('PySide6', 'shiboken6', 'PyQt6', 'pyqtgraph', 'qasync', 'paretone_app')\n"
        "found = [one for one in sys.modules if one.partition('.')[0] in windows]\n"
        "assert not found, found\n"
    )


def test_a_take_for_later_is_not_heard_and_brings_the_table_it_lacked(engine: EngineThread, recorder: Recorder) -> None:
    loaded(engine, recorder)
    chosen = setting(4).with_technique(UsedTechnique("ditreducio", Values({"threshold": 0.3})))
    recorder.finish(engine, MakeTake(2, "One sentence.", VOICE, chosen, label="for later"))
    assert not recorder.of(2, events.AudioReady) and not recorder.of(2, events.Telemetry)
    assert any(0 < one.done < one.total for one in recorder.of(2, events.Progress)), "it says how far it is"
    (made,) = recorder.of(2, events.TakeMade)
    (table,) = made.artefacts
    assert made.take.setting.technique("ditreducio").artefact == table.fingerprint and made.take.label == "for later"
    # The same again with the table at hand: nothing is calibrated, and the same is said.
    recorder.finish(engine, MakeTake(3, "One sentence.", VOICE, made.take.setting, made.artefacts))
    (again,) = recorder.of(3, events.TakeMade)
    assert again.artefacts == made.artefacts
    np.testing.assert_array_equal(again.take.samples, made.take.samples)
    assert len(recorder.of(3, events.EngineStatus)) < len(recorder.of(2, events.EngineStatus))
