"""Devices that run models: available ones, selection, threads, and cached memory."""

from __future__ import annotations

import importlib.util
import os
import shutil

import torch

from paretone.errors import DeviceError
from paretone.measure.machine import usable_cores
from paretone.own_process import packaged, wanted_threads
from paretone.wording import counted

NAMES = ("auto", "cuda", "mps", "cpu")
"""Device names; ``auto`` means the first available one."""


def available() -> tuple[str, ...]:
    """Devices of this machine, preferred first."""
    found = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    return tuple(name for name, there in found.items() if there)


def choose(wanted: str = "auto") -> torch.device:
    """Device to run on. Raises :class:`DeviceError` if ``wanted`` is missing here or unknown."""
    there = available()
    if wanted == "auto":
        return torch.device(there[0])
    if wanted not in NAMES:
        raise DeviceError(f"There is no device named {wanted!r}; choose one of {', '.join(NAMES)}.")
    if wanted not in there:
        needed = {"cuda": "an NVIDIA graphics card, its driver and a CUDA build of PyTorch", "mps": "an Apple chip"}
        raise DeviceError(f"This machine has no device {wanted!r}, which needs {needed[wanted]}; choose auto or cpu.")
    return torch.device(wanted)


def answers(device: torch.device | str) -> bool:
    try:
        return bool(torch.zeros(1, device=device).add(1).cpu().item() == 1)
    except RuntimeError:
        return False


def title(device: torch.device | str) -> str:
    """Device name for people: ``NVIDIA H200``, ``Apple GPU``, ``CPU: 2 cores``."""
    kind = torch.device(device).type
    if kind == "cuda":
        return torch.cuda.get_device_name(device)
    if kind == "mps":
        return "Apple GPU"
    return f"CPU: {counted(usable_cores(), 'core', 'cores')}"


_KINDS = {"cpu": "a CPU", "mps": "an Apple GPU"}


def lacking(device: torch.device | str) -> tuple[tuple[str, str], ...]:
    """Features that ``device`` lacks, of ``recording`` (CUDA graphs) and ``compiling``, each with the reason."""
    kind, found = torch.device(device).type, {}
    if kind != "cuda":
        found["recording"] = f"CUDA graphs need an NVIDIA GPU; this device is {_KINDS.get(kind, kind)}."
    if kind == "mps":
        found["compiling"] = "Compiling needs a CPU or an NVIDIA GPU; this device is an Apple GPU."
    elif kind == "cuda" and importlib.util.find_spec("triton") is None:
        found["compiling"] = "Compiling for a graphics card needs the package triton; install it, or do without."
    elif packaged():
        found["compiling"] = "Compiling needs Paretone installed with pip or uv, not the packaged program; do without."
    elif kind == "cpu" and compiler() is None:
        found["compiling"] = "Compiling for a processor needs a C++ compiler such as g++; install one, or do without."
    return tuple(found.items())


def compiler() -> str | None:
    """The C++ compiler used by torch, or ``None``."""
    names = (os.environ.get("CXX", ""), *(("cl",) if os.name == "nt" else ("g++", "clang++", "c++")))
    return next((found for name in names if name and (found := shutil.which(name))), None)


def thread_count() -> int:
    """CPU threads per operation: all cores but one, which is left for sound and window.

    ``OMP_NUM_THREADS`` overrides it, up to the number of cores.
    """
    return wanted_threads() or max(1, usable_cores() - 1)


def synchronise(device: torch.device | str) -> None:
    """Wait until ``device`` has finished its work."""
    kind = torch.device(device).type
    if kind == "cuda":
        torch.cuda.synchronize(device)
    elif kind == "mps":
        torch.mps.synchronize()


def release_memory() -> None:
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if torch.backends.mps.is_available():
        torch.mps.empty_cache()
