"""Standard streams that are closed or full: a sentence or an exit code, never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from paretone.studies.store import Store
from tests.engine.studies.small import study

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/dev/full and closed streams of a shell")
PARETONE = f"{sys.executable} -m paretone"


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
    code = "from paretone.commands import output; output.prepare(); print(open('/dev/null').fileno() > 2)"
    assert run(f'{sys.executable} -c "{code}" <&- 2>&-').stdout == "True\n"


HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202ename"


@pytest.mark.parametrize(
    "arguments",
    [
        ["speak", "--text", "Rice.", "--out", f"/nowhere/{HOSTILE}/o.wav"],
        ["speak", "--text", "Rice.", "--model", HOSTILE, "--out", "/tmp/o.wav"],
        ["study", "status", f"/nowhere/{HOSTILE}"],
        ["study", HOSTILE, "file"],
        [HOSTILE],
        ["bench", HOSTILE],
        ["study", "status", f"/nowhere/{HOSTILE}", "--json"],
    ],
)
def test_names_control_no_terminal(arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "paretone", *arguments], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode and "owned" in said
    assert not any(one in said for one in "\x1b\x07\u202e")
    if "--json" in arguments:
        assert HOSTILE in json.loads(done.stdout)["error"]


def test_a_title_of_a_study_controls_no_terminal(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        store.begin(study(title=f"Title {HOSTILE}"))
    done = subprocess.run(
        [sys.executable, "-m", "paretone", "study", "status", str(tmp_path / "s")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Title \\u001b]0;owned\\u0007" in done.stdout and "\x1b" not in done.stdout
