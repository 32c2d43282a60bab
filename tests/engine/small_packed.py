"""Small models that are packed as those of the installable package."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from paretone.models.files import bundled


def pack_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pack matrices of any size."""
    monkeypatch.setattr(bundled, "SMALLEST", 64)
    monkeypatch.setattr(bundled, "SHORTEST_ROW", 8)


def shipped_packed(models: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A packed copy of the folder of ``models``, next to it, that counts as what ships."""
    pack_small(monkeypatch)
    target = models.with_name(f"{models.name}-packed")
    shutil.copytree(models, target)
    bundled.pack_models(models, target)
    monkeypatch.setattr(bundled, "root", lambda: target)
    return target
