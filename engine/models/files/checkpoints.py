"""Reading weight files safely and strictly.

No file is ever unpickled with code in it, and no weight is silently left over or left out: what does not fit is named.
"""

from __future__ import annotations

import functools
import hashlib
import json
import pickle
import pickletools
import re
import struct
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from engine.errors import CheckpointError
from engine.models.networks.shapes import uninitialised

SUFFIXES = (".safetensors", ".pt", ".bin", ".pth", ".ckpt")
DAMAGED = "is damaged or not complete; download it again"
NAMES_SHOWN = 5
"""Maximum number of keys named in an error message."""
AnyModule = TypeVar("AnyModule", bound=nn.Module)
_BLOCK = 1 << 22


def read_weights(path: Path, check: Callable[[], None] = lambda: None) -> dict[str, Tensor]:
    """The tensors of a flat weight file, on the CPU, by their names.

    Raises :class:`CheckpointError` when the file is missing, damaged, no checkpoint, holds code, or is not flat.
    """
    content = read_checkpoint(path, check)
    nested = [str(key) for key, value in content.items() if not isinstance(value, Tensor)]
    if nested:
        raise CheckpointError(f"{path} is not a plain list of weights: {_shown(nested)} is not a tensor.")
    return content


def read_float_weights(path: Path, check: Callable[[], None] = lambda: None) -> dict[str, Tensor]:
    """The same in float32; what does not hold fractions stays as it is."""
    weights = read_weights(path, check)
    return {name: value.float() if value.is_floating_point() else value for name, value in weights.items()}


def read_description(path: Path) -> Any:
    """Contents of the JSON file next to a bundled model's weights. Raises :class:`CheckpointError`."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}); restore the model folder.") from error


def read_checkpoint(path: Path, check: Callable[[], None] = lambda: None) -> dict:
    """Everything a checkpoint holds: ``.safetensors``, or a file of ``torch.save`` that holds only data.

    ``check`` is called between tensors where the format allows, and may raise to cancel.

    Raises :class:`CheckpointError`.
    """
    if not path.is_file():
        raise CheckpointError(f"The checkpoint {path} is missing; choose another file or download the model.")
    if path.suffix not in SUFFIXES:
        raise CheckpointError(f"{path} is not a checkpoint; expected a file ending in {', '.join(SUFFIXES)}.")
    if path.stat().st_size == 0:
        raise CheckpointError(f"The checkpoint {path} is empty; download it again.")
    content = _safetensors(path, check) if path.suffix == ".safetensors" else _torch_file(path)
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} holds a {type(content).__name__}, not the weights of a model.")
    check()
    return content


def metadata_of(path: Path) -> dict[str, str]:
    """The metadata of a safetensors file; none of a file that is something else or cannot be read."""
    if path.suffix != ".safetensors":
        return {}
    try:
        with safe_open(path, framework="pt") as file:
            return dict(file.metadata() or {})
    except (SafetensorError, OSError):
        return {}


def _safetensors(path: Path, check: Callable[[], None]) -> dict[str, Tensor]:
    weights = {}
    try:
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 (not a mapping)
                check()
                weights[name] = file.get_tensor(name)
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"The checkpoint {path} {DAMAGED} ({_first_line(error)}).") from None
    return weights


def _torch_file(path: Path) -> object:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickle protocols of files that are refused anyway
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        refused = re.search(r"GLOBAL (\S+)", str(error))
        code = refused[1] if refused else _first_import(path)
        if code is None:
            raise CheckpointError(f"{path} is not a checkpoint, or {DAMAGED}.") from None
        raise CheckpointError(
            f"The checkpoint {path} was refused: it holds code ({code}) and not only weights. "
            "Use the .safetensors file of this model."
        ) from None
    except (RuntimeError, EOFError, OSError) as error:
        raise CheckpointError(f"The checkpoint {path} {DAMAGED} ({_first_line(error)}).") from None
    except (
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        AssertionError,
        struct.error,
    ):  # what no pickle is
        raise CheckpointError(f"{path} is not a checkpoint, or {DAMAGED}.") from None


def _first_import(path: Path) -> str | None:
    """First import of a bare pickle, read without executing it; ``None`` if it is not a pickle or harmless."""
    names: list[str] = []
    try:
        with path.open("rb") as file:
            for operation, argument, _ in pickletools.genops(file):
                if operation.name == "GLOBAL":
                    return str(argument).replace(" ", ".")
                if operation.name == "STACK_GLOBAL":
                    return ".".join(names[-2:])
                if isinstance(argument, str):
                    names.append(argument)
    except (ValueError, OSError):
        return None
    return None


def load_strictly(module: nn.Module, weights: Mapping[str, Tensor], where: str, assign: bool = False) -> None:
    """Copy ``weights`` into ``module``: every key of one must be in the other, with the same shape. With ``assign`` the
    module takes the tensors themselves, as they are, in place of its own, which may be on the meta device.

    Raises :class:`CheckpointError` that names the keys at fault and ``where`` they come from.
    """
    expected = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    check_shapes(expected, {name: tuple(value.shape) for name, value in weights.items()}, where)
    require_numbers(weights, where)
    module.load_state_dict(weights, strict=True, assign=assign)


def loaded_strictly(make: Callable[[], AnyModule], weights: Mapping[str, Tensor], where: str) -> AnyModule:
    """The module that ``make`` makes, with ``weights`` in it, see :func:`load_strictly`; no initial ones are drawn."""
    with uninitialised():
        module = make()
    load_strictly(module, weights, where)
    return module


def require_numbers(weights: Mapping[str, Tensor], where: str) -> None:
    """Raise :class:`CheckpointError` that names the tensors of ``weights`` that hold anything but finite numbers."""
    # A sum is finite only where all of its terms are, and takes a tenth of the time of looking at each.
    floats = {name: value for name, value in weights.items() if value.is_floating_point()}
    doubtful = [name for name, value in floats.items() if not value.sum().isfinite()]
    not_finite = [name for name in doubtful if not floats[name].isfinite().all()]
    if not_finite:
        raise CheckpointError(f"{where} holds values that are not numbers in {_shown(not_finite)}; download it again.")


def check_shapes(
    expected: Mapping[str, tuple[int, ...]],
    found: Mapping[str, tuple[int, ...]],
    where: str,
) -> None:
    """Raise :class:`CheckpointError` that names what ``found`` lacks, has too much or has in another shape."""
    problems = []
    missing = [name for name in expected if name not in found]
    unexpected = [name for name in found if name not in expected]
    wrong = [name for name in expected if name in found and tuple(expected[name]) != tuple(found[name])]
    if missing:
        problems.append(f"{_counted(missing, 'weight')} missing: {_shown(missing)}")
    if unexpected:
        problems.append(f"{_counted(unexpected, 'weight')} unexpected: {_shown(unexpected)}")
    if wrong:
        shapes = [f"{name} is {_shape(found[name])} instead of {_shape(expected[name])}" for name in wrong]
        problems.append(f"{_counted(wrong, 'weight')} of another shape: {_shown(shapes)}")
    if problems:
        raise CheckpointError(
            f"{where} does not fit this architecture: {'; '.join(problems)}. Choose the one that it was made for."
        )


def require_all_loaded(found: Mapping[str, Any], where: str) -> None:
    """Raise :class:`CheckpointError` if ``transformers`` would continue with random weights, or leave some out;
    ``found`` is what it tells of the loading."""
    for kind, what in (
        ("missing_keys", "missing"),
        ("mismatched_keys", "of another shape"),
        ("unexpected_keys", "unknown"),
    ):
        names = sorted(str(name[0] if isinstance(name, tuple) else name) for name in found.get(kind, ()))
        if names:
            raise CheckpointError(f"In {where} these weights are {what}: {_shown(names)}; download it again.")


def fingerprint(path: Path, check: Callable[[], None] = lambda: None) -> str:
    """SHA-256 of a file, 64 hexadecimal digits; remembered as long as path, size and time of change are the same.

    ``check`` is called every few megabytes and may raise to cancel. Raises :class:`CheckpointError`.
    """
    try:
        status = path.stat()
        return _fingerprint(str(path.resolve()), status.st_size, status.st_mtime_ns, check)
    except OSError as error:
        raise CheckpointError(f"The checkpoint {path} cannot be read: {error.strerror or error}.") from None


_KNOWN_FINGERPRINTS: dict[tuple[str, int, int], str] = {}


def _fingerprint(path: str, size: int, changed: int, check: Callable[[], None]) -> str:
    known = _KNOWN_FINGERPRINTS.get((path, size, changed))
    if known is not None:
        return known
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(functools.partial(file.read, _BLOCK), b""):
            check()
            digest.update(block)
    _KNOWN_FINGERPRINTS[path, size, changed] = digest.hexdigest()
    return digest.hexdigest()


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__


def _counted(names: list[str], noun: str) -> str:
    return f"{len(names)} {noun}{'' if len(names) == 1 else 's'}"


def _shape(shape: Iterable[int]) -> str:
    return " × ".join(map(str, shape)) or "one number"


def _shown(names: list[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more"
