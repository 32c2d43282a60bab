"""Hosts in processes of their own, a relay that breaks the line to them, and windows without a window."""

import asyncio
import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from paretone.remote.client import Line, RemoteEngine
from paretone.session.commands import ShutDown
from tests.engine.recorder import PATIENCE_SECONDS, Recorder

SERVE = """
import asyncio, json, sys
from pathlib import Path
from paretone.remote import server
host = server.EngineServer(Path(sys.argv[1]), grace=float(sys.argv[2]), stay=True)
asyncio.run(server.serve(host, 0, lambda found: print(json.dumps(found), flush=True), lambda: False))
"""


@dataclass(frozen=True)
class Local:
    port: int
    token: str
    host: str = "127.0.0.1"

    async def open(self, say: object) -> tuple[int, str]:
        return self.port, self.token

    async def close(self) -> None:
        pass


class Host:
    def __init__(self, data: Path, grace: float = 600.0, within: tuple[str, ...] = (), first: str = "") -> None:
        """``within``: a command before it, such as one that enters a network namespace; ``first``: what it runs."""
        self.data = data
        command = [*within, sys.executable, "-c", first + SERVE, str(data), str(grace)]
        environment = {**os.environ, "PARETONE_DATA": str(data)}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self.process.stdout is not None
        found = json.loads(self.process.stdout.readline())
        self.port, self.token = found["port"], found["token"]

    def kill(self) -> None:
        with self.process:
            self.process.kill()


class Relay:
    """Forwards connections to ``port``: with a delay, stalled, or reset."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.target, self.host, self.port = port, host, 0
        self.delay = self.pause = 0.0
        """Seconds that everything comes later, and between two reads of 64 KiB."""
        self.stalled = threading.Event()
        self.refusing = False
        self._open: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)
        self._thread.start()
        assert self._up.wait(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._relay, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._up.set()
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        server.close()
        self._loop.run_until_complete(asyncio.sleep(0.05))
        self._loop.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            writer.transport.abort()
            return
        try:
            there, away = await asyncio.open_connection(self.host, self.target)
        except OSError:  # The host was killed.
            writer.transport.abort()
            return
        self._open |= {writer, away}
        await asyncio.gather(self._pump(reader, away), self._pump(there, writer), return_exceptions=True)
        for one in (writer, away):
            one.transport.abort()
            self._open.discard(one)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Bytes in order, each as late as the delay says."""
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                due, content = await queue.get()
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                while self.stalled.is_set():
                    await asyncio.sleep(0.01)
                writer.write(content)
                await writer.drain()
                if not content:
                    return

        delivering = asyncio.create_task(deliver())
        try:
            while content := await reader.read(1 << 16):
                queue.put_nowait((time.monotonic() + self.delay, content))
                await asyncio.sleep(self.pause)
        finally:
            delivering.cancel()
            writer.transport.abort()

    def reset(self) -> None:
        def cut() -> None:
            for one in self._open:
                one.transport.abort()

        self._loop.call_soon_threadsafe(cut)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)


class Window:
    def __init__(self, port: int, token: str, data: Path, take_over: bool = False, stall: float = 6.0) -> None:
        self.recorder, self.data = Recorder(), data
        self.lines: list[Line] = []
        self.outages: list[tuple[float, float]] = []
        """When there was no line, from and to, on the monotonic clock; ``inf``: still."""
        patience = {"take_over": take_over, "pauses": (0.1, 0.2, 0.4), "stall": stall}
        self.engine = RemoteEngine(self.recorder.post, Local(port, token), data, self._note, **patience)
        self.engine.start()

    def _note(self, line: Line) -> None:
        self.lines.append(line)
        out = bool(self.outages) and self.outages[-1][1] == math.inf
        if line.connected and out:
            self.outages[-1] = self.outages[-1][0], time.monotonic()
        elif not line.connected and not out:
            self.outages.append((time.monotonic(), math.inf))

    def close(self) -> None:
        self.engine.submit(ShutDown(0))
        assert self.engine.join(PATIENCE_SECONDS)

    def until(self, wanted, seconds: float = 60.0) -> Line:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if found := next(filter(wanted, self.lines), None):
                return found
            time.sleep(0.02)
        raise AssertionError(f"never; instead {self.lines[-3:]}")


@contextmanager
def window(port: int, token: str, data: Path, **more: object) -> Iterator[Window]:
    made = Window(port, token, data, **more)
    try:
        yield made
    finally:
        made.close()
