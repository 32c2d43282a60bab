"""What times are measured by on a device. Torch-free."""

from __future__ import annotations


def device_kind(device: object) -> str:
    """``cpu``, ``cuda`` or ``mps``, of a device with or without its number."""
    return str(device).partition(":")[0]


def clock_name(device: str = "cpu") -> str:
    """The quantity that :func:`paretone.measure.timing.stopwatch` measures on ``device``, in words."""
    names = {"cuda": "seconds between CUDA events", "mps": "wall seconds, device synchronised"}
    return names.get(device_kind(device), "CPU seconds of the process")
