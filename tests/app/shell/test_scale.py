"""The window fits a small screen at every scale of the desktop."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "scale", ["1.5", pytest.param("1.25", marks=pytest.mark.slow), pytest.param("2", marks=pytest.mark.slow)]
)
def test_every_workspace_fits_a_small_screen(tmp_path: Path, scale: str) -> None:
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "QT_SCALE_FACTOR": scale}
    command = [sys.executable, "-m", "tests.app.shell.scaled", str(tmp_path)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == ""
