"""Standard streams that are closed or full: a sentence or an exit code, never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from paretone.studies.store import Store
from tests.engine.command_line import Console
from tests.engine.studies.small import study

needs_a_shell = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/dev/full and streams of a shell")
PARETONE = f"{sys.executable} -m paretone"


def run(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)


@needs_a_shell
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("models --json >&-", 1, "Standard output is closed"),
        ("models >/dev/full", 1, "could not be written to standard output: the disk is full; free some space."),
        ("speak --help >/dev/full", 1, "could not be written to standard output: the disk is full"),
        ("models >&- 2>&-", 1, ""),
        ("dance 2>/dev/full", 2, ""),
    ],
)
def test_streams_that_take_nothing(arguments: str, code: int, words: str) -> None:
    done = run(f"{PARETONE} {arguments}")
    assert done.returncode == code
    assert words in done.stderr if words else done.stderr == ""
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


@needs_a_shell
def test_results_arrive_without_the_other_streams() -> None:
    """And what a library says on a closed standard error is not written into files: none takes its place."""
    done = run(f"{PARETONE} models --json 2>&- <&-")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["models"]
    code = "from paretone.commands import output; output.prepare(); print(open('/dev/null').fileno() > 2)"
    assert run(f'{sys.executable} -c "{code}" <&- 2>&-').stdout == "True\n"


HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202ename"


def test_names_control_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In sentences, in results, and in what a parser says."""
    paretone = Console(capsys)
    said = paretone("study", "status", f"/nowhere/{HOSTILE}", "--json")
    assert said.code and not any(one in said.out for one in "\x1b\x07\u202e") and HOSTILE in said.data["error"]
    with Store(tmp_path / "s") as store:
        store.begin(study(title=f"Title {HOSTILE}"))
    told = paretone("study", "status", tmp_path / "s").out
    assert "Title \\u001b]0;owned\\u0007" in told and "\x1b" not in told
    done = subprocess.run([sys.executable, "-m", "paretone", HOSTILE], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "owned" in done.stderr and not any(one in done.stderr for one in "\x1b\x07\u202e")
