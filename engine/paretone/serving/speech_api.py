"""A server of speech with OpenAI's form of requests: ``POST /v1/audio/speech``, streamed, and its companions.

One loaded model speaks under one setting, request after request or several at once
(:mod:`paretone.models.families.together`); further requests wait, up to a limit. A request whose client goes away is
cancelled within a step. Form: https://platform.openai.com/docs/api-reference/audio/createSpeech.
"""

from __future__ import annotations

import asyncio
import base64
import json
import struct
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
from aiohttp import web

from paretone.audio.recording import encoded
from paretone.errors import Cancelled, SettingError, TextError, sentence
from paretone.models import catalogue
from paretone.models.families.together import Turn, speak_together
from paretone.reading import parsed_json, shown
from paretone.serving import listening, may, reason
from paretone.session.commands import Synthesise
from paretone.session.events import AudioReady, Event
from paretone.session.executor import Executor, RunningJob
from paretone.session.synthesis import spoken_with_others
from paretone.setting.setting import checked_seed
from paretone.wording import listed

LARGEST_BODY = 1 << 20
STREAMED = ("wav", "pcm")
"""Formats that are sent while the model speaks: 16-bit samples, mono, with and without a header."""
WHOLE = {"flac": ("FLAC", ""), "mp3": ("MP3", ""), "opus": ("OGG", "OPUS")}
"""Formats that are encoded once all is spoken, with libsndfile's format and subtype."""
_TYPES = {"wav": "audio/wav", "pcm": "audio/pcm", "flac": "audio/flac", "mp3": "audio/mpeg", "opus": "audio/ogg"}
_KNOWN = {"input", "model", "voice", "response_format", "stream_format", "speed", "seed", "user"}
GRACE_SECONDS = 1.0
"""For running requests when the server ends; then they are cancelled."""
PATIENCE_SECONDS = 60.0
"""For a client to send its request, and to take each piece of audio."""


class Refused(Exception):
    """A request that gets an answer in OpenAI's form of errors instead of speech."""

    def __init__(self, status: int, message: str, parameter: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.parameter, self.code = status, parameter, code

    def response(self) -> web.Response:
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        problem = {"message": str(self), "type": kind, "param": self.parameter, "code": self.code}
        headers = {"Retry-After": "1"} if self.status == 429 else None
        return web.json_response({"error": problem}, status=self.status, headers=headers)


def asked(body: bytes, usual: Synthesise, model: str, folder: str = "") -> tuple[Synthesise, str, bool]:
    """Check a request's ``body``: what to speak, the form of the audio, and whether it is sent as server-sent events.
    ``usual``: what is spoken unless it says otherwise, by the catalogue's ``model`` from ``folder``. Raises
    :class:`Refused`."""
    try:
        given = parsed_json(body)
    except ValueError as error:
        raise Refused(400, f"The body is not JSON: {error}.") from error
    if not isinstance(given, dict):
        raise Refused(400, "The body must be a JSON object.")
    given = {name: value for name, value in given.items() if value is not None}  # Some clients send all fields.
    if unknown := sorted(set(given) - _KNOWN):
        raise Refused(400, f"This server does not know {listed(unknown)}; leave that out.", unknown[0])
    text, wanted, form = given.get("input"), given.get("model", model), given.get("response_format", "wav")
    if not isinstance(text, str) or not text.strip():
        raise Refused(400, "input must be the text to speak.", "input")
    if wanted not in (model, "paretone"):
        raise Refused(404, f"This server has the model {model}, not {shown(wanted)}.", "model", "model_not_found")
    if not isinstance(form, str) or form not in _TYPES:
        raise Refused(400, f"response_format must be {listed(_TYPES, 'or')}, not {shown(form)}.", "response_format")
    stream = given.get("stream_format", "audio")
    if stream not in ("audio", "sse"):
        raise Refused(400, f"stream_format must be audio or sse, not {shown(stream)}.", "stream_format")
    if stream == "sse" and form not in STREAMED:
        raise Refused(400, f"Events carry {listed(STREAMED, 'or')}, not {form}.", "response_format")
    if given.get("speed", 1) != 1:
        raise Refused(400, "speed must be 1: the model sets its pace.", "speed")
    command = replace(usual, text=text)
    try:
        if (voice := given.get("voice", "")) not in ("", "default"):
            there = {one.id: one for one in catalogue.voices(model, folder)}
            if not isinstance(voice, str) or voice not in there:
                raise Refused(400, f"There is no voice {shown(voice)}; there are {listed(list(there))}.", "voice")
            command = replace(command, voice=there[voice])
        if "seed" in given:
            command = replace(command, setting=replace(command.setting, seed=checked_seed(given["seed"])))
    except SettingError as error:
        raise Refused(400, str(error)) from error
    return command, form, stream == "sse"


class SpeechServer:
    def __init__(
        self, executor: Executor, usual: Synthesise, *, token: str, waiting: int, folder: str, batch: int = 1
    ) -> None:
        """``usual``: voice, setting and artefacts of every request; ``token``: of clients, ``""`` for none;
        ``waiting``: requests that may wait; ``folder``: of the model, if not the usual one; ``batch``: requests that
        are spoken at once."""
        self._executor, self._usual, self._folder = executor, usual, folder
        self._token, self._most, self._batch = token, waiting, batch
        self._model = usual.setting.model
        self._turn = asyncio.Semaphore(batch)
        self._asked: deque[_Speaking] = deque()
        """Requests that join those spoken at once."""
        self._speaking = self._waiting = 0
        self._thread = ThreadPoolExecutor(1, "speech")
        self._next: Future[None] = self._thread.submit(lambda: None)
        """Speaks requests at once, or will."""
        self._started = time.monotonic()
        self.spoken = 0
        """Texts so far."""

    def application(self) -> web.Application:
        made = web.Application(client_max_size=LARGEST_BODY, middlewares=[self._answer])
        made.router.add_post("/v1/audio/speech", self._speech)
        made.router.add_get("/v1/models", self._models)
        made.router.add_get("/v1/audio/voices", self._voices)
        made.router.add_get("/health", self._health)
        made.on_cleanup.append(self._close)
        return made

    async def _close(self, application: web.Application) -> None:
        self._thread.shutdown(wait=True)

    @web.middleware
    async def _answer(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        try:
            if self._token and request.path != "/health" and not may(request, self._token):
                raise Refused(401, "The token is missing or wrong; send it as Authorization: Bearer TOKEN.")
            return await handler(request)
        except Refused as refused:
            return refused.response()
        except web.HTTPException as error:
            return Refused(error.status, f"{error.reason}.").response()
        except web.RequestPayloadError as error:
            return Refused(400, f"The body cannot be read: {reason(error)}.").response()

    # --- Companions ---------------------------------------------------------------------------------------------------
    async def _models(self, request: web.Request) -> web.Response:
        own = {"id": self._model, "object": "model", "created": 0, "owned_by": "paretone"}
        return web.json_response({"object": "list", "data": [own]})

    async def _voices(self, request: web.Request) -> web.Response:
        there = catalogue.voices(self._model, self._folder)
        return web.json_response({"voices": [{"id": one.id, "name": one.title} for one in there]})

    async def _health(self, request: web.Request) -> web.Response:
        state = {"speaking": self._speaking > 0, "waiting": self._waiting, "spoken": self.spoken}
        seconds = round(time.monotonic() - self._started, 3)
        return web.json_response({"status": "ok", "model": self._model, **state, "seconds": seconds})

    # --- Speech -------------------------------------------------------------------------------------------------------
    async def _speech(self, request: web.Request) -> web.StreamResponse:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                body = await request.read()
        except TimeoutError as error:
            raise Refused(408, f"The request did not come whole within {PATIENCE_SECONDS:.0f} s.") from error
        command, form, events = asked(body, self._usual, self._model, self._folder)
        if self._waiting >= self._most and self._turn.locked():
            raise Refused(429, f"{self._waiting} requests wait already; try again later.", code="queue_full")
        self._waiting += 1
        try:
            await self._turn.acquire()
        finally:
            self._waiting -= 1
        pieces = self._pieces(command)
        try:
            # The first piece comes before the answer begins, so that a failure is still told as one.
            first = await anext(pieces, None)
            if first is None:
                raise Refused(500, "The model said nothing.")
            if form in STREAMED:
                return await self._send(request, form, events, first, pieces)
            samples = np.concatenate([first.samples, *[one.samples async for one in pieces]])
            body = await asyncio.to_thread(encoded, samples, first.sample_rate, *WHOLE[form])
            return web.Response(body=body, content_type=_TYPES[form])
        finally:
            await pieces.aclose()

    async def _send(
        self, request: web.Request, form: str, events: bool, first: AudioReady, others: AsyncIterator[AudioReady]
    ) -> web.StreamResponse:
        kind = "text/event-stream" if events else _TYPES[form]
        response = web.StreamResponse(headers={"Content-Type": kind, "X-Sample-Rate": str(first.sample_rate)})
        await response.prepare(request)

        async def write(data: bytes) -> None:
            if events:
                delta = {"type": "speech.audio.delta", "audio": base64.b64encode(data).decode()}
                data = f"data: {json.dumps(delta)}\n\n".encode()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await response.write(data)

        try:
            await write((wav_head(first.sample_rate) if form == "wav" else b"") + pcm(first.samples))
            async for piece in others:
                await write(pcm(piece.samples))
            async with asyncio.timeout(PATIENCE_SECONDS):
                await response.write_eof(b'data: {"type": "speech.audio.done"}\n\n' if events else b"")
        except (Refused, TimeoutError):
            # The answer has begun: cut it off, so that no client takes a part for the whole.
            if request.transport is not None:
                request.transport.abort()
        return response

    async def _pieces(self, command: Synthesise) -> AsyncGenerator[AudioReady]:
        """Audio of ``command`` as it comes. Ending the iteration cancels it. Its turn ends once all is spoken, however
        slowly it is taken. Raises :class:`Refused`."""
        loop, cancelled = asyncio.get_running_loop(), threading.Event()
        heard: asyncio.Queue[AudioReady | None] = asyncio.Queue()

        def hear(event: Event) -> None:
            if isinstance(event, AudioReady) and len(event.samples):
                loop.call_soon_threadsafe(heard.put_nowait, event)

        spoken: asyncio.Future[object]
        if self._batch > 1:
            speaking = _Speaking(command, RunningJob(command.job, hear, cancelled))
            self._asked.append(speaking)
            spoken = asyncio.wrap_future(speaking.ended)
            # Whatever speaks takes it in before the next pass, unless it ends just now: then the next does. One such
            # is enough: a server that is never idle would collect them.
            if self._next.running() or self._next.done():
                self._next = self._thread.submit(self._speak_together)
        else:
            spoken = loop.run_in_executor(self._thread, self._executor.carry_out, command, hear, cancelled)

        def end(spoken: asyncio.Future[object]) -> None:
            heard.put_nowait(None)
            self._speaking -= 1
            self._turn.release()
            spoken.exception()  # Told below, or nobody is there to tell.

        self._speaking += 1
        spoken.add_done_callback(end)
        try:
            while (piece := await heard.get()) is not None:
                yield piece
            await spoken
            self.spoken += 1
        except (TextError, SettingError) as error:
            raise Refused(400, str(error)) from error
        except Cancelled as error:
            raise Refused(503, "The server is closing.") from error
        except Exception as error:
            raise Refused(500, sentence(error, Synthesise.activity)) from error
        finally:
            cancelled.set()
            await asyncio.wait([spoken])

    def speak_at_once(self, text: str, cancelled: threading.Event) -> None:
        """Speak ``text`` as many times at once as requests may be, unheard."""
        if self._batch > 1:
            job = RunningJob(self._usual.job, lambda event: None, cancelled)
            speaking = [_Speaking(replace(self._usual, text=text), job) for _ in range(self._batch)]
            self._asked.extend(speaking)
            self._speak_together()
            for one in speaking:
                one.ended.result()

    def _speak_together(self) -> None:
        def following() -> Turn | None:
            while self._asked:
                one = self._asked.popleft()
                try:
                    return spoken_with_others(one.command, self._executor, one.job, one.end)
                except BaseException as error:
                    one.end(error)
            return None

        speak_together(self._executor.model_for(self._usual.setting), following, self._batch)


@dataclass(frozen=True)
class _Speaking:
    command: Synthesise
    job: RunningJob
    ended: Future[object] = field(default_factory=Future)

    def end(self, found: object) -> None:
        if isinstance(found, BaseException):
            self.ended.set_exception(found)
        else:
            self.ended.set_result(None)


def pcm(samples: np.ndarray) -> bytes:
    """16-bit little-endian samples; beyond full scale they are clipped."""
    return np.clip(np.rint(samples * 32768), -32768, 32767).astype("<i2").tobytes()


def wav_head(rate: int) -> bytes:
    """Header of a WAV file of 16-bit samples, mono, whose length is not known yet: its sizes are the largest."""
    form = struct.pack("<HHIIHH", 1, 1, rate, 2 * rate, 2, 16)
    before = struct.pack("<4sI4s4sI", b"RIFF", 0xFFFFFFFF, b"WAVE", b"fmt ", len(form))
    return before + form + struct.pack("<4sI", b"data", 0xFFFFFFFF)


async def require_free(host: str, port: int) -> None:
    async with listening(web.Application(), host, port, 0.0):
        pass
