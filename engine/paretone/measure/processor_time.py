"""CPU time of this process and of all others on its available cores. Torch-free.

Linux counts the busy time of each core in /proc/stat; elsewhere psutil does, if installed. Otherwise the load of other
processes is unknown. Time taken by a hypervisor counts as others'.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from paretone.setting.take import BUSY_SHARE, Measurements
from paretone.wording import percent


def device_kind(device: object) -> str:
    """``cpu``, ``cuda`` or ``mps``, from a device with or without index."""
    return str(device).partition(":")[0]


def clock_name(device: str = "cpu") -> str:
    """Name of the quantity that :func:`paretone.measure.timing.stopwatch` measures on ``device``."""
    names = {"cuda": "seconds between CUDA events", "mps": "wall seconds, device synchronised"}
    return names.get(device_kind(device), "CPU seconds of the process")


STAT = Path("/proc/stat")
_IDLE = frozenset({3, 4})
"""Fields of a core's line that are not work: idle and waiting for a disk."""
_TICKS_A_SECOND = 100
"""Linux's unit for programs, independent of its internal tick."""
_COUNTED = 8
"""Counted fields of a core's line; the later ones, of guests, are part of the first two."""


@dataclass(frozen=True)
class ProcessorTime:
    """CPU seconds since an arbitrary moment."""

    own: float
    """All threads of this process."""
    all: float | None
    """All processes on the cores available to this one; ``None`` if unknown."""
    cores: int
    """Number of these cores, hyper-threads included."""

    def since(self, before: ProcessorTime) -> tuple[float, float | None]:
        """Seconds of this process and of all others since ``before``."""
        own = self.own - before.own
        if self.all is None or before.all is None or self.cores != before.cores:
            return own, None
        return own, max(0.0, self.all - before.all - own)

    def earlier(self, own: float, others: float | None) -> ProcessorTime:
        """This time minus ``own`` seconds of this process and ``others`` of the others."""
        before = None if self.all is None or others is None else self.all - own - others
        return ProcessorTime(self.own - own, before, self.cores)


def processor_time() -> ProcessorTime:
    own = time.process_time()
    if sys.platform == "linux":
        cores = os.sched_getaffinity(0)
        return ProcessorTime(own, _linux_seconds(cores), len(cores))
    else:
        return ProcessorTime(own, _psutil_seconds(), os.cpu_count() or 1)


def _linux_seconds(cores: set[int]) -> float | None:
    names = {f"cpu{number}" for number in cores}
    try:
        lines = [line.split() for line in STAT.read_text(encoding="ascii").splitlines()]
        ticks = [[int(value) for value in line[1 : 1 + _COUNTED]] for line in lines if line and line[0] in names]
    except (OSError, ValueError):
        return None
    if len(ticks) != len(cores):
        return None
    busy = sum(value for line in ticks for field, value in enumerate(line) if field not in _IDLE)
    return busy / _TICKS_A_SECOND


def _psutil_seconds() -> float | None:
    try:
        psutil: Any = import_module("psutil")
    except ImportError:
        return None
    times = psutil.cpu_times()
    return sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq", "interrupt", "dpc"))


BUSY = "the machine was busy"
"""Mark of takes with doubtful times."""


def busy_words(took: str = "", during: str = "") -> str:
    """Clause that other processes make times doubtful. ``took``: their usage, by default above the limit; ``during``:
    the measured activity, if not obvious."""
    when = f" during {during}" if during else ""
    return f"{BUSY}{when}: other processes took {took or f'more than {percent(BUSY_SHARE)} of the cores'}"


def busy_line(took: str = "", during: str = "") -> str:
    """Sentences of :func:`busy_words` with the consequences."""
    said = busy_words(took, during)
    return f"{said[0].upper()}{said[1:]}. RTF, TTFA and waits are doubtful; RTF in CPU time is less so."


def load_words(measured: Measurements) -> str:
    """CPU share of other processes, such as ``25 % of the cores``; ``""`` if unknown."""
    return "" if measured.other_share is None else f"{percent(measured.other_share)} of the cores"


def load_line(measured: Measurements) -> str:
    """Sentences on the CPU share of other processes and its consequences."""
    took = load_words(measured)
    if not took:
        return "The load of other processes is unknown on this system."
    return busy_line(took) if measured.busy else f"Other processes took {took} meanwhile."
