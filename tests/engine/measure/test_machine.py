"""The description of the machine, and peak memory."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import paretone
from paretone.measure.machine import describe, memory_bytes, usable_cores
from paretone.measure.memory import PeakMemory


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
