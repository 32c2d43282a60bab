"""Bundled weights: verification, and the packed form in the installable package. Torch-free.

Their SHA-256 is listed in ``resources/models/fingerprints.json``. With a damaged disk, an incomplete copy or a replaced
file, models would speak noise without an error. The file that identifies a model is hashed on loading anyway and only
compared here; the parts next to it (vocoder, codec, speech tokenizer) are hashed by a thread while the model is read
and warms up.

``packed.json`` next to the list maps the SHA-256 of each packed file to that of its original, by which profiles, takes
and studies identify these weights in a clone and a package alike. It lists only bundled files, so no other file can
pass for them. ``python -m paretone.models.files.bundled`` rewrites both lists after bundled weights have changed.

A packed file is a safetensors file in which a half-precision matrix is an int8 tensor of the same name and shape, with
a tensor of float32 steps, one per row (first axis), named with the suffix :data:`STEPS`:

    value = float16(step × whole number)              of a checkpoint
    value = float16(base + step × whole number)       of weights that were trained from another checkpoint

computed in float32; ``base`` is the value of that checkpoint, read as stored there. Small tensors, and those
without a counterpart in the base, are unchanged. The metadata are those of the original file and, in addition:

``packed``         :data:`FORMAT`
``packed_from``    SHA-256 of the original file, which identifies these weights
``packed_base``    path of the base, relative to the folder of this file; absent without a base
``packed_sha256``  SHA-256 of the base's file: no other numbers may be added to
``packed_layers``  JSON: base layer of each layer, for weights with fewer layers

Readers see the original's names, shapes and metadata through :func:`unpacking`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from paretone.errors import CheckpointError
from paretone.files import TEMPORARY, write_atomically
from paretone.models.files.layer_importance import renumbered
from paretone.paths import resource
from paretone.reading import first_line, parsed_json, read_json, require_regular, shown

_BLOCK = 1 << 22
_KNOWN: dict[tuple[str, int, int], str] = {}


def file_sha256(path: Path, check: Callable[[], None] = lambda: None) -> str:
    """SHA-256 of the file at ``path``, 64 hexadecimal digits. ``check`` is called every few megabytes and may raise to
    cancel. Raises :class:`OSError`."""
    status = path.stat()
    key = str(path.resolve()), status.st_size, status.st_mtime_ns
    if key not in _KNOWN:
        digest = hashlib.sha256()
        with path.open("rb") as file:
            for block in iter(functools.partial(file.read, _BLOCK), b""):
                check()
                digest.update(block)
        _KNOWN[key] = digest.hexdigest()
    return _KNOWN[key]


def with_sorted_metadata(content: bytes) -> bytes:
    """The safetensors file ``content`` with sorted metadata. The library's order varies, but a second file of the same
    weights must be identical to the byte to be recognised."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    if "__metadata__" not in header:
        return content
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text = text.ljust(-(-len(text) // 8) * 8)  # Aligns the tensors, as the format requires.
    return len(text).to_bytes(8, "little") + text + content[start:]


FORMAT = "1"
PACKED, ORIGIN = "packed", "packed_from"
BASE, BASE_DIGEST, LAYERS = "packed_base", "packed_sha256", "packed_layers"
KEYS = PACKED, ORIGIN, BASE, BASE_DIGEST, LAYERS
STEPS = ".packed_steps"
"""Suffix of the name of a matrix's steps."""


def is_packed(metadata: Mapping[str, str]) -> bool:
    """Whether a file with these ``metadata`` is packed."""
    return PACKED in metadata


def origin(path: Path) -> str:
    """SHA-256 of the original of the packed file at ``path``, or ``""`` if the file is not packed. Raises
    :class:`OSError` and :class:`safetensors.SafetensorError`."""
    with safe_open(path, framework="np") as file:
        told = file.metadata() or {}
    return told[ORIGIN] if is_packed(told) else ""


def unpacked(whole: np.ndarray, steps: np.ndarray, base: np.ndarray | None = None) -> np.ndarray:
    """Float16 values of int8 numbers, (rows, …), with float32 ``steps``, (rows,), added to ``base`` of the same shape.
    Each operation is rounded separately, so all processors agree."""
    # Damaged files can give any value; the reader rejects invalid weights.
    with np.errstate(over="ignore", invalid="ignore"):
        values = whole.astype(np.float32)
        values *= steps.reshape(-1, *[1] * (whole.ndim - 1))
        if base is not None:
            values += base
        return values.astype(np.float16)


class PackedFile:
    """An open packed file with the interface of ``safe_open``, as if it were not packed. Reading raises
    :class:`ValueError` for a damaged file, and :class:`CheckpointError` for a missing base."""

    def __init__(
        self,
        file: Any,
        metadata: Mapping[str, str],
        open_base: Callable[[], Any],
        as_tensor: Callable[[np.ndarray], Any],
    ) -> None:
        if metadata[PACKED] != FORMAT:
            raise ValueError(f"it is packed in a form {shown(metadata[PACKED])} that this version does not know")
        self._file, self._told, self._open_base, self._as_tensor = file, metadata, open_base, as_tensor
        names = list(file.keys())
        self._packed = {name.removesuffix(STEPS) for name in names if name.endswith(STEPS)}
        self._names = [name for name in names if not name.endswith(STEPS)]
        self._layers = _layers(metadata)

    def keys(self) -> list[str]:
        return list(self._names)

    def metadata(self) -> dict[str, str]:
        return {name: value for name, value in self._told.items() if name not in KEYS}

    def get_slice(self, name: str) -> Any:
        """Slice of the stored tensor, which has the original's shape."""
        return self._file.get_slice(name)

    def get_tensor(self, name: str) -> Any:
        stored = self._file.get_tensor(name)
        if name not in self._packed:
            return stored
        whole, steps = np.asarray(stored), np.asarray(self._file.get_tensor(f"{name}{STEPS}"))
        if whole.dtype != np.int8 or steps.dtype != np.float32 or steps.shape != whole.shape[:1]:
            raise ValueError(f"{shown(name)} and its steps do not fit each other")
        return self._as_tensor(unpacked(whole, steps, self._base(name, whole.shape)))

    def _base(self, name: str, shape: tuple[int, ...]) -> np.ndarray | None:
        if BASE not in self._told:
            return None
        there = name if self._layers is None else renumbered(name, self._layers)
        if there is None:
            raise ValueError(f"it does not say which layer of its base {shown(name)} belongs to")
        value = np.asarray(self._open_base().get_tensor(there))
        if value.dtype != np.float16 or value.shape != shape:
            raise ValueError(f"{shown(name)} does not fit {shown(there)} of its base")
        return value


def _layers(metadata: Mapping[str, str]) -> Mapping[int, int] | None:
    """Base layer of each layer; ``None`` if they are the same."""
    if LAYERS not in metadata:
        return None
    listed = parsed_json(metadata[LAYERS])
    if not isinstance(listed, list) or not all(isinstance(one, int) and 0 <= one < 10**6 for one in listed):
        raise ValueError("it does not say which layers it has")
    return dict(enumerate(listed))


@contextlib.contextmanager
def unpacking(
    file: Any, path: Path, framework: str, as_tensor: Callable[[np.ndarray], Any] = lambda values: values
) -> Iterator[Any]:
    """``file``, opened by ``safe_open`` at ``path`` for the ``framework``: itself if it is not packed, else an
    unpacking wrapper with ``as_tensor`` as the last step. The base is opened on first use."""
    told = file.metadata() or {}
    if not is_packed(told):
        yield file
        return
    with contextlib.ExitStack() as stack:
        opened: list[Any] = []

        def open_base() -> Any:
            if not opened:
                opened.append(stack.enter_context(_opened_base(path, told, framework, as_tensor)))
            return opened[0]

        yield PackedFile(file, told, open_base, as_tensor)


@contextlib.contextmanager
def _opened_base(
    path: Path, told: Mapping[str, str], framework: str, as_tensor: Callable[[np.ndarray], Any]
) -> Iterator[Any]:
    base = path.parent / told[BASE]
    try:
        require_regular(base)
        found = file_sha256(base)
    except (OSError, ValueError) as error:
        raise _without_base(path, base, f"which cannot be read: {first_line(error)}") from None
    if found != told.get(BASE_DIGEST):
        raise _without_base(path, base, f"whose SHA-256 should begin with {shown(told.get(BASE_DIGEST, '')[:12])}")
    with safe_open(base, framework=framework) as file:
        if BASE in (file.metadata() or {}):
            raise _without_base(path, base, "which itself holds differences only")
        with unpacking(file, base, framework, as_tensor) as plain:
            yield plain


def _without_base(path: Path, base: Path, why: str) -> CheckpointError:
    return CheckpointError(
        f"{path} holds differences from the checkpoint {base}, {why}. Install Paretone again; to use these weights "
        "elsewhere, export them."
    )


LIST, PACKED_LIST = "fingerprints.json", "packed.json"
SUFFIX = ".safetensors"


def root() -> Path:
    return resource("models")


def listed() -> Mapping[str, str]:
    """Original SHA-256 of each bundled weight file, by its path in :func:`root`. Raises :class:`CheckpointError`."""
    return _list(root() / LIST)


def original(digest: str) -> str:
    """Identity of the weights in a file with the SHA-256 ``digest``: the original's if it is a bundled packed file.
    Raises :class:`CheckpointError`."""
    return _list(root() / PACKED_LIST, needed=False).get(digest, digest)


@functools.cache
def _list(path: Path, needed: bool = True) -> Mapping[str, str]:
    """A list of SHA-256; empty if missing and not ``needed``."""
    if not needed and not path.exists():
        return {}
    try:
        data = read_json(path)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}); install Paretone again.") from None
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise CheckpointError(f"{path} is not a list of weights; install Paretone again.")
    return data


def require_shipped(path: Path, digest: str) -> None:
    """Raise :class:`CheckpointError` if ``path`` is bundled and its SHA-256 ``digest`` is not the listed one."""
    name = _name(path)
    if name in listed() and listed()[name] != digest:
        raise CheckpointError(
            f"{path} is not the file that Paretone ships: its SHA-256 begins with {digest[:12]}, not with "
            f"{listed()[name][:12]}. Install Paretone again, or load your own weights from a folder of their own."
        )


def verified_meanwhile(folders: Iterable[Path]) -> Callable[[], None]:
    """Start hashing the bundled weight files directly in ``folders``. The returned function waits for it, and raises
    :class:`CheckpointError` for a changed file."""
    wanted = {_name(folder) for folder in folders} - {""}
    paths = [root() / name for name in listed() if Path(name).parent.as_posix() in wanted]
    if not paths:
        return lambda: None
    pool = ThreadPoolExecutor(1, "fingerprints")
    hashed = [(path, pool.submit(sha256, path)) for path in paths]
    pool.shutdown(wait=False)

    def require_all() -> None:
        for path, future in hashed:
            require_shipped(path, future.result())

    return require_all


def sha256(path: Path) -> str:
    """Identity of the weights in the file at ``path``; see :func:`original`. Raises :class:`CheckpointError`."""
    try:
        return original(file_sha256(path))
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror or error}); install Paretone again.") from None


def _name(path: Path) -> str:
    """Path relative to :func:`root`, or ``""`` if outside."""
    try:
        return path.resolve().relative_to(root()).as_posix()
    except ValueError:
        return ""


def write_lists(folder: Path) -> int:
    """Write both lists for the weight files in ``folder``, the second only if any is packed; return the number of
    files. Raises :class:`OSError`, and :class:`CheckpointError` for a file that is not a safetensors file."""
    known, packed = {}, {}
    for path in sorted(folder.rglob(f"*{SUFFIX}")):
        digest = file_sha256(path)
        identity = origin(path) or digest
        known[path.relative_to(folder).as_posix()] = identity
        if identity != digest:
            packed[digest] = identity
    write_atomically(folder / LIST, _json(known))
    if packed:
        write_atomically(folder / PACKED_LIST, _json(packed))
    else:
        (folder / PACKED_LIST).unlink(missing_ok=True)
    return len(known)


def _json(data: Mapping[str, str]) -> bytes:
    return (json.dumps(data, indent=1) + "\n").encode()


# --- Packing ----------------------------------------------------------------------------------------------------------
# Package registries limit files to 100 MiB, and half precision hardly compresses: ``packaging/packed_build.py`` packs
# the models for a wheel; the repository keeps the weights as trained.
LARGEST = 127
"""Largest absolute value of the integers."""
STEPS_PER_DEVIATION = 5
"""Resolution of differences: with five steps per standard deviation the error is 6 % of it, and deflate, which
compresses wheels, needs five bits per number."""
SMALLEST, SHORTEST_ROW = 4096, 32
"""Least size of a packed matrix and of its rows, in numbers: below these, the steps would take more than packing
saves."""


def pack_models(source: Path, target: Path) -> None:
    """Pack every weight file in the folder of models ``source`` into the same place in ``target``, and write the lists
    of this module; other files are not touched. Weights whose metadata name another file there as their base are stored
    as differences from it. Nothing else may write into ``target``: temporary files of a killed process are removed,
    since the entire folder ships. Raises :class:`OSError` and, for a damaged file,
    :class:`safetensors.SafetensorError`."""
    for left in target.rglob(f"{TEMPORARY}*"):
        left.unlink()
    paths = sorted(source.rglob(f"*{SUFFIX}"))
    identities = {path: _identity(path) for path in paths}
    by_identity = {identity: path for path, identity in identities.items()}
    bases = {path: by_identity.get(_metadata(path).get("base", "")) for path in paths}
    for path in sorted(paths, key=lambda one: bases[one] is not None):  # bases first
        there, base = target / path.relative_to(source), bases[path]
        there.parent.mkdir(parents=True, exist_ok=True)
        packed_base = None if base is None else target / base.relative_to(source)
        write_atomically(there, packed(path, identities[path], there, packed_base))
    write_lists(target)


def packed(path: Path, identity: str, there: Path, base: Path | None) -> bytes:
    """Pack the weights in the file at ``path`` for a file at ``there``, as differences from the packed weights at
    ``base`` if given; return the file unchanged if none of its tensors is worth packing. ``identity`` is the SHA-256
    that identifies the weights."""
    told, tensors = _read(path)
    told |= {PACKED: FORMAT, ORIGIN: identity}
    bases: dict[str, np.ndarray] = {}
    if base is not None:
        told |= {BASE: Path(os.path.relpath(base, there.parent)).as_posix(), BASE_DIGEST: file_sha256(base)}
        bases = _read(base)[1]
        # Drafts keep the base's layer numbers, students count from 0.
        if told.get("kind") == "student":
            told[LAYERS] = told["retained"]
            of_base = dict(enumerate(json.loads(told["retained"])))
            bases = {name: bases[here] for name in tensors if (here := renumbered(name, of_base)) in bases}
    stored: dict[str, np.ndarray] = {}
    for name, value in tensors.items():
        counterpart = bases.get(name)
        fits = base is None or (counterpart is not None and counterpart.shape == value.shape)
        if not _is_worth_packing(value) or not fits:
            stored[name] = value
            continue
        if counterpart is None:
            whole, steps = whole_numbers(value)
        else:
            whole, steps = whole_numbers(value - counterpart.astype(np.float32), STEPS_PER_DEVIATION)
        stored |= {name: whole, f"{name}{STEPS}": steps}
    if len(stored) == len(tensors) and ORIGIN not in _metadata(path):
        return path.read_bytes()
    return with_sorted_metadata(save(stored, told))


def whole_numbers(values: np.ndarray, per_deviation: float = math.inf) -> tuple[np.ndarray, np.ndarray]:
    """Quantise ``values``, (rows, …), to int8 numbers of the same shape with float32 steps, (rows,): as fine as the
    largest value of a row allows, or coarser, with ``per_deviation`` steps to the row's standard deviation around
    zero."""
    rows = values.astype(np.float32).reshape(len(values), -1)
    steps = np.maximum(np.abs(rows).max(1) / LARGEST, np.sqrt((rows**2).mean(1)) / per_deviation).astype(np.float32)
    divisors = np.where(steps > 0, steps, 1)[:, None]
    whole = np.clip(np.rint(rows / divisors), -LARGEST, LARGEST).astype(np.int8)
    return whole.reshape(values.shape), steps


def _is_worth_packing(value: np.ndarray) -> bool:
    rows = len(value) if value.ndim > 1 else value.size
    return value.dtype == np.float16 and value.size >= SMALLEST and value.size >= SHORTEST_ROW * rows


def _read(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Metadata and tensors of a weight file, packed or not."""
    with safe_open(path, framework="np") as file, unpacking(file, path, "np") as plain:
        return plain.metadata() or {}, {name: plain.get_tensor(name) for name in plain.keys()}  # noqa: SIM118


def _metadata(path: Path) -> Mapping[str, str]:
    with safe_open(path, framework="np") as file:
        return file.metadata() or {}


def _identity(path: Path) -> str:
    return _metadata(path).get(ORIGIN) or file_sha256(path)


if __name__ == "__main__":
    print(f"{root() / LIST}: {write_lists(root())} files")
