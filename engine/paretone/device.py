"""Devices that run models: available ones, selection, threads, and cached memory."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Sequence

import torch

from paretone.errors import DeviceError
from paretone.measure.machine import usable_cores
from paretone.own_process import packaged, wanted_threads
from paretone.wording import counted

NAMES = ("auto", "cuda", "mps", "cpu")
"""Device names; ``auto`` means the first available one."""


def available() -> tuple[str, ...]:
    """Devices of this machine, preferred first."""
    has_card = torch.cuda.is_available() and not unbuilt()
    found = {"cuda": has_card, "mps": torch.backends.mps.is_available(), "cpu": True}
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
        why = unbuilt() if wanted == "cuda" else ""
        raise DeviceError(
            why or f"This machine has no device {wanted!r}, which needs {needed[wanted]}; choose auto or cpu."
        )
    return torch.device(wanted)


def unbuilt() -> str:
    """Why this PyTorch cannot compute on the NVIDIA card here, as a sentence, or ``""``."""
    if not torch.cuda.is_available():
        return ""
    (major, minor), built = torch.cuda.get_device_capability(), torch.cuda.get_arch_list()
    if runs_on((major, minor), built):
        return ""
    return (
        f"{torch.cuda.get_device_name()} (compute capability {major}.{minor}) is not used: this PyTorch has code for "
        f"{', '.join(built)} only. Install the build that pytorch.org names for it."
    )


def runs_on(capability: tuple[int, int], built: Sequence[str]) -> bool:
    """Whether a card runs code of these architectures: machine code of its own major version (``sm_75``), or PTX of an
    older one (``compute_70``), which the driver translates. Other names, such as ROCm's, are taken for fitting."""
    found = [re.fullmatch(r"(sm|compute)_(\d+)(\d)[af]?", one) for one in built]
    versions = [(one[1], (int(one[2]), int(one[3]))) for one in found if one is not None]
    fits = (version <= capability and (kind == "compute" or version[0] == capability[0]) for kind, version in versions)
    return not versions or any(fits)


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
    """Features that ``device`` lacks, of ``recording`` (CUDA graphs), ``compiling``, native ``bfloat16``, and ``card``
    (if there is one that cannot be used), each with the reason."""
    kind, found = torch.device(device).type, {}
    if why := unbuilt():
        found["card"] = why
    if kind == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        found["bfloat16"] = f"{title(device)} computes bfloat16 by way of float32"
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


def computed_in(device: torch.device) -> torch.dtype:
    """Precision on ``device`` of language models that are published in bfloat16."""
    return torch.bfloat16 if device.type == "cuda" and torch.cuda.is_bf16_supported() else torch.float32


def name_of(dtype: torch.dtype) -> str:
    """Name of a precision, such as ``float32``."""
    return str(dtype).removeprefix("torch.")


def compiler() -> str | None:
    """The C++ compiler used by torch, or ``None``."""
    names = (os.environ.get("CXX", ""), *(("cl",) if os.name == "nt" else ("g++", "clang++", "c++")))
    return next((found for name in names if name and (found := shutil.which(name))), None)


def thread_count() -> int:
    """CPU threads per operation: all cores but one, which is left for sound and window. ``OMP_NUM_THREADS`` overrides
    it, up to the number of cores."""
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
