"""Paths of commands, which mean other files on another machine. Torch-free.

A window names files of both machines' data folders as ``data:…``, of the program's resources as ``resource:…``, and a
recording of its own by its fingerprint, ``sent:…``, once its content has been sent. Every other path is the host's own.
What a job writes is made in a folder of its own on the host, from which the window fetches it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from paretone import files
from paretone.errors import PlainError
from paretone.models.base import Voice
from paretone.paths import data_folder, resource
from paretone.reading import legible, readable, require_regular, shown
from paretone.session import commands
from paretone.training.requests import TrainingRequest

DATA, RESOURCE, SENT, MADE = "data:", "resource:", "sent:", "made:"
THERE = "there:"
"""Begins the path of a recording on the host, which is not sent."""
LARGEST_SENT = 1 << 30
PART_BYTES = 1 << 18
MOST_ENTRIES = 2_000
"""Entries of a folder that are listed."""
_OWN: dict[Any, tuple[str, ...]] = {
    commands.LoadModel: ("folder", "vocoder"),
    commands.DownloadModel: ("folder",),
    commands.ExportProfile: ("model_folder",),
    commands.ExportWeights: ("file", "model_folder"),
    TrainingRequest: ("manifest", "validation", "validation_audio", "work", "folder", "vocoder", "export", "corpus"),
}
"""Fields with paths on the host, by command or request."""
WRITTEN: dict[type, str] = dict.fromkeys((commands.ExportProfile, commands.ExportWeights), "folder")
WRITTEN[commands.MeasureRoofline] = "trace"
"""Fields with paths that a job writes to."""
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[^/\\\x00-\x1f]{1,150}")


class PlaceError(PlainError):
    """A path that is refused, or cannot be used."""


def moved(value: Any, move: Callable[[str], str], send: Callable[[str], str]) -> Any:
    """``value``, an object of a message, with its paths moved: own ones by ``move``, recordings by ``send``."""
    if isinstance(value, Voice):
        return replace(value, audio=send(value.audio)) if value.audio else value
    if isinstance(value, commands.JudgeTake) and value.prompt:
        return replace(value, prompt=send(value.prompt))
    for kind, names in _OWN.items():
        if isinstance(value, kind):
            paths: dict[str, Any] = {name: move(path) for name in names if (path := getattr(value, name, ""))}
            return replace(value, **paths)
    return value


def on_host(path: str, data: Path) -> str:
    """``path`` as the host knows it: within the window's ``data`` folder or the resources, by a name for both."""
    for prefix, root in ((DATA, data), (DATA, data_folder()), (RESOURCE, resource())):
        whole, top = Path(os.path.normpath(path)), os.path.abspath(root)
        if whole.is_relative_to(top):
            return prefix + whole.relative_to(top).as_posix()
    return path.replace(os.sep, "/")


def fingerprint(path: str | Path) -> str:
    """SHA-256 of a file, hexadecimal. Raises :class:`PlaceError`."""
    with legible(PlaceError, "file", path):
        if require_regular(path).st_size > LARGEST_SENT:
            raise PlaceError(f"{path} has more than {LARGEST_SENT >> 30} GiB and is not sent; copy it to the host.")
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Parcel:
    """Files to send that lie together on the host, by their names from there."""

    paths: Mapping[str, Path]
    names: Mapping[str, str]
    """Each file's name by its fingerprint, under which it is sent, once."""

    @classmethod
    def of(cls, paths: Mapping[str, Path]) -> Parcel:
        """Raises :class:`PlaceError` for a file that cannot be read."""
        return cls(paths, {name: f"{fingerprint(path)}/{path.name}" for name, path in paths.items()})

    @property
    def listing(self) -> bytes:
        return json.dumps(self.names).encode()

    @property
    def key(self) -> str:
        return hashlib.sha256(self.listing).hexdigest()


class HostFiles:
    """The host's files, as far as a window may name them. ``data``: the host's data folder."""

    def __init__(self, data: Path) -> None:
        self._data, self._root = data, data / "remote"
        self.made, self.studies = self._root / "made", self._root / "studies"
        self._received = self._root / "received"

    def path(self, name: str) -> str:
        """The path that ``name`` of a command means here. Raises :class:`PlaceError` for one that leads elsewhere."""
        for prefix, root in ((DATA, self._data), (RESOURCE, resource()), (SENT, self._received), (MADE, self.made)):
            if name.startswith(prefix):
                return str(within(root, name.removeprefix(prefix), links=prefix in (DATA, RESOURCE)))
        if not os.path.isabs(name):
            raise PlaceError(f"{shown(name)} is not a whole path on this host; choose the folder again.")
        return name

    def study(self, name: str) -> Path:
        return within(self.studies, name)

    # --- Files that the window sends ----------------------------------------------------------------------------------
    def place_of(self, name: str) -> Path:
        """Place of the file with the name ``FINGERPRINT/NAME``."""
        digits, _, last = name.partition("/")
        if not _FINGERPRINT.fullmatch(digits) or not _NAME.fullmatch(last) or last in (".", ".."):
            raise PlaceError(f"{shown(name)} is no name of a file that is sent.")
        return within(self._received, name)

    async def receive(self, name: str, parts: AsyncIterator[bytes]) -> None:
        """Keep a file that has its fingerprint, for the user alone: recordings are private."""
        place = self.place_of(name)
        with files.explained(PlaceError, f"{place.name} could not be kept on the host"):
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            await kept(place, LARGEST_SENT, parts, place.parent.name)

    def together(self, listing: bytes) -> list[str]:
        """Have the files of a :class:`Parcel` lie together; those that were not sent yet, and then nothing is done."""
        try:
            names = msgspec.json.decode(listing, type=dict[str, str])
        except msgspec.MsgspecError:
            raise PlaceError("The list of files arrived damaged; send it again.") from None
        top = within(self._received, hashlib.sha256(listing).hexdigest())
        if lacking := [one for one in dict.fromkeys(names.values()) if not self.place_of(one).is_file()]:
            return lacking
        for name, sent in names.items():
            place = within(top, name)
            with files.explained(PlaceError, f"{name} could not be kept on the host"):
                if not place.exists():
                    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    try:
                        os.link(self.place_of(sent), place)
                    except OSError:  # A disk without links.
                        shutil.copy(self.place_of(sent), place)
        return []

    # --- Files that the window fetches --------------------------------------------------------------------------------
    def fetched(self, name: str) -> tuple[Path, int]:
        """A file that a job made, and its size in bytes."""
        place = within(self.studies if name.startswith("studies/") else self.made, name.partition("/")[2])
        with readable(PlaceError, f"{name} could not be read on the host"), open(place, "rb") as file:
            return place, os.fstat(file.fileno()).st_size

    # --- Folders to choose from ---------------------------------------------------------------------------------------
    def folder(self, path: str) -> dict[str, Any]:
        """The folder ``path``, ``""`` for the user's own: its path, its parent and its entries, folders first."""
        problem = f"{path} could not be opened on the host"
        with readable(PlaceError, problem, "choose another folder", RuntimeError):  # Of a user who is not there.
            place = (Path(path).expanduser() if path else Path.home()).resolve(strict=True)
            with os.scandir(place) as entries:
                found = sorted((not one.is_dir(), one.name) for one in entries if not one.name.startswith("."))
        listed = [[name, not is_file] for is_file, name in found[:MOST_ENTRIES]]
        return {"path": str(place), "parent": str(place.parent), "entries": listed, "more": len(found) > MOST_ENTRIES}


async def parts_of(path: Path, size: int) -> AsyncIterator[bytes]:
    """The first ``size`` bytes of a file; fewer, which :func:`kept` notices, if it is shorter or cannot be read."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        while size > 0 and (part := await asyncio.to_thread(file.read, min(size, PART_BYTES))):
            size -= len(part)
            yield part


async def kept(place: Path, size: int, parts: AsyncIterator[bytes], fingerprint: str = "") -> None:
    """Put a file of ``size`` bytes at ``place`` once all its ``parts`` are here; with a ``fingerprint``, which it must
    have, one of that size at most, for the user alone. Raises :class:`PlaceError` for another, and :class:`OSError`."""
    found, done = hashlib.sha256(), 0
    with files.replacing(place, 0o600 if fingerprint else None) as file:
        async for part in parts:
            done += len(part)
            if done > size:
                break
            await asyncio.to_thread(file.write, part)
            found.update(part)
        if done > size or (found.hexdigest() != fingerprint if fingerprint else done != size):
            raise PlaceError(f"{place.name} arrived damaged, or changed while it was sent; try again.")
        await asyncio.to_thread(os.fsync, file.fileno())  # The end of the block has little left to wait for.


def within(root: Path, name: str, links: bool = False) -> Path:
    """``name`` within ``root``. Raises :class:`PlaceError` for a path that leads out of it; by a link too, unless the
    user's own ``links`` may."""
    place = Path(os.path.normpath(root / name)) if links else (root / name).resolve()
    top = Path(os.path.normpath(root)) if links else root.resolve()
    if not name or "\0" in name or not place.is_relative_to(top):
        raise PlaceError(f"{shown(name)} leads out of the folder that a window may use; nothing was done.")
    return place
