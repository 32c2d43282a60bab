"""The way to a host by the user's own OpenSSH, with their configuration, keys, agent and jump hosts. Torch-free.

One ``ssh`` starts the engine there and reads port and token from its output; another forwards a local socket to it, and
is started again when the line breaks. Neither has a terminal, so the engine survives both.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import tempfile
import zipfile
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from paretone import __version__
from paretone.extras import PROJECT, pip
from paretone.observer import RemainingTime
from paretone.own_process import packaged
from paretone.paths import CHECKOUT
from paretone.reading import first_line, printable, shortened
from paretone.remote import ENGINE, INSTALL, START, LinkError
from paretone.remote.places import PART_BYTES
from paretone.wording import megabytes

INSTALLED = ".local/share/paretone"
"""Where engines are installed, in the user's folder on the host: each in its environment; the link ``engine`` leads to
the last one."""
_READY_SECONDS = 30.0
_END_SECONDS = 0.5
_MACHINE = re.compile(r"\A(?:[\w.-]+@)?\w[\w.-]*\Z")  # No more: ``ssh -J`` hands it to a shell.
_ADVICE = (
    ("Permission denied", True, "Add your key to the agent (ssh-add), or name it in ~/.ssh/config."),
    ("Host key verification failed", True, "Run ssh {host} once in a terminal and confirm the host's key."),
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", True, "Ask the host's administrator, then mend ~/.ssh/known_hosts."),
    ("Could not resolve hostname", True, "Check the name; it is one that ssh knows, such as Host in ~/.ssh/config."),
    ("administratively prohibited", True, "The host forbids forwarding; ask for AllowTcpForwarding."),
    ("Bad local forwarding", True, "Install OpenSSH 6.7 or newer here, or name a folder with a short path in TMPDIR."),
)
"""Words of ssh, whether trying again is of no use, and what to do."""
_ABSENT = "not found", "No such file or directory", "No module named paretone", "Unknown command"
"""Words of shells on a host without Paretone."""


@dataclass(frozen=True)
class SshHost:
    target: str
    """What ``ssh`` is given: a name of its configuration, or ``user@machine``."""
    start: str = START
    """Command that starts the engine there, such as ``srun --gres=gpu:1 paretone serve``."""
    options: tuple[str, ...] = ()
    """Further options of ``ssh``, such as ``-F file``."""

    def command(self, *more: str, remote: str = "", beyond: str = "") -> list[str]:
        """``beyond``: a machine that this one reaches, to be reached over it."""
        program = shutil.which("ssh")
        if program is None:
            raise LinkError("OpenSSH is not installed here; install the package openssh-client.")
        if self.target.startswith("-") or not self.target.strip():
            raise LinkError("Give the host as for ssh: a name of ~/.ssh/config, or user@machine.")
        alive = ("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")
        where = ["-J", self.target, "--", beyond] if beyond else ["--", self.target]
        return [program, *self.options, *alive, *more, *where, *([remote] if remote else [])]

    def error(self, lines: Sequence[str], what: str) -> LinkError:
        """What ``ssh`` said at last, as it is, and what to do."""
        lines = [one for one in lines if one.strip() and not one.startswith("debug1:")]
        said = " ".join(printable(one).strip() for one in lines[-12:])[-600:]
        quoted = f"{what}: {said.rstrip('.')}." if said else f"{what}, and ssh said nothing."
        for words, lasting, advice in _ADVICE:
            if words in said:
                return LinkError(f"{quoted} {advice.format(host=self.target)}", lasting)
        if any(words in said for words in _ABSENT):
            return LinkError(f"{quoted} Have Paretone installed there, or mend the start command.", remedy=INSTALL)
        return LinkError(quoted, lasting=False)


async def _started(command: Sequence[str], stdin: int = asyncio.subprocess.DEVNULL) -> asyncio.subprocess.Process:
    # A session of its own: no terminal to ask on, and Ctrl-C here does not reach it.
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *command, stdin=stdin, stdout=pipe, stderr=pipe, start_new_session=True, limit=1 << 20
    )


async def _end(process: asyncio.subprocess.Process | None) -> None:
    """End a process and its child processes."""
    if process is not None and process.returncode is None:
        end = partial(os.killpg, process.pid) if hasattr(os, "killpg") else process.send_signal
        with contextlib.suppress(ProcessLookupError):
            end(signal.SIGTERM)
            try:
                async with asyncio.timeout(_END_SECONDS):
                    await process.wait()
            except TimeoutError:  # Stopped, or deaf.
                end(getattr(signal, "SIGKILL", signal.SIGTERM))
        await process.wait()


async def _lines(stream: asyncio.StreamReader | None) -> AsyncIterator[str]:
    while stream is not None and (line := await stream.readline()):
        yield line.decode("utf-8", "replace").rstrip()


class SshLink:
    def __init__(self, host: SshHost) -> None:
        self._host, self.host = host, host.target
        self._starter: asyncio.subprocess.Process | None = None
        self._forwarder: asyncio.subprocess.Process | None = None
        self._reading: set[asyncio.Task[None]] = set()
        self._found: dict[str, Any] | None = None
        self._ways: tuple[str, ...] = ()
        """Machines that the engine may run on, as the host knows them; ``""``: the host itself."""
        self._folder = ""
        """Of the forwarder's socket: no other user may enter it."""

    async def open(self, say: Callable[[str], None]) -> tuple[int | str, str]:
        """Local port, or path of a socket, that leads to the engine, and its token; the engine is started if there is
        none yet or no longer. ``say`` tells what is done. Raises :class:`LinkError`."""
        for _ in range(2):
            if self._found is None:
                self._found = await self._start(say)
            for beyond in self._ways:
                guessed = beyond and len(self._ways) > 1
                with contextlib.suppress(LinkError) if guessed else contextlib.nullcontext():
                    if way := await self._forward(self._found["port"], beyond):
                        self._ways = (beyond,)
                        return way, self._found["token"]
            self._found = None
        raise LinkError(
            f"The engine on {self.host} was started, but does not answer. If a scheduler has started it on another "
            f"machine, ssh -J {self.host} {beyond or 'MACHINE'} must work without a question.",
            lasting=False,
        )

    async def close(self) -> None:
        for one in self._reading:
            one.cancel()
        await self._hang_up()
        await _end(self._starter)

    async def _start(self, say: Callable[[str], None]) -> dict[str, Any]:
        """Start the engine; what it prints until it is ready is told, such as a place in a queue."""
        say(f"Starting the engine on {self.host} …")
        await _end(self._starter)
        self._starter = process = await _started(self._host.command("-T", remote=self._host.start))
        said: list[str] = []
        tell = lambda line: say(f"{self.host}: {shortened(printable(line))}")  # noqa: E731
        hearing = self._hear(process.stderr, said, tell)
        async for line in _lines(process.stdout):
            if line.startswith(f"{ENGINE} "):
                with contextlib.suppress(ValueError, TypeError, KeyError):
                    found = json.loads(line.removeprefix(ENGINE))
                    self._hear(process.stdout, [])  # The engine never waits for us.
                    self._ways = "", *_MACHINE.findall(str(found.get("machine", "")))
                    return {"port": int(found["port"]), "token": str(found["token"])}
            said.append(line)
            tell(line)
        await process.wait()
        await hearing
        raise self._host.error(said, f"The engine on {self.host} could not be started")

    def _hear(
        self, stream: asyncio.StreamReader | None, said: list[str], tell: Callable[[str], None] = lambda line: None
    ) -> asyncio.Task[None]:
        async def hear() -> None:
            async for line in _lines(stream):
                said.append(line)
                tell(line)

        task = asyncio.create_task(hear())
        self._reading.add(task)
        return task

    async def _hang_up(self) -> None:
        await _end(self._forwarder)
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _forward(self, port: int, beyond: str) -> int | str:
        """A socket that leads to ``port`` there, or ``beyond``; without Unix sockets, as on Windows, a local port. 0 if
        no engine answers. Raises :class:`LinkError`."""
        await self._hang_up()
        way, tidy = ["-T", "-o", "ExitOnForwardFailure=yes", "-L"], list[str]()
        local: int | str
        if hasattr(asyncio, "open_unix_connection"):
            self._folder = tempfile.mkdtemp(prefix="paretone-")
            local = os.path.join(self._folder, "line")
            way += [f"{local}:127.0.0.1:{port}"]
            tidy = ["sh", "-c", '"$@"; rm -rf "$0"', self._folder]
        else:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                local = free.getsockname()[1]
            way += [f"127.0.0.1:{local}:127.0.0.1:{port}", "-v"]
        # Not over a shared connection, which would outlive this process.
        own = ("-o", "ControlMaster=no", "-o", "ControlPath=none")
        # If this process is killed, the forwarder's input ends, and so do cat and ssh.
        command = [*tidy, *self._host.command(*own, *way, remote="cat", beyond=beyond)]
        self._forwarder = process = await _started(command, stdin=asyncio.subprocess.PIPE)
        said: list[str] = []
        hearing = self._hear(process.stderr, said)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_READY_SECONDS):
                while process.returncode is None:
                    await asyncio.sleep(0.05)
                    try:
                        if isinstance(local, str):
                            reader, writer = await asyncio.open_unix_connection(local)
                        elif any("port listener" in one for one in said):
                            reader, writer = await asyncio.open_connection("127.0.0.1", local)
                        else:
                            continue  # Until ssh says so, another user may have the port, and be sent the token.
                    except OSError:
                        continue
                    # It is open even without a server there.
                    with contextlib.suppress(OSError), contextlib.closing(writer):
                        writer.write(b"GET / HTTP/1.0\r\n\r\n")
                        return local if await reader.read(1) else 0
                    return 0
        await _end(process)
        await hearing
        raise self._host.error(said, f"No port could be forwarded to {self.host}")


# --- Installing -------------------------------------------------------------------------------------------------------
_PROBE = """
import importlib.util, json, sys
print(json.dumps({"python": sys.version.split()[0], "fits": (3, 11) <= sys.version_info[:2] < (3, 14),
                  "torch": importlib.util.find_spec("torch") is not None}))
"""
_INSTALL = """
import os, pathlib, shutil, signal, site, subprocess, sys, threading
top = pathlib.Path.home() / TOP
made, engine, wheel = top / NAME, top / "engine", str(top / NAME / WHEEL)
running, over = [], threading.Lock()

def leave(why=""):
    # The window cancelled, its line broke, or a step failed: nothing is left half installed.
    with over:
        for one in running:
            try:
                os.killpg(one.pid, signal.SIGKILL)
            except OSError:
                pass
        shutil.rmtree(made, ignore_errors=True)
        print(why, file=sys.stderr, flush=True)
        os._exit(1)

def watch():
    sys.stdin.buffer.read()
    leave()

def run(*words, without=""):
    with over:
        # Not our standard input, which says whether the window is there.
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
        running.append(process)
    for line in process.stdout:
        print(line.decode("utf-8", "replace").rstrip(), flush=True)
    if process.wait() and without is not None:
        leave(without)

try:
    made.mkdir(parents=True)
    with open(wheel, "wb") as file:
        file.write(sys.stdin.buffer.read(SIZE))
except OSError as error:
    leave(error)
threading.Thread(target=watch, daemon=True).start()  # At once, if only a part has come.
run(sys.executable, "-m", "venv", "--system-site-packages", str(made))
if sys.prefix != sys.base_prefix:  # Of a virtual environment, venv passes on only what lies below it.
    seen = ["import site; site.addsitedir(%r)" % one for one in site.getsitepackages()]
    next(made.glob("lib/python*/site-packages")).joinpath("host.pth").write_text(chr(10).join(seen))
pip = [str(made / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off"]
run(*pip, "--no-deps", "--no-index", "--force-reinstall", wheel)  # Even if that Python has the same version.
run(*pip, wheel + "[serve]", without=None)  # Without a package index, the packages there must do.
lacking = "The host reaches no package index: install aiohttp, msgspec and what Paretone needs there."
run(str(made / "bin" / "paretone"), "--version", without=lacking)
with over:
    os.remove(wheel)
    link = top / (NAME + ".link")
    link.symlink_to(NAME)
    before = engine.resolve()
    os.replace(link, engine)
    for one in top.glob("engine-*"):
        if one not in (made, before):  # An engine of the one before may still run.
            shutil.rmtree(one, ignore_errors=True)
    os._exit(0)
"""
_READ = "import sys; exec(eval(sys.stdin.buffer.readline()))"
"""Runs a script that comes as one line, before a wheel; then standard input stays open."""
_OF_INSTALLERS = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json"}


async def install(
    host: SshHost, say: Callable[[str, float], None], python: str = "python3", wheel: Path | None = None
) -> str:
    """Install this version of Paretone on the host, in an environment that sees the host's packages; returns
    the start command. ``say`` gets a sentence and the share that is done; ``python``: the host's; ``wheel``: made here,
    or fetched, if not given. Once cancelled or failed, the host has what it had before.

    Raises :class:`LinkError`, also where torch is missing: it is large, and the right build is the host's business.
    """
    say(f"Looking for Python and PyTorch on {host.target} …", 0.0)
    found = json.loads((await _run(host, f"{python} -", _PROBE.encode(), "Python could not be run there")) or "{}")
    if not found.get("fits"):
        raise LinkError(
            f"{host.target} has Python {found.get('python', '')}; 3.11, 3.12 or 3.13 is needed. Name another one."
        )
    if not found["torch"]:
        raise LinkError(
            f"PyTorch is not installed for {python} on {host.target}; install the build for its graphics card there "
            "(https://pytorch.org), or name the Python that has it."
        )
    with tempfile.TemporaryDirectory(prefix="paretone-wheel-") as folder:
        if wheel is None:
            say("Making the package …", 0.02)
            wheel = await _made_wheel(Path(folder))
        content = await asyncio.to_thread(wheel.read_bytes)
    given = INSTALLED, f"engine-{secrets.token_hex(4)}", wheel.name, len(content)
    script = f"TOP, NAME, WHEEL, SIZE = {given}{_INSTALL}"
    content = f"{script!r}\n".encode() + content
    name, size, share, remaining = wheel.name, len(content), 0.5, RemainingTime()

    def sent(done: int) -> None:
        left = remaining.update(done, size)
        about = "" if left is None else f", about {left:.0f} s left"
        what = f"Copying {name} to {host.target}: {megabytes(done, size)}{about}"
        say(what if done < size else f"Installing on {host.target} …", 0.2 + 0.3 * done / size)

    def heard(line: str) -> None:
        nonlocal share
        share += (1.0 - share) / 16  # Nobody knows how many packages there are.
        say(f"{host.target}: {shortened(printable(line))}", share)

    await _run(host, f'{python} -c "{_READ}"', content, "The package could not be installed", sent, heard)
    return f"{INSTALLED}/engine/bin/paretone serve"


async def _run(
    host: SshHost,
    remote: str,
    content: bytes,
    what: str,
    told: Callable[[int], None] = lambda done: None,
    heard: Callable[[str], None] | None = None,
) -> str:
    """Output of a command there with ``content`` as its input, of which ``told`` gets the bytes that were sent. If
    ``heard`` is given, it gets each line, and the input stays open: its end tells the command to clean up."""
    process = await _started(host.command("-T", remote=remote), stdin=asyncio.subprocess.PIPE)
    assert process.stdin is not None and process.stderr is not None

    async def send(to: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):  # The command says why it read no further.
            for at in range(0, len(content), PART_BYTES):
                told(at)
                to.write(content[at : at + PART_BYTES])
                await to.drain()
            told(len(content))
            if heard is None:
                to.close()

    sending = asyncio.create_task(send(process.stdin))
    reading = asyncio.create_task(process.stderr.read())
    out: list[str] = []
    try:
        async for line in _lines(process.stdout):
            out.append(line)
            if heard is not None:
                heard(line)
        said = (await reading).decode("utf-8", "replace").splitlines()
        await process.wait()
    finally:
        sending.cancel()
        reading.cancel()
        if heard is not None:
            process.stdin.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_READY_SECONDS):
                    await process.wait()
        await _end(process)
    if process.returncode:
        raise host.error([*out, *said], f"{what} ({host.target})")
    return "\n".join(out)


async def _made_wheel(folder: Path) -> Path:
    """A wheel of this version: made from the checkout, or of the files that a wheel has installed."""
    name = f"paretone-{__version__}-py3-none-any.whl"
    if packaged():
        raise LinkError(
            f"The packaged program cannot make what a host installs: copy {name} there and run pip install "
            f"'./{name}[serve]'."
        )
    if not PROJECT.is_file():
        return await asyncio.to_thread(packed_again, folder / name)
    how = ["wheel", "--no-build-isolation", str(CHECKOUT), "--no-deps", "--wheel-dir", str(folder)]
    # Elsewhere than in the checkout, where one that was cancelled would be in the way of the next.
    how.append(f"--config-settings=--build-option=--bdist-dir={(folder / 'made').as_posix()}")
    process = await _started([*pip(), "--quiet", *how])
    try:
        _, said = await process.communicate()
    finally:
        await _end(process)
    found = next(folder.glob("*.whl"), None)
    if process.returncode or found is None:
        raise LinkError(f"The package could not be made: {shortened(said.decode('utf-8', 'replace').strip(), 600)}")
    return found


def packed_again(wheel: Path) -> Path:
    """Make the wheel that this program was installed from. Raises :class:`LinkError`."""
    rows: list[str] = []
    try:
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
            for one in distribution("paretone").files or ():
                # Not what an installer adds: programs, compiled code, and its notes.
                if ".." in one.parts or one.suffix == ".pyc" or one.name in _OF_INSTALLERS:
                    continue
                made.write(str(one.locate()), one.as_posix())
                rows.append(f"{one.as_posix()},{f'{one.hash.mode}={one.hash.value}' if one.hash else ''},{one.size}\n")
            record = f"paretone-{__version__}.dist-info/RECORD"
            made.writestr(record, "".join([*rows, f"{record},,\n"]))
    except (OSError, PackageNotFoundError) as error:
        raise LinkError(f"The package could not be made: {first_line(error)}; install Paretone here again.") from error
    return wheel
