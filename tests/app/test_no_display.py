from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from paretone.errors import DeviceError


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is always a display")
@pytest.mark.parametrize("display", ["", ":7777"])
def test_without_a_display_a_sentence_is_said(tmp_path: Path, display: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("QT_QPA", "WAYLAND"))}
    command = [sys.executable, "-m", "paretone_app", "--data", str(tmp_path)]
    ended = subprocess.run(
        command,
        env={**environment, "DISPLAY": display},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == DeviceError.exit_code
    assert ended.stderr.startswith("Paretone cannot open its window: could not connect to display")
    assert "use the command line" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
