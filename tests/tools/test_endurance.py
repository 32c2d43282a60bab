"""The endurance run as it is started: some rounds in the real window, read, judged and drawn; Ctrl+C ends it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.tools.endurance.__main__ import TOO_SHORT, main
from tests.tools.endurance.verdict import LEAST, WARM_UP, judge, read_log, why_not_read
from tests.workload import only_in_full, workload

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(bool(why_not_read()), reason=why_not_read()),
]
PATIENCE_SECONDS = 3000
ROUNDS = workload(WARM_UP + LEAST, 1)
SHORT = workload((), ("--models", "f5-mini", "--only", "setting", "baseline", "undo", "takes", "workspaces", "cancel"))


def command(folder: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "tests.tools.endurance", "--folder", str(folder), *arguments]


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "DISPLAY"} | {"QT_QPA_PLATFORM": "offscreen"}


@only_in_full("endurance")
def test_rounds_are_done_read_judged_and_drawn(tmp_path: Path) -> None:
    """Thorough: as many as are judged, everything on all models."""
    done = subprocess.run(
        command(tmp_path, "--rounds", str(ROUNDS), *SHORT),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    lines = read_log(tmp_path / "log.jsonl")
    assert [one.number for one in lines] == list(range(ROUNDS + 1)), done.stderr
    assert all(one.takes and one.done and not one.failures for one in lines[1:]), done.stdout
    assert (tmp_path / "curve.svg").read_text(encoding="utf-8").startswith("<svg")
    assert done.returncode == (TOO_SHORT if ROUNDS < WARM_UP + LEAST else 0), done.stdout
    assert judge(lines).passed is (None if ROUNDS < WARM_UP + LEAST else True)
    assert "Traceback" not in done.stderr


@only_in_full("endurance")
def test_ctrl_c_ends_a_run_in_the_middle_of_a_round(tmp_path: Path) -> None:
    folder, temporary = tmp_path / "run", tmp_path / "temporary"
    temporary.mkdir()
    process = subprocess.Popen(
        command(folder, "--hours", "1", *SHORT),
        env=environment() | {"TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        ready = time.monotonic() + PATIENCE_SECONDS
        while not (folder / "log.jsonl").exists() or not read_log(folder / "log.jsonl"):
            assert process.poll() is None and time.monotonic() < ready
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
    assert "Interrupted" in said and "Traceback" not in said
    assert process.returncode == TOO_SHORT
    assert list(temporary.iterdir()) == [], "what the run wrote for itself is gone"


@pytest.mark.parametrize("given", [("--hours", "0"), ("--rounds", "-1"), ("--hours", "nan")])
def test_no_amount_is_refused_before_anything_begins(
    given: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["--folder", str(tmp_path / "run"), *given])
    assert refused.value.code == 2 and given[1] in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
