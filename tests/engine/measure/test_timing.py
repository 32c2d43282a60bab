"""Paired timing: the order of runs, the intervals, and what the clocks see."""

import json
import os
import platform
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import paretone
from paretone.measure import processor_time as module
from paretone.measure.machine import describe, memory_bytes, usable_cores
from paretone.measure.memory import PeakMemory
from paretone.measure.processor_time import ProcessorTime, busy_line, load_line, processor_time
from paretone.measure.timing import interval, paired_ratio, running_order, stopwatch
from paretone.setting.take import BUSY_SHARE, Measurements


def test_order_rotates_and_reverses() -> None:
    orders = [running_order("abc", number) for number in range(6)]
    assert orders == [tuple(one) for one in ("abc", "acb", "cab", "cba", "bca", "bac")]
    assert len(set(orders)) == 6, "with three variants, six rounds see every order"


def test_two_take_turns_in_going_first() -> None:
    assert ["".join(running_order("ab", number)) for number in range(5)] == ["ab", "ba", "ba", "ab", "ab"]
    four = [running_order("abcd", number) for number in range(8)]
    assert len(set(four)) == 8
    assert all(sum(order.index(name) for order in four) == 12 for name in "abcd"), "each has the same mean place"


def test_every_variant_runs_once_a_round_and_the_baseline_twice() -> None:
    runs: Counter[str] = Counter()
    seen = []
    comparison = paired_ratio(
        {name: lambda name=name: runs.update([name]) or sum(range(2000)) for name in ("naive", "fast")},
        rounds=5,
        warm_up=2,
        on_round=seen.append,
    )
    assert runs == {"naive": 2 + 10, "fast": 2 + 5}
    assert seen == [1, 2, 3, 4, 5]
    assert comparison.baseline == "naive"
    assert {name: len(seconds) for name, seconds in comparison.seconds.items()} == {"naive": 5, "fast": 5}
    assert set(comparison.speed_up) == {"fast"}
    assert comparison.clock == "CPU seconds of the process"


def test_ratio_is_the_median_of_ratios_within_rounds() -> None:
    work = {"slow": 60_000, "fast": 20_000}
    comparison = paired_ratio({name: lambda n=n: sum(range(n)) for name, n in work.items()}, rounds=7)
    ratios = comparison.ratios("fast")
    assert ratios == tuple(slow / fast for slow, fast in zip(*comparison.seconds.values(), strict=True))
    found = comparison.speed_up["fast"]
    assert found.median == pytest.approx(np.median(ratios))
    assert min(ratios) <= found.low <= found.median <= found.high <= max(ratios)


def test_cpu_clock_does_not_count_waiting() -> None:
    with stopwatch() as watch:
        time.sleep(0.2)
    assert watch.wall_seconds >= 0.2
    assert watch.seconds < watch.wall_seconds / 2


def test_interval_covers_the_true_median_as_often_as_it_says() -> None:
    random = np.random.default_rng(3)
    intervals = [interval(random.lognormal(0, 0.1, 15).tolist()) for _ in range(300)]
    covered = np.mean([one.low <= 1 <= one.high for one in intervals])
    assert 0.88 <= covered <= 0.99
    assert np.mean([one.excludes_one for one in intervals]) == pytest.approx(1 - covered)


def test_interval_of_equal_values_is_that_value() -> None:
    found = interval([2.0] * 9)
    assert (found.median, found.low, found.high) == (2.0, 2.0, 2.0)
    assert found.excludes_one


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
def test_busy_time_of_the_cores_that_may_be_used_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stat").write_text(STAT, encoding="ascii")
    monkeypatch.setattr(module, "STAT", tmp_path / "stat")
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    known = processor_time()
    assert known.all == pytest.approx(3.56), "neither idle, nor waiting for a disk, nor guests twice, nor core 7"
    assert known.cores == 2


@on_linux
@pytest.mark.parametrize("content", ["", "cpu0 1 2 x\ncpu1 1\n", "cpu0 1 2 3 4 5 6 7 8\n"])
def test_what_a_system_does_not_say_is_unknown(content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stat").write_text(content, encoding="ascii")
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    for path in ("stat", "missing"):
        monkeypatch.setattr(module, "STAT", tmp_path / path)
        assert processor_time().all is None
    assert processor_time().since(ProcessorTime(0.0, 1.0, 2))[1] is None
    assert "unknown" in load_line(Measurements(1.0, 1.0))


def test_takes_are_marked_above_the_limit_only() -> None:
    quiet = Measurements(seconds=2.0, audio_seconds=4.0, cpu_seconds=1.0, other_seconds=0.2, cores=2)
    assert (quiet.cpu_time_factor, quiet.other_share, quiet.busy) == (0.25, 0.05, False)
    assert "took 5 % of the cores" in load_line(quiet) and "busy" not in load_line(quiet)
    assert not replace(quiet, other_seconds=BUSY_SHARE * 4).busy
    loud = replace(quiet, other_seconds=1.0)
    assert loud.busy
    assert "busy: other processes took 25 %" in load_line(loud) and "TTFA and waits are doubtful" in load_line(loud)
    assert "busy during 3 of 4 takes: other processes took more than 10 %" in busy_line(during="3 of 4 takes")
    assert replace(quiet, other_seconds=9.0).other_share == 1.0


def test_a_take_that_is_too_short_for_the_clock_is_not_marked() -> None:
    """Two ticks on each of two cores are all that was counted, which may be chance."""
    assert not Measurements(seconds=0.05, audio_seconds=1.0, other_seconds=0.04, cores=2).busy


# --- The machine ------------------------------------------------------------------------------------------------------
def test_line_names_what_figures_depend_on() -> None:
    machine = describe()
    for part in (machine.processor, f"{machine.cores} core", f"torch {torch.__version__.partition('+')[0]}"):
        assert part in machine.line
    assert f"Python {platform.python_version()}" in machine.line
    assert f"paretone {paretone.__version__}" in machine.line
    assert "\n" not in machine.line


def test_json_is_plain() -> None:
    data = json.loads(json.dumps(describe().to_json()))
    assert data["cores"] == usable_cores() >= 1
    assert data["memory_bytes"] == memory_bytes() > 2**28
    assert data["graphics"] == [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs a system with processor affinity")
def test_cores_follow_the_affinity() -> None:
    one = min(os.sched_getaffinity(0))
    code = (
        f"import os; os.sched_setaffinity(0, {{{one}}})\n"
        "from paretone.measure.machine import usable_cores; print(usable_cores())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


ROOT = Path(__file__).resolve().parents[3]
MEBI = 2**20
STORY = """
import json
from paretone.measure.memory import PeakMemory, bytes_in_use

first = PeakMemory()
before = first.sample()
block = bytearray(b"1") * (256 * 2**20)
during = first.sample()
del block
figures = {"during": during, "after": bytes_in_use(), "peak": first.peak_bytes}
figures["peak that starts anew"] = PeakMemory().peak_bytes
print(json.dumps({name: value - before for name, value in figures.items()}))
"""
"""Uses 256 MiB and frees them."""


@pytest.fixture(scope="module")
def figures() -> dict[str, int]:
    """Bytes above its beginning that a separate process measures. This one has threads, caches and garbage of other
    tests, and the system takes pages of its libraries back while others need the memory."""
    done = subprocess.run([sys.executable, "-c", STORY], cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_peak_of_the_cpu_sees_what_has_been_freed(figures: dict[str, int]) -> None:
    assert figures["during"] > 200 * MEBI
    assert figures["after"] < 100 * MEBI, "the block of 256 MiB is free again"
    assert 200 * MEBI < figures["peak"] < 400 * MEBI


def test_peak_starts_anew(figures: dict[str, int]) -> None:
    assert figures["peak that starts anew"] < 100 * MEBI < figures["peak"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA graphics card")
def test_peak_of_a_graphics_card() -> None:
    memory = PeakMemory("cuda")
    before = memory.sample()
    block = torch.ones(64 * MEBI, device="cuda")
    del block
    assert memory.peak_bytes - before == 256 * MEBI
