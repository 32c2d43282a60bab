"""Endings of files of weights. Torch-free."""

from __future__ import annotations

SAFETENSORS = ".safetensors"
PICKLED = (".pt", ".pth", ".ckpt")
"""Files that ``torch.save`` writes."""
WEIGHTS = (SAFETENSORS, *PICKLED)
"""Files of weights in any folder."""
READ = (*WEIGHTS, ".bin")
"""Files that are read as weights when they are named; others call anything ``.bin``."""
