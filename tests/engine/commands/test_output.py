"""Where commands write: places are checked first; closed or full streams give a sentence, never a traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from paretone import files
from paretone.commands import output
from paretone.errors import PlainError
from paretone.studies.store import Store
from tests.engine.command_line import Console
from tests.engine.studies.small import study


def test_a_disk_that_can_only_be_read_is_no_place_for_files(read_only_disk: Path) -> None:
    with pytest.raises(PlainError, match=r"a\.csv cannot be written: that disk can only be read; choose another"):
        output.writable(read_only_disk / "a.csv")
    with pytest.raises(PlainError, match=r"Cannot write to the folder .*: that disk can only be read"):
        output.folder(str(read_only_disk))
    with pytest.raises(PlainError, match="could not be created: that disk can only be read"):
        output.folder(str(read_only_disk / "new"))


def test_of_a_link_the_target_is_said_and_the_true_reason(read_only_disk: Path, tmp_path: Path) -> None:
    reasons = {
        read_only_disk / "a.wav": "that disk can only be read; choose another folder",
        tmp_path / "none" / "a.wav": "its folder does not exist; create it or choose another",
        Path("/proc/a.wav"): "nothing can be made in the folder /proc; choose another",
    }
    for number, (place, reason) in enumerate(reasons.items()):
        link = tmp_path / f"{number}.wav"
        link.symlink_to(place)
        with pytest.raises(PlainError) as before:
            output.writable(link)
        assert str(before.value) == f"{link} cannot be written: it is a link to {place}: {reason}."
        with pytest.raises(PlainError) as at_last:
            files.write(link, b"")
        assert str(at_last.value) == f"{link} could not be written: it is a link to {place}: {reason}."
    with pytest.raises(PlainError, match=r"^/proc/a.wav cannot be written: nothing can be made in the folder /proc"):
        output.writable("/proc/a.wav")


@pytest.mark.parametrize("inside", ["", "within"])
def test_a_file_is_no_folder(tmp_path: Path, inside: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PlainError, match=f"^{tmp_path}/file is a file; give the name of a folder.$"):
        output.place_for_folder(tmp_path / "file" / inside)


def test_looking_leaves_nothing_behind(tmp_path: Path) -> None:
    table = tmp_path / "view.csv"
    table.write_text("mine")
    assert output.writable(table) == table
    assert output.folder(str(tmp_path)) == tmp_path
    assert [one.name for one in tmp_path.iterdir()] == ["view.csv"]
    assert table.read_text() == "mine"


# --- Standard streams -------------------------------------------------------------------------------------------------
needs_a_shell = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/dev/full and streams of a shell")
PARETONE = f"{sys.executable} -m paretone"


def run(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)


@needs_a_shell
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("models --json >&-", 1, "Standard output is closed"),
        ("models >/dev/full", 1, "could not be written to standard output: the disk is full; free some space."),
        ("speak --help >/dev/full", 1, "could not be written to standard output: the disk is full"),
        ("models >&- 2>&-", 1, ""),
        ("dance 2>/dev/full", 2, ""),
    ],
)
def test_streams_that_take_nothing(arguments: str, code: int, words: str) -> None:
    done = run(f"{PARETONE} {arguments}")
    assert done.returncode == code
    assert words in done.stderr if words else done.stderr == ""
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


@needs_a_shell
def test_results_arrive_without_the_other_streams() -> None:
    """And what a library says on a closed standard error is not written into files: none takes its place."""
    done = run(f"{PARETONE} models --json 2>&- <&-")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["models"]
    code = "from paretone.commands import output; output.prepare(); print(open('/dev/null').fileno() > 2)"
    assert run(f'{sys.executable} -c "{code}" <&- 2>&-').stdout == "True\n"
    master, terminal = os.openpty()
    with subprocess.Popen([sys.executable, "-m", "paretone", "models"], stdout=terminal) as process:
        os.close(master)
    os.close(terminal)
    assert process.returncode == 0, "a terminal that was closed is a reader that has stopped"


HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202ename"


def test_names_control_no_terminal(tmp_path: Path, console: Console) -> None:
    """In sentences, in results, and in what a parser says."""
    said = console("study", "status", f"/nowhere/{HOSTILE}", "--json")
    assert said.code and not any(one in said.out for one in "\x1b\x07\u202e") and HOSTILE in said.data["error"]
    with Store(tmp_path / "s") as store:
        store.begin(study(title=f"Title {HOSTILE}"))
    told = console.out("study", "status", tmp_path / "s")
    assert "Title \\u001b]0;owned\\u0007" in told and "\x1b" not in told
    done = subprocess.run([sys.executable, "-m", "paretone", HOSTILE], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "owned" in done.stderr and not any(one in done.stderr for one in "\x1b\x07\u202e")
