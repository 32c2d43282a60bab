"""What models are computed with here: which PyTorch, which device, and why no graphics card. Imports no torch."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from paretone.own_process import packaged

COMMAND_SECONDS = 10.0
"""Patience with programs that say what the machine has."""
_CUDA = re.compile(r"^cuda\b[^=]*=\s*['\"]([\d.]+)['\"]", re.MULTILINE)
_NVIDIA, _DISPLAY = "0x10de", "0x03"
"""The maker's number on the PCI bus, and how the class of what shows pictures or computes begins."""
_PCI = Path("/sys/bus/pci/devices")


@dataclass(frozen=True)
class Computing:
    torch: str
    device: str
    """``CPU: 2 cores, 1 thread``, or the graphics card's name."""
    lacking: str = ""
    """Why no graphics card computes, to follow a colon; ``""`` if one does."""
    advice: str = ""
    """What to do for a graphics card, as a sentence; ``""`` if nothing."""
    idle: str = ""
    """The graphics card that is here and is not used, or ``""``."""

    @property
    def line(self) -> str:
        """All but the advice, in a line."""
        parts = [f"torch {self.torch}", self.device, *([f"no GPU: {self.lacking}"] if self.lacking else [])]
        return " · ".join(parts)


def computing(devices: Sequence[str], device: str) -> Computing:
    """What computes where PyTorch can compute on ``devices``; ``device`` is the title of that in use."""
    torch = torch_version()
    if "cuda" in devices or "mps" in devices:
        return Computing(torch, device)
    if sys.platform == "darwin":
        return Computing(torch, device, "PyTorch uses the graphics of Apple's own chips alone")
    card = graphics_card()
    if packaged():
        lacking = "the packaged program has PyTorch's build for processors"
        return Computing(torch, device, lacking, f"For {card or 'an NVIDIA card'}: {cuda_command()}", card)
    if not cuda_of_torch():
        lacking = "this is PyTorch's build for processors"
        return Computing(torch, device, lacking, f"For {card or 'an NVIDIA card'}: {cuda_command()}", card)
    if card:
        advice = "Check its driver with nvidia-smi; PyTorch says more: python -c 'import torch; torch.zeros(1).cuda()'."
        return Computing(torch, device, f"PyTorch cannot use {card}", advice, card)
    return Computing(torch, device, "no NVIDIA card was found")


def torch_version() -> str:
    try:
        return version("torch")
    except PackageNotFoundError:
        return ""


def cuda_of_torch() -> str:
    """The version of CUDA that the installed PyTorch was built for; ``""`` for the build for processors."""
    found = find_spec("torch")
    if found is None or found.origin is None:
        return ""
    try:
        said = _CUDA.search((Path(found.origin).parent / "version.py").read_text(encoding="utf-8"))
    except OSError:
        return ""
    return said.group(1) if said is not None else ""


def cuda_command() -> str:
    """How to have a PyTorch that computes on an NVIDIA card, as a sentence."""
    if packaged():
        return "instead of the packaged program, run: uv tool install 'paretone[app]' --torch-backend auto."
    if (Path(sys.prefix) / "uv-receipt.toml").is_file():
        return "run uv tool install --reinstall --torch-backend auto 'paretone[app]', then start again."
    if sys.platform == "win32":
        return "install PyTorch anew with the command that pytorch.org gives for CUDA, then start again."
    return f"run pip install --force-reinstall torch=={torch_version().partition('+')[0]}, then start again."


def graphics_card() -> str:
    """The first NVIDIA card of this machine, whether or not anything can use it, or ``""``."""
    said = output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    if said.strip():
        return said.splitlines()[0].strip()
    return "the NVIDIA card" if any(map(_is_card, _PCI.glob("*"))) else ""


def _is_card(device: Path) -> bool:
    try:
        maker, kind = ((device / name).read_text().strip() for name in ("vendor", "class"))
    except OSError:
        return False
    return maker == _NVIDIA and kind.startswith(_DISPLAY)


def output(*command: str) -> str:
    """What a program prints; ``""`` if it is not there or fails."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=COMMAND_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
