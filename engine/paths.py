"""Folders of the application's resources and of the user's data."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def resource(*parts: str) -> Path:
    """A file or folder of ``resources/``, which lies next to the ``engine`` package."""
    return Path(__file__).resolve().parent.parent.joinpath("resources", *parts)


def data_folder() -> Path:
    """The user's own folder for takes, calibrations and downloaded models. ``PARETONE_DATA`` overrides it."""
    override = os.environ.get("PARETONE_DATA")
    if override:
        return Path(override)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "Paretone"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "Paretone"
    return Path(os.environ.get("XDG_DATA_HOME", Path.home() / ".local" / "share")) / "paretone"


def own_place(model: str) -> Path:
    """Folder of the user's trained weights and measurements of a model."""
    return data_folder() / "models" / model
