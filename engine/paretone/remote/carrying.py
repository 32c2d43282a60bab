"""Files of jobs on a host: what a command needs is sent before it, and what it makes is fetched. Torch-free.

Results of a study are mirrored into its folder here while it runs. The host copies the study's database, page by page
and consistently; only blocks that changed since the last time travel. Recordings come first, then the rows that name
them, so that readers here never find a row without its file.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import socket
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from paretone import files
from paretone.database import AUDIO
from paretone.errors import PlainError, StudyError
from paretone.front_end.pronunciations import in_force
from paretone.models import catalogue
from paretone.observer import RemainingTime
from paretone.reading import decoded, read_bytes, readable
from paretone.remote import wire
from paretone.remote.places import DATA, MADE, RESOURCE, SENT, THERE, WRITTEN, Parcel, kept, moved, on_host, parts_of
from paretone.session import commands, events
from paretone.session.commands import Command
from paretone.session.events import Event, JobCancelled, JobFailed
from paretone.studies import definition
from paretone.studies.evaluation_sets import EvaluationSet
from paretone.studies.servers import CLONED
from paretone.studies.store import DATABASE
from paretone.wording import megabytes

_MIRROR_SECONDS = 1.0
_TOLD_SECONDS = 0.25
"""Between two figures of a transfer; shorter ones say nothing."""
_BLOCK, _DIGEST, _MOST_BLOCKS = 1 << 14, 8, 256
"""Bytes of a part of a study's database and of its digest, and parts in one answer."""
Asking = Callable[..., Any]
"""Asks the host, with the fields of :class:`paretone.remote.wire.Ask`; or fetches its files of some names to paths
here."""


class Carrier:
    def __init__(self, host: str, data: Path, request: Asking, tell: Callable[[Event], None]) -> None:
        """``data``: this machine's data folder; ``tell`` gets progress."""
        self._host, self._data, self._request, self._tell = host, data, request, tell
        self.mirrors: dict[int, Mirror] = {}
        self._mirrored = 0.0

    async def ask(self, what: str, text: str = "", content: bytes = b"") -> Any:
        async with self._request(what, text, content) as answer:
            found = await answer.read()
        return wire.plain(wire.envelope(found, wire.LARGEST_EVENT).payload)

    # --- To the host --------------------------------------------------------------------------------------------------
    async def prepared(self, command: Command) -> Any:
        """The command in the host's terms, after the files that it needs have been sent. Raises :class:`PlainError`."""
        if isinstance(command, commands.RunStudy):
            command = await self._sent_study(command)
        elif isinstance(command, commands.VerifyStudy):
            command = replace(command, folder=_key(Path(command.folder)))
        command = replace(command, lexicon=in_force())
        field = WRITTEN.get(type(command), "")
        if field and (given := getattr(command, field)):
            last = f"/{Path(given).name}" if field == "trace" else ""
            changes: dict[str, Any] = {field: f"{MADE}{command.job}{last}"}
            command = replace(command, **changes)
        parcels: list[Parcel] = []

        def send(path: str) -> str:
            if path.startswith(THERE):
                return path.removeprefix(THERE)
            known = on_host(path, self._data)
            if known.startswith(RESOURCE):
                return known
            parcels.append(_recording(Path(path)))
            return f"{SENT}{parcels[-1].key}/{Path(path).name}"

        move = partial(moved, move=lambda path: on_host(path, self._data), send=send)
        content = await asyncio.to_thread(wire.packed, command, move)  # Recordings are read.
        for one in parcels:
            await self._send_parcel(command.job, one)
        return content

    async def _send_parcel(self, job: int, parcel: Parcel) -> None:
        """Send the files that the host lacks."""
        lacking = set(await self.ask("together", content=parcel.listing))
        left = {sent: parcel.paths[name] for name, sent in parcel.names.items() if sent in lacking}
        sizes = {sent: path.stat().st_size for sent, path in left.items()}
        told = self._told(job, sum(sizes.values()), "Sending files to")
        for sent, path in left.items():
            async with self._request(params={"file": sent}, data=told(parts_of(path, sizes[sent]))):
                pass
        if left:
            await self.ask("together", content=parcel.listing)

    def _told(self, job: int, total: int, doing: str) -> Callable[[AsyncIterator[bytes]], AsyncIterator[bytes]]:
        """Passes parts of files on, and tells now and then how many of the ``total`` bytes that were."""
        remaining, done, last = RemainingTime(), 0, time.monotonic()

        async def passed(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
            nonlocal done, last
            async for part in parts:
                yield part
                done += len(part)
                if time.monotonic() > last + _TOLD_SECONDS:
                    last = time.monotonic()
                    left, text = remaining.update(done, total), f"{doing} {self._host}: {megabytes(done, total)}"
                    self._tell(events.Progress(job, done, total, left, text, unit="bytes"))

        return passed

    async def _sent_study(self, command: commands.RunStudy) -> commands.RunStudy:
        """Send a study's file, with its recordings and texts, and have its results mirrored."""
        if command.ray:
            raise StudyError("A study on a Ray cluster is run from this machine; choose Engine, This machine.")
        file, folder = Path(command.file), Path(command.folder)
        mirror = Mirror(folder, _key(folder), command.file, self._data / "remote" / "copies")
        mirror.require_own()
        values: Any = dict(definition.values(file))  # type: ignore[call-overload]
        try:
            study = definition.read(file)
        except StudyError:
            # Voices that were released with a model lie with its weights: the host reads the study.
            model = catalogue.find(str(values.get("model", "")))
            if model is None or not model.voices.in_folder:
                raise
            study = None
        if study is not None and study.evaluation is not None:
            parcel, moved_fields = await asyncio.to_thread(_evaluation_parcel, file, study.evaluation, values)
            await self._send_parcel(command.job, parcel)
            values |= moved_fields
        texts = values.get("sentences")
        if study is not None and isinstance(texts, str) and (file.parent / texts).is_file():
            values["sentences"] = list(dict.fromkeys(one.text for one in study.utterances))

        async def sent(given: Any) -> Any:
            """A file's name in the study, or several, as the host has it once it is sent."""
            if isinstance(given, list):
                return [await sent(one) for one in given]
            if not isinstance(given, str) or not given:
                return given
            parcel = await asyncio.to_thread(_recording, path := file.parent / given)
            await self._send_parcel(command.job, parcel)
            return f"../{parcel.key}/{path.name}"

        for table, names in (("voices", ("audio",)), ("server", ("request", CLONED))):
            rows = values.get(table)
            for one in rows if isinstance(rows, list) else []:
                if isinstance(one, dict):
                    one |= {name: await sent(one[name]) for name in names if name in one}
        for one in ("folder", "vocoder"):
            place = values.get(one)
            if isinstance(place, str) and (known := on_host(place, self._data)).startswith(DATA):
                values[one] = await self.ask("path", known)
        content = json.dumps(values).encode()
        name = f"{hashlib.sha256(content).hexdigest()}/{file.stem}.json"
        async with self._request(params={"file": name}, data=io.BytesIO(content)):
            pass
        self.mirrors[command.job] = mirror
        return replace(command, file=SENT + name, folder=mirror.key)

    # --- From the host -----------------------------------------------------------------------------------------------
    async def brought(self, event: Event, submitted: Command | None) -> Event:
        """``event`` with this machine's paths, once its files are here."""
        changes: dict[str, Any] = {}
        mirror = self.mirrors.get(event.job)
        if mirror is not None:
            last = isinstance(event, events.StudyEnded | JobFailed | JobCancelled)
            due = isinstance(event, events.StudyBegun | events.StudyTakeDone)
            if last or (due and time.monotonic() - self._mirrored > _MIRROR_SECONDS):
                started = time.monotonic()
                await mirror.fetch(self.ask, partial(self._fetch, event.job))
                # Long copies are rarer: they take half of the time at most.
                self._mirrored = 2 * time.monotonic() - started
            if isinstance(event, events.StudyBegun | events.StudyTakeDone | events.StudyEnded):
                changes["folder"] = str(mirror.folder)
        match submitted, event:
            case commands.VerifyStudy(), events.StudyVerified():
                changes["folder"] = submitted.folder
            case (
                commands.ExportProfile() | commands.ExportWeights(),
                events.ProfileExported() | events.WeightsExported(),
            ):
                await self._bring(event.job, Path(submitted.folder), event.files)
                changes["folder"] = submitted.folder
            case commands.MeasureRoofline(), events.RooflineMeasured() if submitted.trace:
                path = Path(submitted.trace)
                await self._fetch(event.job, {f"made/{event.job}/{path.name}": files.target(path)})
        return replace(event, **changes)

    async def _fetch(self, job: int, places: Mapping[str, Path]) -> None:
        """Fetch files by their names. Raises :class:`PlainError`."""
        sizes = await self.ask("sizes", "\n".join(places)) if places else []
        told = self._told(job, sum(sizes), "Fetching files from")
        for (name, place), size in zip(places.items(), sizes, strict=True):
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                async with self._request("fetch", name) as answer:
                    await kept(place, size, told(answer.content.iter_any()))
            except ConnectionError:
                raise
            except OSError as error:
                raise PlainError(f"{place} could not be written: {files.reason(error)}.") from error

    async def _bring(self, job: int, folder: Path, names: tuple[str, ...]) -> None:
        """Fetch the files of an export, all or none. Raises :class:`PlainError`."""
        places = {f"made/{job}/{name}": folder / name for name in names}
        if taken := next((one for one in places.values() if one.exists()), None):
            raise PlainError(f"{taken} is there already and was not replaced; choose another folder.")
        try:
            await self._fetch(job, places)
        except BaseException:
            for one in places.values():
                one.unlink(missing_ok=True)
            raise


def _recording(path: Path) -> Parcel:
    """A recording, with the latents that lie next to it for models that need them."""
    endings = {one.voices.latents for one in catalogue.models()} - {""}
    there = [one for one in map(path.with_suffix, sorted(endings)) if one.is_file()]
    return Parcel.of({one.name: one for one in (path, *there)})


def _evaluation_parcel(file: Path, found: EvaluationSet, values: Mapping[str, Any]) -> tuple[Parcel, dict[str, str]]:
    """An evaluation set's list with its recordings, as they lie; and the fields of the study in ``file`` that name
    them, for a study that is sent."""
    whole = lambda path: Path(os.path.abspath(path))  # noqa: E731
    audio = whole(file.parent / values["manifest_audio"]) if values.get("manifest_audio") else None
    named = (one for row in found.rows for one in (row.voice.audio, row.reference) if one)
    paths = [whole(found.path), *dict.fromkeys(map(whole, named))]
    text = decoded(read_bytes(found.path), "utf-8-sig")
    try:
        # With the list's folder, by which known sets are told.
        root = Path(os.path.commonpath([whole(found.path).parent.parent, *paths, *([audio] if audio else [])]))
    except ValueError:  # Drives of Windows.
        root = None
    if root is None or any(str(one) in text for one in paths[1:]):
        raise StudyError(
            f"The list {found.path} names recordings by whole paths, which a host does not have; name them from the "
            "list's folder."
        )
    parcel = Parcel.of({one.relative_to(root).as_posix(): one for one in paths})
    place = lambda path: f"../{parcel.key}/{path.relative_to(root).as_posix()}"  # noqa: E731
    return parcel, {"manifest": place(paths[0])} | ({"manifest_audio": place(audio)} if audio else {})


def _key(folder: Path) -> str:
    """Name on the host of the study in ``folder`` here."""
    return hashlib.sha256(f"{socket.gethostname()}:{folder.absolute()}".encode()).hexdigest()[:24]


# --- Studies ----------------------------------------------------------------------------------------------------------
@contextmanager
def _copying(folder: Path) -> Iterator[None]:
    """Raise :class:`StudyError` with the reason if the study in ``folder`` cannot be copied within."""
    problem = f"The study in {folder} could not be copied"
    with readable(StudyError, problem, "", sqlite3.Error), files.explained(StudyError, problem):
        yield


def snapshot(folder: Path, known: bytes) -> dict[str, Any]:
    """The blocks that differ in a consistent copy of the study's database in ``folder`` from those with the digests
    ``known``. ``more``: whether others are left; after the last answer the window has the copy as it was then."""
    source, copy = folder / DATABASE, folder / "copy.sqlite"
    if not source.is_file():
        return {"size": 0, "blocks": [], "more": False}
    with _copying(folder):
        _back_up(source, copy)
        content = copy.read_bytes()
        there = [known[one : one + _DIGEST] for one in range(0, len(known), _DIGEST)]
        parts = zip_longest(range(0, len(content), _BLOCK), _digests(content), there)
        differing = [at for at, digest, other in parts if at is not None and digest != other]
        blocks = [[at, content[at : at + _BLOCK]] for at in differing[:_MOST_BLOCKS]]
        return {"size": len(content), "blocks": blocks, "more": len(differing) > _MOST_BLOCKS}


def _opened(database: Path) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True))


def _back_up(source: Path, target: Path) -> None:
    with _opened(source) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


def _digests(content: bytes) -> list[bytes]:
    blocks = (content[at : at + _BLOCK] for at in range(0, len(content), _BLOCK))
    return [hashlib.blake2b(one, digest_size=_DIGEST).digest() for one in blocks]


class Mirror:
    """The study ``folder`` here, and the one with the name ``key`` on the host. ``copies``: folder of the last
    copies."""

    def __init__(self, folder: Path, key: str, file: str, copies: Path) -> None:
        self.folder, self.key, self._file = folder, key, file
        self._copy = copies / f"{key}.sqlite"

    def require_own(self) -> None:
        """Raise :class:`StudyError` for takes here that this host did not make: times of two machines do not mix."""
        with _copying(self.folder):
            if _takes(self.folder / DATABASE) - _takes(self._copy):
                raise StudyError(
                    f"The study in {self.folder} has takes that another machine made, and times of two machines do not "
                    "mix; run it there, or copy its file into another folder."
                )

    async def fetch(self, ask: Asking, fetch: Asking) -> None:
        """Bring what is new. Raises :class:`StudyError`, and what ``ask`` and ``fetch`` raise."""
        more = True
        while more:
            with _copying(self.folder):
                self._copy.parent.mkdir(parents=True, exist_ok=True)
                self._copy.touch()
                known = b"".join(_digests(self._copy.read_bytes()))
            found = await ask("study", self.key, known)
            if not found["size"]:
                return
            with _copying(self.folder), open(self._copy, "r+b") as file:
                for at, content in found["blocks"]:
                    file.seek(at)
                    file.write(content)
                file.truncate(found["size"])
            more = found["more"]
        with _copying(self.folder):
            (self.folder / AUDIO).mkdir(parents=True, exist_ok=True)
            places = [self.folder / AUDIO / f"{take}.wav" for take in sorted(_takes(self._copy))]
        await fetch({f"studies/{self.key}/{AUDIO}/{one.name}": one for one in places if not one.exists()})
        with _copying(self.folder):
            _back_up(self._copy, self.folder / DATABASE)
            with closing(sqlite3.connect(self.folder / DATABASE)) as here, here:
                here.execute("UPDATE study SET file = ?", (self._file,))


def _takes(database: Path) -> set[str]:
    if not database.is_file():
        return set()
    with _opened(database) as one:
        return {take for (take,) in one.execute("SELECT take FROM takes WHERE round = 0")}
