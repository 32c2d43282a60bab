"""Bundled weights: verification, and the packed form in the installable package. Torch-free.

Their SHA-256 is listed in ``resources/models/fingerprints.json``. With a damaged disk, an incomplete copy or a replaced
file, models would speak noise without an error. The file that identifies a model is hashed on loading anyway and only
compared here; the parts next to it (vocoder, codec, speech tokenizer) are hashed by a thread meanwhile.

``packed.json`` next to the list maps the SHA-256 of each packed file to that of its original, by which profiles, takes
and studies identify these weights in a clone and a package alike. It lists only bundled files, so no other file can
pass for them. ``python packaging/packing.py`` rewrites both lists after bundled weights have changed.

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
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from paretone.errors import CheckpointError
from paretone.models.files.layer_importance import renumbered
from paretone.observer import Check
from paretone.paths import resource
from paretone.reading import first_line, parsed_json, read_json, readable, require_regular, shown, version

_BLOCK = 1 << 22
_KNOWN: dict[tuple[Path, tuple[int, int]], str] = {}


def file_sha256(path: Path, check: Check = lambda: None) -> str:
    """SHA-256 of a file, 64 hexadecimal digits. ``check`` runs every few megabytes. Raises :class:`OSError`."""
    key = path.resolve(), version(path)
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
        self._layers: Mapping[int, int] | None = None
        if LAYERS in metadata:
            layers = parsed_json(metadata[LAYERS])
            if not isinstance(layers, list) or not all(isinstance(one, int) and 0 <= one < 10**6 for one in layers):
                raise ValueError("it does not say which layers it has")
            self._layers = dict(enumerate(layers))

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
        base = None
        if BASE in self._told:
            there = name if self._layers is None else renumbered(name, self._layers)
            if there is None:
                raise ValueError(f"it does not say which layer of its base {shown(name)} belongs to")
            base = np.asarray(self._open_base().get_tensor(there))
            if base.dtype != np.float16 or base.shape != whole.shape:
                raise ValueError(f"{shown(name)} does not fit {shown(there)} of its base")
        return self._as_tensor(unpacked(whole, steps, base))


@contextlib.contextmanager
def unpacking(
    file: Any, path: Path, framework: str, as_tensor: Callable[[np.ndarray], Any] = lambda values: values
) -> Iterator[Any]:
    """``file``, opened by ``safe_open`` at ``path`` for the ``framework``: itself if it is not packed, else an
    unpacking wrapper with ``as_tensor`` as the last step. The base is opened on first use."""
    told = file.metadata() or {}
    if PACKED not in told:
        yield file
        return
    with contextlib.ExitStack() as stack:

        @functools.cache
        def open_base() -> Any:
            base = path.parent / told[BASE]
            try:
                require_regular(base)
                found = file_sha256(base)
            except (OSError, ValueError) as error:
                raise _without_base(path, base, f"which cannot be read: {first_line(error)}") from None
            if found != told.get(BASE_DIGEST):
                begins = shown(told.get(BASE_DIGEST, "")[:12])
                raise _without_base(path, base, f"whose SHA-256 should begin with {begins}")
            plain = stack.enter_context(safe_open(base, framework=framework))
            if BASE in (plain.metadata() or {}):
                raise _without_base(path, base, "which itself holds differences only")
            return stack.enter_context(unpacking(plain, base, framework, as_tensor))

        yield PackedFile(file, told, open_base, as_tensor)


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
    """SHA-256 of weights in a file with ``digest``: the original's if it is packed. Raises :class:`CheckpointError`."""
    return _list(root() / PACKED_LIST, needed=False).get(digest, digest)


@functools.cache
def _list(path: Path, needed: bool = True) -> Mapping[str, str]:
    """A list of SHA-256; empty if missing and not ``needed``."""
    if not needed and not path.exists():
        return {}
    with readable(CheckpointError, f"{path} cannot be read", "install Paretone again"):
        data = read_json(path)
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise CheckpointError(f"{path} is not a list of weights; install Paretone again.")
    return data


def require_shipped(path: Path, digest: str) -> None:
    """Raise :class:`CheckpointError` if ``path`` is bundled and its SHA-256 ``digest`` is not the listed one."""
    wanted = listed().get(_name(path), digest)
    if wanted != digest:
        raise CheckpointError(
            f"{path} is not the file that Paretone ships: its SHA-256 begins with {digest[:12]}, not with "
            f"{wanted[:12]}. Install Paretone again, or load your own weights from a folder of their own."
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
    with readable(CheckpointError, f"{path} cannot be read", "install Paretone again"):
        return original(file_sha256(path))


def _name(path: Path) -> str:
    """Path relative to :func:`root`, or ``""`` if outside."""
    try:
        return path.resolve().relative_to(root()).as_posix()
    except ValueError:
        return ""
