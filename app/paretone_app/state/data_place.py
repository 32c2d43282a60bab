"""The folder of the user's takes, calibrations and layout, which the user can choose; models stay where they are."""

from __future__ import annotations

import tempfile
from pathlib import Path

from PySide6.QtCore import QStandardPaths

from paretone.errors import SettingError
from paretone.files import write_atomically
from paretone.paths import data_folder


def chosen_folder() -> Path:
    """The folder that was chosen last, or the usual one. A choice that is gone or that cannot be read is passed
    over."""
    try:
        folder = Path(_file().read_text("utf-8").strip())
        return folder if folder.is_absolute() and folder.is_dir() else data_folder()
    except (OSError, ValueError):
        return data_folder()


def choose_folder(folder: Path) -> str:
    """Use ``folder`` from the next start on. What the user should know about that, as a sentence, or ``""``. Raises
    :class:`SettingError` if nothing can be written there."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise SettingError(f"Nothing can be written to {folder} ({error.strerror}); choose another folder.") from error
    try:
        _file().parent.mkdir(parents=True, exist_ok=True)
        write_atomically(_file(), f"{folder.absolute()}\n".encode())
    except OSError as error:
        return f"That holds for this session only: {_file()} cannot be written ({error.strerror})."
    return ""


def _file() -> Path:
    place = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.GenericConfigLocation)
    return Path(place) / "paretone" / "data-folder"
