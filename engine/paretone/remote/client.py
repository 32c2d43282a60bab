"""An engine elsewhere, with the interface of the engine thread: commands go in, events come out. Torch-free.

It runs in its own thread. A broken line is mended with growing pauses, and events go on after the last one that
arrived; commands that the host has not seen yet are sent again under the same numbers.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import secrets
import socket
import statistics
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import aiohttp

from paretone import __version__
from paretone.errors import Cancelled, PlainError
from paretone.remote import INSTALL, TAKE_OVER, LinkError, wire
from paretone.remote.carrying import Carrier
from paretone.serving import reason
from paretone.session import commands, events
from paretone.session.commands import Command
from paretone.session.engine_thread import Posting
from paretone.session.events import ENDINGS, Event, JobCancelled, JobFailed, JobFinished

if TYPE_CHECKING:
    from paretone.remote.ssh import SshLink

PAUSES = 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0
"""Seconds between attempts to reconnect; the last one repeats."""
PING_SECONDS = 1.0
STALL_SECONDS = 10.0
"""Seconds without an answer after which a line counts as broken."""
_CLOSE_SECONDS = 10.0
_TAKE_OVER_SECONDS = 60.0
Result = TypeVar("Result")


@dataclass(frozen=True)
class Line:
    host: str
    connected: bool = False
    round_trip: float | None = None
    """Seconds, the median of the last measurements."""
    sentence: str = ""
    """What is wrong, or being done; ``""``: nothing."""
    lost: bool = False
    """Whether nothing more is tried."""
    remedy: str = ""
    """As of :class:`LinkError`."""


class RemoteEngine(Posting):
    """Takes commands from any thread and posts events, like :class:`paretone.session.engine_thread.EngineThread`."""

    def __init__(
        self,
        post: Callable[[Event], None],
        link: SshLink,
        data: Path,
        told: Callable[[Line], None] = lambda line: None,
        *,
        take_over: bool = False,
        pauses: tuple[float, ...] = PAUSES,
        stall: float = STALL_SECONDS,
    ) -> None:
        """``data``: this machine's data folder; ``told`` gets each state of the line, from the engine's thread."""
        super().__init__(post, self._run, f"engine on {link.host}")
        self._link, self._told = link, told
        self._pauses, self._stall = pauses, stall
        self.line = Line(link.host, sentence=f"Connecting to {link.host} …")
        self._hello = wire.Hello(__version__, secrets.token_hex(8), socket.gethostname(), take_over=take_over)
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._task: asyncio.Task[None] | None = None
        # All further is the thread's own.
        self._waiting: deque[Command] = deque()
        self._wanted = asyncio.Event()
        self._unseen: deque[tuple[int, bytes]] = deque()
        """Numbered messages with commands that the host has not confirmed."""
        self._number = 0
        self._jobs: dict[int, Command] = {}
        """Jobs under way, by number, as they were submitted."""
        self._confirmed: asyncio.Future[int] = self._loop.create_future()
        """Gets the number of the last command that arrived there, once it is asked for."""
        self._session: aiohttp.ClientSession | None = None
        """For questions, while there is a line."""
        self._trips: deque[float] = deque(maxlen=5)
        self._loaded: commands.LoadModel | None = None
        self._carrier = Carrier(link.host, data, self._request, self._post)
        self._transfers: dict[int, asyncio.Task[Any]] = {}
        """Jobs whose files are being sent or fetched."""
        self._failed: dict[int, str] = {}
        """Jobs whose results could not be brought here: why not, or ``""`` if that was cancelled."""
        self._ending = False
        self._gone = ""
        """Why the host cannot be used any more."""

    # --- Any thread ---------------------------------------------------------------------------------------------------
    def start(self) -> None:
        self._thread.start()

    def submit(self, command: Command) -> None:
        """Queue ``command``. After :class:`ShutDown`, and on a host that is gone, jobs end at once."""
        if not isinstance(command, Command):
            raise TypeError(f"{type(command).__name__} is no command.")
        try:
            self._loop.call_soon_threadsafe(self._enqueue, command)
        except RuntimeError:  # The thread has ended.
            if command.carried_out_by:
                self._sink(JobCancelled(command.job))

    def ask(self, what: str, text: str = "") -> Future[Any]:
        """The host's answer to a question of :class:`paretone.remote.wire.Ask`. It fails with a :class:`PlainError`."""

        async def answer() -> Any:
            try:
                return await self._carrier.ask(what, text)
            except (OSError, asyncio.CancelledError) as error:
                raise PlainError(f"{self._link.host} does not answer: the line is broken.") from error

        return asyncio.run_coroutine_threadsafe(answer(), self._loop)

    # --- The thread ---------------------------------------------------------------------------------------------------
    def _run(self) -> None:
        with self._runner, contextlib.suppress(asyncio.CancelledError):
            self._runner.run(self._main())
        for job in [*self._jobs]:
            self._end(JobCancelled(job))

    async def _main(self) -> None:
        self._task, attempt = asyncio.current_task(), 0
        try:
            while not self._ending and not self._gone:
                reason = await self._connected()
                attempt = 0 if self.line.connected else attempt + 1
                if not self._ending and not self._gone:
                    pause = self._pauses[min(attempt, len(self._pauses) - 1)]
                    what = "The line broke ({}). Jobs go on." if self._hello.session else "No line yet ({})."
                    sentence = f"{what.format(reason.rstrip('.'))} Trying again in {pause:g} s."
                    self._tell(connected=False, round_trip=None, sentence=sentence)
                    await asyncio.sleep(pause)
            if not self._ending:
                await asyncio.Event().wait()
        finally:
            await self._link.close()

    async def _connected(self) -> str:
        """Use a connection until it breaks; the reason."""
        try:
            await self._talk(*await self._link.open(lambda sentence: self._tell(sentence=sentence)))
        except LinkError as error:
            if error.lasting and not self._gone:
                self._give_up(str(error), error.remedy)
            return str(error)
        except aiohttp.ClientConnectorError:
            return "nothing answers there"
        except (OSError, aiohttp.ClientError, wire.WireError) as error:
            return reason(error) or "no answer"
        return "the host ended"

    def _tell(self, **changes: Any) -> None:
        line = replace(self.line, **changes)
        if line != self.line:
            self.line = line
            self._told(line)

    def _give_up(self, sentence: str, remedy: str = "") -> None:
        """End all jobs with ``sentence``, and try nothing more."""
        self._gone = sentence
        for job in [*self._jobs]:
            self._end(JobFailed(job, sentence))
        self._waiting.clear()
        self._unseen.clear()
        self._tell(connected=False, round_trip=None, sentence=sentence, lost=True, remedy=remedy)

    def _end(self, event: Event) -> None:
        self._jobs.pop(event.job, None)
        self._carrier.mirrors.pop(event.job, None)
        self._post(event)

    # --- A connection -------------------------------------------------------------------------------------------------
    async def _talk(self, way: int | str, token: str) -> None:
        port, connector = (way, None) if isinstance(way, int) else (80, aiohttp.UnixConnector(way))
        address, times = f"http://127.0.0.1:{port}", aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(address, connector=connector, timeout=times) as session:
            async with asyncio.timeout(self._stall):
                if status := await wire.unproven(session, token):
                    raise self._foreign(older=status == 401)
                session.headers["Authorization"] = f"Bearer {token}"
                try:
                    socket = await session.ws_connect(wire.PATH, max_msg_size=wire.LARGEST_EVENT, compress=0)
                except aiohttp.WSServerHandshakeError as error:
                    raise self._foreign() from error
            try:
                await self._introduce(socket)
                self._session, arrived = session, asyncio.Queue[wire.Envelope]()
                work = self._hear(socket, arrived), self._deliver_all(arrived), self._send(socket), self._ping(socket)
                async with asyncio.TaskGroup() as group:
                    for one in work:
                        group.create_task(one)
            except ExceptionGroup as several:
                raise several.exceptions[0] from None
            finally:
                self._session = None
                with contextlib.suppress(Exception):
                    async with asyncio.timeout(1.0):
                        await socket.close()

    def _foreign(self, older: bool = False) -> LinkError:
        if older:  # Or one that was started again.
            sentence = f"The engine on {self._link.host} does not prove that it is the one that was started"
            return LinkError(f"{sentence}: its Paretone is older. Install this version there.", remedy=INSTALL)
        return LinkError(
            f"What answers on {self._link.host} is not the one that was started: another user's, or started again."
        )

    async def _introduce(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        await socket.send_bytes(wire.message(wire.HELLO, self._hello))
        # Taking an engine over waits for its jobs to end.
        async with asyncio.timeout(self._stall + _TAKE_OVER_SECONDS * self._hello.take_over):
            message = await socket.receive()
        if message.type is not aiohttp.WSMsgType.BINARY:
            raise ConnectionError("the host closed the line")
        found = wire.envelope(message.data, wire.LARGEST_EVENT)
        if found.kind == wire.REFUSED:
            sentence = wire.read(found.payload, str)
            raise LinkError(sentence, remedy=TAKE_OVER if "take the engine over" in sentence else "")
        welcome = wire.read(found.payload, wire.Welcome)
        another = welcome.session != self._hello.session
        if another and self._hello.session:
            self._begin_again()
        self._hello = replace(
            self._hello, session=welcome.session, seen=0 if another else self._hello.seen, take_over=False
        )
        self._confirm(welcome.received)
        for _, content in self._unseen:
            await socket.send_bytes(content)
        dropped = f"{welcome.dropped} reports came too late and were dropped." if welcome.dropped else ""
        self._tell(connected=True, sentence=dropped)

    def _begin_again(self) -> None:
        """The host has another engine than before: end what the old one had, and load the model again."""
        for job in [*self._jobs]:
            self._end(JobFailed(job, f"The engine on {self._link.host} ended and was started again; repeat this."))
        self._number = 0
        self._unseen.clear()
        self._waiting = deque(one for one in self._waiting if one.job == 0)
        if self._loaded is not None:
            again = replace(self._loaded, job=2**40 + secrets.randbelow(2**20))
            self._jobs[again.job] = again
            self._waiting.appendleft(again)
            self._wanted.set()

    def _confirm(self, received: int) -> None:
        while self._unseen and self._unseen[0][0] <= received:
            self._unseen.popleft()

    async def _ping(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        while True:
            started, self._confirmed = time.perf_counter(), self._loop.create_future()
            await socket.send_bytes(wire.message(wire.SEEN, None, self._hello.seen))
            async with asyncio.timeout(self._stall):
                received = await self._confirmed
            self._trips.append(time.perf_counter() - started)
            self._confirm(received)
            self._tell(round_trip=statistics.median(self._trips))
            await asyncio.sleep(PING_SECONDS)

    async def _hear(self, socket: aiohttp.ClientWebSocketResponse, arrived: asyncio.Queue[wire.Envelope]) -> None:
        """Take events, which wait for one another, and confirmations, which do not wait for them."""
        async for message in socket:
            if message.type is not aiohttp.WSMsgType.BINARY:
                raise ConnectionError("the host sent text")
            found = wire.envelope(message.data, wire.LARGEST_EVENT)
            if found.kind == wire.EVENT:
                arrived.put_nowait(found)
            elif found.kind == wire.SEEN and not self._confirmed.done():
                self._confirmed.set_result(found.number)
            elif found.kind == wire.REFUSED:
                raise LinkError(wire.read(found.payload, str))
        raise ConnectionError("the host closed the line")

    async def _deliver_all(self, arrived: asyncio.Queue[wire.Envelope]) -> None:
        while True:
            if (found := await arrived.get()).number > self._hello.seen:
                await self._deliver(wire.of(wire.plain(found.payload), Event))
                self._hello = replace(self._hello, seen=found.number)

    async def _deliver(self, event: Event) -> None:
        """Post an event, with this machine's paths, after its files are here."""
        submitted = self._jobs.get(event.job)
        if event.job and submitted is None and event.job < 2**40:
            return  # Of a job that ended here already.
        if isinstance(event, events.ModelLoaded) and isinstance(submitted, commands.LoadModel):
            self._loaded = submitted
        try:
            event = await self._transferred(event.job, self._carrier.brought(event, submitted))
        except (PlainError, Cancelled) as error:
            self._failed[event.job] = str(error)
        if isinstance(event, ENDINGS):
            if (sentence := self._failed.pop(event.job, None)) is not None and isinstance(event, JobFinished):
                event = JobFailed(event.job, sentence) if sentence else JobCancelled(event.job)
            self._end(event)
        elif event.job not in self._failed:
            self._post(event)

    async def _transferred(self, job: int, work: Coroutine[Any, Any, Result]) -> Result:
        """Result of ``work`` with files of ``job``. Raises :class:`Cancelled` once the job is cancelled."""
        task = self._transfers[job] = asyncio.ensure_future(work)
        try:
            return await task
        except asyncio.CancelledError:
            if (own := asyncio.current_task()) is not None and own.cancelling():  # The line broke.
                raise
            raise Cancelled from None
        finally:
            self._transfers.pop(job, None)

    # --- Commands and questions ---------------------------------------------------------------------------------------
    def _enqueue(self, command: Command) -> None:
        if isinstance(command, commands.ShutDown):
            for one in [one for one in self._waiting if one.carried_out_by]:
                self._enqueue(commands.Cancel(0, one.job))
            if self._session is None:
                self._ending = True
                if self._task is not None:  # Otherwise it has yet to begin.
                    self._task.cancel()
        elif isinstance(command, commands.Cancel | commands.PauseStudy):
            found = next((one for one in self._waiting if one.job == command.target and one.carried_out_by), None)
            transfer = self._transfers.get(command.target)
            if transfer is not None and (found or isinstance(command, commands.Cancel)):
                transfer.cancel()
            if found is not None:
                self._waiting.remove(found)
                self._end(JobCancelled(found.job))
                return
        elif command.carried_out_by:
            self._jobs[command.job] = command
            if self._gone:
                self._end(JobFailed(command.job, self._gone))
                return
        if not self._gone:
            self._waiting.append(command)
            self._wanted.set()

    async def _send(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        while True:
            self._wanted.clear()
            while self._waiting:
                command = self._waiting[0]
                try:
                    content = await self._transferred(command.job, self._carrier.prepared(command))
                    message = wire.message(wire.COMMAND, content, self._number + 1)
                    if len(message) > wire.LARGEST_COMMAND:
                        most = wire.LARGEST_COMMAND >> 20
                        raise PlainError(f"That is more than the {most} MB that go to a host at once; take less of it.")
                except (PlainError, Cancelled) as error:
                    if self._waiting and self._waiting[0] is command:
                        self._waiting.popleft()
                        self._end(JobFailed(command.job, str(error)))
                    continue
                if not self._waiting or self._waiting[0] is not command:
                    continue  # Cancelled meanwhile.
                self._waiting.popleft()
                self._number += 1
                self._unseen.append((self._number, message))
                await socket.send_bytes(message)
                if isinstance(command, commands.ShutDown):
                    self._ending = True
                    await asyncio.sleep(_CLOSE_SECONDS)  # Unless the host closes the line before.
                    raise ConnectionError("the host does not close the line")
            await self._wanted.wait()

    @contextlib.asynccontextmanager
    async def _request(self, *ask: Any, **of: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        """The host's answer. Raises :class:`PlainError`, and :class:`ConnectionError` if the line breaks."""
        if self._session is None:
            raise ConnectionError("the line is broken")
        of = of or {"data": io.BytesIO(wire.message(wire.ASK, wire.Ask(*ask)))}
        try:
            async with self._session.post(wire.PATH, **of) as answer:
                if answer.status != 200:
                    raise PlainError(await answer.text("utf-8", "replace"))
                yield answer
        except aiohttp.ClientError as error:
            raise ConnectionError(str(error)) from error
