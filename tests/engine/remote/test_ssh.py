"""The way to a host by OpenSSH: a real ``sshd`` on the loopback, with its own port, keys and configuration."""

import asyncio
import getpass
import json
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="msgspec comes with the extra serve")

from paretone.paths import CHECKOUT
from paretone.remote import INSTALL, LinkError
from paretone.remote.client import RemoteEngine
from paretone.remote.ssh import SshHost, SshLink, install
from paretone.session import commands, events
from tests.engine.recorder import Recorder
from tests.workload import only_in_full, workload

SSHD = shutil.which("sshd") or shutil.which("/usr/sbin/sshd")
pytestmark = pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None, reason="sshd and ssh are not installed here (openssh-server)"
)


class Sshd:
    def __init__(self, folder: Path, more: str = "") -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        for name in ("host", "mine", "other"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        shutil.copy(folder / "mine.pub", folder / "authorized")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        enter = f'cd {self.home} && export HOME={self.home} && sh -c "$SSH_ORIGINAL_COMMAND"'
        (folder / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile {folder}/pid\nUsePAM no\n"
            f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nPasswordAuthentication no\n"
            f"KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nForceCommand {enter}\n{more}"
        )
        (folder / "known").write_text(f"[127.0.0.1]:{self.port} {(folder / 'host.pub').read_text()}")
        (folder / "config").write_text(
            f"Host gpu\n  HostName 127.0.0.1\n  Port {self.port}\n  User {getpass.getuser()}\n  IdentitiesOnly yes\n"
            f"  IdentityFile {folder}/mine\n  UserKnownHostsFile {folder}/known\n"
        )
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        self.process = self._run()

    def _run(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", self.folder / "sshd_config"], stderr=subprocess.DEVNULL, start_new_session=True
        )
        for _ in range(200):
            with socket.socket() as trying:
                if trying.connect_ex(("127.0.0.1", self.port)) == 0:
                    return process
            time.sleep(0.05)
        raise AssertionError("sshd does not listen")

    def host(self, start: str = "true", *options: str) -> SshHost:
        return SshHost("gpu", start, ("-F", str(self.folder / "config"), *options))

    @property
    def serve(self) -> str:
        code = os.environ.get("PYTHONPATH", "")
        return f"env PARETONE_DATA={self.home}/data PYTHONPATH={code} {sys.executable} -m paretone serve --grace 1"

    def cut(self) -> None:
        """Kill the server's side of every connection, and what runs in them is left alone."""
        for one in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            os.kill(int(one), signal.SIGKILL)

    def sleep(self) -> None:
        """As on a laptop: the ssh here that forwards a port answers nothing, nor a signal."""
        children = " ".join(one.read_text() for one in Path("/proc/self/task").glob("*/children")).split()
        (forwarder,) = (one for one in children if b"\0-L\0" in Path(f"/proc/{one}/cmdline").read_bytes())
        os.killpg(int(forwarder), signal.SIGSTOP)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with closing(Sshd(tmp_path_factory.mktemp("sshd"))) as made:
        yield made


def opened(host: SshHost) -> LinkError:
    async def go() -> None:
        link = SshLink(host)
        try:
            await link.open(lambda sentence: None)
        finally:
            await link.close()

    with pytest.raises(LinkError) as caught:
        asyncio.run(go())
    return caught.value


def settled(is_so: Callable[[], bool]) -> bool:
    """Whether it was so within a minute."""
    return any(is_so() or time.sleep(0.1) for _ in range(600))


def test_an_engine_is_started_used_and_found_again_after_the_line_is_cut(sshd: Sshd, tmp_path: Path) -> None:
    recorder, lines = Recorder(), []
    host = sshd.host(f"echo waiting in a queue; {sshd.serve}")
    engine = RemoteEngine(recorder.post, SshLink(host), tmp_path, lines.append, pauses=(0.1, 0.3), stall=5.0)
    engine.start()
    assert recorder.wait_for_kind(events.EngineReady).device
    assert any("waiting in a queue" in one.sentence for one in lines)
    assert engine.ask("models").result(30)["f5-mini"] is True
    (state,) = sshd.home.rglob("engine.json")
    first = state.read_text()

    for number, cut in enumerate((sshd.cut, sshd.cut, sshd.sleep), start=1):
        cut()
        settled(lambda many=number: sum("broke" in one.sentence for one in lines) >= many and lines[-1].connected)
    recorder.finish(engine, commands.LoadModel(1, "f5-mini", device="cpu"))
    assert state.read_text() == first, "it is the same engine"
    assert any("broke" in one.sentence for one in lines) and lines[-1].connected
    engine.submit(commands.ShutDown(0))
    assert engine.join(60)
    assert settled(lambda: not state.exists()), "the engine ends with its window"


def test_what_ssh_says_is_shown_with_what_to_do(sshd: Sshd, tmp_path: Path) -> None:
    other = opened(sshd.host("true", "-o", f"IdentityFile={sshd.folder}/other", "-o", "IdentityFile=none"))
    assert "Permission denied" not in str(other) or "ssh-add" in str(other)
    (tmp_path / "config").write_text((sshd.folder / "config").read_text().replace("/mine", "/other"))
    denied = opened(SshHost("gpu", "true", ("-F", str(tmp_path / "config"))))
    assert "Permission denied" in str(denied) and "ssh-add" in str(denied) and denied.lasting
    strange = opened(sshd.host("true", "-o", f"UserKnownHostsFile={tmp_path}/none"))
    assert "Run ssh gpu once in a terminal" in str(strange) and strange.lasting
    absent = opened(sshd.host("no-such-program serve"))
    assert absent.remedy == INSTALL and "no-such-program" in str(absent)
    assert "Check the name" in str(opened(sshd.host("true", "-o", "HostName=nowhere.invalid")))
    closed = opened(sshd.host("true", "-o", "Port=1"))
    assert "refused" in str(closed) and not closed.lasting
    assert "user@machine" in str(opened(SshHost("-oProxyCommand=touch x")))
    assert "ssh said nothing" in str(opened(sshd.host("true")))


@pytest.mark.parametrize("sockets", [True, False])
def test_nobody_but_the_engine_is_sent_the_token(
    sshd: Sshd, sockets: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a socket in a folder of the user's own, which does not outlive a window that is killed; without such sockets,
    by a port once ssh itself listens there."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP")
        writer.close()

    async def go() -> None:
        engine = await asyncio.start_server(answer, "127.0.0.1", 0)
        line = json.dumps({"port": engine.sockets[0].getsockname()[1], "token": "x"})
        link = SshLink(host := sshd.host(f"echo 'paretone-engine {line}'"))
        if sockets:
            code = f"from paretone.remote.ssh import *; link = SshLink({host}); print(asyncio.run(link.open(str))[0])"
            window = subprocess.Popen([sys.executable, "-uc", f"{code}; input()"], stdin=-1, stdout=-1, text=True)
            assert (killed := Path((await asyncio.to_thread(window.stdout.readline)).strip())).is_socket()
            with window:
                window.kill()
            assert await asyncio.to_thread(settled, lambda: not killed.parent.exists()), "ssh is still there"
            place = Path((await link.open(print))[0])
            assert place.is_socket() and stat.S_IMODE(place.parent.stat().st_mode) == 0o700
        else:
            monkeypatch.delattr(asyncio, "open_unix_connection")
            with socket.create_server(("127.0.0.1", 0)) as other, monkeypatch.context() as patch:
                taken = other.getsockname()
                patch.setattr(socket.socket, "getsockname", lambda self: taken)
                with pytest.raises(LinkError, match="Address already in use"):
                    await link.open(print)
                other.setblocking(False)
                with pytest.raises(BlockingIOError):  # Nobody has asked there.
                    other.accept()
            assert isinstance((await link.open(print))[0], int)
        await link.close()
        assert not (sockets and place.parent.exists())
        engine.close()

    asyncio.run(go())
    if sockets:
        (long := tmp_path / ("x" * 100)).mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(long))
        error = opened(sshd.host("""echo 'paretone-engine {"port": 9, "token": "x"}'"""))
        assert "a folder with a short path in TMPDIR" in str(error) and error.lasting


def test_no_name_of_a_machine_that_a_host_gives_reaches_a_shell(sshd: Sshd, tmp_path: Path) -> None:
    """The user's configuration hears of each name that ssh is given."""
    handed = tmp_path / "handed"
    (tmp_path / "config").write_text(f'Match exec "echo %n >> {handed}"\n{(sshd.folder / "config").read_text()}')
    touch = f"touch {tmp_path}/x"
    for name in ("me@node", f"$({touch})", f"a;{touch}", f"-oProxyCommand={touch}", "a!b", "ssh://a"):
        line = json.dumps({"port": 9, "token": "x", "machine": name})
        opened(SshHost("gpu", f"echo 'paretone-engine {line}'", ("-F", str(tmp_path / "config"))))
    assert set(handed.read_text().splitlines()) == {"gpu", "node"} and not (tmp_path / "x").exists()


def test_a_host_that_forbids_forwarding_says_so(tmp_path: Path) -> None:
    with closing(Sshd(tmp_path / "strict", "AllowTcpForwarding no\n")) as strict:
        error = opened(strict.host("""echo 'paretone-engine {"port": 9, "token": "x", "machine": "me@node"}'"""))
        assert "prohibited" in str(error) or "does not answer" in str(error)


def test_a_host_without_torch_is_told_before_anything_is_copied(sshd: Sshd) -> None:
    if (python := shutil.which("python3", path="/usr/bin")) is None:
        pytest.skip("there is no Python here but this one")
    with pytest.raises(LinkError, match=r"PyTorch is not installed|is needed"):
        asyncio.run(install(sshd.host(), lambda *_: None, f"{python} -S"))
    assert not (sshd.home / ".local").exists()
    with pytest.raises(LinkError, match="could not be run there"):
        asyncio.run(install(sshd.host(), lambda *_: None, "/no/python"))


@only_in_full("packaged program")
@pytest.mark.timeout(900)  # The wheel is packed meanwhile, which takes minutes of a busy machine.
def test_paretone_is_installed_on_a_host_and_its_engine_answers(sshd: Sshd, tmp_path: Path) -> None:
    """The real wheel, made here, in an environment of its own there that sees the host's torch."""
    said: list[str] = []
    start = asyncio.run(install(sshd.host(), lambda sentence, share: said.append(sentence), sys.executable))
    steps = list(dict.fromkeys(one.partition(" ")[0] for one in said))
    assert steps[:4] == ["Looking", "Making", "Copying", "Installing"]
    recorder = Recorder()
    engine = RemoteEngine(recorder.post, SshLink(sshd.host(f"env PARETONE_DATA={sshd.home}/d {start}")), tmp_path)
    engine.start()
    assert str(CHECKOUT) not in recorder.wait_for_kind(events.EngineReady).machine
    engine.submit(commands.ShutDown(0))
    assert engine.join(60)
    shutil.rmtree(sshd.home / ".local")  # The next test begins with a host that has no engine.


def small_wheel(folder: Path, version: str, program: str = "print('0.2.0')") -> Path:
    """A package of that name with nothing but its program, and ballast that takes time to copy."""
    path, about = folder / f"paretone-{version}-py3-none-any.whl", f"paretone-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("small_program.py", f"def main():\n    {program}\n")
        file.writestr("ballast.bin", random.Random(0).randbytes(3_000_000))
        file.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: paretone\nVersion: {version}\n")
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{about}/entry_points.txt", "[console_scripts]\nparetone = small_program:main\n")
        file.writestr(f"{about}/RECORD", "".join(f"{one},,\n" for one in file.namelist()))
    return path


def engines(sshd: Sshd) -> list[Path]:
    """What is installed there, once nothing is under way any more."""
    place = sshd.home / ".local/share/paretone"
    settled(lambda: all((one / "bin" / "paretone").exists() for one in place.glob("*")))
    return sorted(place.glob("*"))


def test_an_installation_has_progress_and_one_that_is_cancelled_or_fails_leaves_what_was_there(
    sshd: Sshd, tmp_path: Path
) -> None:
    shares: list[float] = []

    def installed(wheel: Path, cancel_at: str = "") -> str:
        async def go() -> str:
            task = asyncio.current_task()

            def say(sentence: str, share: float) -> None:
                shares.append(share)
                if cancel_at and sentence.startswith(cancel_at):
                    task.cancel()

            return await install(sshd.host(), say, sys.executable, wheel)

        shares.clear()
        return asyncio.run(go())

    for step in workload(("Copying", "Installing", "gpu: Processing"), ("Copying", "gpu: Processing")):
        with pytest.raises(asyncio.CancelledError):
            installed(small_wheel(tmp_path, "0.1"), step)
        assert engines(sshd) == []
    with pytest.raises(LinkError, match="boom"):
        installed(small_wheel(tmp_path, "0.1", "raise SystemExit('boom')"))
    assert engines(sshd) == []
    start = installed(small_wheel(tmp_path, "0.1"))
    assert shares == sorted(shares) and len(set(shares)) > 10 and shares[-1] < 1.0
    assert start == ".local/share/paretone/engine/bin/paretone serve"
    link, first = engines(sshd)
    look = "import importlib.util as it; print(it.find_spec('torch') is not None)"
    found = subprocess.check_output([first / "bin" / "python", "-c", look], text=True)
    assert found == "True\n", "it sees the packages of the Python that was named, of a virtual environment too"
    assert link.resolve() == first and not list(first.glob("*.whl"))
    with pytest.raises(asyncio.CancelledError):
        installed(small_wheel(tmp_path, "0.2"), "gpu: Processing")
    assert engines(sshd) == [link, first] and link.resolve() == first, "the one before is in use still"
    for version in workload(("0.2", "0.3"), ()):
        installed(small_wheel(tmp_path, version))
        assert link.resolve() != first and len(engines(sshd)) == 3, "the last one, the one before and the link"
    shutil.rmtree(sshd.home / ".local")
