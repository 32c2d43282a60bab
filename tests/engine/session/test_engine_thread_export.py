"""The engine thread exports profiles: progress, what is written, cancelling and what is in the way."""

from __future__ import annotations

import pickle
from pathlib import Path

from paretone.session.commands import ExportProfile, ShutDown
from paretone.session.engine_thread import EngineThread
from paretone.session.events import EngineStatus, JobCancelled, JobFailed, JobFinished, ProfileExported, Progress
from paretone.setting.profile import Profile
from tests.engine.export.test_f5_tts import profile
from tests.engine.recorder import PATIENCE_SECONDS, Gate, Recorder


def test_exporting_is_a_job(recorder: Recorder, tmp_path: Path) -> None:
    engine, made = EngineThread(recorder.post), profile()
    engine.start()
    command = ExportProfile(1, made, "f5-tts", str(tmp_path / "out"))
    assert pickle.loads(pickle.dumps(command)) == command
    engine.submit(command)
    assert isinstance(recorder.end_of(1), JobFinished)
    (told,) = recorder.of(1, ProfileExported)
    assert (told.target, told.folder) == ("f5-tts", str(tmp_path / "out"))
    assert sorted(told.files) == sorted(path.name for path in (tmp_path / "out").iterdir())
    assert Profile.load(tmp_path / "out" / "profile.json") == made
    progress = recorder.of(1, Progress)[-1]
    assert progress.done == progress.total
    assert [one.text for one in recorder.of(1, EngineStatus)] == [
        "Reading the checkpoint",
        f"Writing to {tmp_path / 'out'}",
    ]

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "README.md").write_text("My own.")
    engine.submit(ExportProfile(2, made, "f5-tts", str(tmp_path / "mine")))
    failure = recorder.end_of(2)
    assert isinstance(failure, JobFailed)
    assert f"{tmp_path / 'mine' / 'README.md'} exists with other content" in failure.sentence
    assert [path.read_text() for path in (tmp_path / "mine").iterdir()] == ["My own."]

    engine.submit(ExportProfile(3, made, "elsewhere", str(tmp_path / "other")))
    assert "choose one of f5-tts, " in recorder.end_of(3).sentence
    engine.submit(ShutDown(4))
    assert engine.join(PATIENCE_SECONDS)


def test_a_cancelled_export_leaves_nothing_behind(recorder: Recorder, tmp_path: Path) -> None:
    engine, writing = EngineThread(recorder.post), Gate(recorder, Progress)
    engine.start()
    engine.submit(ExportProfile(1, profile(), "f5-tts", str(tmp_path / "out")))
    writing.reached()
    assert (tmp_path / "out").is_dir()
    engine.cancel(1)
    writing.open()
    assert isinstance(recorder.end_of(1), JobCancelled)
    assert list(tmp_path.iterdir()) == []
    engine.submit(ShutDown(2))
    assert engine.join(PATIENCE_SECONDS)
