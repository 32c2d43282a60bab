"""The official F5-TTS package for tests: in an environment of its own, which is made once and kept between runs."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from filelock import FileLock

from engine.bench import official

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "runs" / "official" / f"f5-tts-{official.VERSION}"


@cache
def python() -> Path:
    """The environment's Python. Skips the test when the package registry cannot be reached, and only then."""
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(FOLDER.with_suffix(".lock")):  # Tests run in several processes: one makes it, the others wait.
        try:
            return official.environment(lambda line: print(line, file=sys.stderr), FOLDER)
        except official.RegistryUnreachable as error:
            pytest.skip(str(error))


def run(module: str, *arguments: str) -> dict:
    """JSON that ``module`` prints when the environment's Python runs it."""
    command = [str(python()), "-m", module, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
