"""Two processes on one data folder: the first window comes to the front and opens what the second was given."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from PySide6.QtNetwork import QLocalSocket
from pytestqt.qtbot import QtBot

from paretone.database import LockedError, held
from paretone.errors import PlainError
from paretone.models import catalogue
from paretone_app.__main__ import answer_calls, open_path
from paretone_app.features.setup.presenter import SetupPresenter
from paretone_app.shell.only_window import LOCK, Calls, OpenAlready, first_on, socket_name
from tests.app.conftest import SMALL, MakeWindow, close, ready
from tests.app.features.dropping.test_dropping import made
from tests.app.features.export.test_export import exported
from tests.voices import FIRST as FIRST_VOICE
from tests.workload import only_in_full

ROOT = Path(__file__).parents[3]
PATIENCE = 300
FIRST = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication, QTimer
from paretone_app.shell.only_window import first_on

app = QCoreApplication([])
with first_on(Path(sys.argv[1]), "") as calls:
    def answer(profile):
        print("asked", profile, flush=True)
        return True
    calls.answer = answer
    print("first", flush=True)
    QTimer.singleShot(250_000, app.quit)
    app.exec()
"""


@contextmanager
def started(command: list[str], **more: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, **more)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def line(stream: IO[str], words: str) -> str:
    """The next line of ``stream`` that has ``words``."""
    for one in stream:
        if words in one:
            return one
    raise AssertionError(f"{words!r} was never said")


def program(folder: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "paretone_app", "--data", str(folder), *more]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "QT_QPA_PLATFORM": "offscreen", "PYTHONUNBUFFERED": "1"}


def ended(command: list[str], folder: Path) -> str:
    """What ``command`` says that is run in ``folder`` and succeeds."""
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def connected(folder: Path) -> QLocalSocket:
    socket = QLocalSocket()
    socket.connectToServer(socket_name(folder))
    assert socket.waitForConnected(5000)
    return socket


def test_a_second_one_hands_on_its_file_and_ends(tmp_path: Path, qapp) -> None:
    (tmp_path / "mine").mkdir()
    with started([sys.executable, "-c", FIRST, str(tmp_path / "data")]) as first:
        line(first.stdout, "first")
        with (
            pytest.raises(OpenAlready, match=r"its window comes to the front\. --data FOLDER"),
            first_on(tmp_path / "mine" / ".." / "data", ""),
        ):
            pass
        assert line(first.stdout, "asked").strip() == "asked"
        assert "and opens profile.json" in ended(program(tmp_path / "data", "profile.json"), tmp_path / "mine")
        assert line(first.stdout, "asked").strip() == f"asked {tmp_path / 'mine' / 'profile.json'}"
        with first_on(tmp_path / "other", "") as calls:
            assert calls is not None, "other data are another window's"


def test_what_a_killed_one_leaves_is_in_nobodys_way(tmp_path: Path, qapp) -> None:
    with started([sys.executable, "-c", FIRST, str(tmp_path)]) as first:
        line(first.stdout, "first")
        first.send_signal(signal.SIGKILL)
        first.wait()
        name = Path(socket_name(tmp_path))
        assert (tmp_path / LOCK).exists() and (sys.platform == "win32" or name.exists())
        with first_on(tmp_path, "") as calls:
            assert calls is not None and connected(tmp_path).isValid()
        with first_on(tmp_path, "") as calls:
            assert calls is not None, "nor is what one that ended by itself leaves"


def test_one_that_does_not_answer_is_said(tmp_path: Path, qapp) -> None:
    with held(tmp_path / LOCK), pytest.raises(PlainError, match="does not answer") as told, first_on(tmp_path, "", 0.5):
        pass
    assert told.value.exit_code == 1 and str(tmp_path) in str(told.value)


def test_one_that_is_closing_is_waited_for(tmp_path: Path, qapp) -> None:
    """It holds the folder until its engine has stopped, but says that it opens nothing any more."""
    code = FIRST.replace("return True", "QTimer.singleShot(500, app.quit); return False")
    with started([sys.executable, "-c", code, str(tmp_path)]) as first:
        line(first.stdout, "first")
        with first_on(tmp_path, "") as calls:
            assert calls is not None
        assert "asked" in first.stdout.read()
    (tmp_path / "file").write_text("", encoding="utf-8")
    with first_on(tmp_path / "file" / "data", "") as calls:
        assert calls is None, "where nothing can be written, nobody is kept out"


def test_rubbish_on_the_socket_is_ignored(tmp_path: Path, qapp, qtbot: QtBot) -> None:
    asked: list[str] = []
    with first_on(tmp_path, "") as calls:
        calls.answer = lambda profile: asked.append(profile) is None
        for rubbish in (b"\n", b"[]\n", b'{"path": 1}\n', b"\xff\xfe\n", b"x" * 70_000):
            socket = connected(tmp_path)
            socket.write(rubbish)
            qtbot.waitUntil(lambda socket=socket: socket.state() is QLocalSocket.LocalSocketState.UnconnectedState)
        assert asked == []
        socket = connected(tmp_path)
        socket.write(b'{"path": "a", "token": ""}\n')
        qtbot.waitUntil(lambda: asked == ["a"])


def test_the_window_comes_to_the_front_and_opens_what_it_is_given(
    make_window: MakeWindow, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recording at the start, before there is a panel, and everything else by later windows."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    window, calls = make_window(parts=f"{SMALL} strategy export profiles dropping"), Calls()
    recording = Path(shutil.copyfile(catalogue.voice(FIRST_VOICE).audio, tmp_path / "me.wav"))
    open_path(window, str(recording))
    ready(window, qtbot)
    choice = window.features.find(SetupPresenter).setup.voice_choice
    assert choice.recording.text() == str(recording) and choice.name.text() == "me"
    qtbot.waitUntil(choice.checking.isHidden)
    answer_calls(window, calls)
    profile = tmp_path / "mine.json"
    exported(window, profile)
    window.showMinimized()
    assert calls.answer(str(profile))
    qtbot.waitUntil(lambda: window.isVisible() and not window.isMinimized())
    assert "Opened mine.json" in window.notices.banner.text
    (tmp_path / "words.txt").write_text("Given on the command line.\n", encoding="utf-8")
    assert calls.answer(str(tmp_path / "words.txt"))
    assert window.state.selection.text == "Given on the command line."
    for name, said in (("gone.flac", "There is no file or folder"), ("a.png", "a.png cannot be used here")):
        made(tmp_path, "a.png")
        assert calls.answer(str(tmp_path / name)) and said in window.notices.banner.text
    # Where takes are kept in another folder from now on, that is its own, too.
    (tmp_path / "new").mkdir()
    window.features["takes"].move_data(tmp_path / "new")
    with pytest.raises(LockedError):
        Calls().take(tmp_path / "new")
    close(window, qtbot)
    assert not calls.answer(""), "it is on its way out"
    calls.close()


@only_in_full("repetitions")
@pytest.mark.timeout(600)
def test_two_windows(tmp_path: Path, qtbot: QtBot) -> None:
    """The real program, twice: the first opens the second's profile; a tour without a display runs next to them."""
    with started(program(tmp_path / "data", "--measure-start"), env=environment(), stderr=subprocess.PIPE) as first:
        line(first.stdout, "window painted")
        assert "is open already" in ended(program(tmp_path / "data", str(tmp_path / "none.json")), ROOT)
        assert first.poll() is None
        line(first.stdout, "ModelLoaded")
        with pytest.raises(OpenAlready), first_on(tmp_path / "data", ""):
            pass
