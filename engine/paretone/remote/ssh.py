"""The way to a host by the user's own OpenSSH, with their configuration, keys, agent and jump hosts. Torch-free.

One ``ssh`` starts the engine there and reads port and token from its output; another forwards a local port to it, and
is started again when the line breaks. Neither has a terminal, so the engine survives both.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paretone import __version__
from paretone.extras import pip
from paretone.own_process import packaged
from paretone.paths import CHECKOUT
from paretone.reading import printable, shortened
from paretone.remote.client import INSTALL, LinkError

START = "paretone serve"
INSTALLED = ".local/share/paretone/engine"
"""Python environment of an installed engine, in the user's folder on the host."""
ENGINE = "paretone-engine"
"""Begins the line with port and token; see :mod:`paretone.commands.serve`."""
_READY_SECONDS = 30.0
_LINES = 12
"""Lines of output that a message quotes at most."""
_ADVICE = (
    ("Permission denied", True, "Add your key to the agent (ssh-add), or name it in ~/.ssh/config."),
    ("Host key verification failed", True, "Run ssh {host} once in a terminal and confirm the host's key."),
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", True, "Ask the host's administrator, then mend ~/.ssh/known_hosts."),
    ("Could not resolve hostname", True, "Check the name; it is one that ssh knows, such as Host in ~/.ssh/config."),
    ("administratively prohibited", True, "The host forbids forwarding; ask for AllowTcpForwarding."),
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

    def command(self, *more: str, remote: str = "") -> list[str]:
        program = shutil.which("ssh")
        if program is None:
            raise LinkError("OpenSSH is not installed here; install the package openssh-client.")
        if self.target.startswith("-") or not self.target.strip():
            raise LinkError("Give the host as for ssh: a name of ~/.ssh/config, or user@machine.")
        alive = ("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")
        return [program, *self.options, *alive, *more, "--", self.target, *([remote] if remote else [])]

    def error(self, lines: Sequence[str], what: str) -> LinkError:
        """What ``ssh`` said, as it is, and what to do."""
        said = shortened(" ".join(printable(one).strip() for one in lines[-_LINES:] if one.strip()), 600)
        quoted = f"{what}: {said.rstrip('.')}." if said else f"{what}, and ssh said nothing."
        for words, lasting, advice in _ADVICE:
            if words in said:
                return LinkError(f"{quoted} {advice.format(host=self.target)}", lasting)
        if any(words in said for words in _ABSENT):
            return LinkError(f"{quoted} Have Paretone installed there, or mend the start command.", remedy=INSTALL)
        return LinkError(quoted, lasting=False)


async def _started(command: Sequence[str], stdin: int = asyncio.subprocess.DEVNULL) -> asyncio.subprocess.Process:
    # A session of its own: no terminal to ask on, and Ctrl-C here does not reach it.
    return await asyncio.create_subprocess_exec(
        *command,
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        limit=1 << 20,
    )


async def _end(process: asyncio.subprocess.Process | None) -> None:
    if process is not None and process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def _lines(stream: asyncio.StreamReader | None) -> AsyncIterator[str]:
    while stream is not None and (line := await stream.readline()):
        yield line.decode("utf-8", "replace").rstrip()


class SshLink:
    """A :class:`paretone.remote.client.Link` over ``ssh``."""

    def __init__(self, host: SshHost) -> None:
        self._host, self.host = host, host.target
        self._starter: asyncio.subprocess.Process | None = None
        self._forwarder: asyncio.subprocess.Process | None = None
        self._reading: set[asyncio.Task[None]] = set()
        self._found: dict[str, Any] | None = None

    async def open(self, say: Callable[[str], None]) -> tuple[int, str]:
        """Forward a port to the engine, which is started if there is none yet or no longer."""
        for _ in range(2):
            if self._found is None:
                self._found = await self._start(say)
            port = await self._forward(self._found["port"])
            if await _answers(port):
                return port, self._found["token"]
            self._found = None
        raise LinkError(f"The engine on {self.host} was started, but does not answer.", lasting=False)

    async def close(self) -> None:
        for one in self._reading:
            one.cancel()
        await _end(self._forwarder)
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
                    return {"port": int(found["port"]), "token": str(found["token"])}
            said.append(line)
            tell(line)
        await process.wait()
        await hearing
        raise self._host.error(said, f"The engine on {self.host} could not be started")

    def _hear(
        self, stream: asyncio.StreamReader | None, said: list[str], tell: Callable[[str], None] = lambda line: None
    ) -> asyncio.Task[None]:
        """Read a stream to its end."""

        async def hear() -> None:
            async for line in _lines(stream):
                said.append(line)
                tell(line)

        task = asyncio.create_task(hear())
        self._reading.add(task)
        return task

    async def _forward(self, port: int) -> int:
        """Forward a free local port to ``port`` there. Raises :class:`LinkError`."""
        await _end(self._forwarder)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            local = free.getsockname()[1]
        way = ("-N", "-T", "-o", "ExitOnForwardFailure=yes", "-L", f"127.0.0.1:{local}:127.0.0.1:{port}")
        # Not over a shared connection, which would outlive this process.
        own = ("-o", "ControlMaster=no", "-o", "ControlPath=none")
        self._forwarder = process = await _started(self._host.command(*own, *way))
        said: list[str] = []
        hearing = self._hear(process.stderr, said)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_READY_SECONDS):
                while process.returncode is None:
                    with contextlib.suppress(OSError):
                        _, writer = await asyncio.open_connection("127.0.0.1", local)
                        writer.close()
                        return local
                    await asyncio.sleep(0.05)
        await _end(process)
        await hearing
        raise self._host.error(said, f"No port could be forwarded to {self.host}")


async def _answers(port: int) -> bool:
    """Whether a server answers on a forwarded port, which is open even without one."""
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(_READY_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.0\r\n\r\n")
            found = await reader.read(1)
            writer.close()
            return bool(found)
    return False


# --- Installing -------------------------------------------------------------------------------------------------------
_PROBE = """
import importlib.util, json, sys
print(json.dumps({"python": sys.version.split()[0], "fits": (3, 11) <= sys.version_info[:2] < (3, 14),
                  "torch": importlib.util.find_spec("torch") is not None}))
"""
_INSTALL = """
import pathlib, subprocess, sys, venv
place = pathlib.Path.home() / PLACE
wheel = str(next((place / "wheel").glob("*.whl")))
venv.create(place, system_site_packages=True, with_pip=True)
pip = [str(place / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
if subprocess.run([*pip, wheel + "[serve]"]).returncode:
    sys.exit(subprocess.run([*pip, "--no-deps", "--no-index", wheel]).returncode)
"""


async def install(host: SshHost, say: Callable[[str], None], python: str = "python3", wheel: Path | None = None) -> str:
    """Install this version of Paretone on the host, in an environment of its own that sees the host's packages; returns
    the start command. ``python``: the host's; ``wheel``: made here, or fetched, if not given. Raises
    :class:`LinkError`, also where torch is missing: it is large, and the right build is the host's business."""
    say(f"Looking for Python and PyTorch on {host.target} …")
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
            say("Making the package …")
            wheel = await _made_wheel(Path(folder))
        say(f"Copying {wheel.name} to {host.target} …")
        place = f"{INSTALLED}/wheel"
        copy = f"rm -rf {place} && mkdir -p {place} && cat > {place}/{wheel.name}"
        await _run(host, copy, wheel.read_bytes(), "The package could not be copied")
    say(f"Installing on {host.target} …")
    script = _INSTALL.replace("PLACE", repr(INSTALLED))
    await _run(host, f"{python} -", script.encode(), "The package could not be installed")
    try:
        await _run(host, f"{INSTALLED}/bin/paretone --version", b"", "The installed program does not run")
    except LinkError as error:
        raise LinkError(
            f"{error} The host reaches no package index: install aiohttp, msgspec and what Paretone needs there."
        ) from error
    return f"{INSTALLED}/bin/paretone serve"


async def _run(host: SshHost, remote: str, content: bytes, what: str) -> str:
    process = await _started(host.command("-T", remote=remote), stdin=asyncio.subprocess.PIPE)
    try:
        out, said = await process.communicate(content)
    finally:
        await _end(process)
    if process.returncode:
        raise host.error(said.decode("utf-8", "replace").splitlines(), f"{what} ({host.target})")
    return out.decode("utf-8", "replace").strip()


async def _made_wheel(folder: Path) -> Path:
    """A wheel of this version: made from the checkout, or fetched from the package index."""
    if packaged():
        raise LinkError(
            "The packaged program cannot make what a host installs: run pip install 'paretone[serve]' there."
        )
    here = (CHECKOUT / "pyproject.toml").is_file()
    how = ["wheel", "--no-build-isolation", str(CHECKOUT)] if here else ["download", f"paretone=={__version__}"]
    process = await _started(
        [*pip(), "--quiet", *how, "--no-deps", f"--{'wheel-dir' if here else 'dest'}", str(folder)]
    )
    _, said = await process.communicate()
    found = next(folder.glob("*.whl"), None)
    if process.returncode or found is None:
        raise LinkError(f"The package could not be made: {shortened(said.decode('utf-8', 'replace').strip(), 600)}")
    return found
