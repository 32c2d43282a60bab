"""The walls of the house: the application never imports torch, the engine never imports Qt."""

from __future__ import annotations

import subprocess
import sys

import pytest

APPLICATION = (
    "app.__main__ app.window app.tour app.panels.attention app.panels.listen app.panels.meters app.panels.strategy "
    "app.panels.threshold app.export.profile_dialog app.panels.lab app.listening.webmushra app.panels.studies "
    "app.panels.studies_maker app.study_looks"
)
WINDOW = "app.__main__ app.window"
ENGINE = "engine.worker engine.workshop engine.models.loading engine.profile engine.library engine.cli"


@pytest.mark.parametrize(
    ("modules", "forbidden"),
    [
        (APPLICATION, "torch"),
        (ENGINE, "PySide6 pyqtgraph qasync app"),
        # The window is there first; what reads studies comes after it.
        (WINDOW, "torch pyqtgraph engine.studies.results"),
    ],
)
def test_importing_one_side_leaves_the_other_out(modules: str, forbidden: str) -> None:
    code = (
        "import importlib, sys\n"
        f"for name in {modules.split()!r}: importlib.import_module(name)\n"
        f"print(*sorted(name for name in {forbidden.split()!r} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""
