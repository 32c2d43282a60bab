"""A lock is held by one process, waited for by others, and let go of by one that dies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from paretone.database import LockedError, held

HOLDER = """
import sys
from pathlib import Path
from paretone.database import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def start(path: Path) -> subprocess.Popen:
    """Another process that holds ``path`` until it is told to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    return process


def test_what_another_process_holds_is_taken_until_it_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    other = start(path)
    with pytest.raises(LockedError), held(path):
        pass
    waited: list[int] = []

    def waiting() -> None:
        waited.append(1)
        if len(waited) == 2:
            other.stdin.close()

    with held(path, waiting):
        assert len(waited) >= 2
        assert other.wait() == 0


def test_a_process_that_dies_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    other = start(path)
    other.kill()
    other.wait()
    with held(path):
        pass


def test_a_place_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="could not be held"), held(tmp_path / "none" / "lock"):
        pass
