"""A disk that is soon full, one that can only be read, and open files that have no name."""

import contextlib
import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tiny_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A disk of 512 KiB, or of the parameter's ``size``; skipped where none can be mounted."""
    yield from _mounted(tmp_path / "disk", getattr(request, "param", "size=512k"))


@pytest.fixture
def read_only_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk that can only be read, by root as well; skipped where none can be mounted."""
    yield from _mounted(tmp_path / "disk", "ro,size=512k")


def _mounted(folder: Path, options: str) -> Iterator[Path]:
    folder.mkdir()
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("mounting a disk takes root on Linux")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("this system mounts no disks")
    yield folder
    gc.collect()  # A caught error may hold what read files of the disk.
    subprocess.run(["umount", str(folder)], check=True)


counts_open_files = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="counts open files as Linux lists them"
)


def unnamed_files(folder: Path) -> int:
    """The number of files without a name that this process has open in ``folder``."""
    links = []
    for one in os.scandir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            links.append(os.readlink(one.path))
    return sum(one.startswith(f"{folder}/") and one.endswith("(deleted)") for one in links)
