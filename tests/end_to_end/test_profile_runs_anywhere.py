"""A profile exported after work in the application gives the same samples from Python and from the command line.

All in this process; another one runs a profile to the same samples in ``tests/plugins/test_plugins.py``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone import cli
from paretone.models.base import Utterance
from paretone.models.catalogue import entry, voice
from paretone.session.commands import LoadModel, Prepare, ShutDown, Synthesise
from paretone.session.engine_thread import EngineThread
from paretone.session.events import JobFinished, ModelLoaded, TakeReady
from paretone.setting.knobs import Values
from paretone.setting.library import Library
from paretone.setting.profile import Evidence, Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques.ditreducio.record import CalibrationRequest
from tests.engine.recorder import PATIENCE_SECONDS, Recorder
from tests.prompts import short_prompts  # noqa: F401
from tests.voices import SECOND
from tests.workload import workload

pytestmark = pytest.mark.usefixtures("short_prompts")

MODEL = "f5-mini"
TEXT = workload("Rice is often served in round bowls.", "Rice.")


@pytest.mark.slow
def test_the_same_samples_everywhere(tmp_path: Path) -> None:
    recorder = Recorder()
    engine = EngineThread(recorder.post)
    engine.start()
    speaker = voice(SECOND)
    knobs = Values(threshold=0.4)
    setting = Setting(
        MODEL, entry(MODEL).options_with(steps=workload(4, 3)), (UsedTechnique("ditreducio", knobs),), seed=11
    )
    commands = iter(range(1, 9))

    def finished(command: type, *values: object, **more: object) -> int:
        job = next(commands)
        engine.submit(command(job, *values, **more))
        assert isinstance(recorder.end_of(job), JobFinished)
        return job

    job = finished(LoadModel, MODEL, device="cpu")
    info = recorder.of(job, ModelLoaded)[0].info
    job = finished(Prepare, "ditreducio", CalibrationRequest((Utterance("Rice.", speaker),), setting))
    table = recorder.result(job).record.table
    chosen = setting.with_technique(UsedTechnique("ditreducio", knobs, table.fingerprint))
    job = finished(Synthesise, TEXT, speaker, chosen, (table,))
    take = recorder.of(job, TakeReady)[0].take
    engine.submit(ShutDown(0))
    engine.join(PATIENCE_SECONDS)
    assert take.measurements.ops_ratio < 1

    path, out = tmp_path / "p.json", tmp_path / "out.wav"
    Profile.of(chosen, info, (table,), Evidence.of(take)).save(path)
    from_python = Profile.load(path).synthesise(TEXT, device="cpu")
    assert np.array_equal(from_python.samples, take.samples)

    arguments = ["speak", "--profile", str(path), "--text", TEXT, "--out", str(out), "--device", "cpu"]
    assert cli.main(arguments) == 0
    from_command_line, _ = soundfile.read(out, dtype="float32")
    assert np.array_equal(from_command_line, take.samples)

    with Library(tmp_path / "takes") as library:
        library.add(take)
        assert np.array_equal(library.load(take.id).samples, take.samples)
