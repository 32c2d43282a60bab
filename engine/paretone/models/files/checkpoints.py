"""Safe, strict reading of weight files.

Code in a pickle is never executed, and no weight is silently left over or missing: errors name what does not fit.
:class:`Shards` is a Hugging Face folder: weights in one file or in shards listed by an index, and ``tokenizer.json``.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import pickle
import re
import struct
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from paretone.errors import CheckpointError
from paretone.extras import needing
from paretone.models.files import bundled, config_file
from paretone.models.files.bundled import PackedFile, original, unpacking, with_sorted_metadata
from paretone.models.files.releases import INDEX, INDEX_OF_PICKLED, shard_of_each
from paretone.models.networks.shapes import uninitialised, without_weights
from paretone.observer import Check
from paretone.reading import first_line, named_first, read_bytes, read_json, readable, require_regular, shortened, shown
from paretone.wording import counted, grouped, listed

if TYPE_CHECKING:
    from tokenizers import Tokenizer


DAMAGED = "is damaged or not complete; download it again"
NAMES_SHOWN = 5
"""Maximum number of keys named in an error message."""
LARGEST_WEIGHT = 1e8
"""Upper limit of weights; those of released models have at most four digits."""
SMALLEST_DEAD = 16
"""Least size of a matrix that is rejected if all zeros."""
_KINDS = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
)
AnyModule = TypeVar("AnyModule", bound=nn.Module)


def read_weights(path: Path, check: Check = lambda: None, numbers: Collection[str] = ()) -> dict[str, Tensor]:
    """Tensors of a weight file by name, on the CPU, without ``numbers`` and wrappers that a training adds. Raises
    :class:`CheckpointError` if the file is missing, damaged, not a checkpoint, contains code, or nests them."""
    whole = unwrapped(read_checkpoint(path, check), str(path))
    content = {key: value for key, value in whole.items() if key not in numbers}
    nested = [str(key) for key, value in content.items() if not isinstance(value, Tensor)]
    if nested:
        raise CheckpointError(f"{path} is not a plain list of weights: {_shown(nested)} is not a tensor.")
    return sound_tensors(content, str(path))


def unwrapped(content: Mapping[Any, Any], where: str, before: Collection[str] = ()) -> dict[Any, Any]:
    """The weights in a checkpoint's ``content``, which in checkpoints of trainings is one entry of several. Their names
    lose the parts that wrappers add (:func:`config_file.without_wrappers`) and leading parts in ``before``. Raises
    :class:`CheckpointError` for LoRA weights, and if two names become the same."""
    inner = next((content[name] for name in _HOLDERS if isinstance(content.get(name), Mapping)), content)
    if any(config_file.LORA.search(str(name)) for name in inner):
        raise config_file.lora_error(where)
    found: dict[Any, Any] = {}
    for key, value in inner.items():
        parts = config_file.without_wrappers(str(key)).split(".")
        while len(parts) > 1 and parts[0] in before:
            parts = parts[1:]
        name = ".".join(parts) if isinstance(key, str) else key
        if name in found:
            raise CheckpointError(f"{where} holds the weight {shown(name)} twice; save the model without its wrappers.")
        found[name] = value
    return found


_HOLDERS = "ema_model_state_dict", "model_state_dict", "state_dict", "model", "module"
"""Keys of the weights in checkpoints of trainings."""


def read_float_weights(path: Path, check: Check = lambda: None) -> dict[str, Tensor]:
    """:func:`read_weights` in float32; integers are unchanged."""
    return in_float32(read_weights(path, check))


def in_float32(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """``weights`` in float32; integers are unchanged, so that they are not mistaken for fractions."""
    return {name: value.float() if value.is_floating_point() else value for name, value in weights.items()}


def sound_tensors(content: Mapping[Any, Tensor], where: str) -> dict[str, Tensor]:
    """``content``, read from ``where``, if each tensor has a name and plain numbers. Raises :class:`CheckpointError`
    that names a tensor that is sparse, quantised, without values, or of an unsupported type."""
    for name, value in content.items():
        kind = ""
        if not isinstance(name, str):
            kind = "under a number instead of a name"
        elif value.layout is not torch.strided or value.is_quantized:
            kind = "sparse or quantised"
        elif value.device.type != "cpu":
            kind = "without values"
        elif value.dtype not in _KINDS:
            kind = f"of {str(value.dtype).removeprefix('torch.')} numbers"
        elif value.numel() * value.element_size() > value.untyped_storage().nbytes():
            kind = "larger than what is stored of it"
        if kind:
            raise CheckpointError(
                f"{where} has a tensor {shown(name)} that is {kind}; use the file of the model in float32, bfloat16 or "
                "float16."
            )
    return dict(content)


def read_checkpoint(path: Path, check: Check = lambda: None) -> dict:
    """The content of a checkpoint: ``.safetensors``, or a file of ``torch.save`` with data only. ``check`` is called
    between tensors if the format allows, and may raise to cancel. Raises :class:`CheckpointError`."""
    _require_file(path)
    if path.suffix == ".safetensors":
        with opened(path) as file:
            content: Any = _tensors(file, check)
    else:
        content = _torch_file(path)
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} holds a {type(content).__name__}, not the weights of a model.")
    check()
    return content


def metadata_of(path: Path) -> dict[str, str]:
    """Metadata of a safetensors file; empty for other and unreadable files."""
    if path.suffix != ".safetensors":
        return {}
    try:
        with opened(path) as file:
            return dict(file.metadata() or {})
    except CheckpointError:
        return {}


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open a safetensors file, unpacked if it is packed (:mod:`paretone.models.files.bundled`). Raises
    :class:`CheckpointError`, also for errors of reading within."""
    _require_file(path)
    problem = f"The checkpoint {path} {DAMAGED}"
    # Tensor types unknown to this torch raise KeyError or AttributeError.
    with (
        readable(CheckpointError, problem, "", SafetensorError),
        safe_open(path, framework="pt") as file,
        unpacking(file, path, "pt", torch.from_numpy) as plain,
    ):
        yield plain


def require_part(path: Path, remedy: str, kind: str = "") -> int:
    """Size of ``path``, a part of a model, in bytes. Raises :class:`CheckpointError` unless it is a regular file;
    ``remedy`` advises if it is missing, and ``kind`` precedes its name."""
    try:
        return require_regular(path).st_size
    except FileNotFoundError:
        raise CheckpointError(f"{kind}{path} is missing; {remedy}.") from None
    except OSError as error:
        raise CheckpointError(f"{kind}{path} cannot be read: {first_line(error)}.") from None


def _require_file(path: Path) -> None:
    """Raise :class:`CheckpointError` unless ``path`` is a regular, non-empty file with a checkpoint's suffix."""
    size = require_part(path, "choose another file or download the model", "The checkpoint ")
    if path.suffix not in config_file.WEIGHTS:
        raise CheckpointError(
            f"{path} is not a checkpoint; expected a file ending in {listed(config_file.WEIGHTS, 'or')}."
        )
    if size == 0:
        raise CheckpointError(f"The checkpoint {path} is empty; download it again.")


def _tensors(file: Any, check: Check) -> dict[str, Tensor]:
    weights = {}
    for name in file.keys():  # noqa: SIM118 (not a mapping)
        check()
        weights[name] = file.get_tensor(name)
    return weights


def _require_packed(path: Path) -> None:
    """Raise :class:`CheckpointError` if a ``.pt``, which is a zip, unpacks to more than its size: torch compresses
    nothing, so only a malicious file does. Other formats are left to torch."""
    try:
        with zipfile.ZipFile(path) as packed:
            unpacked = sum(one.file_size for one in packed.infolist())
    except config_file.NO_ZIP:
        return
    size = path.stat().st_size
    if unpacked > size:
        raise CheckpointError(
            f"The checkpoint {path} was refused: its {grouped(size)} bytes would unpack to {grouped(unpacked)}, which "
            "no checkpoint does. Use the .safetensors file of this model."
        )


def _torch_file(path: Path) -> object:
    _require_packed(path)
    names = _imports(path)
    # Torch would search a long name for minutes, for a hint on how to run it nevertheless.
    code = next((name for name in names if len(name) > 200), None)
    if code is not None:
        raise _holds_code(path, code)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickle protocols of files that are refused anyway
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        refused = re.search(r"GLOBAL (\S+)", str(error))
        code = refused[1] if refused else next((name for name in names if not name.startswith(_OF_WEIGHTS)), None)
        if code is None:
            raise CheckpointError(f"{path} is not a checkpoint, or {DAMAGED}.") from None
        raise _holds_code(path, code) from None
    except (RuntimeError, EOFError, OSError) as error:
        raise CheckpointError(f"The checkpoint {path} {DAMAGED} ({first_line(error)}).") from None
    # What is no pickle.
    except (LookupError, ValueError, TypeError, AttributeError, AssertionError, OverflowError, struct.error):
        raise CheckpointError(f"{path} is not a checkpoint, or {DAMAGED}.") from None


def _holds_code(path: Path, code: str) -> CheckpointError:
    return CheckpointError(
        f"The checkpoint {path} was refused: it holds code ({shortened(code)}) and not only weights. "
        "Use the .safetensors file of this model."
    )


def _imports(path: Path) -> list[str]:
    """Imports of the pickles in a ``.pt``, read without executing them, as far as they can be parsed."""
    found, texts = list[str](), list[str]()
    for operation, argument in config_file.pickled(path):
        if operation == "GLOBAL":
            found.append(str(argument).replace(" ", "."))
        elif operation == "STACK_GLOBAL":
            found.append(".".join(texts[-2:]))
        elif isinstance(argument, str):
            texts.append(argument)
    return found


_OF_WEIGHTS = ("torch.", "collections.OrderedDict")
"""Imports in pickles of weights."""


def load_strictly(module: nn.Module, weights: Mapping[str, Tensor], where: str, assign: bool = False) -> None:
    """Copy ``weights`` into ``module``: keys and shapes must match exactly. With ``assign`` the tensors themselves
    replace the module's, which may be on the meta device. Raises :class:`CheckpointError` that names the faulty keys
    and ``where`` they come from."""
    own = module.state_dict()
    check_shapes(shapes_of(own), shapes_of(weights), where)
    wrong = [name for name, value in weights.items() if _kind(value) != _kind(own[name])]
    if wrong:
        found = [f"{name} holds {_kind(weights[name])} instead of {_kind(own[name])}" for name in wrong]
        raise CheckpointError(f"{where} is damaged: {_shown(found)}; download it again.")
    require_numbers(weights, where)
    module.load_state_dict(weights, strict=True, assign=assign)


def loaded_strictly(
    make: Callable[[], AnyModule], weights: Mapping[str, Tensor], where: str, assign: bool = False
) -> AnyModule:
    """The module from ``make`` with ``weights`` by :func:`load_strictly`, not initialised first; for inference."""
    with (without_weights if assign else uninitialised)(weights, where):
        module = make()
    load_strictly(module, weights, where, assign)
    return module.eval().requires_grad_(False)


def require_numbers(weights: Mapping[str, Tensor], where: str) -> None:
    """Raise :class:`CheckpointError` that names tensors of ``weights`` with values impossible after training: not
    finite, larger than :data:`LARGEST_WEIGHT`, or matrices of zeros."""
    not_finite, absurd, dead = [], [], []
    for name, value in weights.items():
        if not value.is_floating_point() or not value.numel():
            continue
        # One pass, as fast as a sum; NaN propagates to the result.
        lowest, highest = (float(end) for end in torch.aminmax(value))
        largest = max(-lowest, highest)
        if not (math.isfinite(lowest) and math.isfinite(highest)):
            not_finite.append(name)
        elif largest > LARGEST_WEIGHT:
            absurd.append(name)
        elif largest == 0 and value.numel() >= SMALLEST_DEAD and (is_matrix(value) or name.endswith(".weight")):
            dead.append(name)
    faults = {"values that are not numbers": not_finite, "absurdly large values": absurd, "only zeros": dead}
    for what, names in faults.items():
        if names:
            raise CheckpointError(f"{where} holds {what} in {_shown(names)}; download it again.")


def is_matrix(value: Tensor) -> bool:
    """Whether ``value`` has at least two axes longer than one."""
    return sum(size > 1 for size in value.shape) > 1


def require_fractions(weights: Mapping[str, Tensor], where: str) -> None:
    """Raise :class:`CheckpointError` that names tensors of ``weights`` stored as integers."""
    wrong = [f"{name} holds {_kind(value)}" for name, value in weights.items() if not value.is_floating_point()]
    if wrong:
        raise CheckpointError(f"{where} is damaged: {_shown(wrong)} instead of fractions; download it again.")


def shapes_of(weights: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in weights.items()}


def check_shapes(expected: Mapping[str, tuple[int, ...]], found: Mapping[str, tuple[int, ...]], where: str) -> None:
    """Raise :class:`CheckpointError` that names missing, unexpected and differently shaped keys in ``found``."""
    wrong = [name for name in expected if name in found and tuple(expected[name]) != tuple(found[name])]
    faults = {
        "missing": [name for name in expected if name not in found],
        "unexpected": [name for name in found if name not in expected],
        "of another shape": [f"{name} is {_shape(found[name])} instead of {_shape(expected[name])}" for name in wrong],
    }
    problems = [
        f"{counted(len(names), 'weight', 'weights')} {what}: {_shown(names)}" for what, names in faults.items() if names
    ]
    if problems:
        raise CheckpointError(
            f"{where} does not fit this architecture: {'; '.join(problems)}. Choose the one that it was made for."
        )


@contextlib.contextmanager
def loading(where: object) -> Iterator[None]:
    """Raise :class:`CheckpointError` if ``transformers`` cannot load ``where`` within: invalid folders cause errors of
    any kind, from three packages."""
    with readable(CheckpointError, f"{where} cannot be loaded", "download it again", Exception):
        yield


def pretrained(load: Callable[..., Any], folder: Path, where: str) -> Any:
    """The model that ``load``, a ``from_pretrained`` of ``transformers``, makes of ``folder``, in float32, for
    inference: weights only from ``.safetensors``, nothing downloaded. Raises :class:`CheckpointError`, also if it
    invents or ignores weights."""
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    with loading(where):
        # With output_loading_info it returns a pair, contrary to its types.
        model, found = load(
            folder, use_safetensors=True, dtype=torch.float32, output_loading_info=True, local_files_only=True
        )
    faults = {"missing_keys": "missing", "mismatched_keys": "of another shape", "unexpected_keys": "unknown"}
    for kind, what in faults.items():
        names = sorted(str(name[0] if isinstance(name, tuple) else name) for name in found.get(kind, ()))
        if names:
            raise CheckpointError(f"In {where} these weights are {what}: {_shown(names)}; download it again.")
    return model.eval().requires_grad_(False)


def fingerprint(path: Path, check: Check = lambda: None) -> str:
    """Identity of the weights in a file: its SHA-256, 64 hexadecimal digits; for a bundled packed file, that of the
    original (:func:`paretone.models.files.bundled.original`). Cached by path, size and modification time. ``check`` is
    called every few megabytes and may raise to cancel. Raises :class:`CheckpointError`."""
    try:
        return original(bundled.file_sha256(path, check))
    except OSError as error:
        raise CheckpointError(f"The checkpoint {path} cannot be read: {error.strerror or error}.") from None


def is_packed_file(path: Path) -> bool:
    """Whether the weights at ``path`` are packed, so that only Paretone can read them; see
    :mod:`paretone.models.files.bundled`. Raises :class:`CheckpointError`."""
    if path.suffix != ".safetensors":
        return False
    with opened(path) as file:
        return isinstance(file, PackedFile)


def plain_file(path: Path) -> bytes:
    """The safetensors file at ``path`` for other software: its bytes if not packed, else a reproducible unpacked file
    with the same tensors and metadata. Raises :class:`CheckpointError`."""
    with opened(path) as file:
        if not isinstance(file, PackedFile):
            return path.read_bytes()
        return with_sorted_metadata(save(_tensors(file, lambda: None), file.metadata()))


def _kind(value: Tensor) -> str:
    if value.is_floating_point():
        return "fractions"
    return "truth values" if value.dtype is torch.bool else "whole numbers"


def _shape(shape: Iterable[int]) -> str:
    return " × ".join(map(str, shape)) or "one number"


def _shown(names: list[str]) -> str:
    return named_first(names, NAMES_SHOWN)


TOKENIZER = "tokenizer.json"


def read_tokenizer(folder: Path, title: str, install: str, marks: Sequence[str]) -> Tokenizer:
    """The tokenizer in ``folder`` of the model called ``title``, which must have the tokens ``marks``; ``install`` says
    how to get the package. Raises :class:`CheckpointError` if package, file or tokens are missing."""
    with needing(CheckpointError, f"{title} reads text with the package tokenizers", install):
        from tokenizers import Tokenizer
    path = folder / TOKENIZER
    require_part(path, f"it belongs in the folder of {title}'s weights")
    with readable(CheckpointError, f"{path} cannot be read as a tokenizer", "download it again", Exception):
        read_json(path)  # Rejects deep nesting, which would overflow the package's stack.
        tokenizer = Tokenizer.from_file(str(path))
    missing = [mark for mark in marks if tokenizer.token_to_id(mark) is None]
    if missing:
        raise CheckpointError(f"{path} lacks {', '.join(missing)}; it is not the tokenizer of {title}.")
    return tokenizer


WEIGHTS = "model.safetensors"
_BESIDE = "optimizer", "scheduler", "scaler", "rng_state", "training_args"
"""Names of the other files that the trainer of ``transformers`` saves begin with these."""


@dataclass(frozen=True)
class Shards:
    folder: Path
    paths: tuple[Path, ...]
    """One file, or the shards in order of name."""
    listed: Mapping[str, str]
    """Shard of each weight, from the index; empty for a single file."""

    @classmethod
    def find(cls, folder: Path) -> Shards:
        """Find the files in ``folder``. Raises :class:`CheckpointError` that names missing ones."""
        if (folder / WEIGHTS).is_file():
            return cls(folder, (folder / WEIGHTS,), {})
        index = next(filter(Path.is_file, (folder / INDEX, folder / INDEX_OF_PICKLED)), None)
        if index is None:
            there = [one for one in config_file.weight_files(folder) if not one.name.startswith(_BESIDE)]
            if len(there) == 1:
                return cls(folder, tuple(there), {})
            several = f"several files of weights ({_shown([one.name for one in there])})" if there else "no weights"
            raise CheckpointError(f"{folder} holds {several}; put {WEIGHTS} there, or {INDEX} with all its shards.")
        try:
            listed = shard_of_each(read_bytes(index))
        except OSError as error:
            raise CheckpointError(f"{index} cannot be read: {first_line(error)}.") from None
        except ValueError:
            raise CheckpointError(f"{index} is not a list of shards; download it again.") from None
        paths = tuple(folder / name for name in sorted(set(listed.values())))
        missing = [path.name for path in paths if not path.is_file()]
        if missing:
            raise CheckpointError(f"{folder} lacks {', '.join(missing)}; download the missing shards.")
        return cls(folder, paths, listed)

    @property
    def where(self) -> str:
        return str(self.paths[0] if len(self.paths) == 1 else self.folder)

    def fingerprint(self, check: Check = lambda: None) -> str:
        """SHA-256 of the file; of several, that of their digests in order."""
        digests = [fingerprint(path, check) for path in self.paths]
        return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()

    def read(
        self, wanted: Callable[[str], bool] = lambda name: True, check: Check = lambda: None
    ) -> tuple[dict[str, Tensor], list[str]]:
        """The ``wanted`` weights, on the CPU, and the names of all others, which are not read. ``check`` is called
        between weights and may raise to cancel. Raises :class:`CheckpointError` for damaged files, and for weights that
        differ from the index."""
        weights: dict[str, Tensor] = {}
        others: list[str] = []
        for path in self.paths:
            if path.suffix != config_file.SAFETENSORS:
                content = read_weights(path, check)
                weights |= {name: value for name, value in content.items() if wanted(name)}
                others += [name for name in content if not wanted(name)]
                continue
            with opened(path) as file:
                for name, stored in unwrapped({one: one for one in file.keys()}, str(path)).items():  # noqa: SIM118
                    check()
                    if self.listed and self.listed.get(stored) != path.name:
                        raise CheckpointError(f"{path} holds {stored}, which is not in {INDEX}; download it again.")
                    if wanted(name):
                        weights[name] = file.get_tensor(stored)
                    else:
                        others.append(name)
        return sound_tensors(weights, self.where), others

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all weights, in safetensors without reading these. Raises :class:`CheckpointError` if damaged."""
        found: dict[str, tuple[int, ...]] = {}
        for path in self.paths:
            if path.suffix != config_file.SAFETENSORS:
                found |= shapes_of(read_weights(path))
                continue
            with opened(path) as file:
                names = unwrapped({one: one for one in file.keys()}, str(path))  # noqa: SIM118 (not a mapping)
                found |= {name: tuple(file.get_slice(stored).get_shape()) for name, stored in names.items()}
        return found
