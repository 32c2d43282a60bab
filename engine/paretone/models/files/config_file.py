"""Names of weight files, sizes by the shapes of weights, and the reader of descriptions (``config.json``,
``config.yaml``, ``model.yaml`` and ``layout.json``) of published and bundled models. Torch-free.

Errors name the file and the field that is missing, of the wrong type or out of range. The resulting sizes are checked
against the weights by :mod:`paretone.models.networks.shapes`.
"""

from __future__ import annotations

import contextlib
import pickletools
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from paretone.errors import CheckpointError
from paretone.fields import is_of
from paretone.reading import (
    is_regular,
    parsed_json,
    read_json,
    read_yaml,
    require_regular,
    shortened,
    shown,
    until_changed,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


SAFETENSORS = ".safetensors"
PICKLED = (".pt", ".pth", ".ckpt", ".bin")
"""Suffixes of files from ``torch.save``."""
WEIGHTS = (SAFETENSORS, *PICKLED)


def weight_files(folder: Path) -> list[Path]:
    """Files in ``folder`` with the suffix of a weight file, by name, whether or not they are readable."""
    return sorted(one for one in folder.glob("*") if one.suffix in WEIGHTS)


def entries_of(path: Path) -> Mapping[str, Any]:
    """Entries of a description, to recognise a model by; empty if it cannot be read (loading reports that)."""
    try:
        return ConfigFile.read(path).entries
    except CheckpointError:
        return {}


def without_wrappers(name: str) -> str:
    """A weight's name without the parts that ``torch.compile`` and ``DistributedDataParallel`` add."""
    return ".".join(part for part in name.split(".") if part not in ("_orig_mod", "module"))


@until_changed(64)
def weight_names(path: Path) -> frozenset[str]:
    """Names of the weights in a file, without wrappers, to recognise a model by; of a pickle its other texts as well.
    Empty if it cannot be read (loading reports that)."""
    if not is_regular(path):
        return frozenset()
    found: Iterable[object] = ()
    if path.suffix != SAFETENSORS:
        found = (one for _, one in islice(pickled(path), 500_000))  # Operations; releases have 40,000.
    else:
        with contextlib.suppress(OSError, ValueError, TypeError), path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            found = list(parsed_json(file.read(min(length, 100_000_000))))  # The format's limit.
    return frozenset(without_wrappers(one) for one in found if isinstance(one, str))


def names_in(folder: Path) -> frozenset[str]:
    """:func:`weight_names` of the first files of weights in ``folder``."""
    return frozenset().union(*map(weight_names, weight_files(folder)[:4]))


LORA = re.compile(r"(^|[._])lora_?(A|B|up|down|alpha|embedding_[AB]|magnitude\w*)\b|(^|\.)base_model\.model\.")


def is_lora(folder: Path) -> bool:
    """Whether there are adapters in ``folder``, and no other weights."""
    there, described = weight_files(folder), (folder / "adapter_config.json").is_file()
    return (described or bool(there)) and all(
        (described and "adapter" in one.name) or any(map(LORA.search, weight_names(one))) for one in there
    )


def lora_error(where: object) -> CheckpointError:
    return CheckpointError(
        f"{where} is a LoRA, what a fine-tuning adds to a model, and not a model: merge it first. With PEFT: "
        "PeftModel.from_pretrained(model, folder).merge_and_unload(), then save the model's state_dict() as "
        ".safetensors in a folder with the model's other files, and choose that."
    )


def is_of_type(folder: Path, kind: str, weight: str) -> bool:
    """Whether ``config.json`` in ``folder`` names a ``kind`` of model or, without that file, its files hold a
    ``weight``."""
    described = entries_of(folder / "config.json")
    named = f"{described.get('model_type', '')} {described.get('architectures', '')}".lower()
    return kind in named if described else weight in names_in(folder)


def pickled(path: Path) -> Iterator[tuple[str, Any]]:
    """Operations of the pickles in a ``.pt`` and their arguments, such as the names of its weights, read without
    executing them, as far as they can be parsed."""
    with contextlib.suppress(*NO_ZIP):
        require_regular(path)
        with path.open("rb") as file:
            # Before torch 1.6: three of description, the content, and the names of tensors.
            pickles: Iterable[IO[bytes]] = [file] * 5
            if zipfile.is_zipfile(path):
                packed = zipfile.ZipFile(file)
                pickles = (packed.open(name) for name in packed.namelist() if name.endswith("data.pkl"))
            for one in pickles:
                for operation, argument, _ in pickletools.genops(one):
                    yield operation.name, argument


NO_ZIP = (zipfile.BadZipFile, OSError, ValueError, LookupError, RuntimeError, struct.error, zlib.error)
"""Exceptions for damaged zips."""


class WeightShapes:
    """Shapes of the weights in a file, by name, to find the sizes of ``what``, such as ``the flow of CosyVoice 2``."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]], where: str, what: str) -> None:
        self._shapes, self._where, self._what = shapes, where, what

    def __call__(self, name: str, axes: int) -> tuple[int, ...]:
        """The shape of a weight with this number of axes. Raises :class:`CheckpointError` without it."""
        found = self._shapes.get(name, ())
        if len(found) != axes:
            raise CheckpointError(f"{self._where} lacks the weight {name}: it is not {self._what}.")
        return found

    def count(self, pattern: str) -> int:
        """Number of layers: distinct values of the group in ``pattern`` at the beginning of names. Raises
        :class:`CheckpointError` without any."""
        found = {match[1] for name in self._shapes if (match := re.match(pattern, name))}
        if not found:
            raise CheckpointError(f"{self._where} lacks layers: it is not {self._what}.")
        return len(found)


Sizes = TypeVar("Sizes", bound="DataclassInstance")
MOST = 2**31 - 1
"""The largest integer that may describe a model."""


@dataclass(frozen=True)
class ConfigFile:
    """A mapping read from a file, with its location. All methods raise :class:`CheckpointError`."""

    entries: Mapping[str, object]
    where: str

    @classmethod
    def read(cls, path: Path) -> ConfigFile:
        """Read a JSON file by its suffix, otherwise YAML."""
        try:
            data = read_json(path) if path.suffix == ".json" else read_yaml(path)
        except FileNotFoundError:
            raise CheckpointError(f"{path} is missing; it belongs in the folder of the weights.") from None
        except OSError as error:
            raise CheckpointError(f"{path} cannot be read: {error.strerror or error}.") from None
        except ValueError as error:
            raise CheckpointError(
                f"{path} cannot be read as a configuration ({shortened(str(error))}); download it again."
            ) from None
        if not isinstance(data, dict) or not all(isinstance(name, str) for name in data):
            raise CheckpointError(f"{path} is not a configuration: it should be a list of names and values.")
        return cls(data, str(path))

    @classmethod
    def of(cls, config: ConfigFile | Mapping[str, object], where: str = "The model's config.json") -> ConfigFile:
        """``config``, or wrap existing entries, called ``where``."""
        return config if isinstance(config, ConfigFile) else cls(config, where)

    def part(self, name: str, *, needed: bool = False) -> ConfigFile:
        """The mapping under ``name``; empty if missing and not ``needed``."""
        entries = self.entries.get(name)
        if entries is None and needed:
            raise CheckpointError(f"{self.where} lacks the part {shown(name)}; take the published file.")
        if not isinstance(entries, Mapping | None):
            raise self.wrong(name, "a list of names and values")
        return ConfigFile(entries or {}, f"{self.where}: {name}")

    def has(self, name: str) -> bool:
        return self.entries.get(name) is not None

    def number(self, name: str, default: int | None = None, least: int = 1, most: int = MOST) -> int:
        """An integer from ``least`` to ``most``."""
        wanted = "a positive whole number" if least == 1 else f"a whole number from {least}"
        value: int = self._entry(name, default, int, lambda value: value >= least, wanted)
        if value > most:
            raise self.wrong(name, f"at most {most}")
        return value

    def real(self, name: str, above: float = 0.0, below: float = 1e12) -> float:
        wanted = f"a number above {above:g} and below {below:g}"
        return float(self._entry(name, None, int | float, lambda value: above < value < below, wanted))

    def sizes(self, kind: type[Sizes]) -> Sizes:
        """A dataclass of positive integers, all required."""
        return kind(**{one.name: self.number(one.name) for one in fields(kind)})

    def flag(self, name: str, default: bool | None = None) -> bool:
        return self._entry(name, default, bool, lambda value: True, "true or false")

    def text(self, name: str, default: str | None = None) -> str:
        return self._entry(name, default, str, bool, "a word")

    def one_of(self, name: str, known: Sequence[str], default: str | None = None) -> str:
        return self._entry(name, default, str, lambda value: value in known, f"one of {', '.join(known)}")

    def numbers(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        return self._list(name, default, int, lambda one: 0 < one <= MOST, "whole numbers above 0")

    def reals(self, name: str) -> tuple[float, ...]:
        return self._list(name, None, int | float, lambda one: 0 < float(one) < MOST, "numbers above 0")

    def texts(self, name: str) -> tuple[str, ...]:
        return self._list(name, None, str, bool, "a list of words")

    def require(self, name: str, value: object, default: object = None) -> None:
        """Raise unless the entry ``name``, or ``default`` if missing, equals ``value``."""
        found = self.entries.get(name, default)
        if found is None:
            raise CheckpointError(f"{self.where} lacks {shown(name)}; only {shown(value)} is supported.")
        if type(found) is not type(value) or found != value:
            raise CheckpointError(f"{self.where} has {name} {shown(found)}; only {shown(value)} is supported.")

    def wrong(self, name: str, wanted: str) -> CheckpointError:
        return CheckpointError(f"{self.where}: {name} should be {wanted}, not {shown(self.entries.get(name))}.")

    def _list(self, name: str, default: object, kind: Any, holds: Callable[[Any], bool], wanted: str) -> tuple:
        def hold(found: Sequence[Any]) -> bool:
            return bool(found) and all(is_of(one, kind) and holds(one) for one in found)

        return tuple(self._entry(name, default, list | tuple, hold, wanted))

    def _entry(self, name: str, default: object, kind: Any, holds: Callable[[Any], bool], wanted: str) -> Any:
        value = self.entries[name] if self.has(name) else default
        if value is None:
            raise CheckpointError(f"{self.where} lacks {shown(name)}, which should be {wanted}; download it again.")
        if not is_of(value, kind) or not holds(value):
            raise self.wrong(name, wanted)
        return value
