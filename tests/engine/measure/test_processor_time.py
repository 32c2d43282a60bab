"""CPU time of this process and of others: what is counted, and when a take is marked."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from paretone.measure import processor_time as module
from paretone.measure.processor_time import ProcessorTime, busy_line, load_line, processor_time
from paretone.setting.take import BUSY_SHARE, Measurements

BURN = "import time\nwhile time.process_time() < 0.4: pass"
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems count elsewhere")
STAT = """cpu  999 999 999 999 999 999 999 999 999 999
cpu0 100 20 30 5000 700 1 2 3 40 50
cpu1 200 0 0 5000 700 0 0 0 0 0
cpu7 900 0 0 5000 700 0 0 0 0 0
intr 12345
"""


@on_linux
def test_what_another_process_computes_is_others() -> None:
    before = processor_time()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    own, others = processor_time().since(before)
    assert others > 0.35, "all of its 0.4 s, but for the ticks of the clock"
    assert own < 0.3


@on_linux
def test_what_this_process_computes_is_its_own() -> None:
    before, began = processor_time(), time.process_time()
    while time.process_time() < began + 0.2:
        pass
    assert processor_time().since(before)[0] >= 0.2


@on_linux
def test_busy_time_of_the_cores_that_may_be_used_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stat").write_text(STAT, encoding="ascii")
    monkeypatch.setattr(module, "_STAT", tmp_path / "stat")
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    known = processor_time()
    assert known.all == pytest.approx(3.56), "neither idle, nor waiting for a disk, nor guests twice, nor core 7"
    assert known.cores == 2


@on_linux
@pytest.mark.parametrize("content", ["", "cpu0 1 2 x\ncpu1 1\n", "cpu0 1 2 3 4 5 6 7 8\n"])
def test_a_system_that_does_not_say_it_leaves_it_unknown(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stat").write_text(content, encoding="ascii")
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    for path in ("stat", "missing"):
        monkeypatch.setattr(module, "_STAT", tmp_path / path)
        assert processor_time().all is None
    assert processor_time().since(ProcessorTime(0.0, 1.0, 2))[1] is None
    assert load_line(Measurements(1.0, 1.0)) == "The load of other processes is unknown on this system."


def test_takes_are_marked_above_the_limit_only() -> None:
    quiet = Measurements(seconds=2.0, audio_seconds=4.0, cpu_seconds=1.0, other_seconds=0.2, cores=2)
    assert (quiet.cpu_time_factor, quiet.other_share, quiet.busy) == (0.25, 0.05, False)
    assert load_line(quiet) == "Other processes took 5 % of the cores meanwhile."
    at_the_limit = replace(quiet, other_seconds=BUSY_SHARE * 4)
    assert not at_the_limit.busy
    loud = replace(quiet, other_seconds=1.0)
    assert loud.busy
    doubtful = "RTF, TTFA and waits are doubtful; RTF in CPU time is less so."
    assert load_line(loud) == f"The machine was busy: other processes took 25 % of the cores. {doubtful}"
    said = "The machine was busy during 3 of 4 takes: other processes took more than 10 % of the cores."
    assert busy_line(during="3 of 4 takes") == f"{said} {doubtful}"
    assert replace(quiet, other_seconds=9.0).other_share == 1.0


def test_a_take_that_is_too_short_for_the_clock_is_not_marked() -> None:
    """Two ticks on each of two cores are all that was counted, which may be chance."""
    assert not Measurements(seconds=0.05, audio_seconds=1.0, other_seconds=0.04, cores=2).busy


def test_one_place_says_that_the_machine_was_busy() -> None:
    """Takes, plots, studies, reports and the command line say it alike."""
    root = Path(module.__file__).parents[2]
    other = re.compile(r"machine was busy|other processes (took|use)|BUSY_SHARE:", re.IGNORECASE)
    found = [
        f"{path.relative_to(root)}: {line.strip()}"
        for package in ("app", "engine")
        for path in (root / package).rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if other.search(line)
        and '"' in line
        and '"""' not in line
        and path.name not in ("processor_time.py", "metrics.py")
    ]
    assert not found
