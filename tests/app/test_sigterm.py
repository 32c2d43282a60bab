"""A window that is told to end, as by a session that ends, closes as its user closes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends processes otherwise")
def test_sigterm_closes_the_window_and_keeps_what_it_keeps(tmp_path: Path) -> None:
    settings = tmp_path / "window.ini"
    command = [sys.executable, "-m", "paretone_app", "--data", str(tmp_path / "data"), "--settings", str(settings)]
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    with subprocess.Popen(
        [*command, "--measure-start"],
        env=environment,
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith("ModelLoaded"):
                process.send_signal(signal.SIGTERM)
                break
        said += process.stdout.readlines()
        assert process.wait(300) == 143, "".join(said)
    assert "Traceback" not in "".join(said)
    assert "geometry" in settings.read_text()
