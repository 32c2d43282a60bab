"""Our own modules in processes of their own."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from paretone import own_process
from paretone.own_process import HEAPS, KERNELS, command, packaged, run
from tests.engine.command_line import Console
from tests.workload import workload

SENTENCE = "-m runs modules of Paretone alone"


def test_an_installed_module_is_run_by_its_file_from_any_folder(tmp_path: Path) -> None:
    done = subprocess.run(command("paretone.audio.sound_system"), cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("paretone-sound:")
    with pytest.raises(ModuleNotFoundError):
        command("engine.no_such_module")


def test_a_packaged_program_runs_it_itself(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert not packaged()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "argv", ["paretone"])
    assert command("paretone.audio.sound_system", "x") == [sys.executable, "-m", "paretone.audio.sound_system", "x"]
    assert run(["paretone.audio.sound_system"]) == 0
    assert capsys.readouterr().out.startswith("paretone-sound:")
    for others in ([], ["json.tool"], ["enginee"]):
        assert run(others) == 2
        assert SENTENCE in capsys.readouterr().err


def test_no_other_place_starts_this_interpreter() -> None:
    """Where the packaged program cannot, there is a sentence: see :mod:`paretone.extras`."""
    root = Path(own_process.__file__).parents[2]
    starting = {
        path.relative_to(root).as_posix()
        for folder in ("app", "engine")
        for path in (root / folder).rglob("*.py")
        if "sys.executable" in path.read_text(encoding="utf-8")
    }
    # remote/ssh.py has the script that installs Paretone on a host, whose interpreter it means.
    assert starting == {f"engine/paretone/{one}" for one in ("own_process.py", "extras.py", "remote/ssh.py")}


ROOT = Path(__file__).resolve().parents[2]
LOGICAL = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
SPOKEN = "--text", "Hello.", "--out", "a.wav"


def started(code: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


def test_a_process_ends_with_its_parent() -> None:
    names = "import concurrent.futures, multiprocessing, os, time; from paretone.own_process import end_with_parent"
    pool = "concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context('spawn'), end_with_parent)"
    code = f"{names}; pool = {pool}; print(pool.submit(os.getpid).result(), flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert int(parent.stdout.readline()) != parent.pid
        parent.kill()
        assert parent.stdout.read() == "", "nobody holds it open"


def test_thousands_of_threads_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "9999")
    own_process.cap_threads()
    assert os.environ["OMP_NUM_THREADS"] == os.environ["OPENBLAS_NUM_THREADS"] == str(LOGICAL)


HELD = """
import ctypes, gc
library = ctypes.CDLL(None)
def held():
    gc.collect()
    library.malloc_trim(0)
    lines = open("/proc/self/smaps_rollup").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:")) / 1000
"""
CONVOLUTIONS = f"""
import torch
import paretone
{HELD}
torch.set_num_threads(1)
layer = torch.nn.Conv1d(64, 64, 7, padding=3, groups=64)
with torch.inference_mode():
    for length in range(200, 500):
        layer(torch.zeros(1, 64, length))
        if length == 300:
            before = held()
print(held() - before)
"""
"""Three hundred lengths of speech in a process that has imported torch first; what the last two hundred left, in MB."""


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="is of GNU's C")
def test_every_length_of_speech_leaves_nothing_unless_the_user_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in KERNELS:
        monkeypatch.delenv(name, raising=False)

    def left(**given: str) -> float:
        return float(started(CONVOLUTIONS, tmp_path, **given).stdout)

    assert left() < 1.0
    for name in workload(KERNELS, ()):  # Each of the two keeps what it may.
        assert left(**{name: "1024"}) > 2.0


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="is of GNU's C")
def test_what_threads_have_freed_can_be_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four threads fill 80 MB each and free it, as the engine's thread and those that analyse do."""
    monkeypatch.delenv(HEAPS, raising=False)
    code = f"""{HELD}
import threading
from paretone.own_process import keep_freed_memory, share_one_heap
share_one_heap()
keep_freed_memory()
library.malloc.restype = ctypes.c_void_p
library.free.argtypes = (ctypes.c_void_p,)
def work():
    blocks = [library.malloc(20_000_000) for _ in range(4)]
    for block in blocks:
        ctypes.memset(block, 1, 20_000_000)
    for block in blocks:
        library.free(block)
    done.set()
    over.wait()
before, over = held(), threading.Event()
for _ in range(4):
    done = threading.Event()
    threading.Thread(target=work).start()
    done.wait()
print(held() - before)
over.set()
"""
    assert float(started(code, tmp_path).stdout) < 10.0
    assert float(started(code, tmp_path, **{HEAPS: "8"}).stdout) > 100.0, "as the user says"


@pytest.fixture
def deleted_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To work in."""
    if os.name == "nt":
        pytest.skip("Windows keeps a folder that somebody works in")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()


@pytest.mark.usefixtures("deleted_folder")
def test_a_deleted_working_folder_is_said(console: Console) -> None:
    for arguments in (["speak", "--text", "Hello.", "--json"], ["models", "--json"], ["bench"]):
        said = console(*arguments)
        assert said.code == 1 and "Traceback" not in said.err
        assert "does not exist any more; change to another one" in said.err
        assert "--json" not in arguments or said.data["exit_code"] == 1


@pytest.mark.usefixtures("deleted_folder")
def test_the_window_goes_home_from_a_deleted_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    own_process.leave_deleted_folder()
    assert os.getcwd() == os.path.realpath(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("kind", "arguments", "code"),
    [
        ("pipe", ("speak", "--profile", "PLACE", *SPOKEN), 6),
        ("device", ("speak", "--text-file", "PLACE", "--out", "a.wav"), 3),
        ("pipe", ("study", "run", "PLACE"), 10),
        ("device", ("speak", "--voice", "PLACE", "--transcript", "Hello.", *SPOKEN), 4),
        ("pipe", ("speak", "--folder", "PLACE", *SPOKEN), 5),
    ],
)
def test_a_pipe_or_a_device_is_refused(
    tmp_path: Path, arguments: tuple, code: int, kind: str, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading it would wait for ever, or take all memory."""
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "place.safetensors"
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/zero")
    said = console.refusal(*(place if one == "PLACE" else one for one in arguments), code=code)
    assert f"it is a {kind}; choose a regular file" in said and "Traceback" not in said
