"""The headless tour in its own process with a sound server must hear A, then B; ``test_main_job.py`` goes by keys."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings

from paretone.setting.profile import Profile
from paretone_app.__main__ import parse, settings_file
from tests.sound import NullSink
from tests.workload import only_in_full

TEXT, STEPS = "The salt breeze came across from the sea.", 4
PATIENCE_SECONDS = 600
"""When the test gives up; never what it measures."""


def test_the_tour_neither_follows_nor_changes_what_the_user_selected(tmp_path: Path) -> None:
    folder, mine = str(tmp_path / "tour"), str(tmp_path / "mine.ini")
    with settings_file(parse(["--headless-tour", folder, "--data", str(tmp_path)])) as file:
        assert not Path(file).exists() and tmp_path not in Path(file).parents
        QSettings(file, QSettings.Format.IniFormat).setValue("selection", "{}")
    assert not Path(file).parent.exists()
    with settings_file(parse(["--headless-tour", folder, "--settings", mine])) as file:
        assert file == mine
    with settings_file(parse(["--data", str(tmp_path)])) as file:
        assert file == "", "the window's own, in the data folder"


@only_in_full("repetitions")
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_tour_synthesises_calibrates_listens_and_exports(null_sink: NullSink, tmp_path: Path) -> None:
    folder, data, remembered = tmp_path / "tour", tmp_path / "data", tmp_path / "window.ini"
    settings = QSettings(str(remembered), QSettings.Format.IniFormat)
    settings.setValue("selection", json.dumps({"text": TEXT}))
    settings.sync()
    command = [sys.executable, "-m", "paretone_app", "--headless-tour", str(folder), "--steps", str(STEPS)]
    command += ["--data", str(data), "--settings", str(remembered)]
    environment = os.environ | null_sink.environment | {"QT_QPA_PLATFORM": "offscreen"}
    with null_sink.recording() as recording:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        heard = recording.samples
    assert done.returncode == 0, done.stderr
    assert f"Everything is in {folder.resolve()}" in done.stdout
    assert len(list(folder.glob("take-*.wav"))) == 2 and (folder / "window.png").stat().st_size > 0
    assert Profile.load(folder / "profile.json").setting.technique("ditreducio") is not None
    assert abs(heard).max() > 0.01, "what was played went to the device"
