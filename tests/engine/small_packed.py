"""Small models that are packed as those of the installable package."""

import importlib.util
import shutil
from pathlib import Path

import pytest

from paretone.models.files import bundled

_SPEC = importlib.util.spec_from_file_location("packing", Path(__file__).parents[2] / "packaging" / "packing.py")
packing = importlib.util.module_from_spec(_SPEC)
"""What packs the weights when a wheel is built."""
_SPEC.loader.exec_module(packing)


def pack_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pack matrices of any size."""
    monkeypatch.setattr(packing, "SMALLEST", 64)
    monkeypatch.setattr(packing, "SHORTEST_ROW", 8)


def shipped_packed(models: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A packed copy of the folder of ``models``, next to it, that counts as what ships."""
    pack_small(monkeypatch)
    target = models.with_name(f"{models.name}-packed")
    shutil.copytree(models, target)
    packing.pack_models(models, target)
    monkeypatch.setattr(bundled, "root", lambda: target)
    return target
