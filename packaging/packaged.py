"""Where the packaged programs begin: ``paretone`` and ``paretone-gui``, two names of one program.

Both also run one of Paretone's own modules, for :func:`paretone.own_process.command`: ``paretone -m MODULE …``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

GUI = "paretone-gui"


def restore_library_path() -> None:
    """Let what we start find the system's libraries: PyInstaller names its own folder, which only this process needs,
    and which it names again for each of our own processes."""
    name = "LD_LIBRARY_PATH"
    before = os.environ.pop(f"{name}_ORIG", "")
    if before:
        os.environ[name] = before
    else:
        os.environ.pop(name, None)


def main() -> int:
    """Run what was asked for; the exit code."""
    restore_library_path()
    if sys.argv[1:2] == ["-m"]:
        from paretone.own_process import run

        return run(sys.argv[2:])
    if Path(sys.argv[0]).name == GUI:
        from paretone_app.__main__ import main as gui

        return gui()
    from paretone.__main__ import main as command_line

    return command_line()


if __name__ == "__main__":
    sys.exit(main())
