"""Speech servers on the loopback that answer as a test wants."""

import asyncio
import socketserver
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from aiohttp import web

from paretone.serving import listening
from paretone.serving.records import PATH


@contextmanager
def answering(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> Iterator[str]:
    """The address of a server that answers each request for speech by ``answer``."""
    found, over = Future[int](), threading.Event()

    async def serve() -> None:
        application = web.Application(client_max_size=1 << 26)
        application.router.add_post(PATH, answer)
        async with listening(application, "127.0.0.1", 0, 1.0) as (_, port):
            found.set_result(port)
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        yield f"http://127.0.0.1:{found.result()}"
    finally:
        over.set()
        thread.join()


class _Once(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        length = 0
        while line := self.rfile.readline().strip():
            length = int(line.split()[1]) if line.lower().startswith(b"content-length") else length
        self.rfile.read(length)
        self.wfile.write(self.server.reply)


@contextmanager
def hanging_up(reply: bytes, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The address of a server that answers one request of each connection with these bytes, and hangs up."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Once) as server:
        server.reply, server.daemon_threads = reply, True
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever).start()
        yield f"http{'s' * (tls is not None)}://localhost:{server.server_address[1]}"
        server.shutdown()
