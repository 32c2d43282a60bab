"""Files appear whole or not at all."""

from __future__ import annotations

import errno
import io
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from engine import files


def test_a_new_file_gets_the_users_permissions(tmp_path: Path) -> None:
    path = tmp_path / "new"
    before = os.umask(0o027)
    try:
        files.write_atomically(path, b"content")
    finally:
        os.umask(before)
    assert path.read_bytes() == b"content"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_bytes(b"old")
    path.chmod(0o600)
    files.write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    code = (
        "import pathlib, resource, signal\n"
        "from engine import files\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n"
        f"    files.write_atomically(pathlib.Path({str(path)!r}), b'x' * 2000)\n"
        "except OSError as error:\n"
        "    print(files.reason(error))\n"
    )
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "the file would be larger than is allowed here"
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_missing_folder_is_named_as_the_reason(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        files.write_atomically(tmp_path / "missing" / "file", b"")
    assert files.reason(caught.value) == "its folder does not exist; create it or choose another"


def test_an_unknown_reason_is_quoted() -> None:
    assert "Input/output error" in files.reason(OSError(errno.EIO, os.strerror(errno.EIO)))


@pytest.mark.parametrize("length", [0, 1, 24_001])
def test_a_wav_file_holds_exactly_the_samples(length: int) -> None:
    samples = np.random.default_rng(length).standard_normal(length).astype(np.float32)
    content = files.wav(samples, 24_000)
    read, rate = soundfile.read(io.BytesIO(content), dtype="float32")
    assert rate == 24_000
    assert np.array_equal(read, samples)
    assert soundfile.info(io.BytesIO(content)).subtype == "FLOAT"
    assert content == files.wav(samples.copy(), 24_000)
