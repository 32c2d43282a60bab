"""Speech servers on the loopback that answer as a test wants."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from aiohttp import web

from paretone.serving import listening
from paretone.serving.load import PATH


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
