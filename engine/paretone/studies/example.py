"""The example study, bundled with its finished results if they were made for the present models.

``paretone study example resources/studies/example.toml`` makes the results anew. The window opens a copy in the user's
folder, which can be run, extended and reported like any study; without results, only the file is copied. Torch-free.
"""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from paretone import files
from paretone.database import AUDIO
from paretone.errors import StudyError
from paretone.paths import resource
from paretone.studies import definition
from paretone.studies.results import Results, read
from paretone.studies.store import DATABASE
from paretone.studies.study import results_folder

FILE = resource("studies", "example.toml")
MOST_AUDIO_BYTES = 4_000_000
"""Maximum audio size of the example, which is part of every installation."""


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
    try:
        studies.mkdir(parents=True, exist_ok=True)
        if finished is not None and not (folder / DATABASE).is_file():
            with tempfile.TemporaryDirectory(dir=studies) as temporary:
                copied = shutil.copytree(finished, Path(temporary) / "copy", copy_function=shutil.copyfile)
                Path(copied).rename(folder)
        if not file.is_file():
            files.write_atomically(file, FILE.read_bytes())
    except OSError as error:
        raise StudyError(f"The example could not be copied to {studies}: {files.reason(error)}.") from error
    return folder if finished is not None else file


def pack(results: Path, target: Path, file: Path) -> Results:
    """Replace ``target`` by the finished results of the study in ``file``, without local folder names. Raises
    :class:`StudyError` if they are unfinished, or too large to bundle."""
    found = _finished(read(results), file)
    if target.is_symlink():
        raise StudyError(f"{target} is a symbolic link; delete the link, or choose another folder with --out.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        packed = Path(temporary) / "packed"
        (packed / AUDIO).mkdir(parents=True)
        for heard in found.heard.values():
            for one in heard:
                shutil.copyfile(one.path, packed / AUDIO / one.path.name)
        size = sum(one.stat().st_size for one in (packed / AUDIO).iterdir())
        if size > MOST_AUDIO_BYTES:
            raise StudyError(
                f"The example has {size / 1e6:.1f} MB of audio, and {MOST_AUDIO_BYTES / 1e6:g} MB are the most; give "
                f"{file.name} fewer settings or shorter sentences."
            )
        with closing(sqlite3.connect(results / DATABASE)) as source:
            source.execute("VACUUM INTO ?", (str(packed / DATABASE),))
        with closing(sqlite3.connect(packed / DATABASE)) as copy, copy:
            copy.execute("PRAGMA journal_mode = DELETE")
            copy.execute("UPDATE study SET file = ''")
        if target.exists():
            shutil.rmtree(target)
        packed.rename(target)
    return read(target)


def _finished(found: Results, file: Path) -> Results:
    """``found``, if every take of the study was made. Raises :class:`StudyError`."""
    study = definition.read(file)
    made = sum(one.finished for one in found.settings)
    problems = [*found.failures, *(one.problem for one in found.settings if one.problem), found.damage]
    problem = next(filter(None, problems), "")
    if problem or made < study.takes:
        left = f"{made} of {study.takes} takes are there"
        raise StudyError(f"The example is not finished: {problem or left}. Run the command again.")
    return found
