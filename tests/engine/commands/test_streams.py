"""Standard streams that are closed or full: a sentence or an exit code, never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/dev/full and closed streams of a shell")
PARETONE = f"{sys.executable} -m engine"


def run(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("models >&-", 1, "Standard output is closed"),
        ("models --json >&-", 1, "Standard output is closed"),
        ("models >/dev/full", 1, "could not be written to standard output: the disk is full; free some space."),
        ("models --json >/dev/full", 1, "could not be written to standard output: the disk is full"),
        ("speak --help >/dev/full", 1, "could not be written to standard output: the disk is full"),
        ("bench >/dev/full", 1, "could not be written to standard output: the disk is full"),
        ("dance --json >/dev/full", 2, "invalid choice: 'dance'"),
        ("models >&- 2>&-", 1, ""),
        ("dance 2>&-", 2, ""),
        ("dance 2>/dev/full", 2, ""),
    ],
)
def test_streams_that_take_nothing(arguments: str, code: int, words: str) -> None:
    done = run(f"{PARETONE} {arguments}")
    assert done.returncode == code
    assert words in done.stderr if words else done.stderr == ""
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full", "<&-"])
def test_results_arrive_without_the_other_streams(closed: str) -> None:
    done = run(f"{PARETONE} models --json {closed}")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["models"]


def test_files_do_not_take_the_place_of_a_closed_stream() -> None:
    """What a library says on a closed standard error would be written into them."""
    code = "from engine.commands import streams; streams.prepare(); print(open('/dev/null').fileno() > 2)"
    assert run(f'{sys.executable} -c "{code}" <&- 2>&-').stdout == "True\n"
