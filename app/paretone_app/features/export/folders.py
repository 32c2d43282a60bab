"""Checks of a folder before writing into it."""

from __future__ import annotations

from pathlib import Path

from paretone import files


def folder_problem(text: str) -> tuple[str, str]:
    """Why the typed folder is invalid, and a remark on it, as sentences or ``""``."""
    if not text.strip():
        return "Type a folder.", ""
    path = Path(text.strip())
    try:
        if path.exists() and not path.is_dir():
            return f"{path} is a file; choose a folder.", ""
        if path.is_dir() and next(path.iterdir(), None) is not None:
            return "", f"{path.name} is not empty: existing files stay and are not overwritten."
        return "", "" if path.is_dir() else f"The folder {path} will be created."
    except OSError as error:
        return f"{path} cannot be read: {files.reason(error)}.", ""
