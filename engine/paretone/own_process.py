"""This process: fixes of its environment before heavy imports; and starting our own modules in separate processes,
installed or packaged. Torch-free."""

from __future__ import annotations

import ctypes
import json
import os
import runpy
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Cancel what runs: Ctrl-C, a request to end, and a terminal that is closed."""


@contextmanager
def handling(handle: Callable[[int], None]) -> Iterator[None]:
    """Call ``handle`` with the number of each received signal of :data:`SIGNALS`. Ignored signals stay ignored, as
    ``nohup`` requires. Python delivers signals to the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heeded = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda number, frame: handle(number)) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
"""Variables that set the thread counts of maths libraries when these are loaded."""

KERNELS = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
"""Variables for the numbers of kernels cached by oneDNN, and by torch around them; read at the first convolution."""
KEPT_KERNELS = 64
"""The default of 1,024 fills up over some hundred takes, because every length of speech needs new kernels: up to 0.4 MB
per take, and no take was faster for them (``resources/docs/endurance.md``)."""

HEAPS = "MALLOC_ARENA_MAX"
"""Variable for the number of heaps that Linux's C library makes for a program's threads."""
_LOOK_SECONDS = 0.2
"""Seconds between looks at whether the work is to stop."""
_MOST_HEAPS, _MOST_KEPT, _LARGEST_KEPT = -8, -1, -3
"""``M_ARENA_MAX``, ``M_TRIM_THRESHOLD`` and ``M_MMAP_THRESHOLD`` of ``malloc.h``; 32 MiB is the maximum of the last."""


def wanted_threads(name: str = THREADS[0]) -> int | None:
    """Number of threads in the variable ``name``, at most the number that run at once: more would wait for each other,
    and thousands exhaust the system. ``None`` if not set."""
    wanted = os.environ.get(name, "").strip()
    if not wanted.isdecimal() or not wanted.strip("0"):
        return None
    # Logical cores, because the user may want both hardware threads of each core.
    most = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return most if len(wanted) > 9 else min(int(wanted), most)


def cap_threads() -> None:
    """Limit :data:`THREADS` to the number of cores, also for child processes."""
    for name in THREADS:
        count = wanted_threads(name)
        if count is not None:
            os.environ[name] = str(count)


def cap_kernels() -> None:
    """Let oneDNN and torch cache :data:`KEPT_KERNELS`, unless the user overrides it; also in child processes. No effect
    after the process's first convolution."""
    for name in KERNELS:
        os.environ.setdefault(name, str(KEPT_KERNELS))


def share_one_heap() -> None:
    """Let all threads of this process share one heap, unless the user overrides it; call it before starting them.
    Linux's C library gives threads their own heaps, whose free ends, up to 64 MB each, are never returned to the
    system; the program's first heap can be returned completely (``resources/docs/endurance.md``). No-op elsewhere."""
    if HEAPS not in os.environ:
        set_allocator({_MOST_HEAPS: 1})


def keep_freed_memory() -> None:
    """Let this process keep freed memory, up to a quarter of a gigabyte, for reuse. Linux's C library would return it
    to the system and request it again many times a second while a network runs, and the system clears every page before
    handing it out. No-op elsewhere."""
    set_allocator({_LARGEST_KEPT: 32 << 20, _MOST_KEPT: 256 << 20})


def set_allocator(options: Mapping[int, int]) -> None:
    """Set allocation options of Linux's C library, by their numbers in ``malloc.h``. No-op elsewhere."""
    if sys.platform != "linux":
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # Only GNU's C library has it.
    if set_option is not None:
        for option, value in options.items():
            set_option(option, value)


def end_with_parent() -> None:
    """End this process of :mod:`multiprocessing` once its parent has ended, also by a kill; leave Ctrl-C to that."""
    import multiprocessing

    def wait() -> None:
        if (parent := multiprocessing.parent_process()) is not None:
            parent.join()
            os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=wait, daemon=True).start()


def require_working_folder() -> None:
    """Raise :class:`PlainError` if the program's working folder has been deleted: a maths library would otherwise
    end the process without our message."""
    from paretone.errors import PlainError  # Here: signals are our own only after this module is imported.

    try:
        os.getcwd()
    except OSError:
        raise PlainError(
            "The folder in which this was started does not exist any more; change to another one and start it there."
        ) from None


def leave_deleted_folder() -> None:
    """Change to the user's home folder if the program's working folder has been deleted."""
    try:
        os.getcwd()
    except OSError:
        os.chdir(Path.home())


# --- Starting our own modules -----------------------------------------------------------------------------------------
# The packaged program (packaging/freeze.py) has no interpreter for files: it starts itself and runs the module.
OURS = ("paretone", "paretone_app")
"""Packages whose modules may be run."""


def packaged() -> bool:
    """Whether this is the packaged program, which cannot be extended."""
    return bool(getattr(sys, "frozen", False))


def command(module: str, *arguments: str) -> list[str]:
    """Command that runs ``module``, one of ours, as a script. If Paretone is installed, the module's file is run
    without its folder on the path: its modules must not hide those of the standard library."""
    if packaged():
        return [sys.executable, "-m", module, *arguments]
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"There is no module {module}.", name=module)
    return [sys.executable, "-P", spec.origin, *arguments]


def said_by(module: str, *arguments: str, given: bytes = b"", longest: float = 120.0) -> bytes:
    """Output of ``module``, run as a script with ``given`` on its standard input, within the ``longest`` seconds. It is
    killed when the work is to stop. Raises :class:`OSError` and :class:`subprocess.SubprocessError`."""
    import subprocess  # On use, as few programs need them.
    from tempfile import TemporaryFile

    from paretone.observer import may_stop

    started, out, quiet = command(module, *arguments), subprocess.PIPE, subprocess.DEVNULL
    with TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        with subprocess.Popen(started, stdin=file, stdout=out, stderr=quiet) as child:
            try:
                for _ in range(round(longest / _LOOK_SECONDS)):
                    with suppress(subprocess.TimeoutExpired):
                        said = child.communicate(timeout=_LOOK_SECONDS)[0]
                        if child.returncode:
                            raise subprocess.CalledProcessError(child.returncode, started)
                        return said
                    may_stop()
                raise subprocess.TimeoutExpired(started, longest)
            finally:
                child.kill()


def heard_apart(module: str, raw: bytes, words: Sequence[str], here: Callable[[bytes, Sequence[str]], Any]) -> Any:
    """What ``here`` hears of ``words`` in ``raw`` samples. Off the main thread the programme ``module`` listens, given
    words and samples."""
    import subprocess

    if threading.current_thread() is not threading.main_thread():
        with suppress(OSError, subprocess.SubprocessError, ValueError):
            return json.loads(said_by(module, given=json.dumps(list(words)).encode() + b"\n" + raw))
    return here(raw, words)


def run(arguments: Sequence[str]) -> int:
    """In the packaged program: run the module named by :func:`command` with its arguments; returns the exit code."""
    module = arguments[0] if arguments else ""
    if module.partition(".")[0] not in OURS:
        print(f"-m runs modules of Paretone alone, not {module!r}.", file=sys.stderr)
        return 2
    sys.argv = [sys.executable, *arguments[1:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0
