"""What the makers of bundled resources share: the option ``--export``, and the teacher's licence."""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

from paretone.errors import PlainError
from paretone.files import write_atomically


def run(name: str, about: str | None, export: Callable[[Path], None], arguments: Sequence[str] | None) -> int:
    """Call ``export`` with the folder of ``--export``; returns the exit code."""
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=about)
    parser.add_argument("--export", type=Path, required=True, metavar="DIR", help="folder to write to")
    try:
        export(parser.parse_args(arguments).export)
    except PlainError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def write_licence(folder: Path) -> None:
    """Copy the licence and the notice of the teacher's package."""
    for file in metadata.files("hibari-tts") or ():
        if file.name in ("LICENSE", "NOTICE"):
            write_atomically(folder / file.name, file.read_binary())
