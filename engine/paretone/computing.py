"""PyTorch build and device in use, and the reason if it is not a GPU. Imports no torch."""

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
"""Timeout of programs that describe the machine."""
_CUDA = re.compile(r"^cuda\b[^=]*=\s*['\"]([\d.]+)['\"]", re.MULTILINE)
_NVIDIA, _DISPLAY = "0x10de", "0x03"
"""The maker's PCI number, and the first digits of the class of display and compute devices."""
PCI_DEVICES = Path("/sys/bus/pci/devices")


@dataclass(frozen=True)
class Computing:
    torch: str
    device: str
    """``CPU: 2 cores, 1 thread``, or the GPU's name."""
    lacking: str = ""
    """Reason why no GPU is used, to follow a colon; ``""`` if one is."""
    advice: str = ""
    """How to use a GPU, as a sentence; ``""`` if there is nothing to do."""
    idle: str = ""
    """An unused GPU of this machine, or ``""``."""

    @property
    def line(self) -> str:
        """Everything except the advice, in one line."""
        parts = [f"torch {self.torch}", self.device, *([f"no GPU: {self.lacking}"] if self.lacking else [])]
        return " · ".join(parts)


def computing(devices: Sequence[str], device: str) -> Computing:
    """Computing device if PyTorch can use ``devices``; ``device``: title of the one in use."""
    torch = version_of("torch")
    if "cuda" in devices or "mps" in devices:
        return Computing(torch, device)
    if sys.platform == "darwin":
        return Computing(torch, device, "PyTorch uses the graphics of Apple's own chips alone")
    card = graphics_card()
    if packaged() or not cuda_of_torch():
        lacking = f"{'the packaged program has' if packaged() else 'this is'} PyTorch's build for processors"
        return Computing(torch, device, lacking, f"For {card or 'an NVIDIA card'}: {cuda_command()}", card)
    if card:
        advice = "Check its driver with nvidia-smi; PyTorch says more: python -c 'import torch; torch.zeros(1).cuda()'."
        return Computing(torch, device, f"PyTorch cannot use {card}", advice, card)
    return Computing(torch, device, "no NVIDIA card was found")


def version_of(package: str) -> str:
    """Version of an installed package, or ``""``."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def cuda_of_torch() -> str:
    """CUDA version of the installed PyTorch build; ``""`` for a CPU build."""
    found = find_spec("torch")
    if found is None or found.origin is None:
        return ""
    try:
        said = _CUDA.search((Path(found.origin).parent / "version.py").read_text(encoding="utf-8"))
    except OSError:
        return ""
    return said.group(1) if said is not None else ""


def cuda_command() -> str:
    """Sentence on how to install PyTorch for NVIDIA GPUs."""
    if packaged():
        return "instead of the packaged program, run: uv tool install 'paretone[app]' --torch-backend auto."
    if (Path(sys.prefix) / "uv-receipt.toml").is_file():
        return "run uv tool install --reinstall --torch-backend auto 'paretone[app]', then start again."
    if sys.platform == "win32":
        return "install PyTorch anew with the command that pytorch.org gives for CUDA, then start again."
    return f"run pip install --force-reinstall torch=={version_of('torch').partition('+')[0]}, then start again."


def graphics_card() -> str:
    """First NVIDIA GPU of this machine, usable or not, or ``""``."""
    said = output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    if said.strip():
        return said.splitlines()[0].strip()
    return "the NVIDIA card" if any(map(_is_card, PCI_DEVICES.glob("*"))) else ""


def _is_card(device: Path) -> bool:
    try:
        maker, kind = ((device / name).read_text().strip() for name in ("vendor", "class"))
    except OSError:
        return False
    return maker == _NVIDIA and kind.startswith(_DISPLAY)


def output(*command: str) -> str:
    """Output of a program; ``""`` if it is missing or fails."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=COMMAND_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
