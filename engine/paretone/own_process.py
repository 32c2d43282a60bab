"""This process: what it finds where it is started, put right before anything heavy is imported; and starting our own
modules in processes of their own, installed and packaged. Torch-free."""

from __future__ import annotations

import ctypes
import os
import runpy
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
"""Variables by which the maths libraries are told a number of threads, when they are loaded."""

KERNELS = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
"""Variables for the number of compiled kernels that oneDNN keeps, and of the objects that torch wraps them in; both are
read at the first convolution."""
KEPT_KERNELS = 64
"""The default of 1,024 fills up over some hundred takes, because every length of speech needs new kernels: up to 0.4 MB
per take, and no take was faster for them (``resources/docs/endurance.md``)."""

HEAPS = "MALLOC_ARENA_MAX"
"""Variable for the number of heaps that the C library of Linux makes for a program's threads."""
_MOST_HEAPS = -8


def wanted_threads(name: str = THREADS[0]) -> int | None:
    """The number of threads that the variable ``name`` asks for, at most as many as run at once: more of them wait for
    each other, and thousands exhaust the system. ``None`` if it does not say."""
    wanted = os.environ.get(name, "").strip()
    if not wanted.isdecimal() or not wanted.strip("0"):
        return None
    # Logical cores, because the user may want both hardware threads of each core.
    most = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return most if len(wanted) > 9 else min(int(wanted), most)


def cap_threads() -> None:
    """Let none of :data:`THREADS` ask for more threads than there are cores, also of processes that are started."""
    for name in THREADS:
        count = wanted_threads(name)
        if count is not None:
            os.environ[name] = str(count)


def cap_kernels() -> None:
    """Let oneDNN and torch keep :data:`KEPT_KERNELS`, unless the user says otherwise; also in processes that are
    started. Nothing changes after the process's first convolution."""
    for name in KERNELS:
        os.environ.setdefault(name, str(KEPT_KERNELS))


def share_one_heap() -> None:
    """Let all threads of this process share one heap, unless the user says otherwise; call it before they are started.

    The C library of Linux gives threads heaps of their own. What is free at the end of such a heap, up to 64 MB, it
    never gives back to the system; of the program's first heap it can give back everything
    (``resources/docs/endurance.md``). Elsewhere nothing is done.
    """
    if HEAPS not in os.environ:
        set_allocator({_MOST_HEAPS: 1})


def set_allocator(options: Mapping[int, int]) -> None:
    """Set options of Linux's C library for allocating memory, by the numbers that ``malloc.h`` has for them. Elsewhere
    nothing is done."""
    if sys.platform != "linux":
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # Other C libraries than GNU's have none.
    if set_option is not None:
        for option, value in options.items():
            set_option(option, value)


def require_working_folder() -> None:
    """Raise :class:`PlainError` if the folder in which the program was started has been deleted: the maths library
    would end the process without a word of ours."""
    from paretone.errors import PlainError  # Here: signals are our own only after this module is imported.

    try:
        os.getcwd()
    except OSError:
        raise PlainError(
            "The folder in which this was started does not exist any more; change to another one and start it there."
        ) from None


def leave_deleted_folder() -> None:
    """Work in the user's home folder where the folder in which the program was started has been deleted."""
    from paretone.errors import PlainError

    try:
        require_working_folder()
    except PlainError:
        os.chdir(Path.home())


# --- Starting our own modules -----------------------------------------------------------------------------------------
# The packaged program (packaging/freeze.py) has no interpreter that could be started with a file: there the program
# itself is started, and runs the module.
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
