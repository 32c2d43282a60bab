"""The modules that exports take along, as contents of files. Torch-free: they are read, not imported."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent / "copied"


def copied(name: str) -> bytes:
    """The module of :mod:`paretone.export.copied` called ``name``."""
    return (_FOLDER / f"{name}.py").read_bytes()
