"""The example study, bundled with its finished results if they were made for the present models.

The window opens a copy in the user's folder, which can be run, extended and reported like any study; without results,
only the file is copied. Torch-free.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

from paretone import files
from paretone.errors import StudyError
from paretone.paths import resource
from paretone.studies.store import DATABASE
from paretone.studies.study import results_folder

FILE = resource("studies", "example.toml")


def shipped() -> Path | None:
    """Folder of the bundled results, if any."""
    folder = results_folder(FILE)
    return folder if (folder / DATABASE).is_file() else None


def copy_for_user(studies: Path) -> Path:
    """The user's copy of the example in the folder ``studies``, made if missing: the bundled results, or only the file.
    Another edition of the example gets another copy. Raises :class:`StudyError`."""
    finished = shipped()
    content = FILE.read_bytes() + ((finished / DATABASE).read_bytes() if finished is not None else b"")
    file = studies / f"example-{hashlib.sha256(content).hexdigest()[:8]}.toml"
    folder = results_folder(file)
    with files.explained(StudyError, f"The example could not be copied to {studies}"):
        studies.mkdir(parents=True, exist_ok=True)
        if finished is not None and not (folder / DATABASE).is_file():
            with tempfile.TemporaryDirectory(dir=studies) as temporary:
                copied = Path(temporary) / "copy"
                for one in filter(Path.is_file, finished.rglob("*")):  # copytree() would go on, and list every failure.
                    there = copied / one.relative_to(finished)
                    there.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(one, there)
                copied.rename(folder)
        if not file.is_file():
            files.write_atomically(file, FILE.read_bytes())
    return folder if finished is not None else file
