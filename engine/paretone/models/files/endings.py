"""Endings of files of weights. Torch-free."""

from __future__ import annotations

from pathlib import Path

SAFETENSORS = ".safetensors"
PICKLED = (".pt", ".pth", ".ckpt")
"""Files that ``torch.save`` writes."""
WEIGHTS = (SAFETENSORS, *PICKLED)
"""Files of weights in any folder."""
READ = (*WEIGHTS, ".bin")
"""Files that are read as weights when they are named; others call anything ``.bin``."""


def weight_files(folder: Path) -> list[Path]:
    """What is called a file of weights in ``folder``, by name, whether or not it can be read."""
    return sorted(one for one in folder.glob("*") if one.suffix in READ)
