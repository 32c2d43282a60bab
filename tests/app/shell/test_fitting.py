"""A window in use fits its screen: no button is cut off, nothing scrolls sideways in what does, takes can be read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from paretone_app.shell.window import MainWindow
from tests.app.shell.fitting import faults, fill, unreadable


def test_every_panel_fits_small_and_usual_screens(window: MainWindow, qtbot: QtBot) -> None:
    fill(window, lambda: qtbot.wait(1))
    # The layout of the first start at both sizes, then a window that gets smaller and larger while it is used.
    for width, height, as_new in (
        (1024, 768, True),
        (1440, 900, True),
        (1024, 768, False),
        (1440, 900, False),
        (1024, 768, False),
    ):
        window.resize(width, height)
        if as_new:
            window.workspaces.default_layout()
        for _ in range(10):
            QApplication.processEvents()
        assert faults(window) == [], (width, height, as_new)
        assert unreadable(window) == [], (width, height, as_new)


@pytest.mark.parametrize("letters", ["1.15", pytest.param("1", marks=pytest.mark.slow)])
def test_every_panel_fits_a_scaled_screen(tmp_path: Path, letters: str) -> None:
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "QT_SCALE_FACTOR": "1.5"}
    command = [sys.executable, "-m", "tests.app.shell.scaled", str(tmp_path), "1920", "1080", letters]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == ""
