"""Folders of the application's resources and of the user's data."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
CHECKOUT = _PACKAGE.parents[1]
"""The repository, unless this package is installed from a wheel."""


def resource(*parts: str) -> Path:
    """A file or folder of the resources: inside the installed package, or in the repository."""
    installed = _PACKAGE / "resources"
    return (installed if installed.is_dir() else CHECKOUT / "resources").joinpath(*parts)


def data_folder() -> Path:
    """The user's folder for takes, calibrations and downloaded models. ``PARETONE_DATA`` overrides it."""
    if override := os.environ.get("PARETONE_DATA"):
        return Path(override)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "Paretone"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "Paretone"
    return Path(os.environ.get("XDG_DATA_HOME", Path.home() / ".local" / "share")) / "paretone"


def own_place(model: str) -> Path:
    """Folder of the user's trained weights and measurements of a model."""
    return data_folder() / "models" / model


def in_own_place(path: str, model: str) -> bool:
    """Whether the user made the weights ``path`` of a model: shipped ones that fit come before them."""
    return Path(path).is_relative_to(own_place(model))


def own_name(shipped: Path, model: str) -> str:
    """The name of the file ``shipped``, or another one if it exists: for the user's weights, to be chosen by it."""
    there = shipped.is_file() and not in_own_place(str(shipped), model)
    return f"{'own-' * there}{shipped.name}"
