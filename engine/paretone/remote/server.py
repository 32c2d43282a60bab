"""An engine for one window elsewhere, over a websocket on this machine's own address.

The window shows a token. Its commands are numbered and carried out once; events are numbered and kept until the window
has them, so that it can lose its line and come back. Without a window the jobs go on; after them and a grace period the
engine ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import json
import logging
import re
import secrets
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout, WSCloseCode, WSMsgType, web

from paretone import __version__, files
from paretone.errors import PlainError, SettingError
from paretone.extras import SEARCH, why_no_search
from paretone.measure.evaluation.judges import JUDGES
from paretone.models import catalogue
from paretone.models.files.releases import extent
from paretone.reading import first_line
from paretone.remote import wire
from paretone.remote.carrying import snapshot
from paretone.remote.places import MADE, SENT, THERE, WRITTEN, HostFiles, moved, parts_of
from paretone.serving import listening, may
from paretone.session import commands, events
from paretone.session.engine_thread import EngineThread

_log = logging.getLogger(__name__)
ADDRESS = "127.0.0.1"
HELLO_SECONDS = 10.0
HEARTBEAT_SECONDS = 20.0
"""Without an answer for this time, a connection counts as lost."""
MOST_KEPT = 1 << 28
"""Bytes of events kept for an absent window, outcomes not counted."""
_SHUT_DOWN_SECONDS = 60.0
_ANSWER_SECONDS = 5.0


class Outbox:
    """Numbered events, kept until the window has seen them. Thread-safe. An unsent figure gives way to the next one of
    its job. Beyond a size, audio pieces go first, which their takes have whole, then reports; outcomes are never
    dropped."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most, self._lock = most, threading.Lock()
        self._kept: dict[int, tuple[type[events.Event], int, bytes]] = {}
        self._last = self._sent = self._size = 0
        self.dropped = 0

    def add(self, event: events.Event) -> None:
        about = type(event), event.job
        with self._lock:
            if isinstance(event, events.Progress | events.Telemetry):
                unsent = (one for one in reversed(self._kept) if one > self._sent)
                if old := next((one for one in unsent if self._kept[one][:2] == about), 0):
                    self._forget(old)
            self._last += 1
            content = wire.message(wire.EVENT, wire.packed(event), self._last)
            self._kept[self._last] = *about, content
            self._size += len(content)
            kinds = events.AudioReady, events.PreparationReport
            first = (one for kind in kinds for one in list(self._kept) if self._kept[one][0] is kind)
            while self._size > self._most and (old := next(first, 0)):
                self._forget(old)
                self.dropped += 1

    def _forget(self, number: int) -> tuple[type[events.Event], int]:
        kind, job, content = self._kept.pop(number)
        self._size -= len(content)
        return kind, job

    def after(self, number: int) -> Iterator[tuple[int, bytes]]:
        """Events after ``number``, as they are taken; later ones included."""
        while True:
            with self._lock:
                found = [(one, content) for one, (*_, content) in self._kept.items() if one > number]
                if not found:
                    return
                number = found[-1][0]
                self._sent = max(number, self._sent)
            yield from found

    def seen(self, number: int) -> list[int]:
        """Forget events to ``number``; the jobs that ended with one of them."""
        with self._lock:
            gone = [self._forget(one) for one in [one for one in self._kept if one <= number]]
        return [job for kind, job in gone if issubclass(kind, events.ENDINGS)]


def require_version(theirs: str) -> None:
    """Raise :class:`PlainError` unless a window of the version ``theirs`` can use this engine: of the same major
    version, and of the same minor one or a newer."""
    major, minor = map(int, __version__.split(".")[:2])
    found = re.match(rf"{major}\.(\d+)", theirs)
    if found is None or int(found[1]) < minor:
        raise SettingError(
            f"The window has Paretone {theirs or 'of an unknown version'}, the host {__version__}; install the same "
            "version on both machines."
        )


class EngineServer:
    def __init__(self, data: Path, *, grace: float, stay: bool = False) -> None:
        """``data``: the host's data folder; ``stay``: begin anew when a window closes, instead of ending."""
        self.data, self._grace, self._stay = data, grace, stay
        self.token = secrets.token_urlsafe(32)
        self.files, self.outbox = HostFiles(data), Outbox()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news, self._lock, self.over = asyncio.Event(), asyncio.Lock(), False
        self._engine: EngineThread | None = None
        self._session, self._received = "", 0
        self._window: wire.Hello | None = None
        self._connection: web.WebSocketResponse | None = None
        self._jobs: set[int] = set()
        self._left = time.monotonic()

    # --- The engine ---------------------------------------------------------------------------------------------------
    def begin(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._session, self._received, self.outbox = secrets.token_hex(8), 0, Outbox()
        self._jobs.clear()
        shutil.rmtree(self.files.made, ignore_errors=True)
        self._engine = EngineThread(self._post)
        self._engine.start()

    def _post(self, event: events.Event) -> None:
        """From the engine's thread."""
        if isinstance(event, events.ENDINGS):
            self._jobs.discard(event.job)
        try:
            self.outbox.add(event)
        except wire.WireError as error:  # A type that no technique declares: tell, and let the job go on.
            self.outbox.add(events.Caution(event.job, str(error)))
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._news.set)

    @property
    def is_abandoned(self) -> bool:
        """Whether no window has come back for the grace period and no job is left."""
        return self._connection is None and not self._jobs and time.monotonic() - self._left > self._grace

    async def end(self, again: bool = False) -> None:
        """End the engine, and begin ``again`` or end the server."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.submit(commands.ShutDown(0))
            await asyncio.to_thread(engine.join, _SHUT_DOWN_SECONDS)
        self._window, self._left = None, time.monotonic()
        if again:
            self.begin()
        else:
            self.over = True

    # --- Connections --------------------------------------------------------------------------------------------------
    def application(self) -> web.Application:
        made = web.Application(client_max_size=wire.LARGEST_COMMAND)
        made.router.add_route("*", wire.PATH, self._admitted)
        return made

    async def _admitted(self, request: web.Request) -> web.StreamResponse:
        if challenge := request.query.get("challenge"):
            return web.Response(text=wire.proof(self.token, challenge))
        if may(request, self.token):
            return await (self._answer(request) if request.method == "POST" else self._connect(request))
        return web.Response(status=401, text="The token is missing or wrong; take the one that the engine printed.")

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(
            timeout=1.0, max_msg_size=wire.LARGEST_COMMAND, heartbeat=HEARTBEAT_SECONDS, compress=False
        )
        await socket.prepare(request)
        sender: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                first = await socket.receive()
            found = wire.envelope(first.data, wire.LARGEST_COMMAND)
            if found.kind != wire.HELLO:
                raise wire.WireError("A window must introduce itself first.")
            hello = wire.read(found.payload, wire.Hello)
            require_version(hello.paretone)
            async with self._lock:
                await self._admit(hello, socket)
            sender = asyncio.create_task(self._send(socket, hello.seen if hello.session == self._session else 0))
            await self._listen(socket)
        except ConnectionError:
            pass
        except TimeoutError:  # The line stands still: the window is not refused, and tries again.
            await socket.close(code=WSCloseCode.TRY_AGAIN_LATER)
        except PlainError as error:
            with contextlib.suppress(ConnectionError):
                await socket.send_bytes(wire.message(wire.REFUSED, str(error)))
                await socket.close(code=WSCloseCode.POLICY_VIOLATION)
        finally:
            if sender is not None:
                sender.cancel()
            if self._connection is socket:
                self._connection, self._left = None, time.monotonic()
        return socket

    async def _admit(self, hello: wire.Hello, socket: web.WebSocketResponse) -> None:
        """Make ``socket`` the window's connection. Raises :class:`SettingError` if another window has the engine."""
        # Not abandoned while the jobs of the window before it are cancelled.
        known, self._left = self._window, time.monotonic()
        if known is not None and known.window != hello.window:
            if self._connection is not None:
                raise SettingError(
                    f"The engine is used by the window on {known.title}; close that one first, or choose another host."
                )
            if self._jobs and not hello.take_over:
                raise SettingError(
                    f"The engine still works for the window on {known.title}, which lost its line: "
                    f"{len(self._jobs)} jobs. Wait for it, or take the engine over, which cancels them."
                )
            await self.end(again=True)  # A new window begins with a new engine.
        elif self._connection is not None:
            # The same window again: its old line is dead, though nobody noticed yet.
            old, self._connection = self._connection, None
            await old.close(code=WSCloseCode.GOING_AWAY)
        self._window, self._connection = hello, socket
        if hello.session == self._session:
            self._forget(hello.seen)
        welcome = wire.Welcome(__version__, self._session, self._received, self.outbox.dropped)
        await socket.send_bytes(wire.message(wire.WELCOME, welcome))

    def _forget(self, seen: int) -> None:
        """Forget events that the window has seen; what a job made it has fetched before it sees the job's end."""
        for job in self.outbox.seen(seen):
            shutil.rmtree(self.files.made / str(job), ignore_errors=True)

    async def _send(self, socket: web.WebSocketResponse, seen: int) -> None:
        with contextlib.suppress(ConnectionError):
            while not socket.closed:
                self._news.clear()
                for number, content in self.outbox.after(seen):
                    await socket.send_bytes(content)
                    seen = number
                await self._news.wait()

    async def _listen(self, socket: web.WebSocketResponse) -> None:
        async for message in socket:
            if message.type is WSMsgType.ERROR:  # Too large, or no message: it is closed with a code that says so.
                return
            if message.type is not WSMsgType.BINARY:
                raise wire.WireError("A message must be binary.")
            found = wire.envelope(message.data, wire.LARGEST_COMMAND)
            if self._connection is not socket:
                return
            if found.kind == wire.SEEN:
                self._forget(found.number)
                await socket.send_bytes(wire.message(wire.SEEN, None, self._received))
            elif found.kind == wire.COMMAND:
                await self._obey(found)
            else:
                raise wire.WireError(f"A host takes no message of the kind {found.kind!r}.")

    # --- Commands and questions ---------------------------------------------------------------------------------------
    async def _obey(self, found: wire.Envelope) -> None:
        """Carry a command out, once; one that is refused ends its job with the reason."""
        if found.number <= self._received:
            return
        if found.number != self._received + 1:
            raise wire.WireError("A command is missing before this one.")
        tree = wire.plain(found.payload)
        self._received = found.number
        job = tree.get("job") if isinstance(tree, dict) else None
        try:
            command = self._here(tree)
            if isinstance(command, commands.ShutDown):
                await self.end(again=self._stay)
                if self._connection is not None:
                    await self._connection.close()
            elif self._engine is not None:
                if command.carried_out_by:
                    self._jobs.add(command.job)
                self._engine.submit(command)
        except (PlainError, ValueError, TypeError) as error:
            if type(job) is not int or job <= 0 or (job in self._jobs and isinstance(error, ValueError)):
                self._received = found.number - 1  # Refused, it has not come: it would be passed over in silence.
                raise wire.WireError(str(error)) from error
            self._post(events.JobFailed(job, str(error)))

    def _here(self, tree: Any) -> commands.Command:
        """The command with the paths of this machine. Raises :class:`PlainError`."""
        path = self.files.path
        found: Any = wire.of(tree, commands.Command, lambda one: moved(one, path, path))
        field = WRITTEN.get(type(found), "")
        if field and (given := getattr(found, field)):
            if not given.startswith(MADE):
                raise SettingError("A window elsewhere cannot say where the host writes.")
            place = Path(path(given))
            place.parent.mkdir(parents=True, exist_ok=True)
            found = replace(found, **{field: str(place)})
        if type(found) is commands.RunStudy:
            if not found.file.startswith(SENT):
                raise SettingError("A study must be sent before it runs.")
            found = replace(found, file=path(found.file), folder=str(self.files.study(found.folder)))
        elif type(found) is commands.VerifyStudy:
            found = replace(found, folder=str(self.files.study(found.folder)))
        assert isinstance(found, commands.Command)
        return found

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        content = None if (name := request.query.get("file")) else await request.read()
        try:
            if name:
                await self.files.receive(name, request.content.iter_any())
                return web.Response()
            ask = wire.read(wire.envelope(content, wire.LARGEST_COMMAND).payload, wire.Ask)
            if ask.what == "fetch":
                # In parts without a length: a file that becomes shorter meanwhile ends, and is missed there.
                return web.Response(body=parts_of(*await asyncio.to_thread(self.files.fetched, ask.text)))
            return web.Response(body=wire.message(wire.ASK, await asyncio.to_thread(self._found, ask)))
        except PlainError as error:
            return web.Response(status=400, text=str(error))
        except Exception as error:
            _log.exception("A question could not be answered.")
            problem = f"Something unexpected went wrong on the host: {first_line(error)}."
            return web.Response(status=500, text=problem)

    def _found(self, ask: wire.Ask) -> Any:
        match ask.what:
            case "folder":
                return self.files.folder(ask.text)
            case "path":
                return self.files.path(ask.text)
            case "study":
                return snapshot(self.files.study(ask.text), ask.content)
            case "sizes":
                return [self.files.fetched(one)[1] for one in ask.text.split("\n")]
            case "together":
                return self.files.together(ask.content)
            case "models":
                return {one.id: one.available for one in catalogue.models()}
            case "lacking":
                return {SEARCH: why_no_search(), **{one.name: one.problem() for one in JUDGES}}
            case "voices":
                model, _, folder = ask.text.partition("\n")
                found = catalogue.voices(model, self.files.path(folder) if folder else "")
                return [[one.id, one.title, f"{THERE}{one.audio}" if one.audio else "", ""] for one in found]
            case "extent":
                model = catalogue.entry(ask.text)
                found = extent(model.published, model.folder, lambda: None)
                return [found.total, found.missing]
        raise wire.WireError(f"The host does not know the question {ask.what!r}; update Paretone there.")


# --- The process ------------------------------------------------------------------------------------------------------
def state_file(data: Path) -> Path:
    """File with port and token of the user's running engine; mode 600."""
    return data / "remote" / "engine.json"


def running(data: Path) -> dict[str, Any] | None:
    """What :func:`serve` wrote, if that engine still listens, and no other program on its port."""

    async def there(port: int, token: str) -> bool:
        times = ClientTimeout(total=_ANSWER_SECONDS)
        async with ClientSession(f"http://{ADDRESS}:{port}", timeout=times) as session:
            return await wire.unproven(session, token) == 0

    try:
        found: dict[str, Any] = json.loads(state_file(data).read_text("utf-8"))
        return found if asyncio.run(there(int(found["port"]), str(found["token"]))) else None
    except (OSError, ClientError, ArithmeticError, RecursionError, ValueError, KeyError, TypeError):
        return None


async def serve(
    server: EngineServer, port: int, ready: Callable[[dict[str, Any]], None], stopped: Callable[[], bool]
) -> None:
    """Serve an engine until its window is gone or ``stopped``; ``ready`` gets port and token once it listens. Raises
    :class:`SettingError` if the port is taken."""
    async with listening(server.application(), ADDRESS, port, 1.0) as (_, bound):
        # A scheduler may start it on another machine than the one that was asked.
        machine, place = socket.gethostname(), state_file(server.data)
        with contextlib.suppress(KeyError, OSError):  # Some containers have no names of users.
            machine = f"{getpass.getuser()}@{machine}"
        found = {"port": bound, "token": server.token, "machine": machine}
        with files.explained(SettingError, f"{place} could not be written"):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.parent.chmod(0o700)  # Recordings lie there, too.
            with files.replacing(place, 0o600) as file:
                file.write(json.dumps(found).encode())
        ready(found)
        server.begin()
        try:
            while not (stopped() or server.over or server.is_abandoned):
                await asyncio.sleep(0.1)
        finally:
            with contextlib.suppress(OSError, ValueError, TypeError):
                if json.loads(place.read_text("utf-8")) == found:  # Not one that took its place.
                    place.unlink()
            await server.end()
