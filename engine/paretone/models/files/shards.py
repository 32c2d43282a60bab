"""A Hugging Face folder: its weights, in one file ``model.safetensors`` or in shards listed by
``model.safetensors.index.json``, and its ``tokenizer.json``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from paretone.errors import CheckpointError
from paretone.models.files.checkpoints import fingerprint, opened, require_part, sound_tensors
from paretone.models.files.releases import INDEX, shard_of_each
from paretone.reading import first_line, read_bytes, read_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer


TOKENIZER = "tokenizer.json"


def read_tokenizer(folder: Path, title: str, install: str, marks: Sequence[str]) -> Tokenizer:
    """The tokenizer in ``folder`` of the model called ``title``, which must have the tokens ``marks``; ``install`` says
    how to get the package. Raises :class:`CheckpointError` if package, file or tokens are missing."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise CheckpointError(
            f"{title} reads text with the package tokenizers, which is not installed; {install}"
        ) from None
    path = folder / TOKENIZER
    require_part(path, f"it belongs in the folder of {title}'s weights")
    try:
        read_json(path)  # The package reads what is nested deeply until its stack is full.
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # The package raises nothing more special.
        raise CheckpointError(
            f"{path} cannot be read as a tokenizer ({first_line(error)}); download it again."
        ) from None
    missing = [mark for mark in marks if tokenizer.token_to_id(mark) is None]
    if missing:
        raise CheckpointError(f"{path} lacks {', '.join(missing)}; it is not the tokenizer of {title}.")
    return tokenizer


WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class Shards:
    """The weight files of a folder."""

    folder: Path
    paths: tuple[Path, ...]
    """One file, or the shards in the order of their names."""
    listed: Mapping[str, str]
    """The shard of each weight, as the index says; empty if there is one file."""

    @classmethod
    def find(cls, folder: Path) -> Shards:
        """The files in ``folder``. Raises :class:`CheckpointError` that names those that are missing."""
        if (folder / WEIGHTS).is_file():
            return cls(folder, (folder / WEIGHTS,), {})
        index = folder / INDEX
        if not index.is_file():
            raise CheckpointError(f"{folder} holds no weights; put {WEIGHTS} there, or {INDEX} with all its shards.")
        listed = _listed(index)
        paths = tuple(folder / name for name in sorted(set(listed.values())))
        missing = [path.name for path in paths if not path.is_file()]
        if missing:
            raise CheckpointError(f"{folder} lacks {', '.join(missing)}; download the missing shards.")
        return cls(folder, paths, listed)

    @property
    def where(self) -> str:
        """Their name in error messages."""
        return str(self.paths[0] if len(self.paths) == 1 else self.folder)

    def fingerprint(self, check: Callable[[], None] = lambda: None) -> str:
        """SHA-256 of the file; of several, that of their digests in order."""
        digests = [fingerprint(path, check) for path in self.paths]
        return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()

    def read(
        self, wanted: Callable[[str], bool] = lambda name: True, check: Callable[[], None] = lambda: None
    ) -> tuple[dict[str, Tensor], list[str]]:
        """The ``wanted`` weights, on the CPU, and the names of all others, which are not read.

        ``check`` is called between weights and may raise to cancel. Raises :class:`CheckpointError` for files that are
        damaged, or that hold other weights than the index says.
        """
        weights, others = {}, []
        for path in self.paths:
            with opened(path) as file:
                for name in file.keys():  # noqa: SIM118 (not a mapping)
                    check()
                    if self.listed and self.listed.get(name) != path.name:
                        raise CheckpointError(f"{path} holds {name}, which is not in {INDEX}; download it again.")
                    if wanted(name):
                        weights[name] = file.get_tensor(name)
                    else:
                        others.append(name)
        return sound_tensors(weights, self.where), others

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all weights, which are not read. Raises :class:`CheckpointError` for files that are damaged."""
        found: dict[str, tuple[int, ...]] = {}
        for path in self.paths:
            with opened(path) as file:
                found |= {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        return found


def _listed(index: Path) -> dict[str, str]:
    """The shard of each weight."""
    try:
        return shard_of_each(read_bytes(index))
    except OSError as error:
        raise CheckpointError(f"{index} cannot be read: {first_line(error)}.") from None
    except ValueError:
        raise CheckpointError(f"{index} is not a list of shards; download it again.") from None
