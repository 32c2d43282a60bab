"""The application never imports torch. What the engine at work imports: ``engine/session/test_engine_thread.py``."""

from __future__ import annotations

import subprocess
import sys

import pytest

APPLICATION = (
    "app.__main__ app.shell.window app.shell.headless_tour app.features.attention.panel app.features.listen.panel "
    "app.features.meters.panel app.features.strategy.panel app.features.threshold.panel "
    "app.features.export.profile_dialog app.features.lab.panel app.listening.webmushra app.features.studies.panel "
    "app.features.studies.maker app.features.studies.study_summary"
)
WINDOW = "app.__main__ app.shell.window"


@pytest.mark.parametrize(
    ("modules", "forbidden"),
    [
        (APPLICATION, "torch"),
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
