"""Speech over HTTP: a server with OpenAI's form of requests, and a client that measures any such server under load.
Neither needs the other: the client measures servers that nobody here wrote."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from paretone.errors import SettingError
from paretone.observer import Check
from paretone.reading import first_line, shortened

if TYPE_CHECKING:
    from aiohttp import web

IDLE_SECONDS = 75.0
"""For the head of a connection's next request, of the first one too from aiohttp 3.14.5; reverse proxies keep theirs
for less."""


Found = TypeVar("Found")


async def watched(work: Coroutine[Any, Any, Found], check: Check) -> Found:
    """Result of ``work``, which is cancelled when ``check`` raises."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            check()
            await asyncio.wait([task], timeout=0.1)
        return task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def reason(error: BaseException) -> str:
    """What aiohttp says in several lines, with a status and an address, in one without."""
    said = str(getattr(error.__cause__ or error, "message", "") or error)
    return shortened(" ".join(said.split()).rstrip(".^ ")).replace(" ssl:default", "")


def may(request: web.Request, token: str) -> bool:
    given = request.headers.get("Authorization", "")
    return hmac.compare_digest(*(one.encode("utf-8", "surrogateescape") for one in (given, f"Bearer {token}")))


def _is_not_malformed(logged: logging.LogRecord) -> bool:
    """A malformed request is the client's fault, and its answer says so; it is not logged as an error of the server."""
    from aiohttp import http_exceptions, web

    malformed = http_exceptions.HttpProcessingError, web.RequestPayloadError
    return not (logged.exc_info and isinstance(logged.exc_info[1], malformed))


@asynccontextmanager
async def listening(application: web.Application, host: str, port: int, grace: float) -> AsyncIterator[tuple[str, int]]:
    """Serve ``application``, and at the end wait ``grace`` seconds for running requests; its host, as in an address,
    and port. ``port`` 0: a free one. Raises :class:`SettingError` if nothing can listen there."""
    from aiohttp import web

    logging.getLogger("aiohttp.server").addFilter(_is_not_malformed)
    runner = web.AppRunner(
        application, access_log=None, handler_cancellation=True, shutdown_timeout=grace, keepalive_timeout=IDLE_SECONDS
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except (OSError, UnicodeError) as error:  # A name that is not found has a number below 0.
            number = getattr(error, "errno", None) or 0
            reason = os.strerror(number) if number > 0 else first_line(error)
            raise SettingError(f"Nothing can listen on {host}, port {port}: {reason}; choose another one.") from error
        where, bound, *_ = runner.addresses[0]
        yield f"[{where}]" if ":" in where else where, bound
    finally:
        await runner.cleanup()
