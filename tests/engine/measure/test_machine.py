"""The description of the machine."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys

import pytest
import torch

import paretone
from paretone.measure.machine import describe, memory_bytes, usable_cores


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


def test_describing_does_not_import_torch() -> None:
    code = "import sys; from paretone.measure.machine import describe; describe(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
