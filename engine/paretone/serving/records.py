"""Measured servers, kept: the figures of each load as a JSON file, which the window's trade-off reads. Torch-free.

A record is one measurement: a server, what was asked of it, and a row of figures per load
(:meth:`paretone.serving.load.Measured.row`), with what judges say of the replies, if they were asked, and the ids of
those that are kept as takes.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from paretone import files
from paretone.errors import PlainError, SettingError
from paretone.fields import exact, misfit
from paretone.measure.estimates import Estimate
from paretone.measure.machine import describe
from paretone.models.base import Voice
from paretone.models.voices import own_voice
from paretone.paths import data_folder
from paretone.reading import first_line, read_json, shortened, shown
from paretone.views.figure import Axis, Curve, Figure, Lines, Measured

VERSION, FOLDER = 1, "servers"
PATH = "/v1/audio/speech"
FORMS = ("pcm", "wav")
"""Formats of audio that can be measured."""
KEPT = 60
"""Replies to one load that are kept as takes."""
MOST_LOAD = 1000
"""Clients, or requests a second."""
LOADS = "Type numbers of clients from 1 to 1,000, such as 1 2 4, or requests a second, 0.5/s"
TYPICAL = 8
"""Clients with which servers are compared, and which studies have unless they say otherwise."""
SATURATED = 0.95
"""Share of the largest throughput from which more clients only wait longer."""
MARKS = "Knee: most throughput per waiting; saturated: more clients only wait longer"
_FIELDS = {"title": str, "url": str, "texts": int, "texts_sha256": str, "machine": str, "made": str, "reference": str}
_KINDS = {
    "load": str,
    "requests": int,
    "failures": dict,
    "first_failure": str,
    "judged": dict[str, list[float]],
    "takes": list[str],
}
"""Of a load's columns that are no numbers."""
FIGURES = {
    "first_audio_seconds": "first_audio",
    "real_time_factor": "real_time_factor",
    "largest_gap_seconds": "largest_gap",
}
"""Measurements of takes, and the beginnings of the columns that give them for a server."""


def address(typed: str) -> str:
    """``typed`` as the address of a server: ``http://`` if it has no scheme, nothing after its path. Raises
    :class:`SettingError`."""
    url = typed if "://" in typed else f"http://{typed}"
    with suppress(ValueError):  # Its port is no number, or a bracket is missing.
        parts = urlsplit(url)
        there = parts.hostname and parts.port != 0 and not parts.netloc.endswith(":")
        if parts.scheme in ("http", "https") and there and not set(url) & set("?# \t\n"):
            return url
    instead = f", not {shown(typed)}" if typed else ""
    raise SettingError(f"Give the address of a server, such as http://127.0.0.1:8880{instead}.")


@dataclass(frozen=True)
class Level:
    """A load: a number of ``clients`` in a closed loop, or a ``rate`` of requests a second in an open one."""

    clients: int = 0
    rate: float = 0.0

    @classmethod
    def typed(cls, text: str) -> tuple[Level, ...]:
        """Loads such as ``8`` or ``0.5/s`` between blanks, commas or semicolons. Raises :class:`SettingError`."""
        found = []
        for one in re.findall(r"[^\s,;]+", text):
            rate = re.fullmatch(r"(\d+|\d*\.\d+)/s", one)
            load = cls(rate=float(rate[1])) if rate else cls(int(one) if re.fullmatch(r"\d{1,9}", one) else 0)
            if not 0 < max(load.clients, load.rate) <= MOST_LOAD:
                raise SettingError(f"{LOADS}; not “{shortened(one)}”.")
            found.append(load)
        return tuple(found)

    @property
    def option(self) -> dict[str, float]:
        """As an option of a setting, by its name."""
        return {"rate": self.rate} if self.rate else {"clients": self.clients}

    def __str__(self) -> str:
        if self.rate:
            return f"{self.rate:g} request{'s' * (self.rate != 1)}/s"
        return f"{self.clients} client{'s' * (self.clients != 1)}"


@dataclass(frozen=True)
class Target:
    """A server, and what is asked of it."""

    url: str
    """Address of the server, with or without :data:`PATH`."""
    model: str = ""
    voice: str = ""
    token: str = field(default="", repr=False)
    form: str = FORMS[0]
    """One of :data:`FORMS`."""
    fields: Mapping[str, object] = field(default_factory=dict)
    """Further fields of each request."""
    like: Voice | None = None
    """Whose voice the answers should have, if that is known: of a recording that they clone, for example."""

    @property
    def endpoint(self) -> str:
        base = self.url.rstrip("/")
        return base if base.endswith(PATH) else base.removesuffix("/v1") + PATH

    def body(self, text: str, seed: int | None) -> dict[str, object]:
        chosen = {name: value for name, value in {"model": self.model, "voice": self.voice}.items() if value}
        seeded: dict[str, object] = {} if seed is None else {"seed": seed}
        # vLLM-Omni's OmniVoice reads it there.
        if seeded and isinstance(further := self.fields.get("extra_params"), Mapping) and "seed" in further:
            seeded["extra_params"] = {**further, **seeded}
        return {**self.fields, "input": text, "response_format": self.form, **chosen, **seeded}


@dataclass(frozen=True)
class Order:
    """What is asked of a server, and what becomes of the answers."""

    target: Target
    texts: tuple[str, ...]
    _: KW_ONLY
    title: str = ""
    loads: tuple[Level, ...] = ()
    seeds: tuple[int | None, ...] = (0, 1, 2)
    requests: int = 20
    """Counted at each load."""
    seconds: float = 0.0
    """If given, all requests that begin within them are counted instead."""
    warm_up: int = 2
    """Requests before those that are counted."""
    kept: int = 0
    """Most replies to each load that become takes."""
    judges: bool = False
    """Whether these are judged, once all loads are measured."""


def request_fields(file: Path | str) -> dict[str, object]:
    """The fields of each request in a JSON file such as an export's ``request.json``. Raises :class:`SettingError`."""
    try:
        found = read_json(file)
    except (OSError, ValueError) as error:
        raise SettingError(f"The request {file} cannot be read: {first_line(error)}.") from error
    if not isinstance(found, dict):
        raise SettingError(f"The request {file} must hold one JSON object, the fields of a request.")
    return found


def field_value(text: str) -> object:
    """A typed value of a field of the request: JSON, or else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def hash_of(texts: Sequence[str]) -> str:
    """SHA-256 of the texts, one a line."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


@dataclass(frozen=True)
class ServerRecord:
    title: str
    url: str
    texts: int
    texts_sha256: str
    loads: tuple[Mapping[str, Any], ...]
    machine: str = ""
    """Of the client."""
    made: str = ""
    """UTC, ISO 8601."""
    reference: str = ""
    """File with the voice that the replies should have, if that is known."""

    @classmethod
    def of(cls, order: Order) -> ServerRecord:
        """A measurement of this moment, from this machine, without its loads."""
        now, target, texts = datetime.now(UTC).isoformat(timespec="milliseconds"), order.target, order.texts
        like = "" if target.like is None else str(Path(target.like.audio).absolute())
        return cls(order.title, target.endpoint, len(texts), hash_of(texts), (), describe().line, now, like)

    @property
    def key(self) -> str:
        """Name of its file; to the millisecond, as short measurements follow each other within a second."""
        host = re.sub(r"[^a-z0-9]+", "-", self.url.partition("://")[2].lower())[:40].strip("-")
        return f"{re.sub(r'[^0-9T]', '', self.made)[:18]}-{host}"

    @property
    def typical(self) -> Mapping[str, Any]:
        """The load with :data:`TYPICAL` clients, or the nearest."""
        return min(self.loads, key=lambda row: (abs(row.get("clients", 0) - TYPICAL), row.get("rate", 0.0)))

    def figures(self) -> dict[str, Estimate]:
        """Metrics of the :attr:`typical` load, with intervals."""
        row, count = self.typical, self.typical["requests"]
        columns = {name: f"{begins}_p50" for name, begins in FIGURES.items() if f"{begins}_p50" in row}
        found = {name: (row[one], *row.get(f"{one}_interval", (row[one], row[one]))) for name, one in columns.items()}
        return {
            name: Estimate(float(value), float(low), float(high), count, count)
            for name, (value, low, high) in (found | row.get("judged", {})).items()
        }


def write(record: ServerRecord, folder: Path | None = None) -> Path:
    """Keep ``record`` in ``folder``, by default the user's data; returns its file. Raises :class:`PlainError`."""
    path = (folder or data_folder() / FOLDER) / f"{record.key}.json"
    content = json.dumps({"version": VERSION} | asdict(record), ensure_ascii=False, indent=1)
    with files.explained(PlainError, f"{path} cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(path, content.encode())
    return path


def forget(record: ServerRecord, folder: Path) -> None:
    """Delete the file of ``record``. Raises :class:`PlainError`."""
    path = folder / f"{record.key}.json"
    with files.explained(PlainError, f"{path} cannot be deleted"):
        path.unlink(missing_ok=True)


def read(path: Path) -> ServerRecord:
    """Raises :class:`PlainError` for a file that is not one."""
    try:
        kinds = {**_FIELDS, "version": int, "loads": list}
        given = exact(read_json(path), "the record", kinds, PlainError, optional={"reference"})
    except (OSError, ValueError, PlainError) as error:
        raise PlainError(f"{path} is not the record of a measured server: {error}") from error
    if given["version"] > VERSION:
        raise PlainError(f"{path} was written by a newer version of Paretone; update it.")
    if not given["loads"] or not all(_is_row(one) for one in given["loads"]):
        raise PlainError(f"{path} has a load without its figures; measure the server again.")
    return ServerRecord(**{name: given[name] for name in _FIELDS if name in given}, loads=tuple(given["loads"]))


def _is_row(row: object) -> bool:
    """Whether ``row`` has what is computed with: numbers, and figures with the ends of their intervals."""
    if not isinstance(row, dict) or not {"load", "requests"} <= set(row):
        return False
    triples = row.get("judged", {})
    pairs = [value for name, value in row.items() if name.endswith("_interval")]
    kinds = {name: _KINDS.get(name, list[float] if name.endswith("_interval") else float) for name in row}
    right = not any(misfit(name, value, kinds[name]) for name, value in row.items())
    return right and all(len(one) == 2 for one in pairs) and all(len(one) == 3 for one in triples.values())


def read_all(folder: Path | None = None) -> tuple[tuple[ServerRecord, ...], tuple[str, ...]]:
    """All records, newest first, and a sentence on each that cannot be read."""
    found, problems = [], []
    for path in sorted((folder or data_folder() / FOLDER).glob("*.json"), reverse=True):
        try:
            found.append(read(path))
        except PlainError as error:
            problems.append(str(error))
    return tuple(found), tuple(problems)


def heard_voices(folder: Path | None = None) -> Iterator[Voice]:
    """Voices that replies of measured servers should have, by their recordings."""
    yield from map(own_voice, dict.fromkeys(one.reference for one in read_all(folder)[0] if one.reference))


# --- Knee and saturation ----------------------------------------------------------------------------------------------
def marks(loads: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """The *knee* and the *saturation* among the closed loops of ``loads``, by index.

    The knee has the most throughput per latency (Kleinrock's power): below it the server idles, above it requests
    mostly wait. It is saturated from the load that reaches :data:`SATURATED` of the largest throughput, unless that is
    the last load: more might still come. Both need three loads.
    """
    closed = [
        (place, row["audio_seconds_per_second"], row["latency_p50"])
        for place, row in enumerate(loads)
        if row.get("clients") and row.get("latency_p50") and row.get("audio_seconds_per_second")
    ]
    closed.sort(key=lambda one: loads[one[0]]["clients"])
    if len(closed) < 3:
        return {}
    found: dict[int, list[str]] = {max(closed, key=lambda one: one[1] / one[2])[0]: ["knee"]}
    most = max(throughput for _, throughput, _ in closed)
    first = next(place for place, throughput, _ in closed if throughput >= SATURATED * most)
    if first != closed[-1][0]:
        found.setdefault(first, []).append("saturated")
    return {place: ", ".join(words) for place, words in found.items()}


def inverse(row: Mapping[str, Any]) -> str:
    """A sentence on a server that reports seconds of audio over wall seconds as its real-time factor, or ``""``."""
    reported, measured = row.get("reported_rtf", 0.0), row.get("real_time_factor_p50", 0.0)
    if reported <= 0 or measured <= 0 or abs(math.log(reported * measured)) >= abs(math.log(reported / measured)):
        return ""
    return f"The server reports the inverse RTF: {reported:.3g}, where wall over audio is {measured:.3g}."


def latency_over_load(records: Sequence[ServerRecord]) -> Figure:
    """The view *latency over load* of the closed loops of ``records``, of which the first is newest: waiting and
    throughput against the number of clients, with knee and saturation as notes. Raises :class:`SettingError` if there
    is no closed loop."""
    waiting: list[Curve] = []
    throughput: list[Curve] = []
    for one in records:
        said = marks(one.loads)
        rows = [(row, said.get(place, "")) for place, row in enumerate(one.loads) if row.get("clients")]
        rows = sorted((pair for pair in rows if "latency_p50" in pair[0]), key=lambda pair: pair[0]["clients"])
        if not rows:
            continue
        clients, notes = tuple(float(row["clients"]) for row, _ in rows), tuple(note for _, note in rows)
        for column, what in (("first_audio_p95", "first audio, p95"), ("latency_p50", "latency, p50")):
            bands = [(row[column], *row[f"{column}_interval"]) for row, _ in rows]
            waiting.append(Curve.banded(f"{one.title}: {what}", clients, bands, notes=notes))
        made = tuple(float(row["audio_seconds_per_second"]) for row, _ in rows)
        throughput.append(Curve(one.title, clients, made, notes=notes))
    if not waiting:
        raise SettingError("No server was measured with clients in a closed loop; give --clients 1 2 4 8.")
    load, newest = Axis("Clients at once"), records[0]
    line = f"{newest.title}, {newest.texts} texts ({newest.texts_sha256[:12]})"
    panels = (
        Lines("Waiting", load, Axis("Time", "s"), tuple(waiting)),
        Lines("Throughput", load, Axis("Audio per second", "s/s"), tuple(throughput)),
    )
    question = "How many users does this server hold, and what do they wait?"
    caption, made = " ".join(map(_caption, records)), Measured(newest.title, line, newest.machine, newest.made)
    return Figure("latency_over_load", "Latency over load", question, "", panels, caption, made)


def _caption(record: ServerRecord) -> str:
    at, loads = {"knee": "the knee is at", "saturated": "it is saturated from"}, record.loads
    marked = ((loads[place]["load"], word) for place, said in marks(loads).items() for word in said.split(", "))
    found = " and ".join(f"{at[word]} {load}" for load, word in marked)
    return f"{record.title}: {found or 'too few loads for a knee'}."
