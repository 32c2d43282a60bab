"""The folder of the user's takes, calibrations and layout, which the user can choose, and its library of takes."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QStandardPaths

from paretone.errors import LibraryError, PlainError, SettingError
from paretone.files import write_atomically
from paretone.paths import data_folder
from paretone.setting.library import Library, LibraryDamaged


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


@dataclass(frozen=True)
class OpenedLibrary:
    """The library to use, what is wrong with it, and what could be set aside to mend that."""

    library: Library
    problem: str = ""
    """A sentence for the user, or ``""``."""
    damaged: Path | None = None
    """The folder of a damaged library that a new one can replace; see :func:`replace_damaged`."""
    temporary: bool = False
    """Whether takes are kept for this session only."""


def open_library(folder: Path) -> OpenedLibrary:
    """The take library in ``folder``, or one for this session only if that cannot be opened."""
    try:
        library = Library(folder)
    except (PlainError, OSError) as error:
        temporary = Path(tempfile.mkdtemp(prefix="paretone-takes-"))
        damaged = folder if isinstance(error, LibraryDamaged) else None
        return OpenedLibrary(Library(temporary), f"{error} Meanwhile, takes are kept in {temporary}.", damaged, True)
    if not library.damage:
        return OpenedLibrary(library)
    problem = (
        f"The take library in {folder} is damaged and read-only ({library.damage}). "
        "New takes can be played and saved as WAV, but are not kept."
    )
    return OpenedLibrary(library, problem, folder)


def moved(opened: OpenedLibrary, folder: Path) -> OpenedLibrary:
    """The take library in ``folder``, with the takes that were kept for this session only. Raises
    :class:`PlainError` if it cannot be used, and leaves ``opened`` as it is."""
    library = Library(folder)
    if library.damage:
        library.close()
        raise LibraryError(f"The take library in {folder} is damaged ({library.damage}); choose another folder.")
    if opened.temporary:
        _add_all(library, opened.library)
    opened.library.close()
    if opened.temporary:
        shutil.rmtree(opened.library.folder, ignore_errors=True)
    return OpenedLibrary(library)


def _add_all(library: Library, others: Library) -> None:
    known = {take.id for take in library.summaries()}
    for take in reversed(others.summaries()):
        if take.id not in known:
            library.add(others.load(take.id))


def replace_damaged(opened: OpenedLibrary) -> OpenedLibrary:
    """Set the damaged library aside and open an empty one, with the takes that were kept elsewhere meanwhile.

    ``problem`` of what comes back says where the damaged one is, or why it could not be set aside.
    """
    folder, meanwhile = opened.damaged, opened.library
    assert folder is not None
    elsewhere = meanwhile.folder != folder
    if not elsewhere:
        meanwhile.close()
    try:
        backup = Library.set_aside(folder)
        fresh = Library(folder)
        if elsewhere:
            _add_all(fresh, meanwhile)
    except LibraryError as error:
        again = opened if elsewhere else open_library(folder)
        return OpenedLibrary(again.library, str(error), again.damaged, again.temporary)
    if elsewhere:
        meanwhile.close()
        shutil.rmtree(meanwhile.folder, ignore_errors=True)
    return OpenedLibrary(fresh, f"The damaged take library is in {backup}, with its audio. New takes are kept again.")
