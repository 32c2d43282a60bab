"""CPU time of this process and of all others on the cores that it may use. Torch-free.

Linux counts the busy time of every core in /proc/stat; elsewhere psutil says it, where it is installed. Other systems
do not say it, and the load of other processes is then unknown. What a hypervisor took away counts as others'.
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
    """``cpu``, ``cuda`` or ``mps``, of a device with or without its number."""
    return str(device).partition(":")[0]


def clock_name(device: str = "cpu") -> str:
    """The quantity that :func:`paretone.measure.timing.stopwatch` measures on ``device``, in words."""
    names = {"cuda": "seconds between CUDA events", "mps": "wall seconds, device synchronised"}
    return names.get(device_kind(device), "CPU seconds of the process")


_STAT = Path("/proc/stat")
_IDLE = frozenset({3, 4})
"""Fields of a core's line that are no work: idle and waiting for a disk."""
_TICKS_A_SECOND = 100
"""As Linux tells them to programs, whatever it counts in."""
_COUNTED = 8
"""Fields of a core's line that count; those after them, of guests, are part of the first two."""


@dataclass(frozen=True)
class ProcessorTime:
    """CPU seconds since an arbitrary moment."""

    own: float
    """Of all threads of this process."""
    all: float | None
    """Of all processes on the cores that this one may use; ``None`` if unknown."""
    cores: int
    """Number of these cores, hyper-threads included."""

    def since(self, before: ProcessorTime) -> tuple[float, float | None]:
        """Seconds of this process and of all others since ``before``."""
        own = self.own - before.own
        if self.all is None or before.all is None or self.cores != before.cores:
            return own, None
        return own, max(0.0, self.all - before.all - own)

    def earlier(self, own: float, others: float | None) -> ProcessorTime:
        """The time before this process took ``own`` and the others ``others`` seconds."""
        before = None if self.all is None or others is None else self.all - own - others
        return ProcessorTime(self.own - own, before, self.cores)


def processor_time() -> ProcessorTime:
    """The CPU time that was used up to now."""
    own = time.process_time()
    if sys.platform == "linux":
        cores = os.sched_getaffinity(0)
        return ProcessorTime(own, _linux_seconds(cores), len(cores))
    else:
        return ProcessorTime(own, _psutil_seconds(), os.cpu_count() or 1)


def _linux_seconds(cores: set[int]) -> float | None:
    names = {f"cpu{number}" for number in cores}
    try:
        lines = [line.split() for line in _STAT.read_text(encoding="ascii").splitlines()]
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
"""How takes are marked whose times are doubtful."""


def busy_words(took: str = "", during: str = "") -> str:
    """That other processes made times doubtful, in words: what they ``took``, by default more than the limit, and
    ``during`` what, if that is not plain."""
    when = f" during {during}" if during else ""
    return f"{BUSY}{when}: other processes took {took or f'more than {percent(BUSY_SHARE)} of the cores'}"


def busy_line(took: str = "", during: str = "") -> str:
    """The same, with what follows from it, in sentences."""
    said = busy_words(took, during)
    return f"{said[0].upper()}{said[1:]}. RTF, TTFA and waits are doubtful; RTF in CPU time is less so."


def load_words(measured: Measurements) -> str:
    """What other processes took, ``25 % of the cores``; ``""`` if unknown."""
    return "" if measured.other_share is None else f"{percent(measured.other_share)} of the cores"


def load_line(measured: Measurements) -> str:
    """What other processes took of the cores meanwhile, in sentences that say what follows from it."""
    took = load_words(measured)
    if not took:
        return "The load of other processes is unknown on this system."
    return busy_line(took) if measured.busy else f"Other processes took {took} meanwhile."
