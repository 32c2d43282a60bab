"""The application never imports torch. What the engine at work imports: ``engine/session/test_engine_thread.py``."""

from __future__ import annotations

import subprocess
import sys

import pytest

APPLICATION = (
    "paretone_app.__main__ paretone_app.shell.window paretone_app.shell.headless_tour "
    "paretone_app.features.attention.panel paretone_app.features.listen.panel paretone_app.features.meters.panel "
    "paretone_app.features.strategy.panel paretone_app.features.threshold.panel "
    "paretone_app.features.export paretone_app.features.lab.panel paretone_app.listening.webmushra "
    "paretone_app.features.studies.panel paretone_app.features.studies.maker "
    "paretone_app.results.study"
)
WINDOW = "paretone_app.__main__ paretone_app.shell.window"


@pytest.mark.parametrize(
    ("modules", "forbidden"),
    [
        (APPLICATION, "torch"),
        # The window is there first; what reads studies comes after it.
        (WINDOW, "torch pyqtgraph paretone.studies.results"),
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
