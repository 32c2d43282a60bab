"""``python -m tests.tools.example_study``: makes the results of the bundled example study anew, and packs them next to
its file, without folder names of this machine. ``python -m tests.tools.example_table`` makes their calibration.
"""

import argparse
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from paretone import cli
from paretone.database import AUDIO
from paretone.errors import StudyError
from paretone.paths import data_folder
from paretone.studies import definition
from paretone.studies.example import FILE
from paretone.studies.results import Results, read
from paretone.studies.store import DATABASE
from paretone.studies.study import results_folder

MOST_AUDIO_BYTES = 4_000_000
"""Maximum audio size of the example, which is part of every installation."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.example_study", description=__doc__)
    parser.add_argument("--file", type=Path, default=FILE, metavar="FILE", help="the study (default: the bundled one)")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="folder of the unpacked results")
    given = parser.parse_args(arguments)
    results = given.results or data_folder() / "studies" / f"{given.file.stem}-to-pack.study"
    code = cli.main(["study", "run", str(given.file), "--results", str(results)])
    if code == 0:
        pack(results, results_folder(given.file), given.file)
        print(f"Wrote {results_folder(given.file)}")
    return code


def pack(results: Path, target: Path, file: Path) -> Results:
    """Replace ``target`` by the finished results of the study in ``file``, without local folder names. Raises
    :class:`StudyError` if they are unfinished, or too large to bundle."""
    found = _finished(read(results), file)
    if target.is_symlink():
        raise StudyError(f"{target} is a symbolic link; delete the link, and try again.")
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


if __name__ == "__main__":
    sys.exit(main())
