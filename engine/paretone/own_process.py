"""Starting Paretone's own modules in processes of their own, installed and packaged. Torch-free.

The packaged program (``packaging/freeze.py``) has no interpreter that could be started with a file: there the program
itself is started, and runs the module.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from importlib.util import find_spec

OURS = ("paretone", "paretone_app")
"""The packages whose modules are run."""


def packaged() -> bool:
    """Whether this is the packaged program, to which nothing can be added."""
    return bool(getattr(sys, "frozen", False))


def command(module: str, *arguments: str) -> list[str]:
    """The command that runs ``module``, one of ours, as a script.

    Where Paretone is installed the module's file is run, without its folder on the path: its modules must not hide
    those of the standard library.
    """
    if packaged():
        return [sys.executable, "-m", module, *arguments]
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"There is no module {module}.", name=module)
    return [sys.executable, "-P", spec.origin, *arguments]


def run(arguments: Sequence[str]) -> int:
    """In the packaged program: run the module that :func:`command` named, with its arguments; the exit code."""
    module = arguments[0] if arguments else ""
    if module.partition(".")[0] not in OURS:
        print(f"-m runs modules of Paretone alone, not {module!r}.", file=sys.stderr)
        return 2
    sys.argv = [sys.executable, *arguments[1:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0
