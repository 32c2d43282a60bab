"""Measure a speech server under load: a client of ``/v1/audio/speech``, OpenAI's form, of any such server.

A *closed* loop has a number of clients, each of which asks again once it was answered: it finds what a server can do at
most. An *open* loop sends requests at random times at a given rate (Poisson arrivals), whether or not earlier ones were
answered: it finds what users feel. Requests are the same every time: texts, seeds and order are fixed, and the texts
have a hash. Requests of the warm-up are not counted. Torch-free.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import math
import random
import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import accumulate, cycle
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import soundfile

from paretone import files
from paretone.audio.recording import read_recording
from paretone.errors import PlainError, SettingError
from paretone.measure.estimates import bootstrap
from paretone.measure.loudness import signal_metrics
from paretone.measure.machine import describe
from paretone.observer import Check, Observer
from paretone.reading import printable, shortened, shown
from paretone.serving import reason, watched
from paretone.serving.records import FIGURES, Level, Order, ServerRecord, Target
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting
from paretone.setting.take import SERVED, Measurements, Take

BUFFERS = (0.0, 0.1, 0.3)
"""Seconds that a player waits after the first audio before it plays."""
PERCENTILES = (50, 90, 95, 99)
PCM_RATE = 24_000
"""Of raw samples, in hertz, unless the answer's headers say otherwise: OpenAI's."""
RATES = range(4_000, 384_001)
_RTF = re.compile(r"(x-)?(rtf|real-?time-?factor)", re.IGNORECASE)
"""Headers with a real-time factor."""
_ENCODED = (b"OggS", b"fLaC", b"ID3", b'{"')
"""Beginnings of answers that are no samples, whatever their headers say."""
LONGEST_SECONDS = 600.0
"""Of one request."""
LARGEST_BYTES = 1 << 28
PAUSE_SECONDS = 0.5
"""After a request without a connection: a server that restarts is not asked thousands of times meanwhile."""
LONGEST_PAUSE = 30.0
"""Seconds that a client of a closed loop waits at most after a refusal with ``Retry-After``."""


@dataclass(frozen=True)
class Reply:
    """One request. Times are in seconds since it was due: in an open loop, waiting for the client counts as well."""

    text: str
    seed: int | None
    failure: str = ""
    """Kind of failure, such as ``HTTP 429``, or ``""``."""
    detail: str = ""
    arrivals: tuple[tuple[float, int], ...] = ()
    """Time of each piece of audio, and samples up to its end."""
    seconds: float = 0.0
    samples: np.ndarray = field(default_factory=lambda: np.empty(0, np.float32), repr=False)
    """(n,), within −1 to 1."""
    sample_rate: int = PCM_RATE
    reported: float | None = None
    """The real-time factor that the server's headers name."""
    retry_after: float = 0.0
    """Seconds after which the server wants to be asked again, at most :data:`LONGEST_PAUSE`."""

    @property
    def measurements(self) -> Measurements:
        """Of an answered request."""
        times = [time for time, _ in self.arrivals]
        return Measurements(
            seconds=self.seconds,
            audio_seconds=len(self.samples) / self.sample_rate,
            first_audio_seconds=times[0],
            largest_gap_seconds=max(np.diff(times), default=0.0),
            pause_seconds=self.stalls(0.0)[1],
            device=SERVED,
        )

    def take(self, setting: Setting, voice: str, machine: str, name: str = "", label: str = "") -> Take:
        """An answered request as a take under ``setting``, measured from ``machine``; ``name``: its id."""
        key, now = name or uuid.uuid4().hex, datetime.now(UTC).isoformat(timespec="milliseconds")
        rate, samples, measured = self.sample_rate, self.samples, self.measurements
        about: dict[str, Any] = {"label": label, "machine": machine, "metrics": signal_metrics(samples, rate)}
        return Take(key, now, self.text, voice, setting, rate, samples, measurements=measured, **about)

    def stalls(self, buffer: float) -> tuple[int, float]:
        """Underruns, and their seconds, of a player that starts ``buffer`` seconds after the first audio, and after an
        underrun goes on with the next piece."""
        ends, number, waited = self.arrivals[0][0] + buffer, 0, 0.0
        for (_, played), (arrived, _) in zip(self.arrivals, self.arrivals[1:], strict=False):
            runs_dry = ends + played / self.sample_rate
            if arrived > runs_dry:
                number, waited, ends = number + 1, waited + arrived - runs_dry, ends + arrived - runs_dry
        return number, waited


@dataclass(frozen=True)
class Measured:
    level: Level
    replies: tuple[Reply, ...]
    seconds: float
    """From the first counted request to the last answer."""
    client_seconds: float
    """Processor time of this client per request, while it asked."""
    waited: float = 0.0
    """Seconds of all clients together in which they did not ask because of ``Retry-After``."""

    @property
    def answered(self) -> tuple[Reply, ...]:
        return tuple(one for one in self.replies if not one.failure)

    @property
    def failures(self) -> dict[str, int]:
        return dict(Counter(one.failure for one in self.replies if one.failure))

    def takes(self, title: str, target: Target, most: int) -> tuple[Take, ...]:
        """The first answers of the server ``title`` as takes."""
        plain = ((name, one) for name, one in target.body("", None).items() if isinstance(one, int | float | str))
        asked = {name: one for name, one in plain if not str(one).startswith("data:")}  # Recordings are large.
        setting = Setting(f"server {title}", Values({**asked, **self.level.option, "url": target.url}))
        voice = target.like.id if target.like else target.voice or "the server's own"
        about = {"voice": voice, "machine": describe().line, "label": f"{title}, {self.level}"}
        return tuple(one.take(replace(setting, seed=one.seed or 0), **about) for one in self.answered[:most])

    def row(self) -> dict[str, Any]:
        """Figures; times in seconds, each percentile with the ends of its 95 % interval by bootstrap over requests."""
        good, measured = self.answered, [one.measurements for one in self.answered]
        row: dict[str, Any] = {
            "load": str(self.level),
            "clients": self.level.clients,
            "rate": self.level.rate,
            "requests": len(self.replies),
            "failed": len(self.replies) - len(good),
            "failures": self.failures,
            "first_failure": next((one.detail for one in self.replies if one.failure), ""),
            "requests_per_second": len(good) / self.seconds,
            "audio_seconds_per_second": sum(one.audio_seconds for one in measured) / self.seconds,
            "client_milliseconds": 1e3 * self.client_seconds,
            "retry_after_seconds": self.waited,
        }
        if not good:
            return row
        for figure, name in (FIGURES | {"seconds": "latency"}).items():
            values = np.array([getattr(one, figure) for one in measured])
            for share in PERCENTILES:
                row[f"{name}_p{share}"], *row[f"{name}_p{share}_interval"] = bootstrap(
                    lambda drawn, share=share: np.percentile(drawn, share, axis=1), values, draws=1000
                )
        if reported := [one.reported for one in good if one.reported and math.isfinite(one.reported)]:
            row["reported_rtf"] = float(np.median(reported))
        for buffer in BUFFERS:
            found = [one.stalls(buffer) for one in good]
            row[f"underruns_{1e3 * buffer:.0f}_ms"] = sum(number for number, _ in found) / len(good)
            row[f"underrun_seconds_{1e3 * buffer:.0f}_ms"] = sum(waited for _, waited in found) / len(good)
        return row


def recorded(path: str | Path) -> str:
    """A recording as a field of a request carries it. Raises :class:`paretone.errors.AudioError`."""
    recording = read_recording(path)
    sound = base64.b64encode(files.wav(recording.samples, recording.sample_rate)).decode()
    return f"data:audio/wav;base64,{sound}"


Progress = Callable[[float], None]
"""Gets the number of answered requests, or the seconds if those are ordered."""


def measure(
    order: Order, level: Level, check: Check = lambda: None, progress: Progress = lambda done: None
) -> Measured:
    """Ask what is ordered under the load ``level``; ``check`` may raise to cancel. Raises :class:`PlainError` if the
    server cannot be reached or refuses every request of the warm-up."""
    if not order.texts:
        raise SettingError("There is nothing to say; give at least one text.")
    return asyncio.run(watched(_measured(order, level, progress), check))


async def _measured(order: Order, level: Level, progress: Progress) -> Measured:
    target = order.target
    headers = {"Authorization": f"Bearer {target.token}"} if target.token else {}
    times = aiohttp.ClientTimeout(total=LONGEST_SECONDS)
    connector, traces = aiohttp.TCPConnector(limit=0), aiohttp.TraceConfig()
    traces.on_connection_reuseconn.append(_reused)
    async with aiohttp.ClientSession(
        headers=headers, timeout=times, connector=connector, trace_configs=[traces]
    ) as session:
        asked = [ask(session, target, order.texts[0], None, time.perf_counter()) for _ in range(order.warm_up)]
        found = [one() for one in await asyncio.gather(*asked)]
        if found and all(one.failure for one in found):
            why = f"{found[0].failure}. {found[0].detail}".rstrip()
            raise PlainError(f"{target.endpoint} does not speak: {why}")
        began, used = time.perf_counter(), time.process_time()
        waited: list[float] = []
        answers = await _asked(session, order, level, progress, waited)
        seconds, used = time.perf_counter() - began, time.process_time() - used
    return Measured(level, tuple(one() for one in answers), seconds, used / max(len(answers), 1), sum(waited))


async def _asked(
    session: aiohttp.ClientSession, order: Order, level: Level, progress: Progress, waited: list[float]
) -> list[_Answer]:
    wanted = ((text, seed) for seed in cycle(order.seeds) for text in order.texts)
    answers, began, started = list[_Answer](), time.perf_counter(), 0

    def another(due: float) -> bool:
        nonlocal started
        fits = due < began + order.seconds if order.seconds else started < order.requests
        started += fits
        return fits

    async def one(due: float) -> float:
        answers.append(answer := await ask(session, order.target, *next(wanted), due))
        progress(min(time.perf_counter() - began, order.seconds) or len(answers))
        return answer.keywords.get("retry_after", 0.0)

    async def client() -> None:
        while another(due := time.perf_counter()):
            pause, left = await one(due), began + order.seconds - time.perf_counter()
            if order.seconds or started < order.requests:
                waited.append(max(0.0, min(pause, left) if order.seconds else pause))
                await asyncio.sleep(waited[-1])

    under_way: list[asyncio.Task[Any]] = [asyncio.create_task(client()) for _ in range(level.clients)]
    arrivals, due = random.Random(0), began
    try:
        while level.rate and another(due):
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            under_way.append(asyncio.create_task(one(due)))
            due += arrivals.expovariate(level.rate)
        await asyncio.gather(*under_way)
    finally:
        for task in under_way:
            task.cancel()
    return answers


class Measurement:
    """A server that is asked as ordered, its record so far, and the replies to each load."""

    def __init__(self, order: Order, judge: Callable[..., Any]) -> None:
        """``judge``: :func:`paretone.measure.evaluation.judging.reply_figures`, which imports torch."""
        self.order, self._figures = order, judge
        self.record = ServerRecord.of(order)
        self.takes: list[tuple[Take, ...]] = []

    def run(self, observer: Observer) -> Iterator[tuple[tuple[Take, ...], dict[str, dict[str, float]]]]:
        """Measure each load in turn, and give its replies as takes; then judge these, and give the figures of each take
        by its id. Raises as :func:`measure`; after the first load only once its replies are judged."""
        order, stopped = self.order, None
        each = order.seconds or order.requests
        # As much work again is judging. In tenths: whole seconds would look as if it stood still.
        total = round(10 * each * len(order.loads) * (2 if order.judges else 1))

        def reached(parts: float, share: float) -> None:
            observer.progress(round(10 * each * (parts + min(share, 1.0))), total)

        for level in order.loads:
            observer.status(f"Asking {order.target.endpoint}: {level} …")
            try:
                found = measure(order, level, observer.check, lambda done: reached(len(self.takes), done / each))
            except PlainError as error:
                if not self.takes:
                    raise
                stopped = PlainError(f"At {level}, {error} The loads before are listed.")
                break
            takes = found.takes(order.title, order.target, order.kept)
            row = found.row() | {"takes": [one.id for one in takes]}
            self.record = replace(self.record, loads=(*self.record.loads, row))
            self.takes.append(takes)
            yield takes, {}
        for place, takes in enumerate(self.takes if order.judges else ()):
            if takes:
                yield (), self._judge(place, observer, reached)
        if stopped is not None:
            raise stopped

    def _judge(
        self, place: int, observer: Observer, reached: Callable[[float, float], None]
    ) -> dict[str, dict[str, float]]:
        takes, loads, like = self.takes[place], list(self.record.loads), self.order.target.like
        observer.status(f"Judging the replies to {loads[place]['load']} …")
        sounds, texts = [(one.samples, one.sample_rate) for one in takes], [one.text for one in takes]
        reference = None if like is None else Path(like.audio)
        progress = lambda done, most: reached(len(self.order.loads) + place, done / most)  # noqa: E731
        figures, each = self._figures(texts, sounds, reference, progress, observer.check)
        loads[place] = {**loads[place], "judged": figures}
        self.record = replace(self.record, loads=tuple(loads))
        return {take.id: said for take, said in zip(takes, each, strict=True)}


_Answer = partial[Reply]
"""Reads the samples that came: after the load, as all streams share this processor."""


async def _reused(session: aiohttp.ClientSession, context: Any, told: object) -> None:
    context.trace_request_ctx.append(True)


async def ask(session: aiohttp.ClientSession, target: Target, text: str, seed: int | None, due: float) -> _Answer:
    """One request; ``due``: when it should begin, by :func:`time.perf_counter`."""
    pieces: list[tuple[float, bytes]] = []
    rate, reported, received = PCM_RATE, None, 0
    reused: list[bool] = []

    def failed(kind: str, detail: str, retry_after: float = 0.0) -> _Answer:
        said = f"{detail.rstrip('.')}." if detail else ""
        return partial(Reply, text, seed, kind, said, retry_after=retry_after, seconds=time.perf_counter() - due)

    try:
        body = target.body(text, seed)
        async with session.post(target.endpoint, json=body, allow_redirects=False, trace_request_ctx=reused) as answer:
            reused.clear()
            if answer.status // 100 == 3 and (where := answer.headers.get("Location")):
                return failed(f"HTTP {answer.status}", f"The server sends on to {shown(where)}; measure that address.")
            if answer.status != 200:
                return failed(f"HTTP {answer.status}", await _message(answer), _retry_after(answer.headers))
            if (kind := answer.content_type).startswith("text/") or kind.endswith("json"):
                said = "ask for no events" if kind == "text/event-stream" else await _message(answer)
                return failed("no sound", f"The answer is {kind}, not audio: {said}")
            found = answer.headers
            kinds = f"rate={found.get('X-Sample-Rate', '')};{found.get('Content-Type', '')}"
            if named := re.search(r"\brate=([1-9]\d{0,8})\b", kinds):
                rate = int(named[1])
            with suppress(StopIteration, ValueError):
                reported = float(next(value for name, value in found.items() if _RTF.fullmatch(name)))
            async for piece in answer.content.iter_any():
                pieces.append((time.perf_counter() - due, piece))
                if (received := received + len(piece)) > LARGEST_BYTES:
                    return failed("no end", f"More than {LARGEST_BYTES >> 20} MiB came.")
    except TimeoutError:
        return failed("timeout", f"No end within {LONGEST_SECONDS:g} s.")
    except aiohttp.ClientPayloadError as error:
        return failed("cut off", reason(error))
    except aiohttp.ClientConnectorCertificateError as error:
        why = getattr(error.certificate_error, "verify_message", error.certificate_error)
        return failed("no connection", f"Its certificate is not trusted: {why}; name its file in SSL_CERT_FILE.")
    except (aiohttp.ClientError, ValueError) as error:  # Also a token that no header can hold.
        if reused:  # The server closed that connection meanwhile, as it may: no fault of its answers.
            return await ask(session, target, text, seed, due)
        found_none = failed("no connection", reason(error))
        await asyncio.sleep(PAUSE_SECONDS)
        return found_none
    return partial(_reply, text, seed, pieces, time.perf_counter() - due, target.form, rate, reported)


def _retry_after(headers: Mapping[str, str]) -> float:
    """Seconds, from a number of them or a date (RFC 9110, section 10.2.3), within 0 and :data:`LONGEST_PAUSE`."""
    given = headers.get("Retry-After", "0")
    with suppress(ValueError, OverflowError):
        seconds = float(given) if given.isdecimal() else parsedate_to_datetime(given).timestamp() - time.time()
        return min(max(seconds, 0.0), LONGEST_PAUSE)
    return 0.0


async def _message(answer: aiohttp.ClientResponse) -> str:
    """The message of an error in OpenAI's form; otherwise the beginning of the answer."""
    body = await answer.text(errors="replace")
    if "\0" in body:  # Sound under another status, for example.
        return ""
    with suppress(ValueError, LookupError, TypeError):
        body = str(json.loads(body)["error"]["message"])
    return printable(shortened(" ".join(body.split()), 300))


def _reply(
    text: str,
    seed: int | None,
    pieces: Sequence[tuple[float, bytes]],
    seconds: float,
    form: str,
    rate: int,
    reported: float | None = None,
) -> Reply:
    """The reply with its sound: arrivals count samples, without the header of a WAV file."""
    body = b"".join(piece for _, piece in pieces)
    header, end = 0, len(body)
    try:
        if body.startswith(_ENCODED):
            raise ValueError(f"The answer is no {form}: it begins with {body[:12]!r}.")
        if form == "wav" or body[:4] == b"RIFF":  # Some servers send it whatever is asked for.
            header, end = _wav_samples(body)
            # With the sizes of what came: servers write a header before they know them.
            sizes = [one.to_bytes(4, "little") for one in (end - 8, end - header)]
            whole = b"".join((body[:4], sizes[0], body[8 : header - 4], sizes[1], body[header:end]))
            found, rate = soundfile.read(io.BytesIO(whole), dtype="float32", always_2d=True)
            samples = found.mean(axis=1)
        else:
            samples = np.frombuffer(body, "<i2", end // 2).astype(np.float32) / 32768
        if not samples.any():
            raise ValueError("The answer is silent." if len(samples) else "The answer is empty.")
        if rate not in RATES:
            raise ValueError(f"The answer's sample rate is {rate} Hz, by its headers.")
    except (ValueError, soundfile.LibsndfileError) as error:
        return Reply(text, seed, "no sound", str(error), seconds=seconds)
    ends = zip((when for when, _ in pieces), accumulate(len(one) for _, one in pieces), strict=True)
    shares = ((when, (min(at, end) - header) / (end - header)) for when, at in ends if at > header)
    arrivals = tuple((when, round(len(samples) * share)) for when, share in shares)
    return Reply(text, seed, "", "", arrivals, seconds, samples, rate, reported)


def _wav_samples(body: bytes) -> tuple[int, int]:
    """Where the samples of a WAV file begin and end: at its end, whatever length its header claims, unless another
    part follows. Raises :class:`ValueError`."""
    if body[:4] != b"RIFF" or body[8:12] != b"WAVE":
        raise ValueError(f"The answer is no WAV file: it begins with {body[:12]!r}.")
    place = 12
    while place + 8 <= len(body):
        name, size = body[place : place + 4], int.from_bytes(body[place + 4 : place + 8], "little")
        begin, place = place + 8, place + 8 + size + size % 2
        if name == b"data":
            part, after = re.fullmatch(rb"[\w ]{4}", body[place : place + 4]), body[place + 4 : place + 8]
            fits = place + 8 + int.from_bytes(after, "little") <= len(body)
            return begin, begin + size if part and fits else len(body)
    raise ValueError("The answer is a WAV file without samples.")
