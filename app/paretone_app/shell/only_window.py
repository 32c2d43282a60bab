"""One window per data folder: a second one passes its arguments to the first and ends. A lock in the folder decides who
is first; it ends with its process. The first listens on a local socket that only this user can reach."""

import contextlib
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from PySide6.QtCore import QObject, QStandardPaths
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from paretone.database import LockedError, held
from paretone.errors import PlainError, SettingError
from paretone.files import write_atomically
from paretone.paths import data_folder
from paretone.reading import readable


def chosen_folder() -> Path:
    """The folder chosen last, or the default one if the choice is missing or unreadable."""
    try:
        folder = Path(_file().read_text("utf-8").strip())
        return folder if folder.is_absolute() and folder.is_dir() else data_folder()
    except (OSError, ValueError):
        return data_folder()


def choose_folder(folder: Path) -> str:
    """Use ``folder`` from the next start on. Returns a note for the user, or ``""``. Raises :class:`SettingError`."""
    problem = f"Nothing can be written to {folder}"
    with readable(SettingError, problem, "choose another folder"), tempfile.TemporaryFile(dir=folder):
        pass
    try:
        _file().parent.mkdir(parents=True, exist_ok=True)
        write_atomically(_file(), f"{folder.absolute()}\n".encode())
    except OSError as error:
        return f"That holds for this session only: {_file()} cannot be written ({error.strerror})."
    return ""


def _file() -> Path:
    place = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.GenericConfigLocation)
    return Path(place) / "paretone" / "data-folder"


LOCK = "window.lock"
_ANSWER_MILLISECONDS = 5000
_LONGEST = 65_536
_YES, _NO = b"yes\n", b"no\n"


class OpenAlready(PlainError):
    """Another window uses the data folder and comes to the front."""

    exit_code = 0


class Calls(QObject):
    """Requests from later windows to this one, the first on its folder."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: Callable[[str], bool] = lambda path: False
        """Come to the front and open the path, unless it is empty; returns whether that is done."""
        self._servers: list[QLocalServer] = []
        self._locks = contextlib.ExitStack()

    def take(self, folder: Path) -> None:
        """Become the first on ``folder``. Raises :class:`paretone.database.LockedError` if another window is, and
        :class:`OSError` if the folder is not writable."""
        folder.mkdir(parents=True, exist_ok=True)
        self._locks.enter_context(held(folder / LOCK))
        server, name = QLocalServer(self), socket_name(folder)
        server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        QLocalServer.removeServer(name)  # Left by a killed process: the lock's holder has no rival.
        server.newConnection.connect(lambda: self._listen(server))
        if server.listen(name):
            self._servers.append(server)

    def close(self) -> None:
        for server in self._servers:
            server.close()
        self._locks.close()

    def _listen(self, server: QLocalServer) -> None:
        while (socket := server.nextPendingConnection()) is not None:
            socket.readyRead.connect(lambda one=socket: self._read(one))
            socket.disconnected.connect(socket.deleteLater)
            self._read(socket)

    def _read(self, socket: QLocalSocket) -> None:
        if socket.bytesAvailable() > _LONGEST:
            socket.abort()
        elif socket.canReadLine():
            try:
                asked = json.loads(bytes(socket.readLine().data()))
                path, token = str(asked["path"]), str(asked["token"])
            except (ValueError, KeyError, TypeError):
                socket.abort()
                return
            if token:
                os.environ["XDG_ACTIVATION_TOKEN"] = token  # Wayland requires it to give the focus.
            socket.write(_YES if self.answer(path) else _NO)
            socket.flush()
            socket.disconnectFromServer()


@contextlib.contextmanager
def first_on(folder: Path, path: str, patience: float = 15.0) -> Iterator[Calls | None]:
    """Be the first window on ``folder``; yields ``None`` if the folder is not writable, which leaves it undecided.
    If another window is first, have it come to the front and open ``path``, if any: raises :class:`OpenAlready`
    then, and :class:`PlainError` if it does not answer for ``patience`` seconds: it may be starting or closing."""
    folder, calls = folder.absolute(), Calls()
    until = time.monotonic() + patience
    while True:
        try:
            calls.take(folder)
        except OSError:
            yield None
            return
        except LockedError:
            if _called(folder, path):
                opens = f" and opens {Path(path).name}" if path else ""
                raise OpenAlready(
                    f"Paretone is open already on the data in {folder}: its window comes to the front{opens}. "
                    "--data FOLDER opens one on other data."
                ) from None
            if time.monotonic() > until:
                raise PlainError(
                    f"Paretone is running already on the data in {folder}, and does not answer. End it, or give other "
                    "data with --data FOLDER."
                ) from None
            time.sleep(0.2)
        else:
            break
    try:
        yield calls
    finally:
        calls.close()


def _called(folder: Path, path: str) -> bool:
    socket = QLocalSocket()
    socket.connectToServer(socket_name(folder))
    if not socket.waitForConnected(_ANSWER_MILLISECONDS):
        return False
    asked = {"path": str(Path(path).absolute()) if path else "", "token": os.environ.get("XDG_ACTIVATION_TOKEN", "")}
    socket.write(json.dumps(asked).encode() + b"\n")
    answer = b""
    while not answer.endswith(b"\n") and socket.waitForReadyRead(_ANSWER_MILLISECONDS):
        answer += bytes(socket.readAll().data())
    socket.abort()
    return answer == _YES


def socket_name(folder: Path) -> str:
    """Socket name for a folder; outside Windows a file that only this user can reach."""
    name = f"paretone-{hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]}"
    private = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.RuntimeLocation)
    path = str(Path(private) / name)
    # Every system accepts paths of 103 bytes.
    return path if private and sys.platform != "win32" and len(os.fsencode(path)) < 104 else name
