"""Peak memory of a job: resident memory of the process on a CPU, allocated memory on a GPU."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from paretone.measure.processor_time import device_kind

if sys.platform != "win32":
    import resource

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
"""Value that resets Linux's peak resident memory (proc(5))."""


class PeakMemory:
    """Highest memory in use since its creation. ``device`` is ``cpu``, ``cuda`` or ``mps``, with or without an index. A
    GPU counts torch's allocations; a CPU counts the process's resident memory, model and interpreter included. Linux
    and CUDA record the peak themselves; elsewhere it is the highest of the samples taken by :meth:`sample`."""

    def __init__(self, device: str = "cpu") -> None:
        self._device = str(device)
        self._kind = device_kind(device)
        self._system_keeps_peak = self._start()
        self._highest = 0
        self.sample()

    def sample(self) -> int:
        now = bytes_in_use(self._device)
        self._highest = max(self._highest, now)
        return now

    @property
    def peak_bytes(self) -> int:
        """Highest number of bytes in use so far."""
        self.sample()
        if not self._system_keeps_peak:
            return self._highest
        if self._kind == "cuda":
            import torch

            return torch.cuda.max_memory_allocated(self._device)
        return max(self._highest, _status_bytes("VmHWM"))

    def _start(self) -> bool:
        """Reset the peak; returns whether the system records the new one."""
        if self._kind == "cuda":
            import torch

            torch.cuda.reset_peak_memory_stats(self._device)
            return True
        if self._kind == "mps":
            return False
        try:
            _CLEAR.write_text(_RESET_PEAK, encoding="ascii")
        except OSError:
            return False
        return _status_bytes("VmHWM") > 0


def bytes_in_use(device: str = "cpu") -> int:
    """Bytes in use now: allocated by torch on a GPU, resident on a CPU."""
    kind = device_kind(device)
    if kind == "cuda":
        import torch

        return torch.cuda.memory_allocated(device)
    if kind == "mps":
        import torch

        return torch.mps.driver_allocated_memory()
    if sys.platform == "linux":
        return _status_bytes("VmRSS")
    elif sys.platform == "win32":
        return _working_set_bytes()
    else:
        # Without further rights macOS tells a process only its peak, in bytes; others use KiB.
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _status_bytes(name: str) -> int:
    """A size in ``/proc/self/status``, or 0 if missing."""
    try:
        lines = _STATUS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), 0)


def _working_set_bytes() -> int:
    if sys.platform != "win32":
        raise NotImplementedError("Only Windows says it this way.")
    else:

        class Counters(ctypes.Structure):
            _fields_ = (
                ("size", ctypes.c_uint32),
                ("faults", ctypes.c_uint32),
                ("peak_working_set", ctypes.c_size_t),
                ("working_set", ctypes.c_size_t),
                *((f"quota_{number}", ctypes.c_size_t) for number in range(4)),
                ("pagefile", ctypes.c_size_t),
                ("peak_pagefile", ctypes.c_size_t),
            )

        counters = Counters(size=ctypes.sizeof(Counters))
        current = ctypes.windll.kernel32.OpenProcess(0x0410, False, os.getpid())
        try:
            found = ctypes.windll.psapi.GetProcessMemoryInfo(current, ctypes.byref(counters), counters.size)
        finally:
            ctypes.windll.kernel32.CloseHandle(current)
        return int(counters.working_set) if found else 0
