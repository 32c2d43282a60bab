"""Files appear whole or not at all; a lock is held by one process, waited for by others, let go of by one that dies."""

import io
import os
import resource
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone import files
from paretone.database import LockedError, held
from paretone.errors import Cancelled, PlainError


def test_a_new_file_gets_the_users_permissions_and_a_replaced_one_keeps_its_own(tmp_path: Path) -> None:
    path = tmp_path / "new"
    before = os.umask(0o027)
    try:
        files.write_atomically(path, b"content")
    finally:
        os.umask(before)
    assert path.read_bytes() == b"content"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o600)
    files.write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    code = (
        "import pathlib, resource, signal\n"
        "from paretone import files\n"
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


def test_a_wav_file_holds_exactly_the_samples() -> None:
    samples = np.random.default_rng(0).standard_normal(24_001).astype(np.float32)
    content = files.wav(samples, 24_000)
    read, rate = soundfile.read(io.BytesIO(content), dtype="float32")
    assert rate == 24_000
    assert np.array_equal(read, samples)
    assert soundfile.info(io.BytesIO(content)).subtype == "FLOAT"
    assert content == files.wav(samples.copy(), 24_000)


# --- Files that the user named: links, pipes, devices -----------------------------------------------------------------
def test_the_target_of_a_link_is_written_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link, chain = tmp_path / "elsewhere" / "target", tmp_path / "link", tmp_path / "chain"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to("elsewhere/target")
    chain.symlink_to(link)
    files.write(chain, b"new")
    assert target.read_bytes() == b"new" and stat.S_IMODE(target.stat().st_mode) == 0o640
    assert link.is_symlink() and chain.is_symlink()
    assert os.listdir(tmp_path / "elsewhere") == ["target"]
    target.unlink()
    files.write(chain, b"newer")
    assert link.is_symlink() and target.read_bytes() == b"newer"
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(PlainError, match="leads back to itself"):
        files.write(tmp_path / "circle", b"new")


def test_a_study_or_library_does_not_write_through_links(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"theirs")
    link.symlink_to(target)
    files.write_atomically(link, b"ours")
    assert target.read_bytes() == b"theirs" and not link.is_symlink()


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    pipe, link, content = tmp_path / "pipe", tmp_path / "link", os.urandom(300_000)
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with files.waiting_for_readers(lambda _: None):
        files.write(link, content)
    reader.join()
    assert read == [content]
    assert stat.S_ISFIFO(pipe.stat().st_mode) and link.is_symlink()


def test_a_pipe_that_nobody_reads_is_refused_by_a_window_and_awaited_by_a_command(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(PlainError, match="nobody reads from this pipe; start its reader first"):
        files.write(pipe, b"content")
    said = []

    def wait(sentence: str) -> None:
        said.append(sentence)
        if len(said) == 3:
            raise Cancelled

    with files.waiting_for_readers(wait), pytest.raises(Cancelled):
        files.write(pipe, b"content")
    assert said == [f"Waiting for a reader of {pipe}"] * 3
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_reader_that_pauses_can_be_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    def wait(sentence: str) -> None:
        raise Cancelled(sentence)

    with files.waiting_for_readers(wait), pytest.raises(Cancelled, match="Waiting for the reader of"):
        files.write(pipe, b"x" * 1_000_000)
    os.close(reading)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    monkeypatch.setattr(files, "PATIENCE_SECONDS", 0.0)
    with pytest.raises(PlainError, match="could not be written: its reader does not read on"):
        files.write(pipe, b"x" * 1_000_000)
    os.close(reading)


def test_a_device_is_written_into(tmp_path: Path) -> None:
    device = tmp_path / "device"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.stat(os.devnull).st_rdev)
        device.write_bytes(b"")
    except OSError:
        pytest.skip("devices can be made by root only")
    for write in (files.write, files.write_through):
        write(device, b"content")
        assert stat.S_ISCHR(device.stat().st_mode)
    assert os.listdir(tmp_path) == ["device"]


def test_a_full_device_says_so() -> None:
    with pytest.raises(PlainError, match="/dev/full could not be written: the disk is full"):
        files.write(Path("/dev/full"), b"content")


@pytest.mark.parametrize(("kind", "words"), [("folder", "it is a folder"), ("socket", "it is a socket")])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str, words: str) -> None:
    path = tmp_path / kind
    if kind == "folder":
        path.mkdir()
    else:
        socket.socket(socket.AF_UNIX).bind(str(path))
    with pytest.raises(PlainError, match=words):
        files.write(path, b"content")
    assert os.listdir(tmp_path) == [kind]


# --- Locks ------------------------------------------------------------------------------------------------------------
HOLDER = """
import sys
from pathlib import Path
from paretone.database import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def start(path: Path) -> subprocess.Popen:
    """Another process that holds ``path`` until it is told to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    return process


def test_what_another_process_holds_is_taken_until_it_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    other = start(path)
    with pytest.raises(LockedError), held(path):
        pass
    waited: list[int] = []

    def waiting() -> None:
        waited.append(1)
        if len(waited) == 2:
            other.stdin.close()

    with held(path, waiting):
        assert len(waited) >= 2
        assert other.wait() == 0


def test_a_process_that_dies_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    other = start(path)
    other.kill()
    other.wait()
    with held(path):
        pass


def test_a_place_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="could not be held"), held(tmp_path / "none" / "lock"):
        pass
