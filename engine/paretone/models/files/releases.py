"""Releases of models: files, addresses and licences; and their downloads from the Hugging Face Hub, with
progress, cancelling and resuming. Torch-free.

``huggingface_hub`` (an optional package) finds the files. The transfer is done here, because its partial downloads
cannot be resumed. A file gets its name only once it is complete and its checksum is correct; until then it is called
``….part``.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from paretone.errors import PlainError
from paretone.extras import how_to_add, needing
from paretone.files import explained, flows, reason, require_room, target
from paretone.observer import Check
from paretone.reading import first_line, parsed_json

NON_COMMERCIAL = "CC-BY-NC-4.0"
MIT = "MIT"
APACHE = "Apache-2.0"
HIGGS = "LicenseRef-Boson-Higgs-Audio-2-Community"


@dataclass(frozen=True)
class Licence:
    summary: str
    link: str


LICENCES: Mapping[str, Licence] = {
    NON_COMMERCIAL: Licence(
        "use, share and adapt with attribution, for non-commercial purposes only.",
        "https://creativecommons.org/licenses/by-nc/4.0/",
    ),
    MIT: Licence("use for any purpose; keep the copyright notice.", "https://opensource.org/license/mit"),
    APACHE: Licence(
        "use for any purpose; keep the notices and say what was changed.", "https://www.apache.org/licenses/LICENSE-2.0"
    ),
    HIGGS: Licence(
        "use for any purpose with attribution to Boson AI; above 100,000 users a year, only with their consent.",
        "https://huggingface.co/bosonai/higgs-audio-v2-tokenizer",
    ),
}


INDEX, INDEX_OF_PICKLED = "model.safetensors.index.json", "pytorch_model.bin.index.json"


def shard_of_each(content: bytes) -> dict[str, str]:
    """File of each weight, from the contents of an :data:`INDEX`. Raises :class:`ValueError` for anything else."""
    try:
        listed = dict(parsed_json(content)["weight_map"])
        # A shard lies next to its index; a name with a folder would lead elsewhere.
        sound = bool(listed) and all(Path(name).name == name for name in listed.values())
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(str(error)) from None
    if not sound:
        raise ValueError("it names no files next to it")
    return listed


@dataclass(frozen=True)
class RemoteFile:
    """A file of a repository; ``saved_as`` is relative to the model's folder. An ``index`` lists further files of its
    repository, saved next to it: the shards of the weights."""

    repository: str
    name: str
    saved_as: str
    licence: str
    index: bool = False
    size: int = 0
    """Bytes, if declared: a file of another size is refused before it is downloaded."""
    sha256: str = ""
    """Hexadecimal, if declared; otherwise the server's own checksum is checked."""


@dataclass(frozen=True)
class Release:
    licence: str
    """The licence to accept: the strictest of all files."""
    files: tuple[RemoteFile, ...]
    """Small ones first, so that a wrong address shows at once."""
    advice: str = ""
    """What is left to do after the download, as sentences; ``{}`` stands for the folder of its voices."""

    @property
    def terms(self) -> str:
        """All licences in one line, shown before downloading."""
        return "; ".join(f"{one.repository}/{one.name}: {one.licence}" for one in self.files)


def files_of(repository: str, licence: str, *names: str, folder: str = "") -> tuple[RemoteFile, ...]:
    """Files of a ``repository`` under one licence, saved by their names in a ``folder`` relative to the model's."""
    return tuple(RemoteFile(repository, name, f"{folder}{name}", licence) for name in names)


BLOCK = 1 << 17
"""Bytes between checks for cancelling: a second of a slow line."""
ATTEMPTS = 5
"""Maximum number of consecutive attempts that transfer nothing."""
CONNECT_SECONDS = 10.0
LARGEST_INDEX = 1 << 24


@dataclass(frozen=True)
class Extent:
    sizes: Mapping[RemoteFile, int]
    missing: int

    @property
    def total(self) -> int:
        return sum(self.sizes.values())


@dataclass(frozen=True)
class _Transfer:
    """A file to download, as described by the server."""

    file: RemoteFile
    destination: Path
    address: str
    size: int
    etag: str

    @property
    def part(self) -> Path:
        """The partial file. Its name contains the version, so that versions are never mixed."""
        return self.destination.with_name(f"{self.destination.name}.{self.etag[:16]}.part")

    @property
    def complete(self) -> bool:
        return self.destination.is_file() and self.destination.stat().st_size == self.size

    @property
    def present(self) -> int:
        if self.complete:
            return self.size
        here = self.part.stat().st_size if self.part.is_file() else 0
        return here if here <= self.size else 0


def download(
    release: Release,
    folder: Path,
    licence: str,
    progress: Callable[[int, int, str], None],
    check: Check,
    endpoint: str | None = None,
) -> tuple[Path, ...]:
    """Download missing files of ``release`` into ``folder`` (and its vocoder next to it); return all of its files.

    ``licence`` is the one that the user has accepted. ``progress`` is called with finished bytes, total bytes and a
    text; ``check`` may cancel, and partial files are resumed later. ``endpoint`` replaces ``HF_ENDPOINT``.

    Raises :class:`PlainError` if the package is missing, the licence differs, the server is unreachable or refuses, the
    disk is full, or the data differ from the announcement.
    """
    if licence != release.licence:
        raise PlainError(f"The files are published under {release.licence}; accept that licence to download them.")
    hub = _hub()
    transfers = _transfers(hub, release, folder, check, endpoint)
    total = sum(one.size for one in transfers)
    done = sum(one.present for one in transfers)
    for one in transfers:
        _require_place(one, folder)
    _require_space(transfers)
    for one in transfers:
        inside = one.destination.is_relative_to(os.path.normpath(folder))
        name = one.destination.relative_to(os.path.normpath(folder)).as_posix() if inside else one.destination.name
        text = f"Downloading {name}"
        progress(done, total, text)
        for change in _fetch(hub, one, check):
            done += change
            progress(done, total, text)
    return tuple(one.destination for one in transfers)


def extent(release: Release, folder: Path, check: Check, endpoint: str | None = None) -> Extent:
    """Size of ``release``, and of the part missing in ``folder``. Asks the server, but downloads nothing. Raises
    :class:`PlainError` if the package is missing or the server cannot be asked."""
    transfers = _transfers(_hub(), release, folder, check, endpoint)
    return Extent({one.file: one.size for one in transfers}, sum(one.size - one.present for one in transfers))


def _transfers(hub: ModuleType, release: Release, folder: Path, check: Check, endpoint: str | None) -> list[_Transfer]:
    found: list[_Transfer] = []
    files = list(release.files)
    while files:
        check()
        one = _described(hub, files.pop(0), folder, endpoint)
        found.append(one)
        if one.file.index:
            files += _shards(hub, one)
    return found


def _shards(hub: ModuleType, index: _Transfer) -> list[RemoteFile]:
    """Files listed in an index, which is read but not saved."""
    try:
        content = index.destination.read_bytes() if index.complete else _content(hub, index)
        names = sorted(set(shard_of_each(content).values()))
    except OSError as error:
        raise PlainError(f"{index.destination} cannot be read: {reason(error)}.") from None
    except ValueError:
        raise PlainError(f"{index.address} is not a list of files any more; update Paretone.") from None
    return [replace(index.file, name=name, saved_as=name, index=False, size=0, sha256="") for name in names]


def _content(hub: ModuleType, small: _Transfer) -> bytes:
    if small.size > LARGEST_INDEX:
        raise ValueError("too large")
    try:
        response = hub.get_session().get(small.address, follow_redirects=True, timeout=CONNECT_SECONDS)
        response.raise_for_status()
    except _network_errors(hub) as error:
        raise PlainError(_unreachable(small.address, error)) from None
    return response.content


def _hub() -> ModuleType:
    with needing(PlainError, f"Downloads need the package huggingface_hub; {how_to_add('download')}"):
        import huggingface_hub
    return huggingface_hub


def _network_errors(hub: ModuleType) -> tuple[type[Exception], ...]:
    """Exceptions of a failed request, found dynamically: the package has changed its HTTP library before."""
    library = importlib.import_module(type(hub.get_session()).__module__.partition(".")[0])
    return library.HTTPError, OSError


def _described(hub: ModuleType, file: RemoteFile, folder: Path, endpoint: str | None) -> _Transfer:
    address = hub.hf_hub_url(file.repository, file.name, endpoint=endpoint)
    try:
        found = hub.get_hf_file_metadata(address, token=False, timeout=CONNECT_SECONDS, endpoint=endpoint)
    except _network_errors(hub) as error:
        raise PlainError(_unreachable(address, error)) from None
    if found.size is None or not found.etag:
        raise PlainError(f"The server gave no information about {address}; try again later.")
    if file.size and file.size != found.size:
        raise PlainError(f"{address} has {found.size} bytes, but {file.size} are declared; update its package.")
    destination = target(Path(os.path.normpath(folder / file.saved_as)))
    return _Transfer(file, destination, address, found.size, found.etag)


def _unreachable(address: str, error: Exception) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403):
        return f"The server refuses {address} (status {status}); open that page in a browser to see why."
    if status == 404:
        return f"{address} does not exist any more; update Paretone, or download the files by hand."
    if status is not None:
        return f"The server could not deliver {address} (status {status}); try again later."
    return f"{address} cannot be reached ({first_line(error)}); check the network connection and try again."


def _require_place(transfer: _Transfer, folder: Path) -> None:
    """Raise :class:`PlainError` if a file cannot be written in its place; of a symbolic link the target is written."""
    named, path = folder / transfer.file.saved_as, transfer.destination
    with explained(PlainError, f"{named} cannot be written"):
        for one in (path, transfer.part):
            if flows(one):
                raise OSError("it is a pipe or a device; delete it")
        if named.is_symlink() and not transfer.complete:
            if not path.parent.is_dir():
                raise OSError(f"it is a link to {path}, whose folder does not exist; create it, or delete the link")
            if _CONTENT_NAME.fullmatch(path.name):
                raise OSError(f"it is a link to {path}, which others keep under its checksum; delete the link")


_CONTENT_NAME = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
"""Name of a file in a Hugging Face cache, to which its folders link."""


def _require_space(transfers: Iterable[_Transfer]) -> None:
    """Raise :class:`PlainError` if a disk has too little space for its files."""
    needed: dict[int, int] = {}
    for one in transfers:
        place = next(parent for parent in one.destination.absolute().parents if parent.exists())
        disk = place.stat().st_dev
        needed[disk] = needed.get(disk, 0) + one.size - one.present
        require_room(PlainError, place, needed[disk], "the download")


def _fetch(hub: ModuleType, transfer: _Transfer, check: Check) -> Iterator[int]:
    """Complete one file; yield changes of its size in bytes."""
    if transfer.complete:
        return
    here = transfer.present
    with explained(PlainError, f"{transfer.part} cannot be written"):
        transfer.destination.parent.mkdir(parents=True, exist_ok=True)
        if here == 0:
            transfer.part.write_bytes(b"")
    attempts = 0
    while here < transfer.size:
        before = here
        failure: Exception | None = None
        try:
            for change in _receive(hub, transfer, here, check):
                here += change
                yield change
        except _network_errors(hub) as error:
            failure = error
        attempts = 0 if here > before else attempts + 1
        if here < transfer.size and attempts >= ATTEMPTS:
            raise PlainError(_unreachable(transfer.address, failure or ConnectionError("the transfer ends early")))
    with explained(PlainError, f"{transfer.destination} cannot be written"):
        sound = _is_sound(transfer, check)
        if sound:
            os.replace(transfer.part, transfer.destination)
        else:
            transfer.part.unlink()
    if not sound:
        raise PlainError(f"{transfer.destination.name} was damaged during the download; download it again.")


def _receive(hub: ModuleType, transfer: _Transfer, offset: int, check: Check) -> Iterator[int]:
    """Request the rest from ``offset``; yield changes of the size in bytes as they are written. Raises
    :func:`_network_errors`, and :class:`PlainError` if the file cannot be written."""
    headers = {"Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
    check()
    with contextlib.ExitStack() as stack:
        how = {"headers": headers, "follow_redirects": True, "timeout": CONNECT_SECONDS}
        response = stack.enter_context(hub.get_session().stream("GET", transfer.address, **how))
        if response.status_code not in (200, 206):
            raise _StatusError(response.status_code)
        if offset and response.status_code == 200:  # the server sends the whole file again
            yield -offset
            offset = 0
        with explained(PlainError, f"{transfer.part} cannot be written"):
            file = stack.enter_context(transfer.part.open("ab" if offset else "wb"))
        blocks = response.iter_raw(BLOCK)
        while True:
            check()
            if not (block := next(blocks, b"")):
                return
            block = block[: transfer.size - offset]
            with explained(PlainError, f"{transfer.part} cannot be written"):
                file.write(block)
                file.flush()
            offset += len(block)
            yield len(block)


class _StatusError(ConnectionError):
    def __init__(self, status: int) -> None:
        self.response = self
        self.status_code = status
        super().__init__(f"status {status}")


def _is_sound(transfer: _Transfer, check: Check) -> bool:
    """Whether the data match the declared SHA-256, or their entity tag: SHA-256, or of small files git's SHA-1."""
    wanted = transfer.file.sha256 or transfer.etag
    if re.fullmatch("[0-9a-f]{64}", wanted):
        digest = hashlib.sha256()
    elif re.fullmatch("[0-9a-f]{40}", wanted):
        digest = hashlib.sha1(f"blob {transfer.size}\0".encode(), usedforsecurity=False)
    else:
        return True
    with transfer.part.open("rb") as file:
        while block := file.read(BLOCK):
            check()
            digest.update(block)
    return digest.hexdigest() == wanted
