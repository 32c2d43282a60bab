"""What front ends share with the engine loads nothing heavy: neither torch nor Qt, nor libraries for sound."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
(SHARED,) = (one["source_modules"] for one in CONTRACTS if "share" in one["name"])
HEAVY = ("PySide6", "app", "pyqtgraph", "scipy", "sounddevice", "soundfile", "torch")


@pytest.mark.parametrize(
    "module",
    [*SHARED, "engine", "engine.cli", "engine.commands", "engine.setting.profile", "engine.session.engine_thread"],
)
def test_importing_it_is_light(module: str) -> None:
    code = f"import sys, {module}; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_public_names_exist() -> None:
    code = "import engine; print(*(getattr(engine, name) is not None for name in engine.__all__))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"True"}
