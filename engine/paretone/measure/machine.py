"""The machine of a measurement: CPU, memory, GPUs, versions, load."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import paretone
from paretone.computing import version_of


@dataclass(frozen=True)
class Machine:
    """One machine with the versions in use."""

    processor: str
    cores: int
    """Physical cores available to this process."""
    memory_bytes: int
    graphics: tuple[str, ...]
    system: str
    python: str
    torch: str
    paretone: str
    load: float | None
    """System load over the minute before; ``None`` if unknown."""

    @property
    def line(self) -> str:
        """One line without the load."""
        cores = f"{self.cores} core" if self.cores == 1 else f"{self.cores} cores"
        parts = [f"{self.processor}, {cores}, {self.memory_bytes / 2**30:.0f} GiB", *self.graphics, self.system]
        versions = f"Python {self.python}, torch {self.torch}, paretone {self.paretone}"
        return "; ".join([*parts, versions])

    def to_json(self) -> dict:
        return {**asdict(self), "graphics": list(self.graphics)}


def hardware(line: str) -> str:
    """CPU, memory and GPUs from a machine's ``line``, without system and versions, which change with updates."""
    return "; ".join(line.split("; ")[:-2])


def describe() -> Machine:
    """Describe this machine. GPUs are listed only if torch is already imported."""
    return Machine(
        processor=processor(),
        cores=usable_cores(),
        memory_bytes=memory_bytes(),
        graphics=graphics(),
        system=f"{platform.system()} {platform.release()}".strip(),
        python=platform.python_version(),
        torch=version_of("torch") or "not installed",
        paretone=paretone.__version__,
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    )


@cache
def code_fingerprint() -> str:
    """Sixteen hexadecimal digits of Paretone's own source; ``""`` in a packaged program, which has none."""
    root = Path(paretone.__file__).parent
    read = hashlib.sha256()
    found = sorted(root.rglob("*.py"))
    for path in found:
        read.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return read.hexdigest()[:16] if found else ""


def graphics() -> tuple[str, ...]:
    """Names of torch's usable GPUs; empty before torch is imported."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return ()
    return tuple(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))


@cache
def processor() -> str:
    if sys.platform == "linux":
        for line in _read("/proc/cpuinfo").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return " ".join(value.split())
    if sys.platform == "darwin":
        return _system_value("machdep.cpu.brand_string") or platform.machine()
    return platform.processor() or platform.machine() or "unknown processor"


@cache
def usable_cores() -> int:
    """Physical cores available to this process by its affinity and container quota, at least 1."""
    logical = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if sys.platform == "linux":
        return max(1, min(_linux_cores(), _container_cores(), logical))
    elif sys.platform == "darwin":
        # The slow cores of an Apple chip hold back an evenly split computation.
        fast = _system_value("hw.perflevel0.physicalcpu") or _system_value("hw.physicalcpu")
        return int(fast) if fast.isdigit() else logical
    else:
        # Windows reports only logical processors, nearly always two per core.
        return max(1, logical // 2)


@cache
def memory_bytes() -> int:
    """Bytes of main memory, or 0 if unknown."""
    if sys.platform == "win32":
        return _windows_memory()
    if sys.platform == "darwin":
        size = _system_value("hw.memsize")
        return int(size) if size.isdigit() else 0
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _linux_cores() -> int:
    """Distinct physical cores in this process's affinity."""
    cores = set()
    for number in os.sched_getaffinity(0):
        topology = f"/sys/devices/system/cpu/cpu{number}/topology"
        package, core = _read(f"{topology}/physical_package_id"), _read(f"{topology}/core_id")
        cores.add((package.strip(), core.strip()) if core else number)
    return len(cores)


def _container_cores() -> int:
    """Whole CPUs granted by the control group's quota (cgroup v2, then v1)."""
    quota, _, period = _read("/sys/fs/cgroup/cpu.max").partition(" ")
    if not quota:
        quota = _read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
        period = _read("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
    if not quota.strip().isdigit() or not period.strip().isdigit():
        return sys.maxsize
    return max(1, int(quota) // int(period))


def _windows_memory() -> int:
    if sys.platform != "win32":
        raise NotImplementedError("Only Windows says it this way.")
    else:

        class MemoryStatus(ctypes.Structure):
            _fields_ = (
                ("length", ctypes.c_uint32),
                ("load", ctypes.c_uint32),
                *(
                    (name, ctypes.c_uint64)
                    for name in ("total", "free", "page", "page_free", "virtual", "virtual_free", "rest")
                ),
            )

        status = MemoryStatus(length=ctypes.sizeof(MemoryStatus))
        return int(status.total) if ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)) else 0


def _system_value(name: str) -> str:
    """Value of ``name`` by macOS's ``sysctl``, or ``""``."""
    answer = subprocess.run(["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, check=False)
    return answer.stdout.strip()


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
